//! What every node did, told once at its end: in, out, dropped by reason, still in flight.
//!
//! Metrics are sampled and reset while a node runs; the account is the sum over its life. Nodes publish theirs when
//! they end, and the process prints them when all have ended.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use otel_arrow_dfe_engine::context::PipelineContext;

/// Which node an account is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeName {
    /// Pipeline group.
    pub group: String,
    /// Pipeline.
    pub pipeline: String,
    /// Node.
    pub node: String,
    /// Core that the instance ran on.
    pub core: usize,
}

impl NodeName {
    pub(crate) fn of(context: &PipelineContext) -> Self {
        Self {
            group: context.pipeline_group_id().to_string(),
            pipeline: context.pipeline_id().to_string(),
            node: context.node_id().to_string(),
            core: context.core_id(),
        }
    }
}

/// The sums of one node instance. `received = sent + dropped + in_flight` holds for every node; `sent` is counted in
/// the items that were received, even if the output has other units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The node.
    pub name: NodeName,
    /// What is counted: `messages`, `records`, `points`.
    pub items: &'static str,
    /// Items that came in.
    pub received: u64,
    /// Items that went on, or into what went on.
    pub sent: u64,
    /// Items that were dropped, by reason; without zeros.
    pub dropped: Vec<(&'static str, u64)>,
    /// Items still held when the node ended.
    pub in_flight: u64,
    /// Further counts worth a look, such as `acknowledged`; without zeros.
    pub notes: Vec<(&'static str, u64)>,
}

impl Account {
    /// Items dropped for whatever reason.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().map(|(_, count)| count).sum()
    }

    /// Adds the account of another instance of the node: of another core, or of an earlier start.
    pub fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.sent += other.sent;
        self.in_flight += other.in_flight;
        for (mine, theirs) in [(&mut self.dropped, &other.dropped), (&mut self.notes, &other.notes)] {
            for (name, count) in theirs {
                match mine.iter_mut().find(|(known, _)| known == name) {
                    Some((_, sum)) => *sum += count,
                    None => mine.push((name, *count)),
                }
            }
        }
    }

    /// Whether every item that came in is accounted for.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        self.received == self.sent + self.dropped_total() + self.in_flight
    }
}

/// `in 10 messages, out 9, dropped 1 (shed 1), in flight 0; acknowledged 9`
impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in {} {}, out {}, dropped {}", self.received, self.items, self.sent, self.dropped_total())?;
        if !self.dropped.is_empty() {
            write!(f, " ({})", list(&self.dropped))?;
        }
        write!(f, ", in flight {}", self.in_flight)?;
        if !self.notes.is_empty() {
            write!(f, "; {}", list(&self.notes))?;
        }
        if !self.is_balanced() {
            f.write_str(" UNBALANCED")?;
        }
        Ok(())
    }
}

fn list(counts: &[(&'static str, u64)]) -> String {
    counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}

static CLOSED: Mutex<Vec<Account>> = Mutex::new(Vec::new());

/// Puts an account on record.
pub(crate) fn publish(mut account: Account) {
    account.dropped.retain(|(_, count)| *count > 0);
    account.notes.retain(|(_, count)| *count > 0);
    CLOSED.lock().unwrap_or_else(PoisonError::into_inner).push(account);
}

/// Takes the accounts of all nodes of this process that have ended since the last call, by name.
#[must_use]
pub fn take() -> Vec<Account> {
    let mut accounts = std::mem::take(&mut *CLOSED.lock().unwrap_or_else(PoisonError::into_inner));
    accounts.sort_by(|a, b| a.name.cmp(&b.name));
    accounts
}

/// Takes the first account on record that `fits`, and leaves those of other tests.
#[cfg(test)]
pub(crate) fn take_one(fits: impl Fn(&Account) -> bool) -> Option<Account> {
    let mut closed = CLOSED.lock().unwrap_or_else(PoisonError::into_inner);
    let at = closed.iter().position(fits)?;
    Some(closed.remove(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(received: u64) -> Account {
        Account {
            name: NodeName { group: "g".into(), pipeline: "p".into(), node: "n".into(), core: 0 },
            items: "messages",
            received,
            sent: 7,
            dropped: vec![("shed", 2)],
            in_flight: 1,
            notes: vec![("acknowledged", 7)],
        }
    }

    #[test]
    fn the_line_says_whether_the_books_balance() {
        assert_eq!(account(10).to_string(), "in 10 messages, out 7, dropped 2 (shed 2), in flight 1; acknowledged 7");
        assert!(account(11).to_string().ends_with("UNBALANCED"));
    }

    #[test]
    fn accounts_of_instances_add_up() {
        let mut sum = account(10);
        sum.add(&Account { dropped: vec![("failed", 3)], notes: Vec::new(), ..account(11) });
        assert_eq!((sum.received, sum.sent, sum.in_flight), (21, 14, 2));
        assert_eq!(sum.dropped, [("shed", 2), ("failed", 3)]);
        assert!(sum.is_balanced());
    }
}
