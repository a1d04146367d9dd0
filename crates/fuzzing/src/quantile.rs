//! Targets for the bytes of sketches and of sorted runs.

use catchment_quantile::asapv1::{self, ItemType, WriteSettings};
use catchment_quantile::kll::MAX_N;
use catchment_quantile::run::quantiles;
use catchment_quantile::{Criterion, KllSketch, RunError, SketchImageError, SortedRun};

/// Ranks asked for, ascending.
const RANKS: [f64; 7] = [0.0, 0.001, 0.25, 0.5, 0.9, 0.999, 1.0];

const SEED: u64 = 7;

/// Where a run has its flags and its checksum, and where its values begin.
const RUN_FLAGS: usize = 6;
const RUN_CHECKSUM: usize = 16;
const RUN_VALUES: usize = 20;

type Read = fn(&[u8], u64) -> Result<KllSketch, SketchImageError>;
type Write = fn(&KllSketch) -> Vec<u8>;

/// Reads `input` as an image of doubles and as one of floats.
///
/// Asserted of what is accepted: weights add up to the count, queries ascend between minimum and maximum, memory is
/// bounded by the image, the image written from it reads as the same facts and the same bytes, and the sketch can be
/// updated and merged.
pub fn kll_image(input: &[u8]) {
    let doubles: (Read, Write) = (KllSketch::from_bytes, KllSketch::to_bytes);
    let floats: (Read, Write) = (KllSketch::from_float_bytes, KllSketch::to_float_bytes);
    for (read, write) in [doubles, floats] {
        match read(input, SEED) {
            Ok(sketch) => check_image(input, &sketch, read, write),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

fn check_image(image: &[u8], sketch: &KllSketch, read: Read, write: Write) {
    // Keys of eight bytes for items of at least four, and what a sketch needs without any.
    assert!(sketch.retained_bytes() <= 1_024 + 4 * image.len());
    check_queries(sketch);
    let written = write(sketch);
    assert!(written.len() <= image.len());
    let copy = read(&written, SEED).expect("an image that was just written");
    assert_eq!(facts(&copy), facts(sketch));
    assert_eq!(write(&copy), written);

    let mut updated = sketch.clone();
    updated.update_slice(&[1.0, f64::NAN, f64::NEG_INFINITY, 2.0]);
    assert_eq!((updated.n(), updated.nan_count()), (sketch.n() + 3, 1));
    assert_eq!(updated.min(), Some(f64::NEG_INFINITY));
    check_queries(&updated);

    let mut small = KllSketch::new(8, SEED).expect("8 is a valid k");
    small.update_slice(&[3.0; 100]);
    for (into, other) in [(sketch, sketch), (sketch, &small), (&small, sketch)] {
        let mut merged = into.clone();
        let n = into.n() + other.n();
        match merged.merge(other) {
            Ok(()) => {
                assert_eq!(merged.n(), n);
                check_queries(&merged);
                let copy = KllSketch::from_bytes(&merged.to_bytes(), SEED).expect("an image that was just written");
                assert_eq!(facts(&copy), facts(&merged));
            }
            Err(_) => {
                assert!(n > MAX_N);
                assert_eq!(facts(&merged), facts(into));
            }
        }
    }
}

pub(crate) fn check_queries(sketch: &KllSketch) {
    let view = sketch.sorted_view();
    assert_eq!(view.n(), sketch.n());
    assert_eq!(view.values().len(), sketch.num_retained());
    assert_eq!(view.cumulative_weights().last().copied().unwrap_or_default(), sketch.n());
    assert!(sketch.normalized_rank_error(true) > 0.0);
    for criterion in [Criterion::Inclusive, Criterion::Exclusive] {
        let found = view.quantiles(&RANKS, criterion);
        let (Some(min), Some(max)) = (sketch.min(), sketch.max()) else {
            assert!(sketch.is_empty() && found.is_err());
            continue;
        };
        let found = found.expect("quantiles of a sketch that is not empty");
        assert_eq!((found.first(), found.last()), (Some(&min), Some(&max)));
        assert!(found.is_sorted(), "{found:?}");
        for value in [min, max, 0.0] {
            let rank = view.rank(value, criterion).expect("a rank in a sketch that is not empty");
            assert!((0.0..=1.0).contains(&rank));
        }
    }
}

/// Reads `input` as an ASAPv1 envelope.
///
/// Asserted of what is accepted: weights add up to the count, memory is bounded by the envelope, the sketch goes through
/// the image of DataSketches, and an envelope written from it reads as the same facts.
pub fn kll_asapv1(input: &[u8]) {
    let envelope = match asapv1::read(input, SEED) {
        Ok(envelope) => envelope,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let sketch = &envelope.sketch;
    assert!(sketch.retained_bytes() <= 1_024 + 16 * input.len());
    assert_eq!(envelope.weights(), sketch.n() + sketch.nan_count());
    assert_eq!(envelope.weight_mismatch(envelope.weights()), None);
    check_queries(sketch);
    let image = KllSketch::from_bytes(&sketch.to_bytes(), SEED).expect("an image that was just written");
    assert_eq!(facts(&image), facts(sketch));
    let settings = WriteSettings { kind: envelope.kind, seed: envelope.seed, coin: Some(envelope.coin) };
    let written = asapv1::write(sketch, &settings);
    let copy = asapv1::read(&written, SEED).expect("an envelope that was just written");
    assert_eq!((copy.kind, copy.seed, copy.coin), (envelope.kind, envelope.seed, envelope.coin));
    assert_eq!((copy.m, copy.item_type, copy.weight_mismatch(sketch.n())), (8, ItemType::F64, None));
    assert_eq!(copy.sketch.sorted_view().values(), sketch.sorted_view().values());
    assert_eq!(asapv1::write(&copy.sketch, &settings), written);
}

/// What two images of the same sketch have in common.
fn facts(sketch: &KllSketch) -> impl PartialEq + std::fmt::Debug {
    let view = sketch.sorted_view();
    let weights = view.cumulative_weights().to_vec();
    (sketch.n(), sketch.k(), sketch.min_k(), sketch.min(), sketch.max(), sketch.num_levels(), weights)
}

/// Reads `input` as a sorted run, and once more with the checksum that it should have.
///
/// Asserted of what is accepted: the bytes written from it are those that were read, values ascend, and quantiles over
/// several runs are those of all their values sorted.
pub fn exact_run(input: &[u8]) {
    match SortedRun::from_bytes(input) {
        Ok(run) => check_run(input, &run),
        Err(RunError::Checksum { expected, .. }) => {
            let mut mended = input.to_vec();
            mended[RUN_CHECKSUM..RUN_VALUES].copy_from_slice(&expected.to_le_bytes());
            match SortedRun::from_bytes(&mended) {
                Ok(run) => check_run(&mended, &run),
                Err(error) => assert!(matches!(error, RunError::Order { .. } | RunError::Weight { .. }), "{error}"),
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn check_run(bytes: &[u8], run: &SortedRun) {
    assert_eq!(run.to_bytes(), bytes);
    let values: Vec<f64> = run.values().collect();
    assert!(values.is_sorted());
    let parts: Vec<SortedRun> = run.parts(3).map(|(_, part)| part).collect();
    assert_eq!(parts.iter().map(SortedRun::n).sum::<u64>(), run.n());
    assert_eq!(quantiles(&parts, &RANKS), quantiles(std::slice::from_ref(run), &RANKS));
    if bytes[RUN_FLAGS] != 0 {
        assert_eq!(bytes.len(), RUN_VALUES + 16 * run.len());
        assert_eq!(run.weights().sum::<u64>(), run.n());
        return;
    }
    assert_eq!(bytes.len(), RUN_VALUES + 8 * run.len());
    assert_eq!(*run, SortedRun::from_values(&values));
    assert_eq!((run.min(), run.max()), (values.first().copied(), values.last().copied()));

    let halves = [&values[..values.len() / 2], &values[values.len() / 2..], &[0.0]].map(SortedRun::from_values);
    let mut all = [&values[..], &[0.0]].concat();
    all.sort_unstable_by(f64::total_cmp);
    let expected: Vec<f64> =
        RANKS.iter().map(|rank| all[((rank * all.len() as f64).ceil() as usize).saturating_sub(1)]).collect();
    assert_eq!(quantiles(&halves, &RANKS), Ok(expected));
}
