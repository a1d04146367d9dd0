//! Numbers of several runs in one.

/// The middle value, or the mean of the two in the middle; `None` of nothing.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *values.get(middle.checked_sub(1)?)?;
    Some(f64::midpoint(lower, upper))
}

/// Nearest-rank percentile: the smallest value that at least `percent` of 100 of them do not exceed; `None` of nothing.
pub(crate) fn percentile(mut values: Vec<f64>, percent: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = (percent / 100.0 * values.len() as f64).ceil() as usize;
    values.get(rank.saturating_sub(1)).copied()
}

/// The mean; `None` of nothing.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() { None } else { Some(values.iter().sum::<f64>() / values.len() as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Odd, even, unsorted, none.
    #[test]
    fn medians() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![4.0]), Some(4.0));
        assert_eq!(median(vec![9.0, 1.0]), Some(5.0));
        assert_eq!(median(vec![10.0, -1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![7.0, 1.0, 100.0, 3.0]), Some(5.0));
    }

    /// Ranks at and between the ends, out of order.
    #[test]
    fn percentiles() {
        let values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        for (percent, expected) in [(0.0, 1.0), (50.0, 100.0), (99.0, 198.0), (99.9, 200.0), (100.0, 200.0)] {
            assert_eq!(percentile(values.clone(), percent), Some(expected), "{percent}");
        }
        assert_eq!(percentile(vec![], 50.0), None);
        assert_eq!(percentile(vec![7.0], 1.0), Some(7.0));
    }

    #[test]
    fn means() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[1.0, 2.0, 6.0]), Some(3.0));
    }
}
