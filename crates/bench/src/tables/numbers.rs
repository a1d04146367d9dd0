//! The numbers of runs.

use std::fmt;

use crate::stats::median;

/// Name and unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
}

/// The numbers of one run, or the medians of several.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Numbers(Vec<(Metric, f64)>);

impl Numbers {
    /// Adds a number.
    pub(super) fn with(mut self, metric: Metric, value: f64) -> Self {
        self.0.push((metric, value));
        self
    }

    /// The number of a metric.
    pub(super) fn get(&self, metric: Metric) -> Option<f64> {
        self.0.iter().find(|(one, _)| *one == metric).map(|(_, value)| *value)
    }

    /// All numbers in the order in which they were added.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Metric, f64)> {
        self.0.iter().copied()
    }

    /// The median of each metric by itself; metrics are those of the first run.
    pub(super) fn medians(runs: &[Self]) -> Self {
        let metrics = runs.first().map_or(&[][..], |first| &first.0);
        let middle = |metric: Metric| median(runs.iter().filter_map(|run| run.get(metric)).collect());
        Self(metrics.iter().filter_map(|(metric, _)| Some((*metric, middle(*metric)?))).collect())
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (metric, value)) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{} {value:.2} {}", metric.name, metric.unit)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: Metric = Metric { name: "cpu", unit: "us/log" };
    const RATE: Metric = Metric { name: "rate", unit: "logs/s" };

    /// Each metric has a median of its own numbers.
    #[test]
    fn medians() {
        let run = |cpu: f64, rate: f64| Numbers::default().with(CPU, cpu).with(RATE, rate);
        let medians = Numbers::medians(&[run(3.0, 10.0), run(1.0, 30.0), run(2.0, 20.5)]);
        assert_eq!(medians, run(2.0, 20.5));
        assert_eq!(medians.to_string(), "cpu 2.00 us/log, rate 20.50 logs/s");
        assert_eq!(Numbers::medians(&[]), Numbers::default());
        assert_eq!(medians.get(Metric { name: "cpu", unit: "s" }), None);
    }
}
