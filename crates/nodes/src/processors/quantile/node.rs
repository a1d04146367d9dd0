//! The processor.

mod taking;

use std::time::{Duration, Instant};

use async_trait::async_trait;
use catchment_quantile::accumulator::AccumulatorConfig;
use catchment_quantile::window::WindowSpec;
use otel_arrow_dfe_config::error::Error as ConfigError;
use otel_arrow_dfe_engine::control::{NodeControlMsg, WakeupSlot};
use otel_arrow_dfe_engine::error::{Error, ProcessorErrorKind};
use otel_arrow_dfe_engine::local::processor::{EffectHandler, Processor};
use otel_arrow_dfe_engine::message::Message;
use otel_arrow_dfe_engine::processor::ProcessorRuntimeRequirements;
use otel_arrow_dfe_otap::accessory::slots::Key;
use otel_arrow_dfe_otap::pdata::OtapPdata;
use otel_arrow_dfe_telemetry::metrics::MetricSet;

use super::config::{Config, Output as OutputForm};
use super::measure::{Closed, Measure};
use super::metrics::{Metrics, QuantileMetrics};
use super::output::{Batch, Parts, Sender, nothing};
use super::outputs::{GIVEN_UP, Kind, Ports, Sent};
use super::silence::Empty;
use super::transit::Transit;
use crate::accounts::NodeName;
use crate::config;
use crate::drain::{self, PipelineInstance};
use crate::time::now_unix_nano;

pub(super) const TICK: WakeupSlot = WakeupSlot(0);
/// How often idle windows are looked for while there are open ones.
pub(super) const TICK_INTERVAL: Duration = Duration::from_millis(200);
/// How long nothing must have come after the receivers ended before everything is sent: what is under way arrives
/// sooner, as a tick only fires when nothing else is waiting.
pub(super) const DRAIN_QUIET: Duration = Duration::from_millis(300);
/// How long results are written before others may run.
pub(super) const MAX_STEP: Duration = Duration::from_micros(500);
/// Series whose messages are counted before others may run.
const PARTS_STEP: usize = 4_096;

/// The quantile processor.
pub(super) struct QuantileProcessor {
    config: Config,
    pipeline: PipelineInstance,
    measures: Vec<Measure>,
    transit: Transit,
    /// Whether the outputs have been found to be connected.
    connected: bool,
    sender: Sender,
    pub(super) metrics: Metrics,
    last_input: Instant,
    /// What time it is, in nanoseconds since the Unix epoch.
    pub(super) clock: fn() -> i64,
}

impl QuantileProcessor {
    pub(super) fn new(
        config: Config,
        name: NodeName,
        pipeline: PipelineInstance,
        metrics: MetricSet<QuantileMetrics>,
        ports: Ports,
    ) -> Result<Self, ConfigError> {
        // Sketches of several cores meet in a merge: their random bits must differ.
        let seed = catchment_quantile::seed::derive(config.seed, catchment_quantile::seed::stable_hash(&name.core), 0);
        let accumulators = AccumulatorConfig::new(config.method, seed)
            .map_err(|error| config::invalid(format!("config.k: {error}")))?;
        let measures = config
            .measures
            .iter()
            .enumerate()
            .map(|(index, measure)| {
                Measure::new(index, measure.clone(), config.window, config.announce_empty, accumulators)
            })
            .collect::<Result<_, _>>()
            .map_err(|error| config::invalid(format!("config.window: {error}")))?;
        Ok(Self {
            transit: Transit::new(config.max_held_inputs, config.ack, config.retry, ports),
            connected: false,
            sender: Sender::new(&name, config.source.as_deref()),
            metrics: Metrics::new(metrics, name),
            config,
            pipeline,
            measures,
            last_input: Instant::now(),
            clock: now_unix_nano,
        })
    }

    /// Ends the pipeline if an output that is asked for leads nowhere.
    fn check_connected(&mut self, effects: &EffectHandler<OtapPdata>) -> Result<(), Error> {
        if !self.connected {
            self.transit.outputs.check_ports(effects).map_err(|error| Error::ProcessorError {
                processor: effects.processor_id(),
                kind: ProcessorErrorKind::Configuration,
                error,
                source_detail: String::new(),
            })?;
            self.connected = true;
        }
        Ok(())
    }

    /// Notes which windows of a measure are over without an observation.
    fn note_empty(&mut self, index: usize, empty: Empty, all: &mut Vec<(usize, i64)>) {
        if empty.skipped > 0 {
            otel_warn!("quantile_processor.windows_skipped", windows = empty.skipped);
        }
        all.extend(empty.starts.into_iter().map(|start| (index, start)));
    }

    /// Sends the results of closed windows, tied to the inputs that went into them, and tells of those that were `empty`
    /// (measure and start). Others run in between.
    async fn send(
        &mut self,
        closed: Vec<(usize, Closed)>,
        empty: Vec<(usize, i64)>,
        mut inputs: Vec<Key>,
        effects: &mut EffectHandler<OtapPdata>,
    ) -> Result<(), Error> {
        if closed.is_empty() && empty.is_empty() {
            return Ok(());
        }
        if matches!(self.config.window.spec, WindowSpec::Tumbling { .. }) {
            for (index, window) in &closed {
                if let Some(name) = self.measures[*index].name_of(window) {
                    inputs.extend(self.transit.holds.close(&name));
                }
            }
        }
        self.metrics.totals.windows += closed.len() as u64;
        self.metrics.totals.announced += empty.len() as u64;
        let mut batch = Batch::new(self.config.output);
        let mut since = Instant::now();
        for (index, mut window) in closed {
            let mut parts = Parts::default();
            if self.config.output == OutputForm::Sketch {
                for (at, (_, values)) in window.series.iter().enumerate() {
                    if at % PARTS_STEP == PARTS_STEP - 1 {
                        tokio::task::yield_now().await;
                    }
                    parts.count(values);
                }
            }
            // Taken one by one, they are freed piece by piece.
            let all = std::mem::take(&mut window.series);
            for series in all {
                if since.elapsed() >= MAX_STEP {
                    tokio::task::yield_now().await;
                    since = Instant::now();
                }
                let measure = &self.measures[index];
                if !batch.add(&self.config, &mut self.sender, measure, &window, &mut parts, &series) {
                    self.metrics.totals.summary_fallbacks += 1;
                }
                self.emit_full(&mut batch, &inputs, effects).await?;
            }
        }
        self.metrics.totals.points += self.transit.emit(batch, inputs, effects).await?.points;
        // By themselves: they may wait for other sources longer than the inputs do.
        let mut batch = Batch::new(self.config.output);
        for (index, start) in empty {
            let measure = &self.measures[index];
            let names = (measure.config.name.as_str(), measure.config.unit.as_str());
            batch.add_message(nothing(names, measure.bounds(start), None, &mut self.sender));
        }
        self.metrics.totals.points += self.transit.emit(batch, Vec::new(), effects).await?.points;
        Ok(())
    }

    /// Sends what is full in a batch; the inputs wait for that too.
    async fn emit_full(
        &mut self,
        batch: &mut Batch,
        inputs: &[Key],
        effects: &mut EffectHandler<OtapPdata>,
    ) -> Result<(), Error> {
        for full in batch.take_full() {
            let shared = self.transit.holds.share(inputs);
            self.metrics.totals.points += self.transit.emit(full, shared, effects).await?.points;
        }
        Ok(())
    }

    async fn tick(&mut self, when: Instant, effects: &mut EffectHandler<OtapPdata>) -> Result<(), Error> {
        self.metrics.totals.retried += self.transit.ticked(when, effects).await?;
        let ended = drain::input_ended(&self.pipeline);
        if ended && self.last_input.elapsed() >= DRAIN_QUIET {
            self.flush_all(effects).await?;
        } else {
            self.flush_idle(!ended, effects).await?;
        }
        let waits = self.transit.outputs.any_waiting() || self.measures.iter().any(|measure| measure.open_series() > 0);
        if waits || (!ended && self.looks_at_clock()) {
            self.transit.start_ticking(effects);
        }
        Ok(())
    }

    /// Whether there is something to do although nothing comes.
    fn looks_at_clock(&self) -> bool {
        self.measures.iter().any(Measure::looks_at_clock)
    }

    /// Closes idle windows, and tells of empty ones while there may be others. Others run in between.
    async fn flush_idle(&mut self, announce: bool, effects: &mut EffectHandler<OtapPdata>) -> Result<(), Error> {
        loop {
            self.flush_some_idle(announce, effects).await?;
            if !self.pause_in_flush().await {
                return Ok(());
            }
        }
    }

    /// Closes all windows. Others run in between.
    async fn flush_all(&mut self, effects: &mut EffectHandler<OtapPdata>) -> Result<(), Error> {
        loop {
            let measures = self.measures.iter_mut().enumerate();
            let closed =
                measures.flat_map(|(index, measure)| measure.flush_all().into_iter().map(move |one| (index, one)));
            let closed = closed.collect();
            self.flush(closed, Vec::new(), effects).await?;
            if !self.pause_in_flush().await {
                return Ok(());
            }
        }
    }

    /// Lets others run if windows are still to be closed. Whether they are.
    async fn pause_in_flush(&self) -> bool {
        let flushing = self.measures.iter().any(Measure::is_flushing);
        if flushing {
            tokio::task::yield_now().await;
        }
        flushing
    }

    async fn flush_some_idle(&mut self, announce: bool, effects: &mut EffectHandler<OtapPdata>) -> Result<(), Error> {
        let now = (self.clock)();
        let mut windows = Vec::new();
        let mut all_empty = Vec::new();
        for index in 0..self.measures.len() {
            let (closed, empty) = self.measures[index].flush_idle(now);
            if announce {
                self.note_empty(index, empty, &mut all_empty);
            }
            windows.extend(closed.into_iter().map(|window| (index, window)));
        }
        self.flush(windows, all_empty, effects).await
    }

    async fn flush(
        &mut self,
        closed: Vec<(usize, Closed)>,
        empty: Vec<(usize, i64)>,
        effects: &mut EffectHandler<OtapPdata>,
    ) -> Result<(), Error> {
        let mut inputs = Vec::new();
        if matches!(self.config.window.spec, WindowSpec::Count(_)) {
            for name in closed.iter().filter_map(|(index, window)| self.measures[*index].name_of(window)) {
                inputs.extend(self.transit.holds.close(&name));
            }
        }
        self.send(closed, empty, inputs, effects).await
    }

    /// Settles an output that is given up; its inputs are refused.
    async fn give_up(&mut self, sent: Sent, reason: &str, effects: &EffectHandler<OtapPdata>) -> Result<(), Error> {
        match sent.kind {
            Kind::Results => self.metrics.totals.points_refused += sent.items,
            Kind::Forwarded | Kind::Late => self.metrics.totals.forwarded_refused += sent.items,
        }
        self.transit.give_up(sent, reason, effects).await
    }

    /// Sends what is left.
    async fn shut_down(&mut self, effects: &mut EffectHandler<OtapPdata>) -> Result<(), Error> {
        self.flush_all(effects).await?;
        for sent in self.transit.outputs.give_up(effects).await? {
            self.metrics.totals.retried += 1;
            self.give_up(sent, GIVEN_UP, effects).await?;
        }
        self.transit.end(effects).await
    }

    fn report(&mut self, reporter: &mut otel_arrow_dfe_telemetry::reporter::MetricsReporter) {
        let open: usize = self.measures.iter().map(Measure::open_series).sum();
        self.metrics.totals.series_open = open as u64;
        self.metrics.totals.inputs_held = self.transit.holds.len() as u64;
        self.metrics.report(reporter);
    }
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
                self.check_connected(effects)?;
                self.last_input = Instant::now();
                self.input(pdata, effects).await
            }
            Message::Control(NodeControlMsg::Wakeup { slot: TICK, when, .. }) => self.tick(when, effects).await,
            Message::Control(NodeControlMsg::Ack(ack)) => {
                self.transit.acknowledged(&ack.unwind.route.calldata, effects).await
            }
            Message::Control(NodeControlMsg::Nack(nack)) => match self.transit.refused(&nack, effects) {
                Some(sent) => self.give_up(sent, &nack.reason, effects).await,
                None => Ok(()),
            },
            Message::Control(NodeControlMsg::CollectTelemetry { mut metrics_reporter }) => {
                self.report(&mut metrics_reporter);
                // The first one comes whether there is input or not.
                if self.looks_at_clock() && !drain::input_ended(&self.pipeline) {
                    self.transit.start_ticking(effects);
                }
                Ok(())
            }
            Message::Control(NodeControlMsg::Shutdown { .. }) => self.shut_down(effects).await,
            Message::Control(_) => Ok(()),
        }
    }

    fn accept_pdata(&self) -> bool {
        self.transit.has_room()
    }

    fn runtime_requirements(&self) -> ProcessorRuntimeRequirements {
        ProcessorRuntimeRequirements::with_local_wakeups(1)
    }
}
