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
}
