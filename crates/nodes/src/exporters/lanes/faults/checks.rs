//! What has to hold after every run.

use std::collections::HashMap;
use std::time::Duration;

use catchment_loadgen::sink::Outcome;

use super::rig::{ATTEMPT, CHANNEL, End, Fate, Job, OnFull, Run};

/// A machine with much to do may be so late.
const LATE: Duration = Duration::from_millis(1_500);

/// On a machine that is later than this now and then, clients give up on answers that are on their way.
pub(super) const LAG: Duration = Duration::from_millis(250);

/// Bounds of what the node may hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) lanes: usize,
    pub(super) queue_batches: usize,
    pub(super) request_items: usize,
}

/// Checks a run; gives what is wrong with it.
pub(super) fn faults(job: &Job, run: &Run, bounds: Bounds) -> Vec<String> {
    let mut faults = Vec::new();
    let mut hold = |holds: bool, what: &dyn Fn() -> String| {
        if !holds {
            faults.push(what());
        }
    };
    let totals = &run.report.totals;
    let sent: u64 = job.batches[..run.sent].iter().map(|batch| batch.items as u64).sum();

    // (a) Each batch is answered once, and those of a key in order.
    let mut answers = HashMap::new();
    let mut last = HashMap::new();
    for (number, _) in &run.fates {
        *answers.entry(*number).or_insert(0) += 1;
        let before = last.insert(job.batches[*number].key, *number);
        // What finds a lane full is answered at once.
        let before = before.filter(|_| job.on_full == OnFull::Block);
        hold(before.is_none_or(|before| before < *number), &|| format!("batch {number} is answered after {before:?}"));
    }
    let missing: Vec<_> = (0..run.sent).filter(|number| answers.get(number) != Some(&1)).collect();
    // The one that was not taken any more came back to the one who sends.
    let stray = answers.keys().filter(|number| **number >= run.sent).count();
    hold(missing.is_empty() && stray == 0, &|| {
        format!("not answered once: {missing:?}, and {stray} that were not sent")
    });
    hold(run.failure.is_none(), &|| format!("the node failed: {:?}", run.failure));

    // (b) The order of first acceptance.
    hold(totals.out_of_order == 0, &|| format!("out of order: {}", totals.out_of_order));

    // (c) Nothing is lost unseen.
    let refused: u64 = run.report.keys.iter().map(|key| key.refused_for_good).sum();
    let transient = run.items(job, |fate| matches!(fate, Fate::Nacked { permanent: false, .. }));
    let lost = sent.saturating_sub(totals.first_accepted + refused);
    hold(totals.first_accepted + refused <= sent, &|| "more arrived than was sent".to_owned());
    // Only a node that is made so, or has to end, gives anything back.
    let holds_on = job.on_full == OnFull::Block && job.config["retry"]["max_elapsed"].is_null();
    if holds_on && matches!(job.end, End::Answered) {
        hold(lost == 0 && transient == 0, &|| format!("lost {lost}, given back {transient}"));
        let holes: u64 = run.report.keys.iter().map(|key| key.missing).sum();
        hold(holes == 0, &|| format!("numbers missing: {holes}"));
    } else {
        let dropped = run.counted("dropped");
        hold(lost <= transient + dropped, &|| format!("lost {lost}, given back {transient}, dropped {dropped}"));
    }
    let counted = run.counted("rejected") + run.counted("refused");
    // A refusal that is not heard any more is of items that are given back.
    hold(refused <= counted + transient && counted <= totals.refused_for_good, &|| {
        format!("counted {counted} as refused: {refused} never arrived, {} refused at all", totals.refused_for_good)
    });
    hold(totals.untracked == 0 && totals.without_key == 0, &|| "items without key".to_owned());
    hold(run.counts.decode_errors == 0, &|| format!("cannot be decoded: {}", run.counts.decode_errors));

    // (d) Duplicates come from what the client could not know. A request that took the sink almost as long as the client
    // waits may have been given up.
    let rows = &run.report.requests;
    let slow = rows.iter().filter(|row| {
        row.stored && !row.ambiguous && row.answered_at.is_some_and(|at| at.saturating_sub(row.at) > ATTEMPT / 2)
    });
    let slow: u64 = slow.map(|row| row.items).sum();
    let excused = totals.ambiguous_items + totals.late_items + slow;
    hold(run.lag > LAG || totals.duplicates <= excused, &|| {
        format!("{} duplicates, {excused} excused", totals.duplicates)
    });
    let told_wrongly = rows.iter().filter(|row| row.stored && row.outcome == Outcome::Refused);
    let told_wrongly: u64 = told_wrongly.map(|row| row.items).sum();
    let known = run.counted("ambiguous") + told_wrongly;
    hold(totals.duplicates <= known, &|| format!("{} duplicates, the node knows of {known}", totals.duplicates));

    // (e) The end.
    hold(run.ended <= run.deadline + LATE, &|| format!("ended after {:?} of {:?}", run.ended, run.deadline));

    // (f) Bounds: each lane its queue and a request; one batch in front; the channels to the node and from it.
    let largest = job.batches.iter().map(|batch| batch.items).max().unwrap_or(0);
    let lane = bounds.queue_batches * largest + bounds.request_items.max(largest);
    let most = bounds.lanes * lane + (1 + 2 * CHANNEL + 2) * largest;
    hold(run.most_held <= most, &|| format!("held {} items, the bound is {most}", run.most_held));

    // (g) The account adds up.
    let account = &run.account;
    hold(account.is_balanced() && account.in_flight == 0 && account.received == sent, &|| {
        format!("{sent} sent, account: {account}")
    });
    hold(account.sent <= totals.first_accepted, &|| format!("{} arrived, account: {account}", totals.first_accepted));
    let transient_counted =
        ["expired", "queue full", "shut down", "unanswered", "failed"].map(|name| run.counted(name));
    let transient_counted: u64 = transient_counted.iter().sum();
    hold(transient_counted <= transient, &|| format!("{transient} given back, account: {account}"));
    faults
}
