//! Speeds that the countersyncd project has published, in millions of counters a second on a Xeon 8370C. Not measured
//! here: another machine, and decoding alone, without a batch for a pipeline at the end.

/// A decoder, counters in a record, millions of counters a second.
const ROWS: [(&str, &str, f64); 7] = [
    // A parser that makes a map of each record.
    ("countersyncd-ipfixrw-published", "sonic-2", 1.5),
    ("countersyncd-ipfixrw-published", "sonic-8000", 4.2),
    // Templates compiled beforehand.
    ("countersyncd-compiled-published", "sonic-2", 5.1),
    ("countersyncd-compiled-published", "sonic-8000", 62.8),
    // The same with names shared by all points.
    ("countersyncd-shared-published", "sonic-2", 5.5),
    ("countersyncd-shared-published", "sonic-500", 210.0),
    ("countersyncd-shared-published", "sonic-8000", 251.0),
];

/// The rows that can stand beside a case.
pub(super) fn of(case: &str) -> impl Iterator<Item = (&'static str, f64)> {
    let kind = case.split('/').next().unwrap_or_default().to_owned();
    ROWS.iter().filter(move |(_, of, _)| *of == kind).map(|(name, _, rate)| (*name, *rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both places of attributes have the rows of their size, flows have none.
    #[test]
    fn rows() {
        let [point, resource, flows] =
            ["sonic-8000/point", "sonic-8000/resource", "flow-11"].map(|case| of(case).count());
        assert_eq!((point, resource, flows), (3, 3, 0));
    }
}
