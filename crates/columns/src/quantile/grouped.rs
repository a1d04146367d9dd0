//! Observations, series by series.

use std::ops::Range;

use super::observations::Observations;

/// The observations of a batch in the order of their groups. Used again from batch to batch to keep its memory.
#[derive(Debug, Default)]
pub struct Grouped {
    values: Vec<f64>,
    times: Vec<i64>,
    weights: Vec<u64>,
    items: Vec<u32>,
    /// Where each group ends.
    ends: Vec<usize>,
}

/// The observations of one series in one batch, in their order.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Index of the series in [`Observations::series`].
    pub group: usize,
    /// Observed values.
    pub values: &'a [f64],
    /// One for each value.
    pub times: &'a [i64],
    /// One for each value; empty if each stands for one observation.
    pub weights: &'a [u64],
    /// Number of the item of each value.
    pub items: &'a [u32],
}

impl Grouped {
    /// The observations, a run for each series. Those of one series in all are given as they are.
    pub fn runs<'a>(&'a mut self, observations: &'a Observations) -> impl Iterator<Item = Run<'a>> {
        let plain = observations.series.len() == 1;
        if plain {
            self.ends.clear();
            self.ends.push(observations.values.len());
        } else {
            self.sort(observations);
        }
        let (values, times, weights, items) = if plain {
            (&observations.values, &observations.times, &observations.weights, &observations.items)
        } else {
            (&self.values, &self.times, &self.weights, &self.items)
        };
        let mut start = 0;
        self.ends.iter().enumerate().map(move |(group, end)| {
            let run: Range<usize> = start..*end;
            start = *end;
            Run {
                group,
                values: &values[run.clone()],
                times: &times[run.clone()],
                weights: if weights.is_empty() { &[] } else { &weights[run.clone()] },
                items: &items[run],
            }
        })
    }

    /// Counting sort: the order within a group stays.
    fn sort(&mut self, observations: &Observations) {
        let Observations { values, times, groups, weights, items, series, .. } = observations;
        let to = &mut self.ends;
        to.clear();
        to.resize(series.len(), 0);
        for group in groups {
            to[*group as usize] += 1;
        }
        let mut start = 0;
        for at in to.iter_mut() {
            start += std::mem::replace(at, start);
        }
        self.values.resize(values.len(), 0.0);
        self.times.resize(values.len(), 0);
        self.items.resize(values.len(), 0);
        self.weights.resize(weights.len(), 0);
        for (at, group) in groups.iter().enumerate() {
            // Moves each start to the end of its group.
            let to = &mut to[*group as usize];
            self.values[*to] = values[at];
            self.times[*to] = times[at];
            self.items[*to] = items[at];
            if let Some(weight) = weights.get(at) {
                self.weights[*to] = *weight;
            }
            *to += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each group is one run, in the order of its observations, with what belongs to them.
    #[test]
    fn groups_are_runs() {
        let observations = Observations {
            values: vec![1.0, 2.0, 3.0, 4.0],
            times: vec![10, 20, 30, 40],
            weights: vec![1, 2, 3, 4],
            groups: vec![0, 1, 0, 1],
            items: vec![0, 2, 3, 5],
            series: vec![7, 3],
            ..Observations::default()
        };
        let mut grouped = Grouped::default();
        let runs: Vec<_> = grouped.runs(&observations).collect();
        assert_eq!(runs.len(), 2);
        assert_eq!((runs[1].group, runs[1].values, runs[1].times), (1, &[2.0, 4.0][..], &[20, 40][..]));
        assert_eq!((runs[0].weights, runs[1].items), (&[1, 3][..], &[2, 5][..]));
        let one = Observations { groups: vec![0; 4], series: vec![7], ..observations };
        let runs: Vec<_> = grouped.runs(&one).collect();
        assert_eq!((runs.len(), runs[0].values), (1, &one.values[..]));
        assert_eq!(grouped.runs(&Observations::default()).count(), 0);
    }
}
