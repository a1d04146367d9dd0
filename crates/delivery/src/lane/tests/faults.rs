//! Faults of the lane itself: nothing may be lost unseen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::task::spawn_local;
use tokio::time::sleep;

use super::*;
use crate::lane::{Lane, LaneError, LaneHandle, LaneSettings, PushError, Refusal, Resolved, lane};

type Parts = (LaneHandle<Load, u64>, Lane<Load, u64, Scripted>, UnboundedReceiver<Resolved<u64>>);

fn parts(wire: Scripted) -> Parts {
    let (verdicts, given) = mpsc::unbounded_channel();
    let mut settings = LaneSettings::default();
    settings.batch.max_items = 4;
    let (handle, lane) = lane(0, settings, wire, verdicts);
    for token in 0..3 {
        handle.push(Load::logs(token * 4..token * 4 + 4), token).expect("room");
    }
    (handle, lane, given)
}

async fn refusals(mut given: UnboundedReceiver<Resolved<u64>>) -> Vec<(u64, Option<Refusal>, bool)> {
    let mut all = Vec::new();
    while let Some(Resolved { token, verdict, .. }) = given.recv().await {
        all.push((token, verdict.refusal, verdict.ambiguous));
    }
    all
}

const FAILED: [(u64, Option<Refusal>, bool); 3] =
    [(0, None, false), (1, Some(Refusal::LaneFailed), true), (2, Some(Refusal::LaneFailed), false)];

/// A wire that panics ends its lane with an error; what it held is refused, and pushes are handed back.
#[test]
fn panic_of_the_wire() {
    simulate(async {
        let (wire, _) = Scripted::steps([Step::Ok, Step::Panic]);
        let (handle, lane, given) = parts(wire);
        let error = spawn_local(lane.run()).await.expect("caught").expect_err("a failure");
        assert_eq!(error, LaneError::Panicked("scripted panic".to_owned()));
        assert!(matches!(handle.push(Load::logs(0..1), 9), Err(PushError::Closed(_, 9))));
        handle.ready(1 << 30).await;
        assert!(handle.counters().balanced());
        drop(handle);
        assert_eq!(refusals(given).await, FAILED);
    });
}

/// A wire that gives up does the same, without doubt about the server.
#[test]
fn end_of_the_wire() {
    simulate(async {
        let (wire, _) = Scripted::steps([Step::Ok, Step::Fatal]);
        let (handle, lane, given) = parts(wire);
        assert_eq!(lane.run().await, Err(LaneError::Wire("scripted end".to_owned())));
        drop(handle);
        let all = refusals(given).await;
        assert_eq!(all[1], (1, Some(Refusal::LaneFailed), false));
        assert_eq!(all.len(), 3);
    });
}

/// A lane that is aborted, and one that never ran, give all verdicts.
#[test]
fn aborted_lanes() {
    simulate(async {
        let (wire, _) = Scripted::steps([Step::Ok, Step::Hang { stored: true }]);
        let (handle, lane, given) = parts(wire);
        let task = spawn_local(lane.run());
        sleep(millis(10)).await;
        task.abort();
        assert!(task.await.expect_err("aborted").is_cancelled());
        drop(handle);
        assert_eq!(refusals(given).await, FAILED);

        let (handle, lane, given) = parts(Scripted::steps([]).0);
        drop(lane);
        drop(handle);
        assert!(refusals(given).await.iter().all(|(_, refusal, _)| *refusal == Some(Refusal::LaneFailed)));
    });
}

/// A lane whose verdicts nobody takes ends with an error.
#[test]
fn nobody_listens() {
    simulate(async {
        let (handle, lane, given) = parts(Scripted::steps([]).0);
        drop(given);
        assert_eq!(lane.run().await, Err(LaneError::Deaf));
        assert!(handle.counters().balanced());
    });
}

/// Payloads and a wire that are `Send`.
struct Plain(usize);

impl Payload for Plain {
    fn signal(&self) -> Signal {
        Signal::Logs
    }

    fn items(&self) -> usize {
        self.0
    }

    fn bytes(&self) -> usize {
        self.0
    }

    fn split(&self, at: usize) -> Result<(Self, Self), EncodeError> {
        Ok((Self(at), Self(self.0 - at)))
    }
}

struct Counting(Arc<AtomicU64>);

impl Wire<Plain> for Counting {
    type Kept = ();

    async fn attempt(&mut self, payloads: &[Plain], _: &mut Option<()>, _: Instant) -> Outcome {
        let items: usize = payloads.iter().map(Payload::items).sum();
        self.0.fetch_add(items as u64, Ordering::Relaxed);
        Outcome::OK
    }

    fn abandon(&mut self) -> bool {
        false
    }

    fn tally(&mut self) -> Tally {
        Tally::default()
    }

    async fn close(&mut self) {}
}

/// A lane runs on a thread of its own, with payloads from another.
#[test]
fn on_another_thread() {
    let count = Arc::new(AtomicU64::new(0));
    let (verdicts, mut given) = mpsc::unbounded_channel();
    let (handle, lane) = lane(0, LaneSettings::default(), Counting(count.clone()), verdicts);
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(lane.run())
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let verdicts = runtime.block_on(async {
        for token in 0..100 {
            let mut load = Plain(7);
            while let Err(PushError::Full(back, _)) = handle.push(load, token) {
                load = back;
                handle.ready(7).await;
            }
        }
        drop(handle);
        let mut tokens = Vec::new();
        while let Some(resolved) = given.recv().await {
            tokens.push(resolved.token);
        }
        tokens
    });
    assert_eq!(thread.join().expect("no panic"), Ok(()));
    assert_eq!(verdicts, (0..100).collect::<Vec<_>>());
    assert_eq!(count.load(Ordering::Relaxed), 700);
}
