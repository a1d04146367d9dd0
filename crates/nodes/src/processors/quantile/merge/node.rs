//! The processor of the stages `merge` and `estimate`.

mod taking;

use std::collections::HashMap;
use std::time::Instant;

use async_trait::async_trait;
use catchment_quantile::exchange::{Collector, Emission, WindowBounds};
use otel_arrow_dfe_config::error::Error as ConfigError;
use otel_arrow_dfe_engine::control::NodeControlMsg;
use otel_arrow_dfe_engine::error::Error;
use otel_arrow_dfe_engine::local::processor::{EffectHandler, Processor};
use otel_arrow_dfe_engine::message::Message;
use otel_arrow_dfe_engine::processor::ProcessorRuntimeRequirements;
use otel_arrow_dfe_otap::accessory::slots::Key;
use otel_arrow_dfe_otap::pdata::OtapPdata;

use super::super::config::Output;
use super::super::node::{DRAIN_QUIET, MAX_STEP, TICK};
use super::super::output::{Batch, Sender};
use super::super::outputs::{GIVEN_UP, Ports, Sent};
use super::super::transit::Transit;
use super::config::{Incomplete, MergeConfig};
use super::content::{Content, ContentError};
use super::metrics::Metrics;
use super::output::Window;
use crate::accounts::NodeName;
use crate::config;
use crate::drain::{self, PipelineInstance};
use crate::time::now_unix_nano;

/// A window of a metric.
type WindowName = (Box<str>, WindowBounds);

/// Merges the messages of several sources, window by window.
pub(in super::super) struct MergeProcessor {
    config: MergeConfig,
    pipeline: PipelineInstance,
    collector: Collector<Content>,
    transit: Transit,
    /// Outputs that windows went out in, while these may be under way.
    settling: HashMap<WindowName, Vec<Key>>,
    sender: Sender,
    pub(in super::super) metrics: Metrics,
    last_input: Instant,
    /// What time it is, in nanoseconds since the Unix epoch.
    pub(in super::super) clock: fn() -> i64,
}

impl MergeProcessor {
    pub(in super::super) fn new(
        config: MergeConfig,
        name: &NodeName,
        pipeline: PipelineInstance,
        metrics: Metrics,
    ) -> Result<Self, ConfigError> {
        let collector =
            Collector::new(config.collector.clone()).map_err(|error| config::invalid(format!("config: {error}")))?;
        Ok(Self {
            transit: Transit::new(config.max_held_inputs, config.ack, config.retry, Ports::default()),
            settling: HashMap::new(),
            sender: Sender::new(name, config.source.as_deref()),
            config,
            pipeline,
            collector,
            metrics,
            last_input: Instant::now(),
            clock: now_unix_nano,
        })
    }

    /// Sends windows that are done, tied to the inputs that went into them. Others run in between.
    async fn send(
        &mut self,
        windows: Vec<Emission<Content>>,
        effects: &mut EffectHandler<OtapPdata>,
    ) -> Result<(), Error> {
        let mut inputs = Vec::new();
        let mut wanted = Vec::new();
        let mut since = Instant::now();
        for mut emission in windows {
            let is_complete = emission.is_complete();
            let count = if is_complete {
                &mut self.metrics.totals.windows_complete
            } else {
                &mut self.metrics.totals.windows_incomplete
            };
            *count += 1;
            let contents = std::mem::take(&mut emission.contents);
            let held: Vec<Key> = contents.iter().flat_map(|content| content.inputs.iter().copied()).collect();
            if !is_complete && self.config.incomplete == Incomplete::Drop {
                self.metrics.totals.incomplete += emission.messages;
                self.transit.release(held, effects).await?;
                continue;
            }
            match joined(contents, &mut since).await {
                Ok(joined) => {
                    inputs.extend(held);
                    wanted.push((emission, joined));
                }
                Err(error) => {
                    self.metrics.totals.unmerged += emission.messages;
                    let reason = format!("sketches of `{}`: {error}", emission.metric);
                    otel_warn!("quantile_processor.message_refused", reason = reason.as_str());
                    self.transit.refuse(held, &reason, effects).await?;
                }
            }
        }
        let mut batch = Batch::new(self.config.output);
        // Those of which something is in the batch.
        let mut names = Vec::new();
        for (emission, joined) in &wanted {
            names.push((emission.metric.clone(), emission.window));
            let mut window = Window::of(emission, joined);
            if self.config.output == Output::Sketch {
                window.announce(&mut self.sender, &mut batch);
                self.emit_full(&mut batch, &inputs, &mut names, effects).await?;
            }
            for series in &joined.series {
                step(&mut since).await;
                if !window.add(&self.config, &mut self.sender, &mut batch, series) {
                    self.metrics.totals.summary_fallbacks += 1;
                }
                self.emit_full(&mut batch, &inputs, &mut names, effects).await?;
            }
        }
        self.emit(batch, inputs, names, effects).await
    }

    /// Sends what is full in a batch; the inputs wait for that too. Of `names` the last one stays.
    async fn emit_full(
        &mut self,
        batch: &mut Batch,
        inputs: &[Key],
        names: &mut Vec<WindowName>,
        effects: &mut EffectHandler<OtapPdata>,
    ) -> Result<(), Error> {
        for full in batch.take_full() {
            let shared = self.transit.holds.share(inputs);
            let last = names.last().cloned().into_iter().collect();
            self.emit(full, shared, std::mem::replace(names, last), effects).await?;
        }
        Ok(())
    }

    /// Sends one output with something of the windows `names`, tied to the inputs that went into it.
    async fn emit(
        &mut self,
        batch: Batch,
        inputs: Vec<Key>,
        names: Vec<WindowName>,
        effects: &mut EffectHandler<OtapPdata>,
    ) -> Result<(), Error> {
        let emitted = self.transit.emit(batch, inputs, effects).await?;
        self.metrics.totals.points += emitted.points;
        if let Some(output) = emitted.output {
            for name in names {
                self.settling.entry(name).or_default().push(output);
            }
        }
        Ok(())
    }

    async fn tick(&mut self, when: Instant, effects: &mut EffectHandler<OtapPdata>) -> Result<(), Error> {
        self.metrics.totals.retried += self.transit.ticked(when, effects).await?;
        let draining = self.last_input.elapsed() >= DRAIN_QUIET && drain::input_ended(&self.pipeline);
        let now = (self.clock)();
        let done = if draining { self.rest(now) } else { self.collector.expire(now) };
        self.send(done, effects).await?;
        if drain::is_ending_alone(&self.pipeline) {
            let inputs: Vec<Key> = self.collector.contents_mut().flat_map(|content| content.inputs.drain(..)).collect();
            self.transit.give_back(inputs, effects).await?;
        }
        self.settling.retain(|_, outputs| {
            outputs.retain(|output| self.transit.outputs.is_under_way(*output));
            !outputs.is_empty()
        });
        let open = self.collector.open_windows() + self.collector.remembered_windows();
        if open > 0 || !self.settling.is_empty() || self.transit.outputs.any_waiting() {
            self.transit.start_ticking(effects);
        }
        Ok(())
    }

    /// The windows that are sent when the node ends. Those that sources are missing in are not if all that is in them is
    /// sent again: whoever comes next can complete them.
    fn rest(&mut self, now: i64) -> Vec<Emission<Content>> {
        self.collector.flush_where(now, |content| content.is_accepted)
    }

    /// Settles an output that is given up; its inputs are refused.
    async fn give_up(&mut self, sent: Sent, reason: &str, effects: &EffectHandler<OtapPdata>) -> Result<(), Error> {
        self.metrics.totals.points_refused += sent.items;
        self.transit.give_up(sent, reason, effects).await
    }

    /// Sends what is not sent again by others. Outcomes do not reach this node any more: whoever waits for one is told to try
    /// again.
    async fn shut_down(&mut self, effects: &mut EffectHandler<OtapPdata>) -> Result<(), Error> {
        let done = self.rest((self.clock)());
        self.send(done, effects).await?;
        for sent in self.transit.outputs.give_up(effects).await? {
            self.metrics.totals.retried += 1;
            self.give_up(sent, GIVEN_UP, effects).await?;
        }
        self.transit.end(effects).await
    }

    pub(in super::super) fn settle_metrics(&mut self) {
        self.metrics.totals.exchange = self.collector.counters();
        self.metrics.totals.windows_waiting = self.collector.open_windows() as u64;
        self.metrics.totals.inputs_held = self.transit.holds.len() as u64;
    }
}

/// Lets others run if this has taken long enough.
async fn step(since: &mut Instant) {
    if since.elapsed() >= MAX_STEP {
        tokio::task::yield_now().await;
        *since = Instant::now();
    }
}

/// All contents of a window in one, settled.
pub(super) async fn joined(contents: Vec<Content>, since: &mut Instant) -> Result<Content, ContentError> {
    let mut contents = contents.into_iter();
    let mut whole = contents.next().unwrap_or_default();
    for content in contents {
        for (labels, merged) in whole.join(content) {
            step(since).await;
            whole.series.entry(labels).or_default().join(merged)?;
        }
    }
    for merged in whole.series.values_mut() {
        step(since).await;
        merged.settle()?;
    }
    Ok(whole)
}

impl Drop for MergeProcessor {
    /// The account is closed when the metrics are dropped.
    fn drop(&mut self) {
        self.settle_metrics();
    }
}

#[async_trait(?Send)]
impl Processor<OtapPdata> for MergeProcessor {
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
            Message::Control(NodeControlMsg::Wakeup { slot: TICK, when, .. }) => self.tick(when, effects).await,
            Message::Control(NodeControlMsg::Ack(ack)) => {
                self.transit.acknowledged(&ack.unwind.route.calldata, effects).await
            }
            Message::Control(NodeControlMsg::Nack(nack)) => match self.transit.refused(&nack, effects) {
                Some(sent) => self.give_up(sent, &nack.reason, effects).await,
                None => Ok(()),
            },
            Message::Control(NodeControlMsg::CollectTelemetry { mut metrics_reporter }) => {
                self.settle_metrics();
                self.metrics.report(&mut metrics_reporter);
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
