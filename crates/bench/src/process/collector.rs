//! A collector of flows that is not ours, as a child process.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::proc::{descendants, udp_drops};
use super::{ENGINE_CORE, LOAD_CORE, ProcessError, Window, pin};

/// How long starting and stopping may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Log of the program, in its folder.
const LOG: &str = "collector.log";

/// A running collector with the processes that it has started, alone on [`ENGINE_CORE`], in a folder of its own. Dropping
/// it kills it.
#[derive(Debug)]
pub(crate) struct Collector {
    binary: PathBuf,
    child: Child,
    folder: TempDir,
}

impl Collector {
    /// Starts a program in `folder`, the one that its files go to, and waits until it listens at a UDP port and its log has
    /// `ready` in it.
    pub(crate) fn start(
        binary: &Path,
        arguments: &[String],
        folder: TempDir,
        listening: SocketAddr,
        ready: &str,
    ) -> Result<Self, ProcessError> {
        let log_file = folder.path().join(LOG);
        let log = File::create(&log_file).map_err(ProcessError::io("make the collector's log"))?;
        let log_again = log.try_clone().map_err(ProcessError::io("make the collector's log"))?;
        let mut command = Command::new(binary);
        let _ = command.args(arguments).current_dir(folder.path());
        let _ = command.stdin(Stdio::null()).stdout(log).stderr(log_again);
        // The child inherits the core of this thread.
        pin(ENGINE_CORE)?;
        let started = command.spawn();
        pin(LOAD_CORE)?;
        let child = started.map_err(|source| ProcessError::Start { binary: binary.to_owned(), source })?;
        let mut collector = Self { binary: binary.to_owned(), child, folder };
        collector.wait_until("listening", |child| {
            if child.try_wait().map_err(ProcessError::io("watch the collector"))?.is_some() {
                return Ok(None);
            }
            let said = std::fs::read_to_string(&log_file).unwrap_or_default();
            Ok(Some(udp_drops(listening.port()).is_some() && said.contains(ready)))
        })?;
        Ok(collector)
    }

    /// The folder of its files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Begins to measure what it and the processes that it has started cost.
    pub(crate) fn open_window(&self) -> Result<Window, ProcessError> {
        let id = self.child.id();
        Window::open(std::iter::once(id).chain(descendants(id)).collect())
    }

    /// Asks it to end and waits until it and what it has started have, and have written their files.
    pub(crate) fn stop(&mut self, signal: Signal) -> Result<(), ProcessError> {
        let started = descendants(self.child.id());
        // An id that is no i32 cannot be; one that has ended is found by waiting.
        if let Ok(id) = i32::try_from(self.child.id()) {
            let _ = kill(Pid::from_raw(id), signal);
        }
        self.wait_until("stopped", |child| {
            let ended = child.try_wait().map_err(ProcessError::io("watch the collector"))?.is_some();
            Ok(Some(ended && !started.iter().any(|id| Path::new(&format!("/proc/{id}")).exists())))
        })
    }

    /// Looks again and again until `reached` says so. It gives nothing if that cannot be any more.
    fn wait_until(
        &mut self,
        state: &'static str,
        mut reached: impl FnMut(&mut Child) -> Result<Option<bool>, ProcessError>,
    ) -> Result<(), ProcessError> {
        let began = Instant::now();
        loop {
            let answer = reached(&mut self.child)?;
            if answer == Some(true) {
                return Ok(());
            }
            if answer.is_none() || began.elapsed() >= PATIENCE {
                let log = std::fs::read_to_string(self.folder.path().join(LOG)).unwrap_or_default();
                let seconds = began.elapsed().as_secs();
                return Err(ProcessError::Collector { binary: self.binary.clone(), state, seconds, log });
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // Both fail if it has ended, and then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::free_address;

    /// A program that ends at once is an error with what it said, not something to wait for.
    #[test]
    fn ends_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = ["-c".to_owned(), "echo no such option; exit 3".to_owned()];
        let error =
            Collector::start(Path::new("/bin/sh"), &arguments, folder, free_address().unwrap(), "").unwrap_err();
        assert!(error.to_string().contains("no such option"), "{error}");
    }
}
