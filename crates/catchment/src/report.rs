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

/// The line of a node that keeps no account of its own, from what the engine counted on either side of it.
///
/// What a node gave back to the one before it, and what came back to it from the one behind, is told after the numbers:
/// it may have been sent again and is no loss by itself.
fn engine_line(counts: &NodeCounts) -> String {
    let sum = |side: &BTreeMap<String, u64>| side.values().sum::<u64>();
    let (received, sent) = (sum(&counts.input), sum(&counts.output));
    // A receiver has no input channel, an exporter no output channel.
    let (is_receiver, is_exporter) = (counts.input.is_empty(), counts.output.is_empty());
    let mut line = String::new();
    if !is_receiver {
        let _ = write!(line, "in {received} items, ");
    }
    let out = if is_exporter { counts.input.get("success").copied().unwrap_or(0) } else { sent };
    let dropped = if is_receiver || is_exporter { 0 } else { received.saturating_sub(sent) };
    let _ = write!(line, "out {out}, dropped {dropped}");
    if dropped > 0 {
        let _ = write!(line, " (not passed on {dropped})");
    }
    let returned: Vec<String> = [("gave back", &counts.input), ("came back", &counts.output)]
        .into_iter()
        .flat_map(|(way, outcomes)| outcomes.iter().map(move |(outcome, count)| (way, outcome, count)))
        .filter(|(_, outcome, count)| *outcome != "success" && **count > 0)
        .map(|(way, outcome, count)| format!("{way} {outcome} {count}"))
        .collect();
    if !returned.is_empty() {
        let _ = write!(line, "; {}", returned.join(", "));
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
    fn lines_of_the_engines_nodes() {
        let counts = NodeCounts { input: outcomes(&[("success", 7), ("refused", 2)]), output: BTreeMap::new() };
        assert_eq!(engine_line(&counts), "in 9 items, out 7, dropped 0; gave back refused 2");
        let retry =
            NodeCounts { input: outcomes(&[("success", 9)]), output: outcomes(&[("success", 9), ("failure", 4)]) };
        assert_eq!(engine_line(&retry), "in 9 items, out 13, dropped 0; came back failure 4");
        let filter = NodeCounts { input: outcomes(&[("success", 9)]), output: outcomes(&[("success", 6)]) };
        assert_eq!(engine_line(&filter), "in 9 items, out 6, dropped 3 (not passed on 3)");
        let receiver = NodeCounts { input: BTreeMap::new(), output: outcomes(&[("success", 5)]) };
        assert_eq!(engine_line(&receiver), "out 5, dropped 0");
    }
}
