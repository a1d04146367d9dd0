//! The tables.

mod syslog;

use std::io::{self, Write};
use std::path::PathBuf;

use crate::row::Rows;

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Table {
    /// Syslog over TCP to OTAP, beside the receiver that comes with the engine.
    Syslog,
}

/// How to measure.
#[derive(Debug)]
pub(crate) struct Setup {
    /// The engine.
    pub(crate) binary: PathBuf,
    /// Short runs.
    pub(crate) quick: bool,
}

impl Table {
    /// Measures every case; gives the number of those without rows. A case that fails does not stop the others.
    ///
    /// # Errors
    /// Rows that cannot be written.
    pub(crate) fn measure<W: Write>(
        self,
        setup: &Setup,
        rows: &mut Rows<W>,
    ) -> Result<usize, Box<dyn std::error::Error>> {
        match self {
            Self::Syslog => syslog::measure(setup, rows).map_err(Into::into),
        }
    }
}

/// Tells whoever waits how far it is.
fn progress(text: &str) {
    // Measuring goes on without anybody watching.
    let _ = writeln!(io::stderr(), "{text}");
}
