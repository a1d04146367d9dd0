//! Target for batches of SONiC's telemetry in the encoding in which they travel undecoded.

use std::sync::Arc;

use catchment_columns::sonic::{SonicBatch, SonicJob, SonicMapping, encoded};
use catchment_columns::{Job, OtapArrowRecords};

/// Reads `input` as a payload of `ipfix-batch-v1` with such records.
///
/// Asserted: what is refused says why; what is taken has no more points than `input` has bytes, as many as were counted
/// without decoding; each becomes a point; written again it is the same batch, to the byte from then on; and its parts
/// become its batches, one each.
pub fn sonic_encoded(input: &[u8]) {
    let count = encoded::count(input);
    let (batch, mapping) = match encoded::decode(input) {
        Ok(decoded) => decoded,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let points = batch.points();
    assert_eq!(count, Some(points));
    assert!(points <= input.len() && batch.len() <= points && batch.bytes() <= input.len());
    let again = encoded::encode(&batch, &mapping);
    let (batch_again, mapping_again) = encoded::decode(&again).expect("a payload that was just made");
    assert_eq!(mapping_again, mapping);
    assert_eq!(encoded::encode(&batch_again, &mapping), again);
    let mapping = Arc::new(mapping);
    let batches = run(batch, &mapping, points);
    let parts = batch_again.split(&mapping);
    assert_eq!(parts.len(), batches.len());
    for (part, batch) in parts.into_iter().zip(batches) {
        let points = part.points();
        assert_eq!(run(part, &mapping, points), [batch]);
    }
}

/// The batches of a job, which must have so many points.
fn run(batch: SonicBatch, mapping: &Arc<SonicMapping>, points: usize) -> Vec<OtapArrowRecords> {
    let mut job = SonicJob::new(batch, Arc::clone(mapping));
    let batches = job.run().expect("every record becomes points");
    assert_eq!(job.counts().points, points as u64);
    assert_eq!(batches.iter().map(OtapArrowRecords::num_items).sum::<usize>(), points);
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seeds that are whole reach the jobs: they are not refused at their beginning.
    #[test]
    fn whole_seeds_are_taken() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/sonic_encoded");
        for (name, points) in
            [("plain", 34), ("wire", 34), ("resource-legacy", 34), ("transport", 34), ("one", 1), ("many-patterns", 24)]
        {
            let seed = std::fs::read(folder.join(format!("seed-{name}"))).expect("a seed");
            let (batch, _) = encoded::decode(&seed).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(batch.points(), points, "{name}");
        }
    }
}
