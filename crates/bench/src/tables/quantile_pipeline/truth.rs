//! What quantiles there should be.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU64;

use catchment_loadgen::metrics::Corpus;

use super::cases::{K, Method};

/// Quantiles that are asked for.
pub(super) const QUANTILES: [f64; 4] = [0.5, 0.9, 0.95, 0.99];

/// Values that the node sends in one sorted run.
const VALUES_OF_RUN: usize = 65_536;

/// Bound of the rank error of one query of a sketch of size `K`, which holds in 99 of 100 cases (Apache DataSketches). It is
/// more than five times the root mean square, so that not one of some thousand answers is beyond it.
fn rank_error_bound() -> f64 {
    2.296 / f64::from(K).powf(0.9723)
}

/// A window of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Spot {
    pub(super) window: u64,
    pub(super) series: u32,
}

/// An answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) count: u64,
    /// In the order of [`QUANTILES`].
    pub(super) quantiles: Vec<f64>,
}

/// Why answers are not right.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum Wrong {
    #[error("{found} windows of series arrived, but there are {expected}")]
    Windows { expected: usize, found: usize },
    #[error("{0:?} did not arrive")]
    Missing(Spot),
    #[error("{spot:?} has {found} observations, but {expected} were sent")]
    Count { spot: Spot, expected: u64, found: u64 },
    #[error("{spot:?} has {found} quantiles")]
    Quantiles { spot: Spot, found: usize },
    #[error("quantile {quantile} of {spot:?} is {found}, expected {expected}, the nearest rank")]
    Value { spot: Spot, quantile: f64, expected: f64, found: f64 },
    #[error("quantile {quantile} of {spot:?} is off by a rank of {error:.5}, more than {bound:.5}")]
    Rank { spot: Spot, quantile: f64, error: f64, bound: f64 },
}

/// The observations of all sources, sorted.
#[derive(Debug)]
pub(super) struct Truth {
    values: BTreeMap<Spot, Vec<f64>>,
    windows: u64,
    series: HashMap<[String; 3], u32>,
    starts: HashMap<u64, u64>,
    grouped: bool,
}

impl Truth {
    pub(super) fn new(corpora: &[Corpus]) -> Self {
        let mut values: BTreeMap<Spot, Vec<f64>> = BTreeMap::new();
        let Some(&first) = corpora.first() else {
            return Self { values, windows: 0, series: HashMap::new(), starts: HashMap::new(), grouped: false };
        };
        for corpus in corpora {
            for index in 0..corpus.count {
                let spot = Spot { window: index / corpus.window.get(), series: corpus.series_of(index) };
                values.entry(spot).or_default().push(corpus.value(index));
            }
        }
        values.values_mut().for_each(|values| values.sort_by(f64::total_cmp));
        let windows = first.windows();
        Self {
            values,
            windows,
            series: (0..first.series.get()).map(|series| (first.series_attributes(series), series)).collect(),
            starts: (0..windows).map(|window| (first.window_start(window), window)).collect(),
            grouped: first.series.get() > 1,
        }
    }

    /// Windows of every series together.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Sketches, or sorted runs: those of many values travel in several messages.
    pub(super) fn messages(&self, method: Method) -> u64 {
        match method {
            Method::Exact => self.values.values().map(|values| values.len().div_ceil(VALUES_OF_RUN) as u64).sum(),
            Method::Kll | Method::Raw => self.values.len() as u64,
        }
    }

    /// Windows.
    pub(super) fn windows(&self) -> u64 {
        self.windows
    }

    /// Which window begins then; `None` for one that nothing but the observation that closes the others is in.
    pub(super) fn window_at(&self, start_unix_nano: u64) -> Option<u64> {
        self.starts.get(&start_unix_nano).copied()
    }

    /// The series with these attributes, by the order of their keys in the corpus; without keys there is one.
    pub(super) fn series_with(&self, attributes: &[String; 3]) -> Option<u32> {
        if self.grouped { self.series.get(attributes).copied() } else { Some(0) }
    }

    /// Whether all answers are there and right.
    pub(super) fn check(&self, answers: &BTreeMap<Spot, Answer>, method: Method) -> Result<(), Wrong> {
        if answers.len() != self.values.len() {
            return Err(Wrong::Windows { expected: self.values.len(), found: answers.len() });
        }
        for (&spot, values) in &self.values {
            let answer = answers.get(&spot).ok_or(Wrong::Missing(spot))?;
            let (expected, found) = (values.len() as u64, answer.count);
            if expected != found {
                return Err(Wrong::Count { spot, expected, found });
            }
            if answer.quantiles.len() != QUANTILES.len() {
                return Err(Wrong::Quantiles { spot, found: answer.quantiles.len() });
            }
            for (quantile, found) in QUANTILES.into_iter().zip(answer.quantiles.iter().copied()) {
                // A sketch has lost nothing up to its size.
                if method == Method::Exact || values.len() <= usize::from(K) {
                    let expected = nearest_rank(values, quantile);
                    if found.to_bits() != expected.to_bits() {
                        return Err(Wrong::Value { spot, quantile, expected, found });
                    }
                } else {
                    let (error, bound) = (rank_error(values, quantile, found), rank_error_bound());
                    if error > bound {
                        return Err(Wrong::Rank { spot, quantile, error, bound });
                    }
                }
            }
        }
        Ok(())
    }
}

/// The smallest of the sorted values that at least that fraction of them does not exceed.
pub(super) fn nearest_rank(sorted: &[f64], quantile: f64) -> f64 {
    let rank = (quantile * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// How far the ranks of `value` are from that of the quantile.
fn rank_error(sorted: &[f64], quantile: f64, value: f64) -> f64 {
    let fraction = |count: usize| count as f64 / sorted.len() as f64;
    let below = fraction(sorted.partition_point(|one| *one < value));
    let not_above = fraction(sorted.partition_point(|one| *one <= value));
    (below - quantile).max(quantile - not_above).max(0.0)
}

/// Observations that pass through, of all sources, sorted.
pub(super) fn raw_values(corpora: &[Corpus], points: u64) -> Vec<u64> {
    let of = |corpus: &Corpus| {
        let corpus = *corpus;
        (0..points).map(move |index| corpus.value(index).to_bits())
    };
    let mut all: Vec<u64> = corpora.iter().flat_map(of).collect();
    all.sort_unstable();
    all
}

/// One observation whose time lets all windows of a corpus close.
pub(super) fn closing_index(corpus: &Corpus) -> u64 {
    let window = NonZeroU64::get(corpus.window);
    (corpus.windows() + 1) * window
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn corpora(series: u32) -> [Corpus; 2] {
        let of = |source| Corpus {
            source,
            count: 20_000,
            window: NonZeroU64::new(10_000).unwrap(),
            series: NonZeroU32::new(series).unwrap(),
        };
        [of(0), of(1)]
    }

    fn right(truth: &Truth) -> BTreeMap<Spot, Answer> {
        let answer = |values: &Vec<f64>| Answer {
            count: values.len() as u64,
            quantiles: QUANTILES.iter().map(|quantile| nearest_rank(values, *quantile)).collect(),
        };
        truth.values.iter().map(|(spot, values)| (*spot, answer(values))).collect()
    }

    /// What is right is right, and each way of being wrong is found.
    #[test]
    fn checks() {
        let truth = Truth::new(&corpora(1));
        let good = right(&truth);
        let spot = Spot { window: 1, series: 0 };
        assert_eq!((truth.len(), truth.windows()), (2, 2));
        assert_eq!([Method::Exact, Method::Kll].map(|method| truth.messages(method)), [2, 2]);
        let large = Corpus { window: NonZeroU64::new(100_000).unwrap(), count: 100_000, ..corpora(1)[0] };
        assert_eq!(Truth::new(&[large]).messages(Method::Exact), 2);
        assert_eq!((truth.check(&good, Method::Exact), truth.check(&good, Method::Kll)), (Ok(()), Ok(())));
        let with = |change: &dyn Fn(&mut Answer)| {
            let mut answers = good.clone();
            change(answers.get_mut(&spot).unwrap());
            answers
        };
        let wrong = truth.check(&with(&|answer| answer.count -= 1), Method::Kll);
        assert_eq!(wrong, Err(Wrong::Count { spot, expected: 20_000, found: 19_999 }));
        let wrong = truth.check(&with(&|answer| answer.quantiles.truncate(3)), Method::Kll);
        assert!(matches!(wrong, Err(Wrong::Quantiles { found: 3, .. })));
        // A rank off by 0.5 % is right for a sketch, by 1 % for none.
        let near = nearest_rank(&truth.values[&spot], 0.505);
        let near = with(&|answer| answer.quantiles[0] = near);
        assert_eq!(truth.check(&near, Method::Kll), Ok(()));
        assert!(matches!(truth.check(&near, Method::Exact), Err(Wrong::Value { quantile: 0.5, .. })));
        let far = nearest_rank(&truth.values[&spot], 0.51);
        let far = truth.check(&with(&|answer| answer.quantiles[0] = far), Method::Kll);
        assert!(matches!(far, Err(Wrong::Rank { quantile: 0.5, .. })), "{far:?}");
        let mut missing = good.clone();
        let answer = missing.remove(&spot).unwrap();
        assert!(matches!(truth.check(&missing, Method::Kll), Err(Wrong::Windows { .. })));
        let _ = missing.insert(Spot { window: 9, series: 0 }, answer);
        assert_eq!(truth.check(&missing, Method::Kll), Err(Wrong::Missing(spot)));
    }

    /// Small windows are exact for sketches too; windows and series are found by what arrives.
    #[test]
    fn grouped() {
        let corpora = corpora(1_000);
        let truth = Truth::new(&corpora);
        let mut answers = right(&truth);
        assert_eq!(truth.check(&answers, Method::Kll), Ok(()));
        let answer = answers.values_mut().next().unwrap();
        answer.quantiles[3] += 1e-9;
        assert!(matches!(truth.check(&answers, Method::Kll), Err(Wrong::Value { .. })));

        assert_eq!(truth.window_at(corpora[0].window_start(1)), Some(1));
        assert_eq!(truth.window_at(corpora[0].time(closing_index(&corpora[0]))), None);
        assert_eq!(truth.series_with(&corpora[0].series_attributes(77)), Some(77));
        assert_eq!(truth.series_with(&["x", "y", "z"].map(str::to_owned)), None);
    }

    #[test]
    fn ranks() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!([0.0, 0.5, 0.501, 1.0].map(|quantile| nearest_rank(&values, quantile)), [1.0, 50.0, 51.0, 100.0]);
        assert_eq!([50.0, 51.0].map(|value| rank_error(&values, 0.5, value)), [0.0, 0.0]);
        assert!((rank_error(&values, 0.5, 60.0) - 0.09).abs() < 1e-12);
        assert!((rank_error_bound() - 0.00678).abs() < 1e-4);
        assert_eq!(raw_values(&corpora(1), 10).len(), 20);
    }
}
