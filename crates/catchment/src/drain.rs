//! Ending in order: on SIGTERM or SIGINT, pipelines that feed others of this process are drained first.
//!
//! The engine itself tells all pipelines at once. A pipeline that sends over loopback, or through a topic, into another
//! one of the same process would then find its receiver gone while it still has batches to send. So this goes in steps:
//!
//! 1. Stage by stage, feeders first: our receivers finish, and everything they sent gets its outcome. All nodes are still
//!    at work, so the counts of upstream's nodes are reported to the end.
//! 2. One more report of metrics is awaited.
//! 3. Stage by stage the engine shuts the pipelines down, which have nothing to do any more.
//!
//! It runs as a controller extension, which is what the engine offers for reaching its control plane and its metrics.

mod counts;
mod order;

use std::sync::Arc;
use std::time::{Duration, Instant};

use otel_arrow_dfe_admin_types::pipelines::PipelineShutdownInitiator;
use otel_arrow_dfe_config::engine::OtelDataflowSpec;
use otel_arrow_dfe_config::extension::ExtensionUserConfig;
use otel_arrow_dfe_controller::{
    ControllerExtensionContext, ControllerExtensionError, ControllerExtensionRegistry, ControllerExtensionTaskFactory,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) use counts::{Counts, Node, NodeCounts};

const EXTENSION_URN: &str = "urn:catchment:extension:drain";
const EXTENSION_ID: &str = "catchment_drain";
/// How long the receivers of all pipelines together may take to finish.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long all of it may take, but for what the engine adds when pipelines do not end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(40);
/// A report of metrics that comes more rarely than this is not waited for.
const MAX_REPORT_WAIT: Duration = Duration::from_secs(3);
/// How often the end of a pipeline is looked for, and the counts are read while pipelines end.
const POLL: Duration = Duration::from_millis(20);
/// How often the counts are read while all is well.
const SAMPLE: Duration = Duration::from_secs(1);

/// What the drain leaves for the report: all nodes in the order of the flow, and their last counts.
pub(crate) struct Drained {
    pub(crate) nodes: Vec<Node>,
    pub(crate) counts: Arc<Counts>,
}

/// Adds the drain to the configuration. What it counts is in the result when the engine has ended.
pub(crate) fn install(spec: &mut OtelDataflowSpec, extensions: &mut ControllerExtensionRegistry) -> Drained {
    let counts = Arc::new(Counts::default());
    let stages = order::stages(spec);
    let nodes = order::nodes(spec, &stages);
    let shared = Arc::clone(&counts);
    extensions.register(
        EXTENSION_URN.into(),
        move |context| Ok(start(context, stages.clone(), Arc::clone(&shared))),
        |_| Ok(()),
    );
    let config = ExtensionUserConfig::new(EXTENSION_URN.into(), serde_json::Value::Null);
    spec.engine.controller.extensions.insert(EXTENSION_ID.into(), config);
    Drained { nodes, counts }
}

type Stages = Vec<Vec<order::Pipeline>>;

fn start(context: ControllerExtensionContext, stages: Stages, counts: Arc<Counts>) -> ControllerExtensionTaskFactory {
    Box::new(move |ended| {
        Box::pin(async move {
            let mut signals = Signals::new()?;
            loop {
                tokio::select! {
                    biased;
                    () = ended.cancelled() => break,
                    () = signals.next() => {
                        drain(&context, &stages, &counts, &mut signals).await;
                        break;
                    }
                    () = tokio::time::sleep(SAMPLE) => counts.sample(&context.telemetry_registry),
                }
            }
            // The controller ends its extensions when all pipelines have ended.
            loop {
                tokio::select! {
                    biased;
                    () = ended.cancelled() => break,
                    () = signals.next() => give_up(),
                    () = tokio::time::sleep(POLL) => counts.sample(&context.telemetry_registry),
                }
            }
            counts.sample(&context.telemetry_registry);
            Ok::<(), ControllerExtensionError>(())
        })
    })
}

async fn drain(context: &ControllerExtensionContext, stages: &Stages, counts: &Counts, signals: &mut Signals) {
    let begun = Instant::now();
    let deadline = begun + DRAIN_TIMEOUT;
    for stage in stages {
        for pipeline in stage {
            catchment_nodes::drain::request(&pipeline.group, &pipeline.pipeline);
        }
        let settled = || stage.iter().all(|p| catchment_nodes::drain::is_settled(&p.group, &p.pipeline));
        while !settled() && begun.elapsed() < SETTLE_TIMEOUT {
            pause(POLL, context, counts, signals).await;
        }
    }
    let interval = context.engine_config.engine.telemetry.reporting_interval;
    // A report that has just begun may be from before; a little is for its way to the registry.
    pause((interval + POLL * 5).min(MAX_REPORT_WAIT), context, counts, signals).await;
    for stage in stages {
        let left = deadline.saturating_duration_since(Instant::now()).as_secs().max(1);
        let mut waiting = Vec::new();
        for pipeline in stage {
            let initiator = PipelineShutdownInitiator::Unknown;
            match context.control_plane.shutdown_pipeline(&pipeline.group, &pipeline.pipeline, left, initiator) {
                Ok(status) => waiting.push((pipeline, status.shutdown_id)),
                // Already gone, or not willing: the shutdown of everything below sees to it.
                Err(error) => crate::complain(&format!(
                    "pipeline {}/{} cannot be drained by itself: {error:?}",
                    pipeline.group, pipeline.pipeline
                )),
            }
        }
        while !waiting.is_empty() && Instant::now() < deadline {
            waiting.retain(|(pipeline, id)| {
                let status = context.control_plane.shutdown_status(&pipeline.group, &pipeline.pipeline, id);
                matches!(status, Ok(Some(status)) if status.state != "succeeded" && status.state != "failed")
            });
            pause(POLL, context, counts, signals).await;
        }
    }
    let left = deadline.saturating_duration_since(Instant::now()).as_secs().max(1);
    if let Err(error) = context.control_plane.shutdown_all(left) {
        crate::complain(&format!("the engine cannot be shut down: {error:?}"));
    }
}

/// Waits, and reads the counts after it.
async fn pause(time: Duration, context: &ControllerExtensionContext, counts: &Counts, signals: &mut Signals) {
    tokio::select! {
        () = signals.next() => give_up(),
        () = tokio::time::sleep(time) => {}
    }
    // Without a collector, or with one that is ending, there is nothing to flush.
    let _ = tokio::time::timeout(SAMPLE, context.telemetry_registry.flush_pending_metrics()).await;
    counts.sample(&context.telemetry_registry);
}

/// A second signal: the user does not want to wait.
fn give_up() {
    crate::complain(&"second signal, ending at once; what was not sent is lost");
    std::process::exit(1);
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
