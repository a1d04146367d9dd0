//! Bodies of the fuzz targets for the crates that read untrusted bytes, or hold what was read.
//!
//! A target takes any bytes, runs them through one parser or decode job, walks everything that comes out, and asserts what must
//! hold for every input: a broken promise is a panic. The folder `fuzz/` of the repository drives the targets with
//! libFuzzer; the tests of this crate replay its corpus, so that what a fuzzer once found stays tested in normal
//! builds.
//!
//! Not for checking that a value is the right one: the golden data of each crate does that.

mod capture;
mod flow;
mod ipfix;
mod ipfix_collector;
mod ipfix_options;
mod jobs;
mod pieces;
mod quantile;
mod quantile_otlp;
mod quantile_state;
mod sonic;
mod sonic_admit;
mod syslog;
mod syslog_batch;
mod syslog_sampling;

pub use capture::capture_reader;
pub use flow::{flow_encoded, flow_job, flow_metrics};
pub use ipfix::{ipfix_admit, ipfix_lists, ipfix_stream};
pub use ipfix_collector::{ipfix_collector, ipfix_template_cache};
pub use ipfix_options::ipfix_options;
pub use quantile::{exact_run, kll_asapv1, kll_image};
pub use quantile_otlp::{quantile_carrier, quantile_otlp};
pub use quantile_state::{kll_operations, quantile_exchange};
pub use sonic::sonic_encoded;
pub use sonic_admit::sonic_admit;
pub use syslog::{syslog_framing, syslog_parse};
pub use syslog_batch::{syslog_encoded, syslog_job};
pub use syslog_sampling::syslog_sampling;

/// A target: a name, which is also that of its folder in `fuzz/corpus`, and its body.
pub type Target = (&'static str, fn(&[u8]));

/// All targets by name.
pub const TARGETS: &[Target] = &[
    ("capture_reader", capture_reader),
    ("exact_run", exact_run),
    ("flow_encoded", flow_encoded),
    ("flow_job", flow_job),
    ("flow_metrics", flow_metrics),
    ("ipfix_admit", ipfix_admit),
    ("ipfix_collector", ipfix_collector),
    ("ipfix_lists", ipfix_lists),
    ("ipfix_options", ipfix_options),
    ("ipfix_stream", ipfix_stream),
    ("ipfix_template_cache", ipfix_template_cache),
    ("kll_asapv1", kll_asapv1),
    ("kll_image", kll_image),
    ("kll_operations", kll_operations),
    ("quantile_carrier", quantile_carrier),
    ("quantile_exchange", quantile_exchange),
    ("quantile_otlp", quantile_otlp),
    ("sonic_admit", sonic_admit),
    ("sonic_encoded", sonic_encoded),
    ("syslog_encoded", syslog_encoded),
    ("syslog_framing", syslog_framing),
    ("syslog_job", syslog_job),
    ("syslog_parse", syslog_parse),
    ("syslog_sampling", syslog_sampling),
];
