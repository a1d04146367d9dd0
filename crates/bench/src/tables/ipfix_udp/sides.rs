//! Who receives, how each is started, and what each says it has received.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::super::numbers::Numbers;
use super::super::pipelines::counting;
use super::super::{Setup, rounds};
use super::run::{Offer, Received, RunError, drained, offered, watch};
use crate::process::{Collector, Engine, Listening, free_address, udp_drops, udp_receive_buffer};

/// Metric set of our receiver.
const OUR_SET: &str = "receiver.ipfix";

/// A collector, with its default settings but for where it listens and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Ours, into nothing.
    Ours,
    /// nfcapd of nfdump, into a file.
    Nfcapd,
    /// nfacctd of pmacct, which adds up the records of each protocol in memory.
    Nfacctd,
}

impl rounds::Side for Side {
    fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Nfcapd => "nfcapd",
            Self::Nfacctd => "nfacctd",
        }
    }
}

impl Side {
    pub(super) const PEERS: [Self; 2] = [Self::Nfcapd, Self::Nfacctd];
}

/// The programs that are there.
#[derive(Debug)]
pub(super) struct Collectors {
    engine: Option<PathBuf>,
    sides: Vec<Side>,
}

/// Where Debian puts the programs.
const NFCAPD: &str = "/usr/bin/nfcapd";
const NFDUMP: &str = "/usr/bin/nfdump";
const NFACCTD: &str = "/usr/sbin/nfacctd";

impl Collectors {
    /// Ours, and the others that are installed.
    pub(super) fn find(setup: &Setup) -> Self {
        let mut sides = vec![Side::Ours];
        if [NFCAPD, NFDUMP].iter().all(|path| Path::new(path).exists()) {
            sides.push(Side::Nfcapd);
        }
        if Path::new(NFACCTD).exists() {
            sides.push(Side::Nfacctd);
        }
        Self { engine: setup.binary.clone(), sides }
    }

    #[cfg(test)]
    pub(super) fn of(sides: Vec<Side>) -> Self {
        Self { engine: None, sides }
    }

    /// Those that are there.
    pub(super) fn sides(&self) -> Vec<Side> {
        self.sides.clone()
    }

    /// Names and packages of those that are not.
    pub(super) fn missing(&self) -> impl Iterator<Item = &'static str> {
        let all = [(Side::Nfcapd, "nfcapd (package nfdump)"), (Side::Nfacctd, "nfacctd (package pmacct)")];
        all.into_iter().filter(|(side, _)| !self.sides.contains(side)).map(|(_, name)| name)
    }

    /// One run of a side.
    pub(super) fn run(&self, side: Side, offer: &Offer) -> Result<Numbers, RunError> {
        let listening = free_address()?;
        match (side, &self.engine) {
            (Side::Ours, Some(engine)) => ours(engine, listening, offer),
            (Side::Ours, None) => Err(RunError::NoProgram),
            (Side::Nfcapd, _) => nfcapd(listening, offer),
            (Side::Nfacctd, _) => nfacctd(listening, offer),
        }
    }
}

fn ours(program: &Path, listening: SocketAddr, offer: &Offer) -> Result<Numbers, RunError> {
    let receiver = json!({
        "type": "urn:catchment:receiver:ipfix",
        "config": { "udp": { "listening_addr": listening } },
    });
    let engine = Engine::start(program, counting(receiver), &[Listening::Udp(listening)])?;
    let buffer = udp_receive_buffer(listening.port());
    let window = engine.open_window()?;
    let sent = offered(offer, listening)?;
    let metrics = watch(&engine, |metrics| metrics.sum(OUR_SET, |name| name == "records.sent"), sent.records)?;
    let kernel_drops = udp_drops(listening.port()).unwrap_or(0);
    let cost = window.close()?;
    let records = metrics.sum(OUR_SET, |name| name == "records.sent");
    engine.stop()?;
    Received { records, kernel_drops, buffer, cost }.numbers(&sent)
}

/// Folder that nfcapd writes to.
const NFCAPD_FOLDER: &str = "flows";

fn nfcapd(listening: SocketAddr, offer: &Offer) -> Result<Numbers, RunError> {
    let folder = tempfile::tempdir().map_err(RunError::Files)?;
    let address = [listening.ip().to_string(), listening.port().to_string()];
    // nfdump wants nothing else beside the files.
    std::fs::create_dir(folder.path().join(NFCAPD_FOLDER)).map_err(RunError::Files)?;
    // A file for longer than a run lasts.
    let arguments = ["-w", NFCAPD_FOLDER, "-b", &address[0], "-p", &address[1], "-t", "3600"].map(str::to_owned);
    let collector = Collector::start(Path::new(NFCAPD), &arguments, folder, listening, "Startup")?;
    collected(collector, listening, offer, Signal::SIGTERM, |folder| {
        let output =
            Command::new(NFDUMP).args(["-I", "-R"]).arg(folder.join(NFCAPD_FOLDER)).stdin(Stdio::null()).output();
        let said = String::from_utf8_lossy(&output.map_err(RunError::Files)?.stdout).into_owned();
        flows_of_nfdump(&said).ok_or(RunError::NoCount { said })
    })
}

/// `Flows: N` of each file.
fn flows_of_nfdump(text: &str) -> Option<u64> {
    let flows = text.lines().filter_map(|line| line.strip_prefix("Flows: ")?.trim().parse::<u64>().ok());
    flows.reduce(|a, b| a + b)
}

/// File that nfacctd writes at its end.
const NFACCTD_OUTPUT: &str = "flows.json";

/// What its second process, the one that adds up, says when it is ready.
const NFACCTD_READY: &str = "setting object handlers";

fn nfacctd(listening: SocketAddr, offer: &Offer) -> Result<Numbers, RunError> {
    let folder = tempfile::tempdir().map_err(RunError::Files)?;
    let (ip, port) = (listening.ip(), listening.port());
    let output = folder.path().join(NFACCTD_OUTPUT);
    let config = format!(
        "daemonize: false\nnfacctd_ip: {ip}\nnfacctd_port: {port}\nplugins: print[all]\naggregate[all]: proto, flows\n\
         print_output[all]: json\nprint_output_file[all]: {}\nprint_refresh_time[all]: 3600\n",
        output.display()
    );
    let config_file = folder.path().join("nfacctd.conf");
    std::fs::write(&config_file, config).map_err(RunError::Files)?;
    let arguments = ["-f".to_owned(), config_file.display().to_string()];
    let collector = Collector::start(Path::new(NFACCTD), &arguments, folder, listening, NFACCTD_READY)?;
    collected(collector, listening, offer, Signal::SIGINT, |folder| {
        let said = std::fs::read_to_string(folder.join(NFACCTD_OUTPUT)).map_err(RunError::Files)?;
        flows_of_nfacctd(&said).ok_or(RunError::NoCount { said })
    })
}

/// `flows` of each line.
fn flows_of_nfacctd(text: &str) -> Option<u64> {
    let flows = |line: &str| serde_json::from_str::<Value>(line).ok()?["flows"].as_u64();
    text.lines().map(flows).sum()
}

/// Sends, waits until everything is read, and stops the collector, whose `count` then tells the records.
fn collected(
    mut collector: Collector,
    listening: SocketAddr,
    offer: &Offer,
    end: Signal,
    count: impl FnOnce(&Path) -> Result<u64, RunError>,
) -> Result<Numbers, RunError> {
    let buffer = udp_receive_buffer(listening.port());
    let window = collector.open_window()?;
    let sent = offered(offer, listening)?;
    drained(listening.port());
    let kernel_drops = udp_drops(listening.port()).unwrap_or(0);
    let cost = window.close()?;
    collector.stop(end)?;
    let records = count(collector.folder())?;
    Received { records, kernel_drops, buffer, cost }.numbers(&sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the peers count is found in what they print.
    #[test]
    fn counts() {
        assert_eq!(flows_of_nfdump("Ident: none\nFlows: 40\nFlows_tcp: 30\nIdent: none\nFlows: 2\n"), Some(42));
        assert_eq!(flows_of_nfdump("no files"), None);
        let lines = "{\"ip_proto\": \"tcp\", \"flows\": 30}\n{\"ip_proto\": \"udp\", \"flows\": 12}\n";
        assert_eq!(flows_of_nfacctd(lines), Some(42));
        assert_eq!(flows_of_nfacctd("{}\n"), None);
    }

    /// The peers that are installed count everything that is sent slowly.
    #[test]
    fn installed_peers() {
        let collectors = Collectors::find(&Setup::default());
        let offer = super::super::offer(catchment_loadgen::traffic::FlowFields::Basic, 20_000, true).unwrap();
        for side in collectors.sides().into_iter().filter(|side| *side != Side::Ours) {
            let numbers = collectors.run(side, &offer).unwrap();
            assert!(numbers.get(super::super::LOST).unwrap() < 50.0, "{side:?}: {numbers}");
        }
        assert!(matches!(collectors.run(Side::Ours, &offer), Err(RunError::NoProgram)));
    }
}
