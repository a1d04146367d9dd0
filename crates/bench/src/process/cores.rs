//! Who runs on which core.

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
