//! nfcapd and nfdump, another collector for the same flows.

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;

use serde_json::Value;

use crate::{PATIENCE, Process, Scene, Sender, free_port, local, udp_queue, wait_until};

/// A running nfcapd.
#[derive(Debug)]
pub struct Nfcapd {
    process: Process,
    nfdump: Sender,
    folder: PathBuf,
    port: u16,
}

impl Nfcapd {
    /// Starts it on a free port. Where the programs are missing, says that the test is skipped.
    ///
    /// # Panics
    /// If it does not listen.
    #[must_use]
    pub fn start(scene: &Scene) -> Option<Self> {
        let (nfcapd, nfdump) = (Sender::find("nfcapd")?, Sender::find("nfdump")?);
        let folder = scene.unused("nfcapd");
        std::fs::create_dir(&folder).expect("a new folder");
        let port = free_port();
        let path = folder.to_str().expect("a path of text");
        let mut process = nfcapd.start(&["-w", path, "-b", "127.0.0.1", "-p", &port.to_string(), "-t", "3600"]);
        wait_until("nfcapd listens", || {
            assert!(process.is_running(), "nfcapd ended: {}", process.stderr());
            UdpSocket::bind(local(port)).is_err()
        });
        Some(Self { process, nfdump, folder, port })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        local(self.port)
    }

    /// Ends it once it has read everything; gives its flows as nfdump prints them.
    ///
    /// # Panics
    /// If one of the two fails.
    #[must_use]
    pub fn flows(self) -> Vec<Value> {
        wait_until("nfcapd has read everything", || udp_queue(self.port).waiting == 0);
        let _ = self.process.terminate(PATIENCE).expect_code(0);
        let printed = self.nfdump.run(&["-R", self.folder.to_str().expect("a path of text"), "-o", "json"]);
        serde_json::from_str(&printed.stdout).unwrap_or_else(|error| panic!("nfdump: {error}"))
    }
}
