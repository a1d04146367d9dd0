//! What arrived at the sink.

use std::collections::{BTreeMap, BTreeSet};

use catchment_columns::quantile::carrier::{self, CarrierError, SketchMessage, SketchType};
use catchment_columns::quantile::series::KeyValue as SeriesValue;
use catchment_loadgen::metrics::{METRIC_NAME, SERIES_KEYS};
use catchment_loadgen::sink::{MetricsMessage, SinkError};
use catchment_quantile::QuantileError;
use catchment_quantile::kll::{KllSketch, SketchImageError};
use catchment_quantile::rank::Criterion;
use catchment_quantile::run::{self, RunError, SortedRun};
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::{KeyValue, any_value};
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::{
    Metric, NumberDataPoint, metric::Data, number_data_point,
};
use prost::Message as _;

use super::truth::{Answer, QUANTILES, Spot, Truth};

/// It is not what should arrive.
#[derive(Debug, thiserror::Error)]
pub(super) enum ArrivedError {
    #[error(transparent)]
    Sink(#[from] SinkError),
    #[error("no sketch message: {0}")]
    Carrier(#[from] CarrierError),
    #[error("no sketch: {0}")]
    Image(#[from] SketchImageError),
    #[error("no sorted run: {0}")]
    Run(#[from] RunError),
    #[error("no answer: {0}")]
    Quantile(#[from] QuantileError),
    #[error("{0:?} arrived twice")]
    Twice(Spot),
    #[error("something that was not sent: {0}")]
    Foreign(String),
}

/// Sketches or runs, and what they answer.
#[derive(Debug, Default)]
pub(super) struct Sketches {
    pub(super) answers: BTreeMap<Spot, Answer>,
    /// Bytes of all envelopes.
    pub(super) envelope_bytes: u64,
}

/// Reads sketches and sorted runs; an observation that closes the windows is left out.
pub(super) fn sketches(messages: Vec<MetricsMessage>, truth: &Truth) -> Result<Sketches, ArrivedError> {
    let mut found = Sketches::default();
    let mut runs: BTreeMap<Spot, Vec<SortedRun>> = BTreeMap::new();
    let mut parts = BTreeSet::new();
    for message in messages {
        for sketch in carrier::decode_otlp(&message.into_metrics()?.encode_to_vec()) {
            let sketch = sketch?;
            let Some(spot) = spot(&sketch, truth)? else { continue };
            let part = sketch.identity.as_ref().map(|identity| identity.part);
            if !parts.insert((spot, part)) {
                return Err(ArrivedError::Twice(spot));
            }
            found.envelope_bytes += sketch.envelope.len() as u64;
            let answer = match sketch.sketch {
                SketchType::Run => {
                    runs.entry(spot).or_default().push(SortedRun::from_bytes(&sketch.envelope)?);
                    continue;
                }
                SketchType::KllDataSketches => {
                    let kll = KllSketch::from_bytes(&sketch.envelope, 0)?;
                    Answer { count: sketch.count, quantiles: kll.quantiles(&QUANTILES, Criterion::Inclusive)? }
                }
                other => return Err(ArrivedError::Foreign(format!("{other:?}"))),
            };
            if found.answers.insert(spot, answer).is_some() {
                return Err(ArrivedError::Twice(spot));
            }
        }
    }
    for (spot, runs) in runs {
        let count = runs.iter().map(SortedRun::n).sum();
        let _ = found.answers.insert(spot, Answer { count, quantiles: run::quantiles(&runs, &QUANTILES)? });
    }
    Ok(found)
}

/// `None` for a window that closes others, or has nothing in it.
fn spot(sketch: &SketchMessage, truth: &Truth) -> Result<Option<Spot>, ArrivedError> {
    let start = u64::try_from(sketch.start_unix_nano).unwrap_or_default();
    let Some(window) = truth.window_at(start).filter(|_| sketch.count > 0) else {
        return Ok(None);
    };
    let text = |key: &str| {
        let value = sketch.series.iter().find(|(one, _)| one == key).map(|(_, value)| value);
        match value {
            Some(SeriesValue::Text(text)) => text.to_string(),
            _ => String::new(),
        }
    };
    let series = truth.series_with(&SERIES_KEYS.map(text));
    match series.filter(|_| sketch.metric == METRIC_NAME) {
        Some(series) => Ok(Some(Spot { window, series })),
        None => Err(ArrivedError::Foreign(format!("{} of {:?}", sketch.metric, sketch.series))),
    }
}

/// Reads the points of quantiles and counts.
pub(super) fn quantiles(messages: Vec<MetricsMessage>, truth: &Truth) -> Result<BTreeMap<Spot, Answer>, ArrivedError> {
    /// What is known of a window.
    #[derive(Default)]
    struct Partial {
        count: Option<u64>,
        quantiles: [Option<f64>; QUANTILES.len()],
    }
    let mut found: BTreeMap<Spot, Partial> = BTreeMap::new();
    for (metric, point) in points(messages)? {
        let Some(window) = truth.window_at(point.start_time_unix_nano) else { continue };
        let foreign = || ArrivedError::Foreign(format!("{} with {:?}", metric.name, point.attributes));
        let text = |key: &str| attribute(&point.attributes, key);
        let series = truth.series_with(&SERIES_KEYS.map(text)).ok_or_else(foreign)?;
        let spot = Spot { window, series };
        let value = double(&point).ok_or_else(foreign)?;
        let partial = found.entry(spot).or_default();
        let before = match metric.name.strip_prefix(METRIC_NAME) {
            // Whole and positive.
            Some(".count") => partial.count.replace(value as u64).is_some(),
            Some(".quantile") => {
                let quantile: f64 = text("quantile").parse().map_err(|_| foreign())?;
                let at = QUANTILES.iter().position(|one| *one == quantile).ok_or_else(foreign)?;
                partial.quantiles[at].replace(value).is_some()
            }
            _ => return Err(foreign()),
        };
        if before {
            return Err(ArrivedError::Twice(spot));
        }
    }
    let answer = |partial: Partial| Answer {
        count: partial.count.unwrap_or_default(),
        quantiles: partial.quantiles.into_iter().flatten().collect(),
    };
    Ok(found.into_iter().map(|(spot, partial)| (spot, answer(partial))).collect())
}

/// Bits of the values of all points, sorted.
pub(super) fn raw_values(messages: Vec<MetricsMessage>) -> Result<Vec<u64>, ArrivedError> {
    let mut values: Vec<u64> =
        points(messages)?.iter().filter_map(|(_, point)| double(point)).map(f64::to_bits).collect();
    values.sort_unstable();
    Ok(values)
}

/// Points of gauges, each with its metric without its points.
fn points(messages: Vec<MetricsMessage>) -> Result<Vec<(Metric, NumberDataPoint)>, ArrivedError> {
    let mut all = Vec::new();
    for message in messages {
        let scopes = message.into_metrics()?.resource_metrics.into_iter().flat_map(|one| one.scope_metrics);
        for mut metric in scopes.flat_map(|one| one.metrics) {
            if let Some(Data::Gauge(gauge)) = metric.data.take() {
                all.extend(gauge.data_points.into_iter().map(|point| (metric.clone(), point)));
            }
        }
    }
    Ok(all)
}

fn double(point: &NumberDataPoint) -> Option<f64> {
    match point.value {
        Some(number_data_point::Value::AsDouble(value)) => Some(value),
        Some(number_data_point::Value::AsInt(_)) | None => None,
    }
}

/// Text of an attribute, empty if there is none.
fn attribute(attributes: &[KeyValue], key: &str) -> String {
    let value = attributes.iter().find(|one| one.key == key).and_then(|one| one.value.as_ref()?.value.as_ref());
    match value {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::num::{NonZeroU32, NonZeroU64};

    use catchment_columns::quantile::carrier::MessageIdentity;
    use catchment_loadgen::metrics::Corpus;
    use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::AnyValue;
    use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::{Gauge, MetricsData, ResourceMetrics, ScopeMetrics};

    use super::super::cases::{K, Method};
    use super::*;

    fn corpus(series: u32) -> Corpus {
        let window = NonZeroU64::new(1_000).unwrap();
        Corpus { source: 0, count: 2_000, window, series: NonZeroU32::new(series).unwrap() }
    }

    fn values(corpus: &Corpus, window: u64, series: u32) -> Vec<f64> {
        let all = corpus.window_indices(window).filter(|index| corpus.series_of(*index) == series);
        all.map(|index| corpus.value(index)).collect()
    }

    /// A sketch or run of a window and series of the corpus.
    fn message(corpus: &Corpus, window: u64, series: u32, part: u32, exact: Option<&[f64]>) -> SketchMessage {
        let values = exact.map_or_else(|| values(corpus, window, series), <[f64]>::to_vec);
        let (sketch, envelope) = if exact.is_some() {
            (SketchType::Run, SortedRun::from_values(&values).to_bytes())
        } else {
            let mut kll = KllSketch::new(K, 7).unwrap();
            kll.update_slice(&values);
            (SketchType::KllDataSketches, kll.to_bytes())
        };
        let attributes = SERIES_KEYS.iter().zip(corpus.series_attributes(series));
        let start_unix_nano = i64::try_from(corpus.window_start(window)).unwrap();
        SketchMessage {
            metric: METRIC_NAME.into(),
            unit: "s".into(),
            series: attributes.map(|(key, value)| ((*key).into(), SeriesValue::Text(value.into()))).collect(),
            start_unix_nano,
            end_unix_nano: start_unix_nano + 10_000_000_000,
            sketch,
            envelope,
            count: values.len() as u64,
            min: None,
            max: None,
            sum: None,
            dropped: Vec::new(),
            sources: None,
            switched: false,
            identity: Some(MessageIdentity { source: "s".into(), instance: 1, part, parts: 9, sequence: 1 }),
        }
    }

    fn otap(messages: &[SketchMessage]) -> MetricsMessage {
        MetricsMessage::Otap(Box::new(carrier::encode(messages).unwrap()))
    }

    /// Sketches of several series, and runs in parts, are put together; what comes twice or was not sent is found.
    #[test]
    fn sketch_messages() {
        let corpus = corpus(3);
        let truth = Truth::new(&[corpus]);
        let spots = || (0..2).flat_map(|window| (0..3).map(move |series| (window, series)));
        let sketched: Vec<_> = spots().map(|(window, series)| message(&corpus, window, series, series, None)).collect();
        let closing = message(&corpus, 3, 0, 0, Some(&[1.0]));
        let found = sketches(vec![otap(&sketched), otap(&[closing])], &truth).unwrap();
        assert_eq!(truth.check(&found.answers, Method::Kll), Ok(()));
        assert_eq!(found.envelope_bytes, sketched.iter().map(|one| one.envelope.len() as u64).sum::<u64>());
        let twice = sketches(vec![otap(&sketched), otap(&sketched[2..3])], &truth);
        assert!(matches!(twice, Err(ArrivedError::Twice(Spot { window: 0, series: 2 }))));

        let runs = spots().flat_map(|(window, series)| {
            let values = values(&corpus, window, series);
            let (first, second) = values.split_at(100);
            [(2 * series, first), (2 * series + 1, second)]
                .map(|(part, values)| message(&corpus, window, series, part, Some(values)))
        });
        let found = sketches(vec![otap(&runs.collect::<Vec<_>>())], &truth).unwrap();
        assert_eq!(truth.check(&found.answers, Method::Exact), Ok(()));

        let mut foreign = sketched[0].clone();
        foreign.metric = "other".into();
        assert!(matches!(sketches(vec![otap(&[foreign])], &truth), Err(ArrivedError::Foreign(_))));
    }

    fn gauge(name: &str, start: u64, value: f64, quantile: Option<&str>) -> Metric {
        let text = |text: &str| Some(AnyValue { value: Some(any_value::Value::StringValue(text.into())) });
        let attributes = quantile.map(|quantile| KeyValue { key: "quantile".into(), value: text(quantile) });
        let point = NumberDataPoint {
            start_time_unix_nano: start,
            attributes: attributes.into_iter().collect(),
            value: Some(number_data_point::Value::AsDouble(value)),
            ..NumberDataPoint::default()
        };
        let data = Some(Data::Gauge(Gauge { data_points: vec![point] }));
        Metric { name: format!("{METRIC_NAME}{name}"), data, ..Metric::default() }
    }

    fn otlp(metrics: Vec<Metric>) -> MetricsMessage {
        let scope_metrics = vec![ScopeMetrics { metrics, ..ScopeMetrics::default() }];
        let resource_metrics = vec![ResourceMetrics { scope_metrics, ..ResourceMetrics::default() }];
        MetricsMessage::Otlp(MetricsData { resource_metrics })
    }

    /// Counts and quantiles find each other; a second one of the same is no answer.
    #[test]
    fn gauges() {
        let corpus = corpus(1);
        let truth = Truth::new(&[corpus]);
        let window = |window| {
            let start = corpus.window_start(window);
            let mut sorted = values(&corpus, window, 0);
            sorted.sort_by(f64::total_cmp);
            let rank = |quantile| super::super::truth::nearest_rank(&sorted, quantile);
            let quantile = |quantile: f64| gauge(".quantile", start, rank(quantile), Some(&quantile.to_string()));
            let mut all: Vec<_> = QUANTILES.into_iter().map(quantile).collect();
            all.push(gauge(".count", start, 1_000.0, None));
            all
        };
        let found = quantiles(vec![otlp(window(0)), otlp(window(1))], &truth).unwrap();
        assert_eq!(truth.check(&found, Method::Exact), Ok(()));
        assert!(matches!(quantiles(vec![otlp(window(0)), otlp(window(0))], &truth), Err(ArrivedError::Twice(_))));
        let foreign = vec![otlp(vec![gauge(".max", corpus.window_start(0), 1.0, None)])];
        assert!(matches!(quantiles(foreign, &truth), Err(ArrivedError::Foreign(_))));
        assert_eq!(raw_values(vec![otlp(window(0))]).unwrap().len(), 5);
    }
}
