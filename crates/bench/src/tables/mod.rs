//! The tables.

mod export;
mod ipfix_decode;
mod ipfix_udp;
mod messages;
mod numbers;
mod pipelines;
mod quantile_core;
mod quantile_pipeline;
mod rounds;
mod sampling;
mod syslog;

use std::io::{self, Write};
use std::path::PathBuf;

use crate::row::Rows;

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Table {
    /// Syslog over TCP and UDP, beside the receivers that come with two versions of the engine.
    Syslog,
    /// IPFIX messages to OTAP batches, beside crates that decode to records of their own.
    IpfixDecode,
    /// Flow records over UDP, beside nfcapd and nfacctd.
    IpfixUdp,
    /// Head sampling in the receivers, beside none and beside the engine's processor.
    Sampling,
    /// Sketches and exact quantiles, beside other crates.
    QuantileCore,
    /// Counters, flow records and lines to OTLP and OTAP, beside the engine's own exporters.
    Export,
    /// Quantiles in one process and in four, from sketches and from all values, beside what ASAPCollector published.
    QuantilePipeline,
}

/// How to measure.
#[derive(Debug, Default)]
pub(crate) struct Setup {
    /// The engine; tables that need it have it.
    pub(crate) binary: Option<PathBuf>,
    /// Version 0.63 of the engine with its own nodes.
    pub(crate) peer_063: Option<PathBuf>,
    /// Crates that decode IPFIX, in a program.
    pub(crate) peer_ipfix: Option<PathBuf>,
    /// Folder of captures.
    pub(crate) captures: Option<PathBuf>,
    /// Short runs.
    pub(crate) quick: bool,
    /// Parts of names of cases; none for all.
    pub(crate) cases: Vec<String>,
}

impl Setup {
    /// Whether a case is asked for.
    fn wants(&self, case: &str) -> bool {
        self.cases.is_empty() || self.cases.iter().any(|part| case.contains(part.as_str()))
    }
}

impl Table {
    /// Whether it starts the engine.
    pub(crate) fn needs_engine(self) -> bool {
        match self {
            Self::Syslog | Self::IpfixUdp | Self::Sampling | Self::QuantilePipeline | Self::Export => true,
            Self::IpfixDecode | Self::QuantileCore => false,
        }
    }

    /// Measures every case that is asked for; gives the number of sides that failed in one. A failure does not stop the
    /// others.
    ///
    /// # Errors
    /// Rows that cannot be written, and names of cases of which there are none.
    pub(crate) fn measure<W: Write>(
        self,
        setup: &Setup,
        rows: &mut Rows<W>,
    ) -> Result<usize, Box<dyn std::error::Error>> {
        match self {
            Self::Syslog => syslog::measure(setup, rows),
            Self::IpfixDecode => ipfix_decode::measure(setup, rows),
            Self::IpfixUdp => ipfix_udp::measure(setup, rows),
            Self::Sampling => sampling::measure(setup, rows),
            Self::QuantileCore => quantile_core::measure(setup, rows),
            Self::QuantilePipeline => quantile_pipeline::measure(setup, rows),
            Self::Export => export::measure(setup, rows),
        }
    }
}

/// Tells whoever waits how far it is.
fn progress(text: &str) {
    // Measuring goes on without anybody watching.
    let _ = writeln!(io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any part of a name will do, and no parts are all cases.
    #[test]
    fn cases() {
        let mut setup = Setup::default();
        assert!(setup.wants("udp-loss"));
        setup.cases = vec!["noop/".to_owned(), "udp".to_owned()];
        assert!(setup.wants("udp-loss") && setup.wants("tcp-noop/cef/fixed"));
        assert!(!setup.wants("probe/cef"));
    }
}
