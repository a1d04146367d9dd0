//! One run: sending, waiting, counting.

use std::num::NonZeroU64;
use std::path::Path;
use std::time::{Duration, Instant};

use catchment_loadgen::traffic::{Framing, SendError, SendOptions, send_tcp, send_udp};
use serde_json::{Value, json};

use super::super::Setup;
use super::super::messages::Messages;
use super::super::numbers::{Metric, Numbers};
use super::super::pipelines::{counting, pipeline};
use super::sides::Side;
use super::traffic;
use crate::process::{Engine, Listening, MAIN, Metrics, ProcessError, free_address, tcp_unread};

/// CPU time of the engine for each record that it received, kept or not.
const CPU: Metric = Metric { name: "cpu", unit: "ns/record" };
/// Records that the receiver read in a second.
const RATE: Metric = Metric { name: "rate", unit: "records/s" };
/// Records received, of those sent.
const RECEIVED: Metric = Metric { name: "received", unit: "%" };
/// Records kept, of those received.
const KEPT: Metric = Metric { name: "kept", unit: "%" };

const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Looks without a change after which nothing more is expected; the engine reports every other look.
const QUIET_LOOKS: u32 = 10;

/// Why a run gives no numbers.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error("its program is not there")]
    NoProgram,
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Send(#[from] SendError),
    #[error("{sent} records were sent, but the receiver counts {received}")]
    Miscounted { sent: u64, received: u64 },
    #[error("{kept} of {received} records were kept, which is not what the side says")]
    Kept { received: u64, kept: u64 },
}

/// What comes, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    SyslogTcp,
    SyslogUdp,
    IpfixUdp,
}

impl Input {
    pub(super) const ALL: [Self; 3] = [Self::SyslogTcp, Self::SyslogUdp, Self::IpfixUdp];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SyslogTcp => "syslog-tcp",
            Self::SyslogUdp => "syslog-udp",
            Self::IpfixUdp => "ipfix-udp",
        }
    }

    /// The settings that make sense for it: flows have no traces.
    pub(super) fn sides(self) -> impl Iterator<Item = Side> {
        Side::ALL.into_iter().filter(move |side| *side != Side::Unsampled || self != Self::IpfixUdp)
    }

    fn set(self) -> &'static str {
        if self == Self::IpfixUdp { "receiver.ipfix" } else { "receiver.syslog" }
    }

    /// A count of the receiver.
    fn count(self, metrics: &Metrics, what: &str) -> u64 {
        let name = if self == Self::IpfixUdp { format!("records.{what}") } else { format!("messages.{what}") };
        metrics.sum(self.set(), |known| known == name)
    }
}

/// Traffic, and how fast it is sent.
#[derive(Debug)]
pub(super) struct Load {
    input: Input,
    traffic: Messages,
    /// Datagrams in a second.
    per_second: Option<NonZeroU64>,
    /// A tenth of the records of a second.
    tenth: u64,
}

impl Load {
    pub(super) fn new(input: Input, quick: bool) -> Result<Self, Box<dyn std::error::Error>> {
        let part = if quick { 10 } else { 1 };
        Ok(match input {
            Input::SyslogTcp => {
                let traffic = traffic::lines(8_192 * 100 / part);
                Self { input, traffic, per_second: None, tenth: 40_000 }
            }
            Input::SyslogUdp => {
                let traffic = traffic::lines(200_000 / part);
                Self { input, traffic, per_second: NonZeroU64::new(50_000), tenth: 5_000 }
            }
            Input::IpfixUdp => {
                let traffic = traffic::flows(1_600_000 / part)?;
                // Four seconds of sending.
                let per_second = NonZeroU64::new(traffic.len() as u64 * part / 4);
                Self { input, traffic, per_second, tenth: 40_000 }
            }
        })
    }

    /// Receiver, and for one side a processor, into nothing.
    fn config(&self, side: Side, listening: std::net::SocketAddr) -> Value {
        let listener = json!({ "listening_addr": listening });
        let (kind, mut config, key) = match self.input {
            Input::SyslogTcp => {
                let listener = json!({ "listening_addr": listening, "framing": "newline" });
                ("urn:catchment:receiver:syslog", json!({ "tcp": listener }), json!(["host", "app"]))
            }
            Input::SyslogUdp => ("urn:catchment:receiver:syslog", json!({ "udp": listener }), json!(["host", "app"])),
            Input::IpfixUdp => ("urn:catchment:receiver:ipfix", json!({ "udp": listener }), json!("flow")),
        };
        config["batch"] = json!({ "max_messages": 8_192 });
        if let Some(sampling) = side.sampling(&key, self.tenth) {
            config["sampling"] = sampling;
        }
        let receiver = json!({ "type": kind, "config": config });
        let mut whole = counting(receiver.clone());
        if side == Side::Processor {
            let nodes = json!({
                "receive": receiver,
                "sample": {
                    "type": "urn:otel:processor:log_sampling",
                    "config": { "policy": { "ratio": { "emit": 1, "out_of": 10 } } },
                },
                "export": { "type": "urn:otel:exporter:noop", "config": {} },
            });
            let connections = json!([{ "from": "receive", "to": "sample" }, { "from": "sample", "to": "export" }]);
            whole["groups"]["default"]["pipelines"][MAIN] = pipeline(nodes, connections);
        }
        whole
    }
}

/// One run of a side.
pub(super) fn run(setup: &Setup, load: &Load, side: Side) -> Result<Numbers, RunError> {
    let program: &Path = setup.binary.as_deref().ok_or(RunError::NoProgram)?;
    let (input, listening) = (load.input, free_address()?);
    let is_tcp = input == Input::SyslogTcp;
    let listens = if is_tcp { Listening::Tcp(listening) } else { Listening::Udp(listening) };
    let engine = Engine::start(program, load.config(side, listening), &[listens])?;
    let options = SendOptions { count: load.traffic.len() as u64, per_second: load.per_second };

    let window = engine.open_window()?;
    let began = Instant::now();
    let sent = match is_tcp {
        true => send_tcp(listening, &mut load.traffic.source(), Framing::Newline, &options)?,
        false => send_udp(listening, &mut load.traffic.source(), &options)?,
    };
    while is_tcp && tcp_unread(listening.port())? > 0 && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(2));
    }
    let seconds = began.elapsed().as_secs_f64();
    let metrics = watch(&engine, input, sent.records)?;
    let cost = window.close()?;
    engine.stop()?;

    let (received, kept) = (input.count(&metrics, "received"), input.count(&metrics, "sent"));
    if received == 0 || received > sent.records || (is_tcp && received < sent.records) {
        return Err(RunError::Miscounted { sent: sent.records, received });
    }
    let share = kept as f64 / received as f64;
    if !side.kept().contains(&share) {
        return Err(RunError::Kept { received, kept });
    }
    Ok(Numbers::default()
        .with(CPU, cost.cpu_seconds * 1e9 / received as f64)
        .with(RATE, received as f64 / seconds)
        .with(RECEIVED, received as f64 * 100.0 / sent.records as f64)
        .with(KEPT, share * 100.0))
}

/// Looks at the counters until everything was received and what was kept has been sent, or nothing more comes.
fn watch(engine: &Engine, input: Input, all: u64) -> Result<Metrics, ProcessError> {
    let began = Instant::now();
    let (mut last, mut quiet) = ((0, 0), 0);
    loop {
        let metrics = engine.metrics()?;
        let count = |what| input.count(&metrics, what);
        let now = (count("received"), count("sent"));
        quiet = if now == last { quiet + 1 } else { 0 };
        last = now;
        let is_done = now.0 >= all && now.0 == now.1 + count("sampled.out");
        if is_done || quiet >= QUIET_LOOKS || began.elapsed() >= PATIENCE {
            return Ok(metrics);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
