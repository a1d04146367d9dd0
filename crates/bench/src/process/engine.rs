//! The engine as a child process.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::proc::{cpu_time, peak_rss_mib};
use super::{ENGINE_CORE, LOAD_CORE, ProcessError, pin};

/// How long starting and stopping may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a connection to the engine may take to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// Lines of the engine's log that an error shows.
const LAST_WORDS: usize = 20;
/// Log of the engine, in its folder.
const LOG: &str = "engine.log";

/// A running engine, alone on [`ENGINE_CORE`]. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Engine {
    child: Child,
    folder: TempDir,
}

impl Engine {
    /// Starts the engine with a configuration, to which the address of its admin server is added, and waits until it is
    /// ready and `listening` accepts connections.
    pub(crate) fn start(binary: &Path, mut config: Value, listening: SocketAddr) -> Result<Self, ProcessError> {
        let admin = free_address()?;
        config["engine"]["http_admin"] = json!({ "bind_address": admin });
        let folder = tempfile::tempdir().map_err(ProcessError::io("make a folder for the engine"))?;
        let config_file = folder.path().join("engine.json");
        std::fs::write(&config_file, config.to_string())
            .map_err(ProcessError::io("write the engine's configuration"))?;
        let log = File::create(folder.path().join(LOG)).map_err(ProcessError::io("make the engine's log"))?;
        let log_again = log.try_clone().map_err(ProcessError::io("make the engine's log"))?;
        let mut command = Command::new(binary);
        let _ = command.arg("--config").arg(&config_file).current_dir(folder.path());
        let _ = command.stdin(Stdio::null()).stdout(log).stderr(log_again);

        // The child inherits the core of this thread.
        pin(ENGINE_CORE)?;
        let started = command.spawn();
        pin(LOAD_CORE)?;
        let child = started.map_err(|source| ProcessError::Start { binary: binary.to_owned(), source })?;
        let mut engine = Self { child, folder };
        engine.wait_until("ready", || is_ready(admin).unwrap_or(false))?;
        engine.wait_until("listening", || TcpStream::connect(listening).is_ok())?;
        Ok(engine)
    }

    /// CPU time so far, user and system.
    pub(crate) fn cpu_time(&self) -> Result<Duration, ProcessError> {
        cpu_time(self.child.id())
    }

    /// Largest resident size so far, in MiB.
    pub(crate) fn peak_rss_mib(&self) -> Result<f64, ProcessError> {
        peak_rss_mib(self.child.id())
    }

    /// Asks the engine to end (SIGTERM) and waits until it has sent what it holds.
    pub(crate) fn stop(mut self) -> Result<(), ProcessError> {
        // An id that is no i32 cannot be; one that has ended is found by waiting.
        if let Ok(id) = i32::try_from(self.child.id()) {
            let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
        }
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if self.has_ended()? {
                return Ok(());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Err(self.timed_out("stopped"))
    }

    /// Looks again and again, unless the engine ends or it takes too long.
    fn wait_until(&mut self, state: &'static str, mut reached: impl FnMut() -> bool) -> Result<(), ProcessError> {
        let began = Instant::now();
        while !reached() {
            if self.has_ended()? {
                return Err(ProcessError::Ended { state, log: self.last_words() });
            }
            if began.elapsed() >= PATIENCE {
                return Err(self.timed_out(state));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn has_ended(&mut self) -> Result<bool, ProcessError> {
        self.child.try_wait().map(|status| status.is_some()).map_err(ProcessError::io("watch the engine"))
    }

    fn timed_out(&self, state: &'static str) -> ProcessError {
        ProcessError::TimedOut { state, seconds: PATIENCE.as_secs(), log: self.last_words() }
    }

    /// The end of its log.
    pub(crate) fn last_words(&self) -> String {
        let log = std::fs::read(self.folder.path().join(LOG)).unwrap_or_default();
        let text = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LAST_WORDS)..].join("\n")
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Both fail if it has ended, and then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A loopback address that was free just now.
pub(crate) fn free_address() -> Result<SocketAddr, ProcessError> {
    let free = || TcpListener::bind(("127.0.0.1", 0))?.local_addr();
    free().map_err(ProcessError::io("find a free port"))
}

/// Asks the admin server.
fn is_ready(admin: SocketAddr) -> io::Result<bool> {
    let mut stream = TcpStream::connect(admin)?;
    stream.set_read_timeout(Some(ANSWER))?;
    write!(stream, "GET /api/v1/readyz HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n")?;
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response)?;
    Ok(status(&response) == Some(200))
}

/// The status code of an HTTP/1.1 response.
fn status(response: &[u8]) -> Option<u16> {
    let line = response.split(|&byte| byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?.strip_prefix("HTTP/1.")?;
    line.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn statuses() {
        assert_eq!(status(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"), Some(200));
        assert_eq!(status(b"HTTP/1.0 503 Service Unavailable\r\n\r\n"), Some(503));
        for broken in [&b""[..], b"HTTP/1.1", b"HTTP/1.1 \r\n", b"SSH-2.0-x\r\n", b"\xff\xfe"] {
            assert_eq!(status(broken), None);
        }
    }

    /// An engine that ends at once is reported with what it said, and one that is not there with its path.
    #[test]
    fn ends_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let binary = folder.path().join("engine");
        std::fs::write(&binary, "#!/bin/sh\necho \"cannot read $2\" >&2\ntest -s \"$2\" && exit 3\n").unwrap();
        std::fs::set_permissions(&binary, PermissionsExt::from_mode(0o755)).unwrap();
        let error = Engine::start(&binary, json!({}), free_address().unwrap()).unwrap_err();
        assert!(
            matches!(&error, ProcessError::Ended { state: "ready", log } if log.contains("engine.json")),
            "{error}"
        );
        let missing = folder.path().join("missing");
        let error = Engine::start(&missing, json!({}), free_address().unwrap()).unwrap_err();
        assert!(error.to_string().contains("missing"), "{error}");
    }
}
