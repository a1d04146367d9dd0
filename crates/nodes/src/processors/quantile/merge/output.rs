//! What merged windows are sent as.

use catchment_columns::quantile::carrier::{SketchMessage, SketchType};
use catchment_columns::quantile::{AttributePath, KeyValue, Place, WindowResult};
use catchment_quantile::exchange::Emission;

use super::super::config::Output;
use super::super::output::{Batch, OfAll, Sender, nothing, statistic};
use super::config::MergeConfig;
use super::content::{Content, Labels, Merged};

/// Attribute of what is sent of a window in which sources are missing: `1/2`.
pub(super) const SOURCES: &str = "quantile.sources";

/// What series of a window have in common.
pub(super) struct Window<'a> {
    metric: &'a str,
    unit: &'a str,
    start_ns: i64,
    end_ns: i64,
    shortfall: Option<(u32, u32)>,
    /// Number of the next message, and of all.
    part: usize,
    parts: usize,
}

impl<'a> Window<'a> {
    /// A window of which all contents are joined in `merged`.
    pub(super) fn of(emission: &'a Emission<Content>, merged: &'a Content) -> Self {
        let Emission { metric, window, sources, expected_sources, .. } = emission;
        let messages = |merged: &Merged| merged.runs.len() + usize::from(merged.sketch.is_some());
        Self {
            metric,
            unit: &merged.unit,
            start_ns: window.start_ns,
            end_ns: window.end_ns,
            shortfall: merged.shortfall(*sources, *expected_sources),
            part: 0,
            parts: merged.series.values().map(messages).sum(),
        }
    }

    /// The message of a window in which nothing was observed.
    pub(super) fn announce(&self, sender: &mut Sender, batch: &mut Batch) {
        if self.parts == 0 {
            let bounds = (self.start_ns, self.end_ns);
            batch.add_message(nothing((self.metric, self.unit), bounds, self.shortfall, sender));
        }
    }

    /// Adds a settled series. Whether it is sent in the form asked for.
    pub(super) fn add(
        &mut self,
        config: &MergeConfig,
        sender: &mut Sender,
        batch: &mut Batch,
        (labels, merged): (&Labels, &Merged),
    ) -> bool {
        if config.output != Output::Sketch {
            return self.answer(config, batch, labels, merged);
        }
        let mut dropped: Vec<(String, u64)> = merged.dropped.iter().map(|(why, count)| (why.clone(), *count)).collect();
        dropped.sort();
        if let Some(sketch) = &merged.sketch {
            let envelope = (SketchType::KllDataSketches, sketch.to_bytes(), merged.of_all());
            let message = self.message(sender, labels, envelope);
            let dropped = std::mem::take(&mut dropped);
            batch.add_message(SketchMessage { dropped, switched: merged.switched, ..message });
        }
        for run in &merged.runs {
            #[allow(clippy::cast_precision_loss, reason = "weights above 2^53 are out of reach")]
            let sum = run.values().zip(run.weights()).map(|(value, weight)| value * weight as f64).sum();
            let of_all = (run.n(), (!run.is_empty()).then_some(sum), run.min(), run.max());
            let message = self.message(sender, labels, (SketchType::Run, run.to_bytes(), of_all));
            batch.add_message(SketchMessage { dropped: std::mem::take(&mut dropped), ..message });
        }
        true
    }

    fn message(
        &mut self,
        sender: &mut Sender,
        labels: &Labels,
        (sketch, envelope, (count, sum, min, max)): (SketchType, Vec<u8>, OfAll),
    ) -> SketchMessage {
        let identity = sender.next(self.part, self.parts);
        self.part += 1;
        SketchMessage {
            metric: self.metric.to_owned(),
            unit: self.unit.to_owned(),
            series: labels.clone(),
            start_unix_nano: self.start_ns,
            end_unix_nano: self.end_ns,
            sketch,
            envelope,
            count,
            min,
            max,
            sum,
            dropped: Vec::new(),
            sources: self.shortfall,
            switched: false,
            identity: Some(identity),
        }
    }

    fn answer(&self, config: &MergeConfig, batch: &mut Batch, labels: &Labels, merged: &Merged) -> bool {
        // A series whose observations were all refused has no quantiles.
        let Ok(found) = merged.quantiles(&config.quantiles) else { return true };
        let quantiles: Vec<_> = config.quantiles.iter().copied().zip(found).collect();
        let of_all @ (count, sum, ..) = merged.of_all();
        let statistics: Vec<_> = config.statistics.iter().filter_map(|which| statistic(*which, of_all)).collect();
        let told = self.shortfall.map(|(got, of)| (SOURCES.to_owned(), KeyValue::Text(format!("{got}/{of}").into())));
        let (paths, key): (Vec<AttributePath>, Vec<KeyValue>) = labels
            .iter()
            .cloned()
            .chain(told)
            .map(|(key, value)| (AttributePath { place: Place::Record, key, steps: Vec::new() }, value))
            .unzip();
        let result = WindowResult {
            name: self.metric,
            unit: self.unit,
            group_by: &paths,
            key: Some(&key),
            start_unix_nano: self.start_ns,
            end_unix_nano: self.end_ns,
            quantiles: &quantiles,
            statistics: &statistics,
            exact: !merged.switched,
        };
        if config.output == Output::ExponentialHistogram {
            batch.add_histogram(&result, &merged.histogram(config.max_buckets));
            return true;
        }
        batch.add_result(&result, config.output, count, sum)
    }
}
