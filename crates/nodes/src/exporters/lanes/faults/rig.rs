//! The node as the engine runs it, and a scripted sink.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use catchment_loadgen::sink::script::{Protocol, SinkScript};
use catchment_loadgen::sink::{Counts, RunningSink, ScriptReport, Sink, SinkOptions};
use otel_arrow_dfe_config::node::NodeUserConfig;
use otel_arrow_dfe_engine::Interests;
use otel_arrow_dfe_engine::config::ExporterConfig;
use otel_arrow_dfe_engine::context::ControllerContext;
use otel_arrow_dfe_engine::control::{
    Controllable as _, NackCause, NodeControlMsg, PipelineCompletionMsg, pipeline_completion_msg_channel,
    runtime_ctrl_msg_channel,
};
use otel_arrow_dfe_engine::exporter::ExporterWrapper;
use otel_arrow_dfe_engine::local::message::{LocalReceiver, LocalSender};
use otel_arrow_dfe_engine::message::{Receiver, Sender};
use otel_arrow_dfe_engine::node::NodeWithPDataReceiver as _;
use otel_arrow_dfe_engine::runtime_services::PipelineRuntimeServices;
use otel_arrow_dfe_engine::testing::{create_not_send_channel, test_node};
use otel_arrow_dfe_otap::pdata::OtapPdata;
use otel_arrow_dfe_telemetry::registry::TelemetryRegistryHandle;
use otel_arrow_dfe_telemetry::reporter::MetricsReporter;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::LocalSet;
use tokio::time::timeout;

use super::data::Batch;
use crate::accounts::{self, Account};
use crate::exporters::lanes::LANES_EXPORTER_URN;
use crate::exporters::lanes::config::Config;
use crate::exporters::lanes::metrics::Metrics;
use crate::exporters::lanes::node::LanesExporter;

/// Batches between the one who sends and the node.
pub(super) const CHANNEL: usize = 4;
/// Longest wait for something that will happen.
pub(super) const PATIENCE: Duration = Duration::from_secs(40);
/// An answer is waited for so long.
pub(super) const ATTEMPT: Duration = Duration::from_millis(1_500);

/// When the node is told to end.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    /// When every batch has its answer.
    Answered,
    /// When so many batches were sent, or no more are taken: by a deadline of so long.
    Within(usize, Duration),
}

/// What a full lane does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnFull {
    Block,
    Nack,
    DropOldest,
}

/// What is to be done.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) protocol: Protocol,
    /// Over the settings of [`settings`].
    pub(super) config: Value,
    pub(super) script: SinkScript,
    pub(super) batches: Vec<Batch>,
    pub(super) end: End,
    pub(super) on_full: OnFull,
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    Acked,
    Nacked { permanent: bool, cause: NackCause, reason: String },
}

/// What has happened.
#[derive(Debug)]
pub(super) struct Run {
    /// Batches that were sent: the first ones of the job.
    pub(super) sent: usize,
    /// Number and fate of each batch, in the order in which they were told.
    pub(super) fates: Vec<(usize, Fate)>,
    /// The most items that were between the one who sends and an answer.
    pub(super) most_held: usize,
    /// From the order to end until the end, and the deadline.
    pub(super) ended: Duration,
    pub(super) deadline: Duration,
    pub(super) took: Duration,
    /// The most by which the machine was late.
    pub(super) lag: Duration,
    pub(super) failure: Option<String>,
    pub(super) account: Account,
    pub(super) report: ScriptReport,
    pub(super) counts: Counts,
}

impl Run {
    pub(super) fn items(&self, job: &Job, of: impl Fn(&Fate) -> bool) -> u64 {
        self.fates.iter().filter(|(_, fate)| of(fate)).map(|(number, _)| job.batches[*number].items as u64).sum()
    }

    /// Of the account: what was dropped, or noted, under this name.
    pub(super) fn counted(&self, name: &str) -> u64 {
        let Account { dropped, notes, .. } = &self.account;
        dropped.iter().chain(notes).find(|(known, _)| *known == name).map_or(0, |(_, count)| *count)
    }
}

/// Starts a sink for all protocols.
pub(super) fn sink(script: SinkScript) -> RunningSink {
    let any = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let script = Some(script);
    Sink::start(SinkOptions { otap: any, otlp_grpc: any, otlp_http: any, script, ..SinkOptions::default() }).unwrap()
}

/// Settings with short times, for a server at this address.
fn settings(protocol: Protocol, sink: &RunningSink) -> Value {
    let addresses = sink.addresses();
    let (name, address) = match protocol {
        Protocol::OtlpGrpc => ("otlp_grpc", addresses.otlp_grpc),
        Protocol::OtlpHttp => ("otlp_http", addresses.otlp_http),
        Protocol::Otap => ("otap", addresses.otap),
    };
    let mut settings = json!({
        "protocol": name,
        "client": {"endpoint": format!("http://{}", address.unwrap())},
        "lanes": {"count": 2, "close_timeout": "200ms"},
        "request": {"attempt_timeout": millis(ATTEMPT)},
        "retry": {"initial": "4ms", "max": "20ms", "max_elapsed": "none", "max_server_delay": "40ms"},
        "drain": {"margin": "200ms"},
    });
    if protocol == Protocol::Otap {
        settings["stream"] = json!({"status_timeout": millis(ATTEMPT), "close_timeout": "100ms", "probe_after": "1s"});
    }
    settings
}

fn millis(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}

/// Puts the values of `over` in the place of those of `under`.
pub(super) fn merge(under: &mut Value, over: &Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                merge(under.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over.clone(),
    }
}

/// A node with these settings, and the name of its pipeline.
fn exporter(config: &Value) -> (String, ExporterWrapper<OtapPdata>) {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let pipeline = format!("faults-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let controller = ControllerContext::new(TelemetryRegistryHandle::new());
    let context = controller.pipeline_context_with("tests".into(), pipeline.clone().into(), 0, 1, 0);
    let registrar = context.metric_set_registrar_for_entity(context.register_node_entity());
    let config = Config::parse(config).expect("the configuration is right");
    let metrics = Metrics::new(&context, &registrar, config.count.get());
    let user = Arc::new(NodeUserConfig::new_exporter_config(LANES_EXPORTER_URN));
    let exporter = LanesExporter::new(config, metrics);
    (pipeline, ExporterWrapper::local(exporter, test_node("lanes"), user, &ExporterConfig::new("lanes")))
}

#[derive(Debug, Default)]
struct Told {
    fates: Vec<(usize, Fate)>,
    held: usize,
    most_held: usize,
}

/// Runs a job to its end.
pub(super) fn run(job: &Job) -> Run {
    let sink = sink(job.script.clone());
    let started = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut config = settings(job.protocol, &sink);
    merge(&mut config, &job.config);
    config["lanes"]["on_full"] = match job.on_full {
        OnFull::Block => json!("block"),
        OnFull::Nack => json!("nack"),
        OnFull::DropOldest => json!("drop_oldest"),
    };
    if let End::Within(_, time) = job.end {
        // For an input that closes before the order to end comes through.
        config["drain"]["timeout"] = json!(millis(time));
    }
    let (pipeline, exporter) = exporter(&config);
    let tasks = LocalSet::new();
    let mut run = tasks.block_on(&runtime, drive(job, exporter));
    drop(tasks);
    drop(runtime);
    let (counts, report) = sink.stop_with_report().unwrap();
    run.took = started.elapsed();
    run.account = accounts::take_one(|account| account.name.pipeline == pipeline).expect("an account");
    run.report = report.unwrap();
    run.counts = counts;
    run
}

async fn drive(job: &Job, mut exporter: ExporterWrapper<OtapPdata>) -> Run {
    let control = exporter.control_sender();
    let (send, receive) = create_not_send_channel(CHANNEL);
    let (send, receive) = (Sender::Local(LocalSender::mpsc(send)), Receiver::Local(LocalReceiver::mpsc(receive)));
    exporter.set_pdata_receiver(test_node("lanes"), receive).unwrap();
    let (runtime_control, _keep) = runtime_ctrl_msg_channel(16);
    let (completions, mut completed) = pipeline_completion_msg_channel(4);
    let (_snapshots, reporter) = MetricsReporter::create_new_and_receiver(64);
    let services = PipelineRuntimeServices::new(Default::default()).unwrap();
    let node = exporter.start(runtime_control, completions, reporter.clone(), Interests::empty(), services);
    let mut node = tokio::task::spawn_local(node);

    let told = Rc::new(RefCell::new(Told::default()));
    let more = Rc::new(Notify::new());
    let sizes: Vec<usize> = job.batches.iter().map(|batch| batch.items).collect();
    let listen = tokio::task::spawn_local({
        let (told, more) = (told.clone(), more.clone());
        async move {
            while let Ok(message) = completed.recv().await {
                let (source, fate) = match message {
                    PipelineCompletionMsg::DeliverAck { ack } => (ack.accepted.get_source_node(), Fate::Acked),
                    PipelineCompletionMsg::DeliverNack { nack } => {
                        let fate = Fate::Nacked { permanent: nack.permanent, cause: nack.cause, reason: nack.reason };
                        (nack.refused.get_source_node(), fate)
                    }
                };
                let number = source.expect("each batch has a source");
                let mut told = told.borrow_mut();
                told.held = told.held.saturating_sub(sizes[number]);
                told.fates.push((number, fate));
                drop(told);
                more.notify_one();
            }
        }
    });

    let lag = Rc::new(Cell::new(Duration::ZERO));
    let clock = tokio::task::spawn_local({
        let lag = lag.clone();
        async move {
            loop {
                let due = Instant::now() + Duration::from_millis(20);
                tokio::time::sleep_until(due.into()).await;
                lag.set(lag.get().max(due.elapsed()));
            }
        }
    });

    let (most, limit) = match job.end {
        End::Answered => (job.batches.len(), PATIENCE),
        End::Within(most, _) => (most.min(job.batches.len()), Duration::from_millis(500)),
    };
    let mut sent = 0;
    while sent < most {
        let batch = &job.batches[sent];
        {
            let mut told = told.borrow_mut();
            told.held += batch.items;
            told.most_held = told.most_held.max(told.held);
        }
        match timeout(limit, send.send(batch.pdata(sent))).await {
            Ok(Ok(())) => sent += 1,
            Ok(Err(_)) | Err(_) => break,
        }
        if sent % 8 == 0 {
            let collect = NodeControlMsg::CollectTelemetry { metrics_reporter: reporter.clone() };
            let _ = timeout(limit, control.send(collect)).await;
        }
    }
    let deadline = match job.end {
        End::Answered => {
            let all = async {
                while told.borrow().fates.len() < sent {
                    more.notified().await;
                }
            };
            let _ = timeout(PATIENCE, all).await;
            Duration::from_secs(5)
        }
        End::Within(_, time) => time,
    };
    let now = Instant::now();
    let shutdown = NodeControlMsg::Shutdown { deadline: now + deadline, reason: "test".into() };
    let _ = control.send(shutdown).await;
    // In the engine too, whoever sends ends first.
    drop(send);
    let failure = match timeout(deadline + PATIENCE, &mut node).await {
        Ok(Ok(Ok(_))) => None,
        Ok(Ok(Err(error))) => Some(error.to_string()),
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => {
            node.abort();
            Some("the node does not end".to_owned())
        }
    };
    let ended = now.elapsed();
    clock.abort();
    // The last senders are gone with the node.
    let _ = timeout(PATIENCE, listen).await;
    let told = std::mem::take(&mut *told.borrow_mut());
    Run {
        sent,
        fates: told.fates,
        most_held: told.most_held,
        ended,
        deadline,
        took: Duration::ZERO,
        lag: lag.get(),
        failure,
        account: Account {
            name: accounts::NodeName { group: String::new(), pipeline: String::new(), node: String::new(), core: 0 },
            items: "",
            received: 0,
            sent: 0,
            dropped: Vec::new(),
            in_flight: 0,
            notes: Vec::new(),
        },
        report: ScriptReport { totals: Default::default(), keys: Vec::new(), requests: Vec::new() },
        counts: Counts::default(),
    }
}
