//! The sketches, ours and those of other crates, behind one interface.

use asap_sketchlib::sketches::kll::Kll;
use catchment_quantile::{Criterion, KllSketch};
use datasketches::common::SearchCriteria;
use datasketches::kll::{KllFloat, KllSketch as Apache};
use sketches_ddsketch::{Config, DDSketch};

use super::super::rounds::Side;
use super::Wrong;
use super::corpus::Truth;

/// Values in a slice, as they come out of a batch.
pub(super) const BATCH: usize = 1_024;
/// Every answer is looked at: a rank may be off by so many times what 99 % of those of DataSketches keep below. Less would
/// throw out good runs by chance, of the sketch with the larger errors most of all.
const BOUNDS: f64 = 3.0;
/// The error of the value that DDSketch has been told to keep, and rounding.
const VALUE_BOUND: f64 = 0.010_1;
/// The share of its observations that a peer may lose and still have numbers; how many it counts has a row of its own.
const LOST: f64 = 0.05;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contender {
    /// Ours as the nodes use it; in cases of sketches `update_bulk`.
    Ours,
    /// Our sketch by `update_slice`, without the sorting network.
    Slices,
    /// Our sketch value by value.
    OneByOne,
    DataSketches,
    Asap,
    DdSketch,
    /// All values kept, two quantiles by our selection.
    Exact,
    /// All values as our sorted run.
    Run,
    /// A copy of all values sorted by the standard library.
    SortF64,
    /// A copy of all values, two quantiles by selection of the standard library.
    SelectF64,
}

impl Side for Contender {
    fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Slices => "ours-slices",
            Self::OneByOne => "ours-one-by-one",
            Self::DataSketches => "datasketches-0.6.0",
            Self::Asap => "asap_sketchlib-0.4.0",
            Self::DdSketch => "sketches-ddsketch-0.3.2",
            Self::Exact => "ours-exact",
            Self::Run => "ours-run",
            Self::SortF64 => "sort-f64",
            Self::SelectF64 => "select-f64",
        }
    }
}

/// A sketch of whichever crate.
#[derive(Clone)]
pub(super) struct Sketch {
    contender: Contender,
    state: State,
}

#[derive(Clone)]
enum State {
    Ours(KllSketch),
    DataSketches(Apache<KllFloat<f64>>),
    Asap(Kll<f64>),
    DdSketch(DDSketch),
}

impl Sketch {
    /// An empty sketch. Those without a `k` or a seed have none.
    pub(super) fn new(contender: Contender, k: u16, seed: u64) -> Result<Self, Wrong> {
        let state = match contender {
            Contender::Ours | Contender::Slices | Contender::OneByOne => {
                State::Ours(KllSketch::new(k, seed).map_err(Wrong::library)?)
            }
            Contender::DataSketches => State::DataSketches(Apache::new(k).map_err(Wrong::library)?),
            Contender::Asap => State::Asap(Kll::with_k_and_seed(k.into(), seed)),
            Contender::DdSketch => State::DdSketch(DDSketch::new(Config::defaults())),
            Contender::Exact | Contender::Run | Contender::SortF64 | Contender::SelectF64 => {
                return Err(Wrong::library(format!("{} is no sketch", contender.name())));
            }
        };
        Ok(Self { contender, state })
    }

    /// A sketch of values that come in slices of [`BATCH`].
    pub(super) fn filled(contender: Contender, k: u16, seed: u64, values: &[f64]) -> Result<Self, Wrong> {
        let mut sketch = Self::new(contender, k, seed)?;
        sketch.insert(values);
        Ok(sketch)
    }

    /// Takes values in slices of [`BATCH`], each in the fastest way that the crate has.
    pub(super) fn insert(&mut self, values: &[f64]) {
        let batches = values.chunks(BATCH);
        match (&mut self.state, self.contender) {
            (State::Ours(sketch), Contender::OneByOne) => values.iter().for_each(|&value| sketch.update(value)),
            (State::Ours(sketch), Contender::Slices) => batches.for_each(|batch| sketch.update_slice(batch)),
            (State::Ours(sketch), _) => batches.for_each(|batch| sketch.update_bulk(batch)),
            (State::DataSketches(sketch), _) => {
                let numbers = values.iter().filter_map(|&value| KllFloat::<f64>::new(value).ok());
                numbers.for_each(|value| sketch.update(value));
            }
            (State::Asap(sketch), _) => batches.for_each(|batch| sketch.update_batch(batch)),
            (State::DdSketch(sketch), _) => values.iter().for_each(|&value| sketch.add(value)),
        }
    }

    /// Takes over what another of the same kind has seen.
    pub(super) fn merge(&mut self, other: &Self) -> Result<(), Wrong> {
        match (&mut self.state, &other.state) {
            (State::Ours(sketch), State::Ours(other)) => sketch.merge(other).map_err(Wrong::library),
            (State::DataSketches(sketch), State::DataSketches(other)) => sketch.merge(other).map_err(Wrong::library),
            (State::DdSketch(sketch), State::DdSketch(other)) => sketch.merge(other).map_err(Wrong::library),
            (State::Asap(sketch), State::Asap(other)) => {
                sketch.merge(other);
                Ok(())
            }
            _ => Err(Wrong::library("sketches of two kinds")),
        }
    }

    /// Quantiles by inclusive rank, with the order made only once where the crate can do that.
    pub(super) fn quantiles(&self, ranks: &[f64]) -> Result<Vec<f64>, Wrong> {
        match &self.state {
            State::Ours(sketch) => sketch.quantiles(ranks, Criterion::Inclusive).map_err(Wrong::library),
            State::DataSketches(sketch) => {
                let found = sketch.quantiles(ranks, SearchCriteria::Inclusive).map_err(Wrong::library)?;
                Ok(found.unwrap_or_default().into_iter().map(KllFloat::into_inner).collect())
            }
            State::Asap(sketch) => {
                let cdf = sketch.cdf();
                Ok(ranks.iter().map(|&q| cdf.value_at(q)).collect())
            }
            State::DdSketch(sketch) => {
                let one = |&q: &f64| sketch.quantile(q).map_err(Wrong::library)?.ok_or(Wrong::Empty);
                ranks.iter().map(one).collect()
            }
        }
    }

    /// The format of its crate for exchange; DDSketch has none without further crates.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, Wrong> {
        match &self.state {
            State::Ours(sketch) => Ok(sketch.to_bytes()),
            State::DataSketches(sketch) => Ok(sketch.serialize()),
            State::Asap(sketch) => sketch.to_asapv1().map_err(Wrong::library),
            State::DdSketch(_) => Err(Wrong::library("no bytes")),
        }
    }

    /// Reads bytes of the same crate.
    pub(super) fn from_bytes(contender: Contender, bytes: &[u8]) -> Result<Self, Wrong> {
        let state = match contender {
            Contender::DataSketches => State::DataSketches(Apache::deserialize(bytes).map_err(Wrong::library)?),
            Contender::Asap => State::Asap(Kll::from_asapv1(bytes).map_err(Wrong::library)?),
            _ => State::Ours(KllSketch::from_bytes(bytes, 1).map_err(Wrong::library)?),
        };
        Ok(Self { contender, state })
    }

    /// How many observations it says it has.
    pub(super) fn count(&self) -> u64 {
        match &self.state {
            State::Ours(sketch) => sketch.n(),
            State::DataSketches(sketch) => sketch.n(),
            State::Asap(sketch) => sketch.count() as u64,
            State::DdSketch(sketch) => sketch.count() as u64,
        }
    }

    /// Bytes of memory as the crate itself counts them, where it does.
    pub(super) fn counted_bytes(&self) -> Option<usize> {
        match &self.state {
            State::Ours(sketch) => Some(sketch.retained_bytes()),
            State::Asap(sketch) => Some(sketch.memory_bytes()),
            State::DataSketches(_) | State::DdSketch(_) => None,
        }
    }

    /// Whether it has all of the `n` observations.
    pub(super) fn check_count(&self, n: usize) -> Result<(), Wrong> {
        let (found, expected) = (self.count(), n as u64);
        let lost = found.abs_diff(expected) as f64 / expected as f64;
        let may_lose = if self.contender == Contender::Asap { LOST } else { 0.0 };
        if lost <= may_lose { Ok(()) } else { Err(Wrong::Count { found, expected }) }
    }

    /// Whether it has all observations, and p50 and p99 within the bounds.
    pub(super) fn check(&self, k: u16, n: usize, truth: &Truth) -> Result<(), Wrong> {
        self.check_count(n)?;
        let bound = BOUNDS * KllSketch::new(k, 0).map_err(Wrong::library)?.normalized_rank_error(false);
        for (found, q) in self.quantiles(&RANKS)?.into_iter().zip(RANKS) {
            match self.state {
                State::DdSketch(_) => truth.check_value(q, found, VALUE_BOUND)?,
                _ => truth.check_rank(q, found, bound)?,
            }
        }
        Ok(())
    }
}

/// The ranks that are asked for where two are.
pub(super) const RANKS: [f64; 2] = [0.5, 0.99];

/// All that are sketches of ranks, with the ways into ours that change what is kept.
pub(super) const KLL: [Contender; 4] = [Contender::Ours, Contender::Slices, Contender::DataSketches, Contender::Asap];

#[cfg(test)]
mod tests {
    use super::super::corpus::Stream;
    use super::*;

    /// Every sketch takes values, merges and answers within its bounds; what is not its own is noticed.
    #[test]
    fn all_answer() {
        let values = Stream::Normal.values(20_000);
        let truth = Truth::of(values.clone());
        let other = Truth::of(Stream::Pareto.values(20_000));
        for contender in KLL.into_iter().chain([Contender::OneByOne, Contender::DdSketch]) {
            let (left, right) = values.split_at(8_000);
            let mut sketch = Sketch::filled(contender, 200, 1, left).unwrap();
            sketch.merge(&Sketch::filled(contender, 200, 2, right).unwrap()).unwrap();
            sketch.check(200, values.len(), &truth).unwrap();
            assert!(matches!(sketch.check(200, values.len(), &other), Err(Wrong::Quantile { .. })), "{contender:?}");
            assert!(matches!(sketch.check(200, 8_000, &truth), Err(Wrong::Count { .. })), "{contender:?}");
            if contender != Contender::DdSketch {
                let again = Sketch::from_bytes(contender, &sketch.to_bytes().unwrap()).unwrap();
                assert_eq!(again.quantiles(&RANKS).unwrap(), sketch.quantiles(&RANKS).unwrap());
            }
        }
        assert!(Sketch::new(Contender::Run, 200, 1).is_err());
    }
}
