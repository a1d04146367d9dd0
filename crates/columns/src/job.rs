//! Resumable decode jobs: work in bounded steps, complete batches out.

use otel_arrow_dfe_pdata::OtapArrowRecords;

use crate::ColumnsError;

/// The most records one batch holds. Ids of log records are 16 bits wide in OTAP; this leaves room below.
pub const MAX_BATCH_RECORDS: usize = 8_192;

/// Bytes of text after which a batch is sent on even if it has fewer records: offsets of Arrow text are 31 bits wide.
pub(crate) const MAX_BATCH_BYTES: usize = 256 * 1024 * 1024;

/// Records of a batch that is decoded in one step.
pub const SMALL_RECORDS: usize = 256;
/// Input bytes of a batch that is decoded in one step.
pub const SMALL_BYTES: usize = 256 * 1024;

/// How much one step may do. A step ends at whichever bound it meets first, but never before one record is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Records decoded in one step.
    pub records: usize,
    /// Input bytes looked at in one step, so that a step of long records is as short as one of short records.
    pub bytes: usize,
}

impl Budget {
    /// No bound: the whole input in one step.
    pub const UNLIMITED: Self = Self { records: usize::MAX, bytes: usize::MAX };
}

impl Default for Budget {
    /// 64 records or 32 KiB: some 50 microseconds. A request to another node of the thread takes several turns, and waits
    /// for a step in each.
    fn default() -> Self {
        Self { records: 64, bytes: 32 * 1024 }
    }
}

/// What a step came to.
#[derive(Debug)]
pub enum Step {
    /// There is more to do; let others run and call again. Never means "wait for something".
    More,
    /// A complete batch. There may be more: call again.
    Batch(OtapArrowRecords),
    /// Everything has been handed out.
    End,
}

/// A resumable decode job. It owns its input, holds no lock between steps, and is `Send`: parts of the engine are
/// shared between threads and may move a half-done job to another one.
pub trait Job: Send {
    /// Works on for at most `budget`.
    ///
    /// A batch comes out complete or not at all.
    ///
    /// # Errors
    /// [`ColumnsError`] if a batch could not be built. The records of that batch are gone; the job can go on with the
    /// next ones.
    fn step(&mut self, budget: Budget) -> Result<Step, ColumnsError>;

    /// How much to do in each step on a thread that is shared: all at once if it is little, else [`Budget::default`].
    fn budget(&self) -> Budget {
        Budget::default()
    }

    /// How many items of the input the batch that came out last stands for; `None` if that is the number of its own.
    fn items_in_batch(&self) -> Option<u64> {
        None
    }

    /// Items of the input, so far, that no batch stands for because nobody asked for them.
    fn unused_items(&self) -> u64 {
        0
    }

    /// Runs to the end without pause, for callers that share their thread with nobody.
    ///
    /// # Errors
    /// The first error of a step.
    fn run(&mut self) -> Result<Vec<OtapArrowRecords>, ColumnsError> {
        let mut batches = Vec::new();
        loop {
            match self.step(Budget::UNLIMITED)? {
                Step::More => {}
                Step::Batch(records) => batches.push(records),
                Step::End => return Ok(batches),
            }
        }
    }
}
