//! The processor without an engine around it: what it sends and settles is seen, and the test plays both neighbours.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use otel_arrow_dfe_config::PortName;
use otel_arrow_dfe_engine::control::{
    AckMsg, CallData, NackMsg, NodeControlMsg, PipelineCompletionMsg, UnwindData, pipeline_completion_msg_channel,
};
use otel_arrow_dfe_engine::local::processor::{EffectHandler, Processor};
use otel_arrow_dfe_engine::message::{Message, Sender};
use otel_arrow_dfe_engine::shared::message::SharedSender;
use otel_arrow_dfe_engine::testing::{test_node, test_pipeline_ctx};
use otel_arrow_dfe_engine::{Interests, ProducerEffectHandlerExtension};
use otel_arrow_dfe_otap::pdata::{Context, OtapPdata};
use otel_arrow_dfe_pdata_codec::OtapPayload;
use otel_arrow_dfe_telemetry::InternalTelemetrySystem;
use tokio::sync::mpsc;

use super::super::config::Config;
use super::super::merge::{self, MergeConfig, MergeMetrics, MergeProcessor};
use super::super::metrics::{QuantileMetrics, Totals};
use super::super::node::{QuantileProcessor, TICK};
use super::super::outputs::Ports;
use crate::accounts::NodeName;
use crate::drain::PipelineInstance;

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(0) };
}

/// Sets the clock of the processors of this thread.
pub(super) fn set_clock(now_unix_nano: i64) {
    NOW.set(now_unix_nano);
}

/// How an input ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Acknowledged,
    RefusedForNow,
    RefusedForGood,
}

/// An output that was sent, as often as it was.
pub(super) struct Sent {
    pub(super) payload: OtapPayload,
    pub(super) times: usize,
    pub(super) late: bool,
    unwind: UnwindData,
}

/// A processor between its neighbours.
pub(super) struct Node<P = QuantileProcessor> {
    processor: P,
    effects: EffectHandler<OtapPdata>,
    upstream: EffectHandler<OtapPdata>,
    main: mpsc::Receiver<OtapPdata>,
    late: mpsc::Receiver<OtapPdata>,
    completions: otel_arrow_dfe_engine::control::PipelineCompletionMsgReceiver<OtapPdata>,
    /// All outputs by the key they are known by.
    pub(super) sent: BTreeMap<u64, Sent>,
    /// Those whose outcome is due, oldest first.
    pub(super) due: Vec<u64>,
    /// Outcomes by input.
    pub(super) outcomes: HashMap<u64, Vec<Outcome>>,
    inputs: u64,
}

impl Node {
    /// A processor whose outputs are all connected.
    pub(super) fn new(config: Config, late_port: bool) -> Self {
        Self::with_ports(config, late_port, late_port)
    }

    /// A processor that sends late items to a port of their own, which is connected or not.
    pub(super) fn with_ports(config: Config, late_port: bool, connected: bool) -> Self {
        let (pipeline, _registry) = test_pipeline_ctx();
        let registrar = pipeline.metric_set_registrar_for_entity(pipeline.register_node_entity());
        let ports = if late_port {
            Ports { main: Some("default".into()), late: Some("late".into()) }
        } else {
            Ports::default()
        };
        let metrics = QuantileMetrics::register(&registrar);
        let (name, instance) = (NodeName::of(&pipeline), PipelineInstance::of(&pipeline));
        let mut processor = QuantileProcessor::new(config, name, instance, metrics, ports).expect("valid");
        processor.clock = || NOW.get();
        Self::of(processor, connected)
    }

    pub(super) fn totals(&self) -> &Totals {
        &self.processor.metrics.totals
    }
}

impl Node<MergeProcessor> {
    /// One of the stages that take sketches.
    pub(super) fn merging(config: MergeConfig) -> Self {
        let (pipeline, _registry) = test_pipeline_ctx();
        let registrar = pipeline.metric_set_registrar_for_entity(pipeline.register_node_entity());
        let name = NodeName::of(&pipeline);
        let metrics = merge::Metrics::new(MergeMetrics::register(&registrar), name.clone());
        let instance = PipelineInstance::of(&pipeline);
        let mut processor = MergeProcessor::new(config, &name, instance, metrics).expect("valid");
        processor.clock = || NOW.get();
        Self::of(processor, false)
    }

    pub(super) fn totals(&mut self) -> merge::Totals {
        self.processor.settle_metrics();
        self.processor.metrics.totals
    }
}

impl<P: Processor<OtapPdata>> Node<P> {
    fn of(processor: P, late_port: bool) -> Self {
        let (main_sender, main) = mpsc::channel(10_000);
        let (late_sender, late) = mpsc::channel(10_000);
        let mut senders: HashMap<PortName, Sender<OtapPdata>> = HashMap::new();
        let _ = senders.insert("default".into(), Sender::Shared(SharedSender::mpsc(main_sender)));
        if late_port {
            let _ = senders.insert("late".into(), Sender::Shared(SharedSender::mpsc(late_sender)));
        }
        let handler = |name: &'static str, senders| {
            let services = otel_arrow_dfe_engine::runtime_services::PipelineRuntimeServices::new(Default::default());
            let reporter = InternalTelemetrySystem::default().reporter();
            EffectHandler::new(test_node(name), senders, None, reporter, services.expect("codecs"))
        };
        let mut effects = handler("quantile", senders);
        let (sender, completions) = pipeline_completion_msg_channel(10_000);
        effects.set_pipeline_completion_msg_sender(sender);
        Self {
            processor,
            effects,
            upstream: handler("upstream", HashMap::new()),
            main,
            late,
            completions,
            sent: BTreeMap::new(),
            due: Vec::new(),
            outcomes: HashMap::new(),
            inputs: 0,
        }
    }

    pub(super) fn accepts(&self) -> bool {
        self.processor.accept_pdata()
    }

    async fn process(&mut self, message: Message<OtapPdata>) {
        self.processor.process(message, &mut self.effects).await.expect("goes on");
        self.look();
    }

    /// Takes in what the processor did.
    fn look(&mut self) {
        for late in [false, true] {
            let receiver = if late { &mut self.late } else { &mut self.main };
            while let Ok(mut output) = receiver.try_recv() {
                let Some(frame) = output.context_mut().pop_frame() else { panic!("an output nobody waits for") };
                let unwind = UnwindData::new(frame.route, 0);
                let key = u64::from(unwind.route.calldata[0]);
                let payload = output.into_parts().1;
                self.due.push(key);
                match self.sent.get_mut(&key) {
                    Some(sent) => {
                        sent.times += 1;
                        assert_eq!(format!("{payload:?}"), format!("{:?}", sent.payload), "sent again unchanged");
                    }
                    None => {
                        let _ = self.sent.insert(key, Sent { payload, times: 1, late, unwind });
                    }
                }
            }
        }
        while let Ok(message) = self.completions.try_recv() {
            let (mut pdata, outcome) = match message {
                PipelineCompletionMsg::DeliverAck { ack } => (ack.accepted, Outcome::Acknowledged),
                PipelineCompletionMsg::DeliverNack { nack } if nack.permanent => {
                    (nack.refused, Outcome::RefusedForGood)
                }
                PipelineCompletionMsg::DeliverNack { nack } => (nack.refused, Outcome::RefusedForNow),
            };
            let frame = pdata.context_mut().pop_frame().expect("the subscriber is known");
            self.outcomes.entry(u64::from(frame.route.calldata[0])).or_default().push(outcome);
        }
    }

    /// Gives the processor an input that somebody waits for. Its number.
    pub(super) async fn input(&mut self, payload: OtapPayload) -> u64 {
        let mut pdata = OtapPdata::new(Context::default(), payload);
        self.inputs += 1;
        let calldata = CallData::from_iter([self.inputs.into()]);
        self.upstream.subscribe_to(Interests::ACKS_OR_NACKS, calldata, &mut pdata);
        self.process(Message::PData(pdata)).await;
        self.inputs
    }

    /// Settles the oldest output whose outcome is due. Whether there was one.
    pub(super) async fn settle(&mut self, outcome: Outcome) -> bool {
        if self.due.is_empty() {
            return false;
        }
        let key = self.due.remove(0);
        let sent = &self.sent[&key];
        let (unwind, pdata) = (sent.unwind.clone(), OtapPdata::new(Context::default(), sent.payload.clone()));
        let message = match outcome {
            Outcome::Acknowledged => {
                let mut ack = AckMsg::new(pdata);
                ack.unwind = unwind;
                NodeControlMsg::Ack(ack)
            }
            _ => {
                let mut nack = match outcome {
                    Outcome::RefusedForNow => NackMsg::new("not now", pdata),
                    _ => NackMsg::new_permanent("never", pdata),
                };
                nack.unwind = unwind;
                NodeControlMsg::Nack(nack)
            }
        };
        self.process(Message::Control(message)).await;
        true
    }

    /// Lets the processor look after itself at a time.
    pub(super) async fn tick(&mut self, when: Instant) {
        self.process(Message::Control(NodeControlMsg::Wakeup { slot: TICK, when, revision: 0 })).await;
    }

    pub(super) async fn shut_down(&mut self) {
        let message = NodeControlMsg::Shutdown { deadline: Instant::now(), reason: "test".into() };
        self.process(Message::Control(message)).await;
    }

    /// What the processor says if a port is not connected.
    pub(super) async fn failure(&mut self, payload: OtapPayload) -> Option<String> {
        let pdata = OtapPdata::new(Context::default(), payload);
        self.processor.process(Message::PData(pdata), &mut self.effects).await.err().map(|error| error.to_string())
    }
}
