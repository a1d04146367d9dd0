//! `catchment decode`: what the receivers make of a file, one JSON object a record.
//!
//! The same code as in the receivers reads the input, so what is printed is what would leave them.

mod ipfix;
mod syslog;

use std::io::{self, Write};

use catchment_columns::{ColumnsError, Job, Step, json};

pub use ipfix::{
    AttributesAt, Biflow, Enumerations, FlowMapping, FlowSchema, IpfixOptions, IpfixProfile, OptionsData, SamplingUse,
    SonicMapping, SonicNames, TimeForm, ipfix,
};
pub use syslog::{NonUtf8, RowOptions, Schema, StructuredDataForm, SyslogFraming, SyslogOptions, syslog};

/// What came of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Records printed.
    pub records: u64,
    /// Problems told.
    pub problems: u64,
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The file cannot be opened or is of no use.
    #[error("{0}")]
    Input(String),
    /// Records or problems cannot be written.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
    /// A batch could not be built.
    #[error("{0}")]
    Columns(#[from] ColumnsError),
}

/// Where records and problems go.
pub(super) struct Sink<'w> {
    records: &'w mut dyn Write,
    problems: &'w mut dyn Write,
    summary: Summary,
}

impl<'w> Sink<'w> {
    pub(super) fn new(records: &'w mut dyn Write, problems: &'w mut dyn Write) -> Self {
        Self { records, problems, summary: Summary::default() }
    }

    /// Tells a problem: `offset <bytes>: <reason>`.
    pub(super) fn problem(&mut self, offset: u64, reason: &dyn std::fmt::Display) -> Result<(), DecodeError> {
        self.summary.problems += 1;
        Ok(writeln!(self.problems, "offset {offset}: {reason}")?)
    }

    /// Tells something that is no problem.
    pub(super) fn note(&mut self, text: &dyn std::fmt::Display) -> Result<(), DecodeError> {
        Ok(writeln!(self.problems, "note: {text}")?)
    }

    /// Prints the records of a job.
    pub(super) fn print(&mut self, mut job: impl Job) -> Result<(), DecodeError> {
        loop {
            match job.step(catchment_columns::Budget::UNLIMITED)? {
                Step::More => {}
                Step::End => return Ok(()),
                Step::Batch(records) => {
                    let mut written = Ok(());
                    json::objects(&records, |object| {
                        if written.is_ok() {
                            written = writeln!(self.records, "{object}");
                        }
                        self.summary.records += 1;
                    })?;
                    written?;
                }
            }
        }
    }

    pub(super) fn finish(self) -> Result<Summary, DecodeError> {
        self.records.flush()?;
        self.problems.flush()?;
        Ok(self.summary)
    }
}
