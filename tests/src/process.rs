//! Child processes with collected output.

use std::io::{Read, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::wait::{PATIENCE, within};

/// A running child. It is killed when it goes out of scope.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    stdout: Output,
    stderr: Output,
}

/// How a child ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// Exit code; `None` if a signal killed it.
    pub code: Option<i32>,
    /// All that it wrote to standard output.
    pub stdout: String,
    /// All that it wrote to standard error.
    pub stderr: String,
    /// Time from the call that waited for its end.
    pub took: Duration,
}

impl Ended {
    /// Fails unless the exit code is `code`, and shows what the process said.
    ///
    /// # Panics
    /// If the code is another one.
    pub fn expect_code(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

impl Process {
    /// Starts `command` without input.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        Self::start_with(command, Stdio::null()).0
    }

    fn start_with(command: &mut Command, stdin: Stdio) -> (Self, Option<ChildStdin>) {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        let input = child.stdin.take();
        let stdout = Output::collect(child.stdout.take().expect("it is piped"));
        let stderr = Output::collect(child.stderr.take().expect("it is piped"));
        (Self { name, child, stdout, stderr }, input)
    }

    /// What it has written to standard output so far.
    #[must_use]
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// What it has written to standard error so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a signal to this process alone.
    ///
    /// # Panics
    /// If the process id is of no use.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("process ids are positive");
        // That it has ended already shows when it is waited for.
        let _ = kill(Pid::from_raw(pid), signal);
    }

    /// Resident memory in bytes, as the kernel counts it.
    ///
    /// # Panics
    /// If it has ended.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    }

    /// Waits for its end, at most [`PATIENCE`].
    ///
    /// # Panics
    /// If it does not end.
    #[must_use]
    pub fn wait(self) -> Ended {
        self.wait_at_most(PATIENCE)
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it does not end in `patience`.
    #[must_use]
    pub fn wait_at_most(mut self, patience: Duration) -> Ended {
        let began = Instant::now();
        let status = within(patience, || self.child.try_wait().expect("a child can be waited for"));
        let Some(status) = status else {
            panic!(
                "{} has not ended after {patience:?}\nstdout:\n{}\nstderr:\n{}",
                self.name,
                self.stdout(),
                self.stderr()
            )
        };
        let took = began.elapsed();
        Ended { code: status.code(), stdout: self.stdout.finish(), stderr: self.stderr.finish(), took }
    }

    /// Sends SIGTERM and waits for the end, at most `patience`.
    ///
    /// # Panics
    /// If it does not end.
    #[must_use]
    pub fn terminate(self, patience: Duration) -> Ended {
        self.signal(Signal::SIGTERM);
        self.wait_at_most(patience)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After its end both do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `command` to its end.
///
/// # Panics
/// If it cannot be started or does not end.
#[must_use]
pub fn run(command: &mut Command) -> Ended {
    Process::start(command).wait()
}

/// Runs `command` to its end with `input` on standard input.
///
/// # Panics
/// If it cannot be started or does not end.
#[must_use]
pub fn run_with_input(command: &mut Command, input: &[u8]) -> Ended {
    let (process, stdin) = Process::start_with(command, Stdio::piped());
    let mut stdin = stdin.expect("it is piped");
    std::thread::scope(|scope| {
        // A process that does not read to the end breaks the pipe, and may.
        let _ = scope.spawn(move || stdin.write_all(input).is_ok());
        process.wait()
    })
}

/// A pipe that is read to its end in the background.
#[derive(Debug)]
struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Output {
    fn collect(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                all.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&buffer[..count]);
            }
        });
        Self { bytes, reader: Some(reader) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    fn finish(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader does not panic");
        }
        self.text()
    }
}
