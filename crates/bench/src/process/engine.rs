//! The engine as a child process.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::proc::udp_drops;
use super::{ENGINE_CORE, LOAD_CORE, Metrics, ProcessError, Window, pin};
use crate::http::Connection;

/// How long starting and stopping may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Lines of the engine's log that an error shows.
const LAST_WORDS: usize = 20;
/// Log of the engine, in its folder.
const LOG: &str = "engine.log";

/// A running engine, on one core. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Engine {
    child: Child,
    folder: TempDir,
    admin: SocketAddr,
}

/// A loopback address that an engine listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listening {
    Tcp(SocketAddr),
    Udp(SocketAddr),
}

impl Listening {
    /// Whether somebody listens.
    fn is_open(self) -> bool {
        match self {
            Self::Tcp(address) => TcpStream::connect(address).is_ok(),
            Self::Udp(address) => udp_drops(address.port()).is_some(),
        }
    }
}

impl Engine {
    /// Starts the engine alone on [`ENGINE_CORE`], as [`start_on`](Self::start_on) does.
    pub(crate) fn start(binary: &Path, config: Value, listening: &[Listening]) -> Result<Self, ProcessError> {
        Self::start_on(ENGINE_CORE, binary, config, listening)
    }

    /// Starts the engine on a core, with a configuration to which the address of its admin server is added, and waits until
    /// it is ready and listens on all of `listening`.
    pub(crate) fn start_on(
        core: usize,
        binary: &Path,
        mut config: Value,
        listening: &[Listening],
    ) -> Result<Self, ProcessError> {
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
        pin(core)?;
        let started = command.spawn();
        pin(LOAD_CORE)?;
        let child = started.map_err(|source| ProcessError::Start { binary: binary.to_owned(), source })?;
        let mut engine = Self { child, folder, admin };
        engine.wait_until("ready", || is_ready(admin).unwrap_or(false))?;
        engine.wait_until("listening", || listening.iter().all(|one| one.is_open()))?;
        Ok(engine)
    }

    /// Begins to measure what it costs.
    pub(crate) fn open_window(&self) -> Result<Window, ProcessError> {
        Window::open(vec![self.child.id()])
    }

    /// What it has counted, as of its last report.
    pub(crate) fn metrics(&self) -> Result<Metrics, ProcessError> {
        let response = Connection::open(self.admin)
            .and_then(|mut connection| connection.get("/api/v1/metrics?format=json"))
            .map_err(ProcessError::io("ask the engine for its metrics"))?;
        let metrics = if response.status == 200 { Metrics::parse(&response.body) } else { None };
        metrics.ok_or(ProcessError::NoMetrics)
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

/// A loopback address that was free just now, for TCP and for UDP.
pub(crate) fn free_address() -> Result<SocketAddr, ProcessError> {
    let free = || {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        UdpSocket::bind(listener.local_addr()?)?.local_addr()
    };
    free().map_err(ProcessError::io("find a free port"))
}

/// Asks the admin server.
fn is_ready(admin: SocketAddr) -> io::Result<bool> {
    Ok(Connection::open(admin)?.get("/api/v1/readyz")?.status == 200)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// An engine that ends at once is reported with what it said, and one that is not there with its path.
    #[test]
    fn ends_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let binary = folder.path().join("engine");
        std::fs::write(&binary, "#!/bin/sh\necho \"cannot read $2\" >&2\ntest -s \"$2\" && exit 3\n").unwrap();
        std::fs::set_permissions(&binary, PermissionsExt::from_mode(0o755)).unwrap();
        let error = Engine::start(&binary, json!({}), &[]).unwrap_err();
        assert!(
            matches!(&error, ProcessError::Ended { state: "ready", log } if log.contains("engine.json")),
            "{error}"
        );
        let missing = folder.path().join("missing");
        let error = Engine::start(&missing, json!({}), &[]).unwrap_err();
        assert!(error.to_string().contains("missing"), "{error}");
    }

    /// Sockets of both kinds are found while they are open.
    #[test]
    fn listening() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(Listening::Tcp(tcp.local_addr().unwrap()).is_open());
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(Listening::Udp(udp.local_addr().unwrap()).is_open());
        // No socket has port 0.
        assert!(!Listening::Udp(SocketAddr::from(([127, 0, 0, 1], 0))).is_open());
    }
}
