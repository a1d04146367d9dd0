//! The exporter.

use std::collections::VecDeque;
use std::future::pending;
use std::time::Instant;

use async_trait::async_trait;
use catchment_delivery::lane::{Counters, LaneError, LaneHandle, PushError, Resolved};
use catchment_delivery::load::Load;
use catchment_delivery::payload::Payload as _;
use catchment_delivery::route::Router;
use futures_util::future::select_all;
use otel_arrow_dfe_engine::control::{NackCause, NodeControlMsg};
use otel_arrow_dfe_engine::error::{Error, ExporterErrorKind};
use otel_arrow_dfe_engine::local::exporter::{EffectHandler, Exporter};
use otel_arrow_dfe_engine::message::{ExporterInbox, Message};
use otel_arrow_dfe_engine::terminal_state::TerminalState;
use otel_arrow_dfe_otap::pdata::OtapPdata;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinError;

use super::config::{Config, Protocol};
use super::intake::{self, Key, Taken, Token};
use super::metrics::Metrics;
use super::settle::Settle;
use super::wires::Lanes;

/// The reason of a shutdown that the inbox makes up, with a deadline that nobody has set, when its input ends while it was
/// told that there is no room. Nobody waits for verdicts then, and what is not delivered is lost.
const INPUT_CLOSED: &str = "pdata channel closed";

/// The lanes exporter.
pub(super) struct LanesExporter {
    config: Config,
    metrics: Metrics,
}

impl LanesExporter {
    pub(super) const fn new(config: Config, metrics: Metrics) -> Self {
        Self { config, metrics }
    }
}

/// The exporter at work.
pub(super) struct Running {
    pub(super) config: Config,
    pub(super) metrics: Metrics,
    pub(super) settle: Settle,
    pub(super) lanes: Lanes<Token>,
    verdicts: UnboundedReceiver<Resolved<Token>>,
    /// Keeps the channel open when all lanes have ended.
    _open: UnboundedSender<Resolved<Token>>,
    router: Router,
    /// Batches that wait for room, by lane.
    waiting: Vec<VecDeque<(Load, Token)>>,
    /// Batches that no lane will take any more.
    stranded: Vec<(Load, Token)>,
}

impl Running {
    fn start(exporter: LanesExporter, effects: EffectHandler<OtapPdata>) -> Result<Self, Error> {
        let LanesExporter { config, metrics } = exporter;
        let (open, verdicts) = unbounded_channel();
        let lanes = Lanes::start(&config, &open).map_err(|error| Error::ExporterError {
            exporter: effects.exporter_id(),
            kind: ExporterErrorKind::Configuration,
            error: error.to_string(),
            source_detail: String::new(),
        })?;
        let waiting = (0..config.count.get()).map(|_| VecDeque::new()).collect();
        let router = Router::new(config.key.clone(), config.count);
        let settle = Settle::new(effects, config.exhausted_is_permanent);
        Ok(Self { config, metrics, settle, lanes, verdicts, _open: open, router, waiting, stranded: Vec::new() })
    }

    /// Takes a batch in: its lane has it, or it waits for its lane.
    async fn take(&mut self, pdata: OtapPdata) -> Result<(), Error> {
        let keep_otlp = self.config.protocol != Protocol::Otap;
        let own = &mut self.metrics.own;
        match intake::take(pdata, keep_otlp, self.settle.effects()).await {
            Taken::Load(load, token) => {
                let lane = self.router.lane(&Key::of(&self.config.key, &load, &token));
                own.unkeyed = self.router.unkeyed();
                own.waiting_items += load.items() as u64;
                own.waiting_batches += 1;
                self.waiting[lane].push_back((load, token));
                self.push(lane);
                Ok(())
            }
            Taken::Refused(mut pdata, reason) => {
                own.unreadable_items += pdata.num_items() as u64;
                own.unreadable_batches += 1;
                self.settle.refuse(pdata, &reason, true, NackCause::Refused, own).await
            }
        }
    }

    /// Moves what waits for a lane into it, as far as there is room.
    pub(super) fn push(&mut self, lane: usize) {
        while let Some((load, token)) = self.waiting[lane].pop_front() {
            let items = load.items() as u64;
            match self.lanes.handles[lane].push(load, token) {
                Ok(()) => {
                    self.metrics.own.waiting_items -= items;
                    self.metrics.own.waiting_batches -= 1;
                }
                Err(PushError::Full(load, token)) => {
                    self.waiting[lane].push_front((load, token));
                    return;
                }
                Err(PushError::Closed(load, token)) => {
                    self.stranded.push((load, token));
                    self.strand(lane);
                }
            }
        }
    }

    /// Waits for room in this lane no more.
    pub(super) fn strand(&mut self, lane: usize) {
        self.stranded.extend(self.waiting[lane].drain(..));
    }

    pub(super) fn waits_for(&self, lane: usize) -> bool {
        !self.waiting[lane].is_empty()
    }

    /// Waits for what lanes have to say.
    pub(super) async fn heard(&mut self) -> Heard {
        let Self { lanes: Lanes { handles, tasks }, verdicts, waiting, .. } = self;
        tokio::select! {
            biased;
            Some(resolved) = verdicts.recv() => Heard::Verdict(resolved),
            Some(ended) = tasks.join_next() => Heard::Ended(ended),
            lane = room(handles, waiting) => Heard::Room(lane),
        }
    }

    pub(super) async fn resolve(&mut self, resolved: Resolved<Token>) -> Result<(), Error> {
        self.settle.verdict(resolved.token, resolved.verdict, &mut self.metrics.own).await
    }

    pub(super) fn count(&mut self) {
        let counters: Vec<Counters> = self.lanes.handles.iter().map(|handle| handle.counters()).collect();
        self.metrics.update(&counters);
    }

    /// A lane has ended, which it does by itself only if it failed: everything is given back, and the node ends, because a
    /// batch that comes now has no lane. The engine starts it anew.
    async fn fail(mut self, ended: Result<Result<(), LaneError>, JoinError>) -> Error {
        let error = match ended {
            Ok(Ok(())) => "a lane ended before its time".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        self.lanes.tasks.shutdown().await;
        if let Err(error) = self.give_back(&error, NackCause::Unspecified).await {
            return error;
        }
        self.count();
        Error::ExporterError {
            exporter: self.settle.effects().exporter_id(),
            kind: ExporterErrorKind::Transport,
            error,
            source_detail: String::new(),
        }
    }

    /// Settles what the lanes, which have ended, had to say, and gives back what waits in front of them, in order.
    pub(super) async fn give_back(&mut self, reason: &str, cause: NackCause) -> Result<(), Error> {
        while let Ok(resolved) = self.verdicts.try_recv() {
            self.resolve(resolved).await?;
        }
        for lane in 0..self.waiting.len() {
            self.strand(lane);
        }
        for (load, token) in std::mem::take(&mut self.stranded) {
            let own = &mut self.metrics.own;
            own.waiting_items -= load.items() as u64;
            own.waiting_batches -= 1;
            own.given_back_items += load.items() as u64;
            own.given_back_batches += 1;
            self.settle.refuse(token.into_pdata(), reason, false, cause, own).await?;
        }
        Ok(())
    }
}

/// What a lane has to say.
pub(super) enum Heard {
    Verdict(Resolved<Token>),
    Ended(Result<Result<(), LaneError>, JoinError>),
    /// This one has room for what waits for it.
    Room(usize),
}

/// Waits until a lane has room for what waits for it; gives the lane.
async fn room(handles: &[LaneHandle<Load, Token>], waiting: &[VecDeque<(Load, Token)>]) -> usize {
    let lanes = handles.iter().zip(waiting).enumerate();
    let ready = lanes.filter_map(|(lane, (handle, waiting))| {
        let (load, _) = waiting.front()?;
        Some(Box::pin(async move {
            handle.ready(load.bytes()).await;
            lane
        }))
    });
    let ready: Vec<_> = ready.collect();
    if ready.is_empty() {
        return pending().await;
    }
    select_all(ready).await.0
}

impl Drop for Running {
    /// The engine drops an exporter that is not through in time: the books have to tell how far it was.
    fn drop(&mut self) {
        self.count();
    }
}

#[async_trait(?Send)]
impl Exporter<OtapPdata> for LanesExporter {
    async fn start(
        self: Box<Self>,
        mut inbox: ExporterInbox<OtapPdata>,
        effects: EffectHandler<OtapPdata>,
    ) -> Result<TerminalState, Error> {
        let mut node = Running::start(*self, effects)?;
        // During a shutdown the inbox gives out what it has, whether there is room or not. It must not be told that there is
        // none from then on: it would make up a deadline of its own.
        let mut is_ending = false;
        loop {
            let accepts = is_ending || !(0..node.waiting.len()).any(|lane| node.waits_for(lane));
            tokio::select! {
                biased;
                heard = node.heard() => match heard {
                    Heard::Verdict(resolved) => node.resolve(resolved).await?,
                    Heard::Ended(ended) => return Err(node.fail(ended).await),
                    Heard::Room(lane) => node.push(lane),
                },
                message = inbox.recv_when(accepts) => match message? {
                    Message::PData(pdata) => {
                        is_ending |= !accepts;
                        node.take(pdata).await?;
                    }
                    Message::Control(NodeControlMsg::CollectTelemetry { mut metrics_reporter }) => {
                        node.count();
                        node.metrics.report(&mut metrics_reporter);
                    }
                    Message::Control(NodeControlMsg::Shutdown { deadline, reason }) => {
                        let is_made_up = reason == INPUT_CLOSED;
                        let own = Instant::now() + node.config.drain_timeout;
                        return node.drain(if is_made_up { deadline.max(own) } else { deadline }).await;
                    }
                    Message::Control(_) => {}
                },
            }
        }
    }
}
