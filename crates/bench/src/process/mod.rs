//! Processes under measurement: starting, stopping, and looking at them.

mod collector;
mod cores;
mod engine;
mod framing;
mod metrics;
mod proc;
mod window;

use std::io;
use std::path::PathBuf;

pub(crate) use collector::Collector;
pub(crate) use cores::{ENGINE_CORE, LOAD_CORE, pin, put_first};
pub(crate) use engine::{Engine, Listening, free_address};
pub(crate) use framing::Framing;
pub(crate) use metrics::{MAIN, Metrics};
pub(crate) use proc::{cpu_model, resident_mib, tcp_unread, thread_time, udp_drops, udp_receive_buffer, udp_unread};
pub(crate) use window::{Cost, Window};

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
    #[error("the admin server of the engine gives no metrics")]
    NoMetrics,
    #[error("{} was not {state} after {seconds} s; its last words:\n{log}", binary.display())]
    Collector { binary: PathBuf, state: &'static str, seconds: u64, log: String },
    #[error("the program that finds frames does not tell its {what}")]
    NoWord { what: &'static str },
    #[error("{path} does not say {what}")]
    Proc { path: String, what: &'static str },
}

impl ProcessError {
    fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}
