//! Single rules of a lane, one at a time.

use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::sleep;

use super::*;
use crate::lane::retry::Backoff;
use crate::lane::{
    Batching, LaneError, LaneHandle, LaneSettings, OnFull, PushError, Refusal, Resolved, RetryBudget, RetrySettings,
    State, Verdict, lane,
};

type Started = (LaneHandle<Load, u64>, JoinHandle<Result<(), LaneError>>, UnboundedReceiver<Resolved<u64>>);

fn start(settings: LaneSettings, wire: Scripted) -> Started {
    let (verdicts, given) = mpsc::unbounded_channel();
    let (handle, lane) = lane(0, settings, wire, verdicts);
    (handle, spawn_local(lane.seeded(1).run()), given)
}

fn batching(min_items: usize, max_items: usize) -> LaneSettings {
    let batch = Batching { min_items, max_items, ..Batching::default() };
    LaneSettings { batch, max_queue_batches: 100, ..LaneSettings::default() }
}

fn push(handle: &LaneHandle<Load, u64>, token: u64, load: Load) {
    handle.push(load, token).expect("there is room");
}

/// Closes a lane, and waits for its end and for all verdicts.
async fn finish((handle, lane, mut given): Started) -> Vec<(u64, Verdict)> {
    drop(handle);
    lane.await.expect("no panic").expect("no failure");
    let mut verdicts = Vec::new();
    while let Some(resolved) = given.recv().await {
        verdicts.push((resolved.token, resolved.verdict));
    }
    verdicts
}

fn sizes(server: &Rc<RefCell<Server>>) -> Vec<usize> {
    server.borrow().attempts.iter().map(|(_, items)| items.len()).collect()
}

fn refusals(verdicts: &[(u64, Verdict)]) -> Vec<(u64, Option<Refusal>)> {
    verdicts.iter().map(|(token, verdict)| (*token, verdict.refusal)).collect()
}

/// Payloads stay whole where they fit, and are split only where a request would stay below `min_items`, or where one is
/// larger than a request.
#[test]
fn payloads_become_requests() {
    for (min, max, expected) in [
        (0, 10, vec![8, 8, 8]),
        (0, 16, vec![16, 8]),
        (10, 12, vec![12, 12]),
        (10, 100, vec![24]),
        (0, 5, vec![5, 3, 5, 3, 5, 3]),
    ] {
        simulate(async move {
            let (wire, server) = Scripted::steps([]);
            let started = start(batching(min, max), wire);
            for token in 0..3 {
                push(&started.0, token, Load::logs(token * 8..token * 8 + 8));
            }
            assert_eq!(refusals(&finish(started).await), [(0, None), (1, None), (2, None)]);
            assert_eq!(sizes(&server), expected, "min {min} max {max}");
            assert_eq!(server.borrow().taken, (0..24).collect::<Vec<_>>());
        });
    }
}

/// Too few items wait for more, and no longer than `max_delay`; a full queue or another signal does not wait.
#[test]
fn waits_for_more_items() {
    simulate(async {
        let (wire, server) = Scripted::steps([]);
        let mut settings = batching(10, 100);
        settings.max_queue_batches = 2;
        let started = start(settings, wire);
        let begun = Instant::now();
        push(&started.0, 0, Load::logs(0..4));
        sleep(millis(900)).await;
        assert_eq!(sizes(&server), [0; 0]);
        sleep(millis(200)).await;
        assert_eq!(server.borrow().attempts[0].0 - begun, millis(1000));
        push(&started.0, 1, Load::logs(4..8));
        push(&started.0, 2, Load::new(Signal::Metrics, 8..9));
        sleep(millis(1)).await;
        assert_eq!(sizes(&server), [4, 4], "the change of signal ends the first, the second waits");
        push(&started.0, 3, Load::new(Signal::Metrics, 9..10));
        sleep(millis(1)).await;
        assert_eq!(sizes(&server), [4, 4, 2], "nobody waits behind a full queue");
        assert_eq!(finish(started).await.len(), 4);
    });
}

/// A payload larger than the bound is admitted to an empty queue only, and is sent in parts of `max_bytes`.
#[test]
fn bounds_in_bytes() {
    simulate(async {
        let (wire, server) = Scripted::steps([Step::Late(millis(100))]);
        let mut settings = batching(0, 1000);
        settings.max_queue_bytes = 500;
        settings.batch.max_bytes = 300;
        let started = start(settings, wire);
        push(&started.0, 0, Load::logs(0..100));
        sleep(millis(1)).await;
        let counters = started.0.counters();
        assert_eq!((counters.in_flight_bytes, counters.queue_bytes), (300, 700));
        assert!(matches!(started.0.push(Load::logs(100..101), 1), Err(PushError::Full(..))));
        let waited = Instant::now();
        started.0.ready(10).await;
        assert_eq!(waited.elapsed(), millis(99), "room for it comes with the second request");
        push(&started.0, 1, Load::logs(100..101));
        assert_eq!(started.0.counters().blocked, millis(99));
        assert_eq!(finish(started).await.len(), 2);
        assert_eq!(server.borrow().taken, (0..101).collect::<Vec<_>>());
        assert_eq!(sizes(&server)[..3], [30, 30, 30]);
    });
}

/// A payload without items has its verdict at once, and nothing is sent.
#[test]
fn empty_payloads_are_not_sent() {
    simulate(async {
        let (wire, server) = Scripted::steps([]);
        let mut started = start(LaneSettings::default(), wire);
        push(&started.0, 5, Load::logs(0..0));
        let resolved = started.2.try_recv().expect("at once");
        assert_eq!((resolved.token, resolved.verdict.refusal), (5, None));
        finish(started).await;
        assert_eq!(sizes(&server), [0; 0]);
    });
}

/// The server's delay is a floor; waits without one stay below the exponential ceiling; the order survives both.
#[test]
fn waits_between_attempts() {
    simulate(async {
        let steps = [Step::Retry(None), Step::Retry(Some(millis(5000))), Step::Retry(None)];
        let (wire, server) = Scripted::steps(steps);
        let started = start(LaneSettings::default(), wire);
        push(&started.0, 0, Load::logs(0..3));
        push(&started.0, 1, Load::logs(3..5));
        sleep(millis(1)).await;
        assert!(matches!(started.0.counters().state, State::Backoff { .. }));
        let counters = started.0.counters();
        assert_eq!((counters.in_flight_items, counters.oldest), (5, Some(millis(1))));
        finish(started).await;
        let times: Vec<_> = server.borrow().attempts.iter().map(|(time, _)| *time).collect();
        assert!(times[1] - times[0] <= millis(200));
        assert!(times[2] - times[1] >= millis(5000) && times[2] - times[1] <= millis(5200));
        assert!(times[3] - times[2] <= millis(10_000), "the delay seeds the next wait");
        assert_eq!(server.borrow().taken, [0, 1, 2, 3, 4]);
    });
}

/// Waits grow from `initial` to `max`, jittered over all of it, and a server's delay is capped.
#[test]
fn backoff_grows_to_its_cap() {
    let settings = RetrySettings { max_server_delay: millis(60_000), ..RetrySettings::default() };
    let mut random = fastrand::Rng::with_seed(3);
    let (mut shortest, mut longest) = (Duration::MAX, Duration::ZERO);
    for _ in 0..500 {
        let mut backoff = Backoff::new(&settings);
        let mut ceiling = settings.initial;
        for _ in 0..12 {
            let wait = backoff.next(&settings, None, &mut random);
            assert!(wait <= ceiling, "{wait:?} > {ceiling:?}");
            ceiling = (ceiling * 2).min(settings.max);
            (shortest, longest) = (shortest.min(wait), longest.max(wait));
        }
        let told = backoff.next(&settings, Some(millis(3_600_000)), &mut random);
        assert!(told >= millis(60_000) && told <= millis(60_200), "{told:?}");
    }
    assert!(shortest < millis(5) && longest > millis(29_000), "{shortest:?} to {longest:?}");
}

/// A request that could only be sent again too late is refused before the wait, and the next one has its turn.
#[test]
fn expires_before_the_wait() {
    simulate(async {
        let (wire, server) = Scripted::steps([Step::Cut { stored: false }, Step::Retry(Some(millis(200_000)))]);
        let mut settings = batching(0, 5);
        settings.retry.max_elapsed = Some(millis(100_000));
        let mut started = start(settings, wire);
        push(&started.0, 0, Load::logs(0..5));
        push(&started.0, 1, Load::logs(5..10));
        let begun = Instant::now();
        let resolved = started.2.recv().await.expect("a verdict");
        assert!(begun.elapsed() < millis(1000));
        assert_eq!(resolved.verdict.refusal, Some(Refusal::Expired));
        assert!(resolved.verdict.ambiguous, "the first attempt may have arrived");
        assert_eq!(resolved.verdict.message.as_deref(), Some("busy"));
        assert_eq!(refusals(&finish(started).await), [(1, None)]);
        assert_eq!(server.borrow().taken, [5, 6, 7, 8, 9]);
    });
}

/// Lanes that share a budget do not retry faster than it allows, all together.
#[test]
fn budget_over_lanes() {
    simulate(async {
        let budget = RetryBudget::new(10.0, 2);
        let (verdicts, _given) = mpsc::unbounded_channel();
        let mut retry = RetrySettings { initial: millis(1), max: millis(1), ..RetrySettings::default() };
        retry.max_elapsed = None;
        let mut times = Vec::new();
        let mut handles = Vec::new();
        for number in 0..4 {
            let (wire, server) = Scripted::new(|_| Step::Retry(None));
            let settings = LaneSettings { retry: retry.clone(), ..LaneSettings::default() };
            let (handle, lane) = lane(number, settings, wire, verdicts.clone());
            drop(spawn_local(lane.seeded(number as u64).budgeted(budget.clone()).run()));
            push(&handle, 0, Load::logs(0..1));
            handles.push(handle);
            times.push(server);
        }
        sleep(millis(10_000)).await;
        let retries: u64 = handles.iter().map(|handle| handle.counters().retries).sum();
        assert!((98..=103).contains(&retries), "{retries}");
        assert!(times.iter().all(|server| server.borrow().attempts.len() > 15), "each lane has its share");
    });
}

/// A request that the server finds too large is split in order, by its sizes if it names them; an item too large alone is
/// rejected, and only it.
#[test]
fn oversize_is_split() {
    for (named, expected) in [(true, vec![40, 8, 8, 8, 8, 8]), (false, vec![40, 20, 10, 10, 20, 10, 10])] {
        simulate(async move {
            let (mut wire, server) = Scripted::steps([]);
            (wire.cap, wire.sizes) = (10, named);
            let started = start(batching(0, 100), wire);
            push(&started.0, 0, Load::logs(0..25));
            push(&started.0, 1, Load::logs(25..40));
            assert_eq!(refusals(&finish(started).await), [(0, None), (1, None)]);
            assert_eq!(sizes(&server), expected);
            assert_eq!(server.borrow().taken, (0..40).collect::<Vec<_>>());
        });
    }
    simulate(async {
        let (wire, _) = Scripted::new(|items| {
            let oversize = Outcome::Oversize { sizes: None, message: "too large".to_owned() };
            if items.contains(&3) { Step::Say(oversize) } else { Step::Ok }
        });
        let started = start(batching(0, 100), wire);
        push(&started.0, 0, Load::logs(0..6));
        let verdicts = finish(started).await;
        assert_eq!((verdicts[0].1.refusal, verdicts[0].1.delivered, verdicts[0].1.rejected), (None, 5, 1));
    });
}

/// A lane remembers what a server found too large, and tries larger requests again after many successes.
#[test]
fn learns_the_size() {
    simulate(async {
        let (mut wire, server) = Scripted::steps([]);
        wire.cap = 10;
        let started = start(batching(0, 16), wire);
        for token in 0..200 {
            started.0.ready(160).await;
            while started.0.push(Load::logs(token * 16..token * 16 + 16), token).is_err() {
                started.0.ready(160).await;
            }
        }
        assert_eq!(finish(started).await.len(), 200);
        let wasted = sizes(&server).iter().filter(|size| **size > 10).count();
        assert!((2..=10).contains(&wasted), "{wasted} requests were too large");
        assert_eq!(server.borrow().first(), (0..3200).collect::<Vec<_>>());
    });
}

/// A payload that is too large and cannot be split is refused alone; its neighbours are delivered.
#[test]
fn indivisible_and_too_large() {
    simulate(async {
        let (mut wire, server) = Scripted::steps([]);
        wire.cap = 10;
        let started = start(batching(0, 100), wire);
        push(&started.0, 0, Load::logs(0..4));
        push(&started.0, 1, Load { divisible: false, ..Load::logs(4..20) });
        push(&started.0, 2, Load::logs(20..24));
        let verdicts = finish(started).await;
        assert_eq!(refusals(&verdicts), [(0, None), (1, Some(Refusal::Unencodable)), (2, None)]);
        assert_eq!(server.borrow().taken, [0, 1, 2, 3, 20, 21, 22, 23]);
    });
}

/// A payload that cannot be encoded takes no neighbour with it.
#[test]
fn poison_is_alone() {
    simulate(async {
        let (mut wire, server) = Scripted::steps([]);
        wire.poison = Some(5);
        let started = start(batching(0, 100), wire);
        for token in 0..3 {
            push(&started.0, token, Load::logs(token * 4..token * 4 + 4));
        }
        let verdicts = finish(started).await;
        assert_eq!(refusals(&verdicts), [(0, None), (1, Some(Refusal::Unencodable)), (2, None)]);
        assert_eq!(server.borrow().taken, [0, 1, 2, 3, 8, 9, 10, 11]);
    });
}

/// Rejected items are booked to the payloads of the request, never more than it has.
#[test]
fn partial_success_is_counted() {
    simulate(async {
        let (wire, _) = Scripted::steps([Step::Partial(6), Step::Partial(1_000_000)]);
        let mut started = start(batching(0, 100), wire);
        push(&started.0, 0, Load::logs(0..4));
        push(&started.0, 1, Load::logs(4..8));
        let first = started.2.recv().await.expect("a verdict").verdict;
        let second = started.2.recv().await.expect("a verdict").verdict;
        assert_eq!((first.refusal, first.delivered, first.rejected), (None, 0, 4));
        assert_eq!((second.refusal, second.delivered, second.rejected), (None, 2, 2));
        push(&started.0, 2, Load::logs(8..12));
        assert_eq!(started.2.recv().await.expect("a verdict").verdict.rejected, 4);
        let counters = started.0.counters();
        assert_eq!((counters.rejected, counters.warnings, counters.requests), (10, 2, 2));
        finish(started).await;
    });
}

/// What is outstanding at the deadline is ambiguous, the rest is refused in order, and nothing is sent any more.
#[test]
fn drain_to_the_deadline() {
    simulate(async {
        let (wire, server) = Scripted::steps([Step::Ok, Step::Hang { stored: true }]);
        let started = start(batching(0, 4), wire);
        for token in 0..4 {
            push(&started.0, token, Load::logs(token * 4..token * 4 + 4));
        }
        let begun = Instant::now();
        started.0.drain(begun + millis(300));
        let verdicts = finish(started).await;
        assert_eq!(begun.elapsed(), millis(300));
        let expected =
            [(0, None), (1, Some(Refusal::Ambiguous)), (2, Some(Refusal::Shutdown)), (3, Some(Refusal::Shutdown))];
        assert_eq!(refusals(&verdicts), expected);
        assert_eq!(
            verdicts.iter().map(|(_, verdict)| verdict.ambiguous).collect::<Vec<_>>(),
            [false, true, false, false]
        );
        assert_eq!(sizes(&server), [4, 4]);
    });
}

/// A wait that ends behind the deadline is not waited for, also if the drain begins during it.
#[test]
fn drain_during_backoff() {
    simulate(async {
        let (wire, server) = Scripted::steps([Step::Retry(Some(millis(60_000)))]);
        let started = start(batching(0, 4), wire);
        push(&started.0, 0, Load::logs(0..4));
        push(&started.0, 1, Load::logs(4..8));
        sleep(millis(10)).await;
        let begun = Instant::now();
        started.0.drain(begun + millis(30_000));
        let verdicts = finish(started).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert_eq!(refusals(&verdicts), [(0, Some(Refusal::Shutdown)), (1, Some(Refusal::Shutdown))]);
        assert!(verdicts.iter().all(|(_, verdict)| !verdict.ambiguous), "the server said that it has nothing");
        assert_eq!(sizes(&server), [4]);
    });
}

/// Full queues: refused at once, or the oldest dropped, but never what is in flight or was sent in part.
#[test]
fn full_queues() {
    for on_full in [OnFull::Nack, OnFull::DropOldest] {
        simulate(async move {
            let (wire, server) = Scripted::steps([Step::Late(millis(100))]);
            let mut settings = batching(0, 4);
            (settings.on_full, settings.max_queue_batches) = (on_full, 2);
            let started = start(settings, wire);
            push(&started.0, 0, Load::logs(0..6));
            sleep(millis(1)).await;
            for token in 1..4 {
                push(&started.0, token, Load::logs(token * 6..token * 6 + 6));
            }
            let verdicts = finish(started).await;
            let (expected, lost) = match on_full {
                OnFull::Nack => {
                    ([(2, Some(Refusal::QueueFull)), (3, Some(Refusal::QueueFull)), (0, None), (1, None)], 12)
                }
                _ => ([(1, Some(Refusal::Dropped)), (2, Some(Refusal::Dropped)), (0, None), (3, None)], 6),
            };
            assert_eq!(refusals(&verdicts), expected);
            assert_eq!(server.borrow().taken[..6], [0, 1, 2, 3, 4, 5]);
            assert!(!server.borrow().taken.contains(&lost));
        });
    }
}
