//! Receiving alone, as a child process.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

use super::{ENGINE_CORE, LOAD_CORE, ProcessError, Window, pin};
use crate::framing::COMMAND;

/// This program once more, which finds the frames in one connection and counts them, alone on [`ENGINE_CORE`].
/// Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Framing {
    child: Child,
    said: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Framing {
    /// Starts it; `what` it is to find is `lines` or `messages`.
    pub(crate) fn start(what: &str) -> Result<Self, ProcessError> {
        let binary = std::env::current_exe().map_err(ProcessError::io("find this program"))?;
        let mut command = Command::new(&binary);
        let _ = command.args([COMMAND, what]).stdin(Stdio::piped()).stdout(Stdio::piped());
        // The child inherits the core of this thread.
        pin(ENGINE_CORE)?;
        let started = command.spawn();
        pin(LOAD_CORE)?;
        let mut child = started.map_err(|source| ProcessError::Start { binary, source })?;
        let said = child.stdout.take().ok_or(ProcessError::NoWord { what: "address" })?;
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut framing = Self { child, said: BufReader::new(said), address: any };
        framing.address = framing.word("address")?;
        Ok(framing)
    }

    /// The address that it listens on.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Begins to measure what it costs.
    pub(crate) fn open_window(&self) -> Result<Window, ProcessError> {
        Window::open(vec![self.child.id()])
    }

    /// Waits for the end of the connection; gives the number of frames.
    pub(crate) fn frames(&mut self) -> Result<u64, ProcessError> {
        self.word("number of frames")
    }

    /// The next line that it says.
    fn word<T: std::str::FromStr>(&mut self, what: &'static str) -> Result<T, ProcessError> {
        let mut line = String::new();
        let _ = self.said.read_line(&mut line).map_err(ProcessError::io("read what the program says"))?;
        line.trim_end().parse().map_err(|_| ProcessError::NoWord { what })
    }
}

impl Drop for Framing {
    fn drop(&mut self) {
        // Both fail if it has ended, and then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
