//! Tells the processors of a pipeline when its receivers have nothing more to send.
//!
//! The engine drains receivers first and tells processors to shut down when all their input has arrived. By then a
//! window cannot be sent any more: nobody waits for its acknowledgement, and an exporter may end before it is through.
//! So receivers of this crate say here when their input has ended, while they still wait for acknowledgements, and
//! processors that hold windows send them then.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use otel_arrow_dfe_engine::context::PipelineContext;

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
}

#[derive(Debug, Default, Clone, Copy)]
struct Receivers {
    running: usize,
    ended: usize,
}

static RECEIVERS: Mutex<Option<HashMap<PipelineInstance, Receivers>>> = Mutex::new(None);

fn with<R>(change: impl FnOnce(&mut HashMap<PipelineInstance, Receivers>) -> R) -> R {
    change(RECEIVERS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(HashMap::new))
}

/// Whether the input of all receivers of this crate in the pipeline has ended, and there is at least one.
pub(crate) fn input_ended(pipeline: &PipelineInstance) -> bool {
    with(|all| all.get(pipeline).is_some_and(|receivers| receivers.running == 0 && receivers.ended > 0))
}

/// The input of one receiver.
#[derive(Debug)]
pub(crate) struct Input {
    pipeline: PipelineInstance,
    ended: bool,
}

impl Input {
    /// A receiver of `pipeline` begins.
    pub(crate) fn begin(pipeline: PipelineInstance) -> Self {
        with(|all| all.entry(pipeline.clone()).or_default().running += 1);
        Self { pipeline, ended: false }
    }

    /// The receiver has sent everything it will send.
    pub(crate) fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            with(|all| {
                let receivers = all.entry(self.pipeline.clone()).or_default();
                receivers.running = receivers.running.saturating_sub(1);
                receivers.ended += 1;
            });
        }
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.end();
        with(|all| {
            if let Some(receivers) = all.get_mut(&self.pipeline) {
                receivers.ended = receivers.ended.saturating_sub(1);
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

    /// The input has ended when the last receiver says so, and not before the first has begun.
    #[test]
    fn all_receivers_must_have_ended() {
        let pipeline = PipelineInstance { group: "g".into(), pipeline: "p".into(), core: 0, generation: 0 };
        assert!(!input_ended(&pipeline));
        let (mut first, mut second) = (Input::begin(pipeline.clone()), Input::begin(pipeline.clone()));
        first.end();
        first.end();
        assert!(!input_ended(&pipeline));
        second.end();
        assert!(input_ended(&pipeline));
        drop((first, second));
        assert!(!input_ended(&pipeline), "forgotten with the last receiver");
    }
}
