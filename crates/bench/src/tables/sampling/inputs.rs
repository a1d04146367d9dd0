//! What comes, how, and what becomes of it.

use std::net::SocketAddr;
use std::num::NonZeroU64;

use catchment_loadgen::traffic::{FlowFields, Framing};
use serde_json::{Value, json};

use super::super::messages::Messages;
use super::super::pipelines::{counting, pipeline};
use super::sides::Side;
use super::traffic;
use crate::process::{Listening, MAIN, Metrics};

/// Items of a batch.
const BATCH: u32 = 8_192;

/// What comes, and whether anybody takes what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// Lines over TCP, into nothing.
    SyslogTcp,
    /// The same, over OTAP to a sink.
    SyslogTcpOtap,
    /// Lines over UDP, into nothing.
    SyslogUdp,
    /// Records of eleven fields over TCP, into nothing.
    IpfixTcp,
    /// The same, over OTAP to a sink.
    IpfixTcpOtap,
    /// Records of 32 fields over TCP, into nothing.
    IpfixWideTcp,
    /// Records of eleven fields over UDP, into nothing.
    IpfixUdp,
}

impl Input {
    pub(super) const ALL: [Self; 7] = [
        Self::SyslogTcp,
        Self::SyslogTcpOtap,
        Self::SyslogUdp,
        Self::IpfixTcp,
        Self::IpfixTcpOtap,
        Self::IpfixWideTcp,
        Self::IpfixUdp,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SyslogTcp => "syslog-tcp",
            Self::SyslogTcpOtap => "syslog-tcp-otap",
            Self::SyslogUdp => "syslog-udp",
            Self::IpfixTcp => "ipfix-tcp",
            Self::IpfixTcpOtap => "ipfix-tcp-otap",
            Self::IpfixWideTcp => "ipfix-wide-tcp",
            Self::IpfixUdp => "ipfix-udp",
        }
    }

    /// The sides that make sense: flows have no traces, and datagrams no framing.
    pub(super) fn sides(self) -> impl Iterator<Item = Side> {
        let of_few = [Side::None, Side::All, Side::Tenth, Side::Nothing, Side::KeyHash, Side::RateLimit];
        Side::ALL.into_iter().filter(move |side| match self {
            Self::SyslogTcp => true,
            Self::SyslogUdp => *side != Side::Framing,
            Self::IpfixTcp => *side != Side::Unsampled,
            Self::IpfixUdp => !matches!(side, Side::Unsampled | Side::Framing),
            Self::SyslogTcpOtap | Self::IpfixTcpOtap => of_few.contains(side),
            Self::IpfixWideTcp => of_few.contains(side) || *side == Side::Framing,
        })
    }

    pub(super) fn is_tcp(self) -> bool {
        !matches!(self, Self::SyslogUdp | Self::IpfixUdp)
    }

    pub(super) fn has_sink(self) -> bool {
        matches!(self, Self::SyslogTcpOtap | Self::IpfixTcpOtap)
    }

    fn is_syslog(self) -> bool {
        matches!(self, Self::SyslogTcp | Self::SyslogTcpOtap | Self::SyslogUdp)
    }

    /// How frames are told apart in a stream, and what the program that only frames is to find.
    pub(super) fn framing(self) -> (Framing, &'static str) {
        if self.is_syslog() { (Framing::Newline, "lines") } else { (Framing::None, "messages") }
    }

    /// A count of the receiver.
    pub(super) fn count(self, metrics: &Metrics, what: &str) -> u64 {
        let (set, items) =
            if self.is_syslog() { ("receiver.syslog", "messages") } else { ("receiver.ipfix", "records") };
        let name = format!("{items}.{what}");
        metrics.sum(set, |known| known == name)
    }
}

/// Traffic, and how fast it is sent.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) input: Input,
    pub(super) traffic: Messages,
    /// Datagrams in a second.
    pub(super) per_second: Option<NonZeroU64>,
    /// What `rate_limit` keeps in a second.
    limit: u64,
    quick: bool,
}

impl Load {
    pub(super) fn new(input: Input, quick: bool) -> Result<Self, Box<dyn std::error::Error>> {
        let part = if quick { 10 } else { 1 };
        let batches = u64::from(BATCH) / part;
        let (traffic, limit) = match input {
            Input::SyslogTcp => (traffic::lines(100 * batches), 100_000),
            Input::SyslogTcpOtap => (traffic::lines(50 * batches), 50_000),
            Input::SyslogUdp => (traffic::lines(200_000 / part), 5_000),
            Input::IpfixTcp | Input::IpfixUdp => (traffic::flows(FlowFields::Basic, 1_600_000 / part)?, 40_000),
            Input::IpfixTcpOtap => (traffic::flows(FlowFields::Basic, 800_000 / part)?, 40_000),
            Input::IpfixWideTcp => (traffic::flows(FlowFields::IosXrLayer2, 800_000 / part)?, 40_000),
        };
        let per_second = match input {
            Input::SyslogUdp => NonZeroU64::new(50_000),
            // Four seconds of sending.
            Input::IpfixUdp => NonZeroU64::new(traffic.len() as u64 * part / 4),
            _ => None,
        };
        Ok(Self { input, traffic, per_second, limit, quick })
    }

    /// How often the traffic is sent: more often where little is done for it, so that there is something to measure.
    pub(super) fn passes(&self, side: Side) -> u64 {
        if self.quick || !self.input.is_tcp() {
            return 1;
        }
        let of_flows = if self.input.is_syslog() { 1 } else { 4 };
        match side {
            Side::None | Side::All | Side::Half | Side::Processor => 1,
            Side::Tenth | Side::KeyHash | Side::RateLimit if self.input.has_sink() => 1,
            Side::Tenth | Side::KeyHash | Side::RateLimit => 3,
            Side::Nothing | Side::Unsampled | Side::Framing => 10 * of_flows,
        }
    }

    /// Where the engine listens.
    pub(super) fn listens(&self, address: SocketAddr) -> Listening {
        if self.input.is_tcp() { Listening::Tcp(address) } else { Listening::Udp(address) }
    }

    /// Receiver, for one side a processor, and nothing or the exporter to a sink.
    pub(super) fn config(&self, side: Side, listening: SocketAddr, sink: Option<SocketAddr>) -> Value {
        let mut listener = json!({ "listening_addr": listening });
        let (kind, key) = match self.input.is_syslog() {
            true => ("urn:catchment:receiver:syslog", json!(["host", "app"])),
            false => ("urn:catchment:receiver:ipfix", json!("flow")),
        };
        if self.input.is_syslog() && self.input.is_tcp() {
            listener["framing"] = json!("newline");
        }
        let transport = if self.input.is_tcp() { "tcp" } else { "udp" };
        let mut config = json!({ "batch": { "max_messages": BATCH } });
        config[transport] = listener;
        if let Some(sampling) = side.sampling(&key, self.limit) {
            config["sampling"] = sampling;
        }
        let receiver = json!({ "type": kind, "config": config });
        let mut whole = counting(receiver.clone());
        let (nodes, connections) = match sink {
            Some(sink) => (
                json!({ "receive": receiver, "export": exporter(sink) }),
                json!([{ "from": "receive", "to": "export" }]),
            ),
            None if side == Side::Processor => (
                json!({
                    "receive": receiver,
                    "sample": {
                        "type": "urn:otel:processor:log_sampling",
                        "config": { "policy": { "ratio": { "emit": 1, "out_of": 10 } } },
                    },
                    "export": { "type": "urn:otel:exporter:noop", "config": {} },
                }),
                json!([{ "from": "receive", "to": "sample" }, { "from": "sample", "to": "export" }]),
            ),
            None => return whole,
        };
        whole["groups"]["default"]["pipelines"][MAIN] = pipeline(nodes, connections);
        whole
    }
}

/// Batches as they come, over OTAP in one lane.
fn exporter(sink: SocketAddr) -> Value {
    json!({ "type": "urn:catchment:exporter:lanes", "config": {
        "protocol": "otap",
        "client": { "endpoint": format!("http://{sink}") },
        "lanes": { "key": "single", "count": 1 },
        "batch": { "max_items": BATCH },
        "compression": { "codec": "zstd", "level": 1, "layer": "ipc" },
    } })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every side of every input is configured as its name says.
    #[test]
    fn configs() {
        let address = SocketAddr::from(([127, 0, 0, 1], 4_317));
        for input in Input::ALL {
            let load = Load::new(input, true).unwrap();
            for side in input.sides() {
                let sink = input.has_sink().then_some(address);
                let config = load.config(side, address, sink);
                let nodes = &config["groups"]["default"]["pipelines"][MAIN]["nodes"];
                let receiver = &nodes["receive"]["config"];
                let samples = !matches!(side, Side::None | Side::Processor | Side::Framing);
                assert_eq!(receiver["sampling"].is_object(), samples, "{input:?} {side:?}");
                assert_eq!(receiver["tcp"].is_object(), input.is_tcp(), "{input:?}");
                let is_lanes = nodes["export"]["type"] == "urn:catchment:exporter:lanes";
                assert_eq!(is_lanes, input.has_sink(), "{input:?}");
                assert_eq!(nodes["sample"].is_object(), side == Side::Processor, "{input:?}");
            }
        }
    }
}
