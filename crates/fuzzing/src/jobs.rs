//! Running decode jobs and printing what comes out.

use catchment_columns::{Budget, Job, OtapArrowRecords, Step, json};

/// Steps that beginning and ending one batch may take, with the last one, which only says that this is the end.
const STEPS_OF_A_BATCH: usize = 16;

/// What a job gave.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Output {
    /// The records or points as JSON.
    pub(crate) objects: Vec<String>,
    /// Input items that the batches stand for.
    pub(crate) items: u64,
    /// Number of batches.
    pub(crate) batches: usize,
}

impl Output {
    fn take(&mut self, job: &impl Job, mut records: OtapArrowRecords) {
        records.decode_transport_optimized_ids().expect("parent ids of our own making");
        let before = self.objects.len();
        json::objects(&records, |object| self.objects.push(object.to_string())).expect("tables of our own making");
        assert!(self.objects.len() > before, "an empty batch");
        self.items += job.items_in_batch().unwrap_or((self.objects.len() - before) as u64);
        self.batches += 1;
    }
}

/// Runs a job to its end in one go.
pub(crate) fn run(job: &mut impl Job) -> Output {
    let mut out = Output::default();
    loop {
        match job.step(Budget::UNLIMITED).expect("every record can be written") {
            Step::More => panic!("a pause without a budget"),
            Step::Batch(records) => out.take(job, records),
            Step::End => return out,
        }
    }
}

/// Runs a job to its end in steps: none of them is for nothing, where `work` is how many steps the work as such may be
/// divided into.
pub(crate) fn steps(job: &mut impl Job, budget: Budget, work: usize) -> Output {
    let mut out = Output::default();
    for steps in 1.. {
        match job.step(budget).expect("every record can be written") {
            Step::More => {}
            Step::Batch(records) => out.take(job, records),
            Step::End => break,
        }
        assert!(steps <= work + STEPS_OF_A_BATCH * (out.batches + 1), "{steps} steps, {} batches", out.batches);
    }
    assert!(matches!(job.step(budget), Ok(Step::End)), "a batch after the end");
    out
}
