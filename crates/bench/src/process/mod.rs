//! Processes under measurement: starting, stopping, and looking at them.

mod cores;
mod engine;
mod proc;

use std::io;
use std::path::PathBuf;

pub(crate) use cores::{ENGINE_CORE, LOAD_CORE, pin};
pub(crate) use engine::{Engine, free_address};
pub(crate) use proc::cpu_model;

/// A process could not be started, watched or stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcessError {
    #[error("cannot run on core {core}: measuring needs cores {ENGINE_CORE} and {LOAD_CORE}")]
    Core { core: usize },
    #[error("cannot {what}: {source}")]
    Io { what: &'static str, source: io::Error },
    #[error("cannot start {}: {source}", binary.display())]
    Start { binary: PathBuf, source: io::Error },
    #[error("the engine ended before it was {state}; its last words:\n{log}")]
    Ended { state: &'static str, log: String },
    #[error("the engine was not {state} after {seconds} s; its last words:\n{log}")]
    TimedOut { state: &'static str, seconds: u64, log: String },
    #[error("{path} does not say {what}")]
    Proc { path: String, what: &'static str },
}

impl ProcessError {
    fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}
