//! What the whole-process tests share: processes on free ports, their reports, sinks, generators, and waiting for
//! conditions.
//!
//! A test begins with a [`Scene`], which lets at most two tests of a test binary run processes at a time and owns a
//! folder for their files. In it the test starts [`Engine`]s and [`Sink`]s, sends with [`loadgen`] or with a real
//! sender, waits with [`wait_until`], and stops everything with SIGTERM. Whatever still runs when a test ends is killed.
//!
//! Nothing here sleeps for a fixed time: each wait polls a condition and fails after [`PATIENCE`], saying what it
//! waited for.

mod binaries;
mod certificates;
mod corpus;
mod elements;
mod engine;
pub mod expected;
pub mod flows;
mod http;
mod listeners;
mod loadgen;
pub mod message;
mod nfcapd;
pub mod otlp;
pub mod pcap;
mod ports;
mod process;
mod redis;
mod report;
mod row;
mod rsyslog;
mod scene;
mod schema;
mod scripted;
mod sender;
mod shipped;
mod sink;
mod wait;

pub use binaries::{catchment, catchment_loadgen, repository};
pub use certificates::Certificates;
pub use corpus::{Case, Corpus, cases, comparable, octet_counted};
pub use elements::{Element, Elements, Numbers};
pub use engine::{Engine, HEAD, Stopped};
pub use flows::Flows;
pub use listeners::Listeners;
pub use loadgen::{Sent, generated_lines, loadgen, start_loadgen};
pub use nfcapd::Nfcapd;
pub use ports::{UdpQueue, free_port, local, udp_queue};
pub use process::{Ended, Process, run, run_with_input};
pub use redis::Redis;
pub use report::{NodeLine, Report};
pub use row::{Behind, carried};
pub use rsyslog::Rsyslog;
pub use scene::Scene;
pub use schema::{Schema, protocol};
pub use scripted::{Followed, ScriptedSink};
pub use sender::Sender;
pub use shipped::{shipped, with_named_ports};
pub use sink::{Caught, Sink};
pub use wait::{PATIENCE, wait_for, wait_until};
