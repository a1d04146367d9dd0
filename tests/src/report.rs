//! The report that `catchment` prints at its end: one line a node.

use std::collections::BTreeMap;

/// All lines, by `group/pipeline/node`.
#[derive(Debug, Clone, Default)]
pub struct Report {
    nodes: BTreeMap<String, NodeLine>,
    unbalanced: Vec<String>,
}

/// `in 10 messages, out 9, dropped 1 (shed 1), in flight 0; acknowledged 9`
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeLine {
    /// Items that came in; `None` for upstream's receivers, which have no input channel.
    pub received: Option<u64>,
    /// Items that went on.
    pub sent: u64,
    /// Items that were dropped.
    pub dropped: u64,
    /// Items still held; `None` for upstream's nodes, which keep no books.
    pub in_flight: Option<u64>,
    /// The parts of `dropped`.
    pub reasons: BTreeMap<String, u64>,
    /// What stands behind the semicolon.
    pub notes: BTreeMap<String, u64>,
}

impl NodeLine {
    /// Items dropped for `reason`; 0 if it is not named.
    #[must_use]
    pub fn reason(&self, reason: &str) -> u64 {
        self.reasons.get(reason).copied().unwrap_or(0)
    }

    /// The count of a note; 0 if it is not named.
    #[must_use]
    pub fn note(&self, note: &str) -> u64 {
        self.notes.get(note).copied().unwrap_or(0)
    }

    fn parse(text: &str) -> Option<Self> {
        let (books, notes) = text.split_once("; ").unwrap_or((text, ""));
        let mut line = Self { notes: counts(notes)?, ..Self::default() };
        let (books, reasons) = match books.split_once(" (") {
            Some((before, rest)) => {
                let (reasons, after) = rest.split_once(')')?;
                (format!("{before}{after}"), reasons)
            }
            None => (books.to_owned(), ""),
        };
        line.reasons = counts(reasons)?;
        let mut parts = books.split(", ").peekable();
        if let Some(part) = parts.peek().and_then(|part| part.strip_prefix("in ")) {
            line.received = Some(part.split(' ').next()?.parse().ok()?);
            let _ = parts.next();
        }
        line.sent = parts.next()?.strip_prefix("out ")?.parse().ok()?;
        line.dropped = parts.next()?.strip_prefix("dropped ")?.parse().ok()?;
        if let Some(part) = parts.next() {
            line.in_flight = Some(part.strip_prefix("in flight ")?.parse().ok()?);
        }
        parts.next().is_none().then_some(line)
    }
}

/// `shed 1, not a number 2`
fn counts(text: &str) -> Option<BTreeMap<String, u64>> {
    text.split(", ")
        .filter(|part| !part.is_empty())
        .map(|part| part.rsplit_once(' ').and_then(|(name, count)| Some((name.to_owned(), count.parse().ok()?))))
        .collect()
}

impl Report {
    /// Finds the lines in what the process printed.
    #[must_use]
    pub fn parse(stdout: &str) -> Self {
        let mut report = Self::default();
        for line in stdout.lines() {
            let Some((name, text)) = line.split_once("  ") else { continue };
            if name.split('/').count() != 3 || name.contains(' ') {
                continue;
            }
            let balanced = text.strip_suffix(" UNBALANCED");
            if balanced.is_some() {
                report.unbalanced.push(line.to_owned());
            }
            if let Some(parsed) = NodeLine::parse(balanced.unwrap_or(text).trim_start()) {
                let _ = report.nodes.insert(name.to_owned(), parsed);
            }
        }
        report
    }

    /// The line of a node, by `pipeline/node`.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn node(&self, name: &str) -> &NodeLine {
        let suffix = format!("/{name}");
        let found = self.nodes.iter().find(|(node, _)| node.ends_with(&suffix));
        found.map(|(_, line)| line).unwrap_or_else(|| panic!("no line of {name} in {self:#?}"))
    }

    /// Names of all nodes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(String::as_str)
    }

    /// Fails unless there are lines, none says UNBALANCED, and the sums of every node that keeps books are right and
    /// nothing is left in flight.
    ///
    /// # Panics
    /// Otherwise.
    pub fn assert_balanced(&self) {
        assert!(!self.nodes.is_empty(), "there is no report");
        assert!(self.unbalanced.is_empty(), "unbalanced: {:#?}", self.unbalanced);
        for (name, line) in &self.nodes {
            let Some(in_flight) = line.in_flight else { continue };
            assert_eq!(line.received, Some(line.sent + line.dropped + in_flight), "{name}: {line:?}");
            assert_eq!(line.dropped, line.reasons.values().sum::<u64>(), "{name}: {line:?}");
            assert_eq!(in_flight, 0, "{name}: {line:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of our nodes, of upstream's, and of others that are no lines of the report.
    #[test]
    fn lines_are_read() {
        let report = Report::parse(
            "2026-11-30T12:00:00Z/2026-11-30T12:00:05Z flow.bytes{} count=1\n\
             g/p/a   in 10 messages, out 7, dropped 2 (shed 1, not a number 1), in flight 1; acknowledged 7, datagrams 3\n\
             g/p/b   out 64, dropped 0; came back refused 3\n\
             g/p/cc  in 5 points, out 4, dropped 0, in flight 0 UNBALANCED\n",
        );
        assert_eq!(report.names().collect::<Vec<_>>(), ["g/p/a", "g/p/b", "g/p/cc"]);
        let line = report.node("p/a");
        assert_eq!((line.received, line.sent, line.dropped, line.in_flight), (Some(10), 7, 2, Some(1)));
        assert_eq!((line.reason("not a number"), line.note("datagrams"), line.note("refused")), (1, 3, 0));
        assert_eq!((report.node("p/b").received, report.node("p/b").sent), (None, 64));
        assert_eq!(report.unbalanced.len(), 1);
    }
}
