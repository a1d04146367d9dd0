//! The report at the end: one line a node, in, out, dropped by reason.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use catchment_nodes::accounts::{self, Account};

use crate::drain::{Counts, Node, NodeCounts};

/// The report over all nodes that have run, in the order of `nodes`. Nodes of ours give exact accounts; for upstream's
/// the engine's own metrics are used, which are there with `policies.telemetry.runtime_metrics: detailed`.
pub(crate) fn text(nodes: &[Node], counts: &Counts) -> String {
    let counts = counts.all();
    let mut accounts: BTreeMap<Node, Account> = BTreeMap::new();
    for account in accounts::take() {
        let name = &account.name;
        let node = Node { group: name.group.clone(), pipeline: name.pipeline.clone(), node: name.node.clone() };
        match accounts.get_mut(&node) {
            Some(sum) => sum.add(&account),
            None => drop(accounts.insert(node, account)),
        }
    }
    let line = |node: &Node| match (accounts.get(node), counts.get(node)) {
        (Some(account), _) => Some(account.to_string()),
        (None, Some(counts)) => Some(engine_line(counts)),
        (None, None) => None,
    };
    let lines: Vec<_> = nodes.iter().filter_map(|node| Some((node.to_string(), line(node)?))).collect();
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    lines.iter().fold(String::new(), |mut out, (name, line)| {
        let _ = writeln!(out, "{name:width$}  {line}");
        out
    })
}

/// The line of a node that keeps no account of its own.
fn engine_line(counts: &NodeCounts) -> String {
    let sum = |side: &BTreeMap<String, u64>| side.values().sum::<u64>();
    let (received, sent) = (sum(&counts.input), sum(&counts.output));
    let failed: Vec<_> = [("in", &counts.input), ("out", &counts.output)]
        .into_iter()
        .flat_map(|(side, outcomes)| outcomes.iter().map(move |(outcome, count)| (side, outcome, count)))
        .filter(|(_, outcome, count)| *outcome != "success" && **count > 0)
        .collect();
    let mut line = String::new();
    // A receiver has no input channel, an exporter no output channel.
    if !counts.input.is_empty() {
        let _ = write!(line, "in {received} items, ");
    }
    if counts.output.is_empty() {
        let done = counts.input.get("success").copied().unwrap_or(0);
        let _ = write!(line, "out {done}, ");
    } else {
        let _ = write!(line, "out {sent}, ");
    }
    let dropped: u64 = counts.input.iter().filter(|(outcome, _)| *outcome != "success").map(|(_, count)| count).sum();
    let _ = write!(line, "dropped {dropped}");
    if !failed.is_empty() {
        let reasons = failed.iter().map(|(side, outcome, count)| format!("{side} {outcome} {count}"));
        let _ = write!(line, " ({})", reasons.collect::<Vec<_>>().join(", "));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
        counts.iter().map(|(outcome, count)| ((*outcome).to_owned(), *count)).collect()
    }

    #[test]
    fn refused_items_are_told() {
        let counts = NodeCounts { input: outcomes(&[("success", 7), ("refused", 2)]), output: BTreeMap::new() };
        assert_eq!(engine_line(&counts), "in 9 items, out 7, dropped 2 (in refused 2)");
        let receiver = NodeCounts { input: BTreeMap::new(), output: outcomes(&[("success", 5)]) };
        assert_eq!(engine_line(&receiver), "out 5, dropped 0");
    }
}
