//! The report at the end: one line a node, in, out, dropped by reason.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use catchment_nodes::accounts::{self, Account};

use crate::drain::{Counts, NodeCounts};

/// The report over all nodes that have run. Nodes of ours give exact accounts; for upstream's the engine's own
/// metrics are used, which are there with `policies.telemetry.runtime_metrics: detailed`.
pub(crate) fn text(counts: &Counts) -> String {
    let mut lines: BTreeMap<(String, String, String), String> = BTreeMap::new();
    for (node, counts) in counts.all() {
        if node.group != "system" {
            let _ = lines.insert((node.group, node.pipeline, node.node), engine_line(&counts));
        }
    }
    let mut ours: BTreeMap<(String, String, String), Vec<Account>> = BTreeMap::new();
    for account in accounts::take() {
        let name = &account.name;
        ours.entry((name.group.clone(), name.pipeline.clone(), name.node.clone())).or_default().push(account);
    }
    for (name, accounts) in ours {
        let text = match accounts.as_slice() {
            [one] => one.to_string(),
            many => many.iter().map(|one| format!("core {}: {one}", one.name.core)).collect::<Vec<_>>().join("; "),
        };
        let _ = lines.insert(name, text);
    }
    let names: Vec<String> = lines.keys().map(|(group, pipeline, node)| format!("{group}/{pipeline}/{node}")).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0);
    let mut out = String::new();
    for (name, line) in names.iter().zip(lines.values()) {
        let _ = writeln!(out, "{name:width$}  {line}");
    }
    out
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
