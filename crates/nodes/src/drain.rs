//! Who in this process still has something to send: between receivers, processors and the program around them.
//!
//! The engine drains receivers first and tells processors to shut down when all their input has arrived. By then a
//! window cannot be sent any more: nobody waits for its acknowledgement, and an exporter may end before it is through.
//! So receivers of this crate say here when their input has ended, while they still wait for acknowledgements, and
//! processors that hold windows send them then.
//!
//! A program that runs the engine can go further and let the receivers finish before it shuts anything down:
//! [`request`] asks them, [`is_settled`] tells when everything they sent has its outcome. All nodes are still at work
//! meanwhile, reports of metrics included.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use otel_arrow_dfe_engine::context::PipelineContext;
use tokio_util::sync::CancellationToken;

/// One instance of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PipelineInstance {
    group: String,
    pipeline: String,
    core: usize,
    generation: u64,
}

impl PipelineInstance {
    pub(crate) fn of(context: &PipelineContext) -> Self {
        Self {
            group: context.pipeline_group_id().to_string(),
            pipeline: context.pipeline_id().to_string(),
            core: context.core_id(),
            generation: context.deployment_generation(),
        }
    }

    fn is(&self, group: &str, pipeline: &str) -> bool {
        self.group == group && self.pipeline == pipeline
    }
}

/// The receivers of a pipeline instance by how far they are; who is settled has ended too.
#[derive(Debug, Default)]
struct Receivers {
    running: usize,
    ended: usize,
    settled: usize,
    stop: CancellationToken,
}

static RECEIVERS: Mutex<Option<HashMap<PipelineInstance, Receivers>>> = Mutex::new(None);

fn with<R>(change: impl FnOnce(&mut HashMap<PipelineInstance, Receivers>) -> R) -> R {
    change(RECEIVERS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(HashMap::new))
}

/// Group and name of the pipelines that are asked to end.
static REQUESTED: Mutex<BTreeSet<(String, String)>> = Mutex::new(BTreeSet::new());

fn requested<R>(look: impl FnOnce(&mut BTreeSet<(String, String)>) -> R) -> R {
    look(&mut REQUESTED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Asks the receivers of this crate in the pipeline, on all cores, to take in what has arrived, to send it, and to
/// take nothing more. They stay until the engine ends them.
pub fn request(group: &str, pipeline: &str) {
    let _ = requested(|all| all.insert((group.to_owned(), pipeline.to_owned())));
    with(|all| {
        for (_, receivers) in all.iter().filter(|(instance, _)| instance.is(group, pipeline)) {
            receivers.stop.cancel();
        }
    });
}

/// Whether everything that the receivers of this crate in the pipeline have sent has its outcome, and nothing more will
/// come. True if there are none.
#[must_use]
pub fn is_settled(group: &str, pipeline: &str) -> bool {
    with(|all| {
        all.iter()
            .filter(|(instance, _)| instance.is(group, pipeline))
            .all(|(_, receivers)| receivers.running == 0 && receivers.settled == receivers.ended)
    })
}

/// Whether the input of all receivers of this crate in the pipeline instance has ended, and there is at least one.
pub(crate) fn input_ended(pipeline: &PipelineInstance) -> bool {
    with(|all| all.get(pipeline).is_some_and(|receivers| receivers.running == 0 && receivers.ended > 0))
}

/// Whether the pipeline is asked to end and has no receiver of this crate. Other receivers still take input then, and end
/// only when all of it has its outcome.
pub(crate) fn is_ending_alone(pipeline: &PipelineInstance) -> bool {
    let name = (pipeline.group.clone(), pipeline.pipeline.clone());
    requested(|all| all.contains(&name)) && with(|all| !all.contains_key(pipeline))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Ended,
    Settled,
}

/// The input of one receiver.
#[derive(Debug)]
pub(crate) struct Input {
    pipeline: PipelineInstance,
    state: State,
    stop: CancellationToken,
}

impl Input {
    /// A receiver of `pipeline` begins.
    pub(crate) fn begin(pipeline: PipelineInstance) -> Self {
        let stop = with(|all| {
            let receivers = all.entry(pipeline.clone()).or_default();
            receivers.running += 1;
            receivers.stop.clone()
        });
        Self { pipeline, state: State::Running, stop }
    }

    /// Waits until the receiver is asked to take nothing more.
    pub(crate) async fn stop_requested(&self) {
        self.stop.cancelled().await;
    }

    /// The receiver has sent everything it will send; `settled`: and knows what became of it.
    pub(crate) fn end(&mut self, settled: bool) {
        let (ends, settles) = (self.state == State::Running, settled && self.state != State::Settled);
        if !ends && !settles {
            return;
        }
        self.state = if settled { State::Settled } else { State::Ended };
        with(|all| {
            let receivers = all.entry(self.pipeline.clone()).or_default();
            if ends {
                receivers.running = receivers.running.saturating_sub(1);
                receivers.ended += 1;
            }
            receivers.settled += usize::from(settles);
        });
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.end(true);
        with(|all| {
            if let Some(receivers) = all.get_mut(&self.pipeline) {
                receivers.ended = receivers.ended.saturating_sub(1);
                receivers.settled = receivers.settled.saturating_sub(1);
                if receivers.running == 0 && receivers.ended == 0 {
                    let _ = all.remove(&self.pipeline);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pipeline with receivers of others only is known to end when it is asked to.
    #[test]
    fn others_are_asked_too() {
        let pipeline = PipelineInstance { group: "g".into(), pipeline: "alone".into(), core: 0, generation: 0 };
        assert!(!is_ending_alone(&pipeline));
        request("g", "alone");
        assert!(is_ending_alone(&pipeline) && !input_ended(&pipeline));
        let input = Input::begin(pipeline.clone());
        assert!(!is_ending_alone(&pipeline));
        drop(input);
        assert!(is_ending_alone(&pipeline));
    }

    /// The input has ended when the last receiver says so, and not before the first has begun; it is settled when all
    /// know what became of what they sent.
    #[test]
    fn all_receivers_must_have_ended() {
        let pipeline = PipelineInstance { group: "g".into(), pipeline: "p".into(), core: 0, generation: 0 };
        assert!(!input_ended(&pipeline) && is_settled("g", "p"));
        let (mut first, mut second) = (Input::begin(pipeline.clone()), Input::begin(pipeline.clone()));
        assert!(!is_settled("g", "p") && is_settled("g", "other"));
        request("g", "p");
        assert!(first.stop.is_cancelled() && second.stop.is_cancelled());
        first.end(false);
        first.end(false);
        assert!(!input_ended(&pipeline));
        second.end(true);
        assert!(input_ended(&pipeline) && !is_settled("g", "p"));
        first.end(true);
        assert!(is_settled("g", "p"));
        drop((first, second));
        assert!(!input_ended(&pipeline), "forgotten with the last receiver");
    }
}
