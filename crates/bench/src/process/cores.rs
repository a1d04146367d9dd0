//! Who runs on which core.

use std::process::{Command, Stdio};

use core_affinity::CoreId;

use super::ProcessError;

/// The core that the engine has for itself.
pub(crate) const ENGINE_CORE: usize = 0;
/// The core of everything else: sender, sink, and this program.
pub(crate) const LOAD_CORE: usize = 1;

/// Keeps this thread, and the threads and processes that it starts from now on, on one core.
pub(crate) fn pin(core: usize) -> Result<(), ProcessError> {
    if core_affinity::set_for_current(CoreId { id: core }) { Ok(()) } else { Err(ProcessError::Core { core }) }
}

/// Lets this thread run on its core before all others (SCHED_FIFO): a thread that measures time must not wait for
/// senders and sinks. Gives whether that is allowed.
pub(crate) fn put_first() -> bool {
    // The last part of `PID/task/TID`.
    let link = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    let Some(thread) = link.file_name() else { return false };
    let mut command = Command::new("chrt");
    let _ = command.args(["--fifo", "--pid", "1"]).arg(thread);
    let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
