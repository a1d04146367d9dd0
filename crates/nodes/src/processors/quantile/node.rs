//! The processor.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use catchment_columns::OtapArrowRecords;
use catchment_columns::quantile::{Fate, ValueSource, WindowResult, gauges};
use catchment_quantile::accumulator::{Accumulator, AccumulatorConfig};
use catchment_quantile::window::{SeriesKey, WindowSpec};
use otel_arrow_dfe_config::SignalType;
use otel_arrow_dfe_config::error::Error as ConfigError;
use otel_arrow_dfe_engine::control::{AckMsg, CallData, NackMsg, NodeControlMsg, WakeupSlot};
use otel_arrow_dfe_engine::error::Error;
use otel_arrow_dfe_engine::local::processor::{EffectHandler, Processor};
use otel_arrow_dfe_engine::message::Message;
use otel_arrow_dfe_engine::processor::{FlowMetricHook, ProcessorRuntimeRequirements};
use otel_arrow_dfe_engine::{
    ConsumerEffectHandlerExtension, Interests, MessageSourceLocalEffectHandlerExtension, ProducerEffectHandlerExtension,
};
use otel_arrow_dfe_otap::accessory::slots::Key;
use otel_arrow_dfe_otap::pdata::{Context, OtapPdata, PdataEffectHandlerExtension};
use otel_arrow_dfe_telemetry::metrics::MetricSet;

use super::config::{Ack, Config, Statistic};
use super::holds::Holds;
use super::measure::{Closed, Measure, OpenWindow};
use super::metrics::{Metrics, QuantileMetrics};
use crate::accounts::NodeName;
use crate::config;
use crate::drain::{self, PipelineInstance};
use crate::time::now_unix_nano;

const TICK: WakeupSlot = WakeupSlot(0);
/// How often idle windows are looked for while there are open ones.
const TICK_INTERVAL: Duration = Duration::from_millis(200);
/// How long nothing must have come after the receivers ended before everything is sent: what is under way arrives
/// sooner, as a tick only fires when nothing else is waiting.
const DRAIN_QUIET: Duration = Duration::from_millis(300);

/// The quantile processor.
pub(super) struct QuantileProcessor {
    config: Config,
    pipeline: PipelineInstance,
    measures: Vec<Measure>,
    holds: Holds,
    metrics: Metrics,
    last_input: Instant,
    ticking: bool,
}

impl QuantileProcessor {
    pub(super) fn new(
        config: Config,
        name: NodeName,
        pipeline: PipelineInstance,
        metrics: MetricSet<QuantileMetrics>,
    ) -> Result<Self, ConfigError> {
        // Sketches of several cores meet in a merge: their random bits must differ.
        let seed = catchment_quantile::seed::derive(config.seed, catchment_quantile::seed::stable_hash(&name.core), 0);
        let accumulators = AccumulatorConfig::new(config.method, seed)
            .map_err(|error| config::invalid(format!("config.k: {error}")))?;
        let measures = config
            .measures
            .iter()
            .enumerate()
            .map(|(index, measure)| Measure::new(index, measure.clone(), config.window, accumulators))
            .collect::<Result<_, _>>()
            .map_err(|error| config::invalid(format!("config.window: {error}")))?;
        Ok(Self {
            holds: Holds::new(config.max_held_inputs),
            metrics: Metrics::new(metrics, name),
            config,
            pipeline,
            measures,
            last_input: Instant::now(),
            ticking: false,
        })
    }

    fn wants(&self, signal: SignalType) -> bool {
        self.measures.iter().any(|measure| match measure.config.source {
            ValueSource::LogAttribute { .. } => signal == SignalType::Logs,
            ValueSource::Metric { .. } => signal == SignalType::Metrics,
        })
    }

    async fn input(&mut self, mut pdata: OtapPdata, effects: &mut EffectHandler<OtapPdata>) -> Result<(), Error> {
        let signal = pdata.signal_type();
        let items = pdata.num_items() as u64;
        self.metrics.totals.received += items;
        if !self.wants(signal) {
            self.metrics.totals.forwarded += items;
            return effects.send_message_with_source_node(pdata).await.map_err(Error::from);
        }
        pdata.complete_processor_without_output(effects);
        let (delivery, mut records) = match effects.prepare_otap_work(pdata).await {
            Ok(work) => work,
            Err(error) => {
                self.metrics.totals.malformed += items;
                let (error, pdata) = error.into_parts();
                return effects.notify_nack(NackMsg::new_permanent(error.to_string(), pdata)).await;
            }
        };
        let waited_for = self.config.ack == Ack::OnEmit && delivery.context().needs_completion_tracking();
        let pdata = delivery.into_pdata();
        if let Err(error) = records.decode_transport_optimized_ids() {
            self.metrics.totals.malformed += items;
            return effects.notify_nack(NackMsg::new_permanent(error.to_string(), pdata)).await;
        }
        // `accept_pdata` keeps inputs out when there is no room; what a forced drain still brings is acknowledged now.
        let (held, unheld) = if waited_for {
            match self.holds.hold(pdata) {
                Ok(key) => (Some(key), None),
                Err(pdata) => (None, Some(*pdata)),
            }
        } else {
            (None, Some(pdata))
        };
        let unread = self.observe(&records, items, held, effects).await?;
        let held = held.into_iter().collect();
        match (unread, unheld) {
            (None, None) => self.release(held, effects).await?,
            (None, Some(pdata)) => effects.notify_ack(AckMsg::new(pdata)).await?,
            (Some(reason), None) => self.refuse(held, &reason, effects).await?,
            (Some(reason), Some(pdata)) => effects.notify_nack(NackMsg::new_permanent(reason, pdata)).await?,
        }
        self.start_ticking(effects);
        Ok(())
    }

    /// Offers a batch to every measure, then sends the windows that closed. Gives the reason if no measure could read it.
    async fn observe(
        &mut self,
        records: &OtapArrowRecords,
        items: u64,
        held: Option<Key>,
        effects: &mut EffectHandler<OtapPdata>,
    ) -> Result<Option<String>, Error> {
        let now = now_unix_nano();
        let mut fates: Vec<Fate> = Vec::new();
        let mut failure = None;
        let mut closed = Vec::new();
        let mut inputs = Vec::new();
        for (index, measure) in self.measures.iter_mut().enumerate() {
            let offered = match measure.offer(records, self.config.clock, now) {
                Ok(offered) => offered,
                Err(error) => {
                    failure = Some(error.to_string());
                    continue;
                }
            };
            if fates.is_empty() {
                fates = offered.fates;
            } else {
                for (fate, other) in fates.iter_mut().zip(offered.fates) {
                    *fate = (*fate).max(other);
                }
            }
            self.metrics.totals.overflow_folded += offered.overflow_folded;
            if let Some(held) = held {
                for start_ns in offered.starts {
                    self.holds.window_takes(OpenWindow::Tumbling { measure: index, start_ns }, held);
                }
            }
            if let WindowSpec::Count(size) = self.config.window.spec {
                for (series, observations) in offered.counted {
                    let window = OpenWindow::Count { measure: index, series };
                    inputs.extend(self.holds.count_takes(window, held, observations, size));
                }
            }
            closed.extend(offered.closed.into_iter().map(|window| (index, window)));
        }
        let judged = fates.len() as u64;
        fates.into_iter().for_each(|fate| self.metrics.totals.count(fate));
        let rest = items.saturating_sub(judged);
        if let Some(error) = &failure {
            self.metrics.totals.malformed += rest;
            otel_warn!("quantile_processor.malformed_batch", error = error.as_str());
        } else {
            self.metrics.totals.other_points += rest;
        }
        self.send(closed, inputs, effects).await?;
        // What some measure has used is not refused: it would be counted again.
        Ok(failure.filter(|_| judged == 0))
    }

    /// Sends the results of closed windows as one output, tied to the inputs that went into it.
    async fn send(
        &mut self,
        closed: Vec<(usize, Closed)>,
        mut inputs: Vec<Key>,
        effects: &mut EffectHandler<OtapPdata>,
    ) -> Result<(), Error> {
        if closed.is_empty() {
            return Ok(());
        }
        if matches!(self.config.window.spec, WindowSpec::Tumbling { .. }) {
            for (index, window) in &closed {
                if let Some(name) = self.measures[*index].name_of(window) {
                    inputs.extend(self.holds.close(&name));
                }
            }
        }
        self.metrics.totals.windows += closed.len() as u64;
        let records = match self.results(&closed) {
            Ok(Some(records)) => records,
            Ok(None) => return self.release(inputs, effects).await,
            Err(error) => {
                otel_error!("quantile_processor.output_failed", error = error.as_str());
                return self.refuse(inputs, &error, effects).await;
            }
        };
        let points = records.num_items() as u64;
        let mut output = OtapPdata::new(Context::with_capacity(1), records.into());
        let untied = match self.holds.output(inputs) {
            Ok(key) => {
                let mut calldata = CallData::from(key);
                calldata.push(points.into());
                effects.subscribe_to(Interests::ACKS_OR_NACKS, calldata, &mut output);
                Vec::new()
            }
            Err(inputs) => inputs,
        };
        self.metrics.totals.points += points;
        effects.send_message_with_source_node(output).await.map_err(Error::from)?;
        self.release(untied, effects).await
    }

    fn results(&self, closed: &[(usize, Closed)]) -> Result<Option<OtapArrowRecords>, String> {
        struct Row<'a> {
            measure: &'a Measure,
            window: &'a Closed,
            key: Option<&'a [catchment_columns::quantile::KeyValue]>,
            quantiles: Vec<(f64, f64)>,
            statistics: Vec<(&'static str, f64)>,
        }
        let mut rows = Vec::new();
        for (index, window) in closed {
            for (series, values) in &window.series {
                // A series whose observations were all refused has no quantiles.
                let Ok(found) = values.quantiles(&self.config.quantiles) else { continue };
                rows.push(Row {
                    measure: &self.measures[*index],
                    window,
                    key: match series {
                        SeriesKey::Series(key) => Some(key),
                        SeriesKey::Overflow => None,
                    },
                    quantiles: self.config.quantiles.iter().copied().zip(found).collect(),
                    statistics: self.config.statistics.iter().filter_map(|which| statistic(*which, values)).collect(),
                });
            }
        }
        let results: Vec<_> = rows
            .iter()
            .map(|row| WindowResult {
                name: &row.measure.config.name,
                unit: &row.measure.config.unit,
                group_by: &row.measure.config.group_by,
                key: row.key,
                start_unix_nano: row.window.start_ns,
                end_unix_nano: row.window.end_ns,
                quantiles: &row.quantiles,
                statistics: &row.statistics,
            })
            .collect();
        gauges(&results).map_err(|error| error.to_string())
    }

    async fn release(&mut self, inputs: Vec<Key>, effects: &EffectHandler<OtapPdata>) -> Result<(), Error> {
        for key in inputs {
            if let Some(held) = self.holds.release(key) {
                effects.notify_ack(AckMsg::new(held)).await?;
            }
        }
        Ok(())
    }

    /// Refuses inputs for good: sending them again would count them twice in windows that are out already.
    async fn refuse(
        &mut self,
        inputs: Vec<Key>,
        reason: &str,
        effects: &EffectHandler<OtapPdata>,
    ) -> Result<(), Error> {
        for key in inputs {
            if let Some(held) = self.holds.fail(key) {
                effects.notify_nack(NackMsg::new_permanent(reason, held)).await?;
            }
        }
        Ok(())
    }

    fn start_ticking(&mut self, effects: &mut EffectHandler<OtapPdata>) {
        if !self.ticking {
            self.ticking = effects.set_wakeup(TICK, Instant::now() + TICK_INTERVAL).is_ok();
        }
    }

    async fn tick(&mut self, effects: &mut EffectHandler<OtapPdata>) -> Result<(), Error> {
        self.ticking = false;
        let draining = self.last_input.elapsed() >= DRAIN_QUIET && drain::input_ended(&self.pipeline);
        if draining {
            self.flush(true, effects).await?;
        } else {
            self.flush(false, effects).await?;
        }
        if self.measures.iter().any(|measure| measure.open_series() > 0) {
            self.start_ticking(effects);
        }
        Ok(())
    }

    /// Closes idle windows, or all.
    async fn flush(&mut self, all: bool, effects: &mut EffectHandler<OtapPdata>) -> Result<(), Error> {
        let now = now_unix_nano();
        let mut closed = Vec::new();
        let mut inputs = Vec::new();
        for (index, measure) in self.measures.iter_mut().enumerate() {
            let windows = if all { measure.flush_all() } else { measure.flush_idle(now) };
            if matches!(self.config.window.spec, WindowSpec::Count(_)) {
                for name in windows.iter().filter_map(|window| measure.name_of(window)) {
                    inputs.extend(self.holds.close(&name));
                }
            }
            closed.extend(windows.into_iter().map(|window| (index, window)));
        }
        self.send(closed, inputs, effects).await
    }

    fn report(&mut self, reporter: &mut otel_arrow_dfe_telemetry::reporter::MetricsReporter) {
        let open: usize = self.measures.iter().map(Measure::open_series).sum();
        self.metrics.totals.series_open = open as u64;
        self.metrics.totals.inputs_held = self.holds.len() as u64;
        self.metrics.report(reporter);
    }
}

fn statistic(which: Statistic, values: &impl Accumulator) -> Option<(&'static str, f64)> {
    #[allow(clippy::cast_precision_loss, reason = "counts above 2^53 are out of reach")]
    match which {
        Statistic::Count => Some(("count", values.count() as f64)),
        Statistic::Sum => values.sum().map(|sum| ("sum", sum)),
        Statistic::Min => values.min().map(|min| ("min", min)),
        Statistic::Max => values.max().map(|max| ("max", max)),
    }
}

/// The output and the number of its points, as they were attached when it was sent.
fn output_of(calldata: &CallData) -> Option<(Key, u64)> {
    let key = Key::try_from(CallData::from_iter([*calldata.first()?])).ok()?;
    Some((key, u64::from(*calldata.get(1)?)))
}

#[async_trait(?Send)]
impl Processor<OtapPdata> for QuantileProcessor {
    async fn process(
        &mut self,
        message: Message<OtapPdata>,
        effects: &mut EffectHandler<OtapPdata>,
    ) -> Result<(), Error> {
        match message {
            Message::PData(pdata) => {
                self.last_input = Instant::now();
                self.input(pdata, effects).await
            }
            Message::Control(NodeControlMsg::Wakeup { slot: TICK, .. }) => self.tick(effects).await,
            Message::Control(NodeControlMsg::Ack(ack)) => {
                let Some((output, _)) = output_of(&ack.unwind.route.calldata) else { return Ok(()) };
                let inputs = self.holds.settle(output);
                self.release(inputs, effects).await
            }
            Message::Control(NodeControlMsg::Nack(nack)) => {
                let Some((output, points)) = output_of(&nack.unwind.route.calldata) else { return Ok(()) };
                self.metrics.totals.points_refused += points;
                otel_warn!("quantile_processor.output_refused", points = points, reason = nack.reason.as_str());
                let inputs = self.holds.settle(output);
                self.refuse(inputs, &nack.reason, effects).await
            }
            Message::Control(NodeControlMsg::CollectTelemetry { mut metrics_reporter }) => {
                self.report(&mut metrics_reporter);
                Ok(())
            }
            Message::Control(NodeControlMsg::Shutdown { .. }) => self.flush(true, effects).await,
            Message::Control(_) => Ok(()),
        }
    }

    fn accept_pdata(&self) -> bool {
        self.holds.has_room()
    }

    fn runtime_requirements(&self) -> ProcessorRuntimeRequirements {
        ProcessorRuntimeRequirements::with_local_wakeups(1)
    }
}
