//! Senders of other projects, where they are installed.

use std::process::{Command, Stdio};

use crate::{Ended, Process, run};

/// A program of this machine.
#[derive(Debug, Clone, Copy)]
pub struct Sender(&'static str);

impl Sender {
    /// Looks for the program. Where it is missing, says that the test is skipped.
    #[allow(clippy::print_stdout, reason = "cargo test shows what a test prints with --nocapture")]
    #[must_use]
    pub fn find(program: &'static str) -> Option<Self> {
        let found = Command::new(program).arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if found.is_ok() {
            return Some(Self(program));
        }
        println!("SKIPPED: {program} is not installed");
        None
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// If it fails.
    pub fn run(self, arguments: &[&str]) -> Ended {
        let ended = run(Command::new(self.0).args(arguments));
        let _ = ended.expect_code(0);
        ended
    }

    /// Starts it.
    #[must_use]
    pub fn start(self, arguments: &[&str]) -> Process {
        Process::start(Command::new(self.0).args(arguments))
    }
}
