//! What holds for any script of a server and any input.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use tokio::sync::mpsc;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::lane::{Batching, Counters, LaneHandle, LaneSettings, OnFull, PushError, Refusal, RetrySettings, lane};

/// Everything that a run left behind.
struct Run {
    server: Rc<RefCell<Server>>,
    /// Items of each token that was taken in.
    pushed: Vec<Range<u64>>,
    verdicts: Vec<(usize, crate::lane::Verdict)>,
    counters: Counters,
    settings: LaneSettings,
    most_queue_bytes: u64,
    permanent: bool,
    ended: Instant,
    deadline: Instant,
}

fn settings(random: &mut fastrand::Rng, on_full: OnFull) -> LaneSettings {
    LaneSettings {
        max_queue_batches: random.usize(1..12),
        max_queue_bytes: random.usize(50..4000),
        on_full,
        batch: Batching {
            min_items: random.usize(0..60),
            max_items: random.usize(1..80),
            max_bytes: random.usize(10..900),
            max_delay: millis(random.u64(0..500)),
        },
        attempt_timeout: millis(random.u64(200..2000)),
        retry: RetrySettings {
            initial: millis(random.u64(1..100)),
            max: millis(random.u64(100..2000)),
            multiplier: 1.0 + 2.0 * random.f64(),
            max_server_delay: millis(random.u64(100..3000)),
            max_elapsed: random.bool().then(|| millis(random.u64(0..4000))),
        },
        close_timeout: millis(100),
    }
}

fn script(mut random: fastrand::Rng, permanent: bool, trouble: u8) -> impl FnMut(&[u64]) -> Step {
    move |_| {
        if random.u8(0..100) >= trouble {
            return if random.bool() { Step::Ok } else { Step::Late(millis(random.u64(0..150))) };
        }
        let stored = random.bool();
        match random.u8(0..if permanent { 8 } else { 6 }) {
            0 => Step::Retry(None),
            1 => Step::Retry(Some(millis(random.u64(0..4000)))),
            2 | 3 => Step::Cut { stored },
            4 => Step::Hang { stored },
            5 => Step::Late(millis(random.u64(0..3000))),
            6 => Step::Permanent,
            _ => Step::Partial(random.u64(0..40)),
        }
    }
}

fn check_now(handle: &LaneHandle<Load, usize>, most: &mut u64) {
    let counters = handle.counters();
    assert!(counters.balanced(), "{counters:?}");
    assert_eq!(counters.held, counters.queue_items + counters.in_flight_items, "{counters:?}");
    if counters.queue_batches > 1 {
        *most = (*most).max(counters.queue_bytes);
    }
}

async fn run(seed: u64, on_full: OnFull) -> Run {
    let mut random = fastrand::Rng::with_seed(seed);
    let settings = settings(&mut random, on_full);
    let permanent = random.bool();
    let trouble = random.u8(0..90);
    let (mut wire, server) = Scripted::new(script(random.fork(), permanent, trouble));
    wire.sizes = random.bool();
    wire.cap = if random.u8(0..3) == 0 { random.usize(1..40) } else { usize::MAX };
    let (verdicts, mut given) = mpsc::unbounded_channel();
    let (handle, lane) = lane(7, settings.clone(), wire, verdicts);
    let lane = spawn_local(lane.seeded(random.u64(..)).run());
    let (mut next, mut pushed, mut most) = (0, Vec::new(), 0);
    for _ in 0..random.usize(1..80) {
        let items = if random.u8(0..10) == 0 { 0 } else { random.u64(1..50) };
        let signal = if random.u8(0..8) == 0 { Signal::Metrics } else { Signal::Logs };
        let mut load = Load::new(signal, next..next + items);
        load.item_bytes = random.usize(1..30);
        loop {
            match handle.push(load, pushed.len()) {
                Ok(()) => break,
                Err(PushError::Full(back, _)) => {
                    assert_eq!(on_full, OnFull::Block, "only this hands back");
                    load = back;
                    handle.ready(load.bytes()).await;
                }
                Err(PushError::Closed(..)) => panic!("closed before its time"),
            }
        }
        pushed.push(next..next + items);
        next += items;
        check_now(&handle, &mut most);
        if random.bool() {
            sleep(millis(random.u64(0..80))).await;
            check_now(&handle, &mut most);
        }
    }
    let deadline = Instant::now() + millis(random.u64(0..6000));
    handle.drain(deadline);
    assert!(matches!(handle.push(Load::logs(0..1), 0), Err(PushError::Closed(..))), "closed by the drain");
    lane.await.expect("no panic").expect("no failure");
    let ended = Instant::now();
    let counters = handle.counters();
    drop(handle);
    let mut verdicts = Vec::new();
    while let Some(resolved) = given.recv().await {
        assert_eq!(resolved.lane, 7);
        verdicts.push((resolved.token, resolved.verdict));
    }
    Run { server, pushed, verdicts, counters, settings, most_queue_bytes: most, permanent, ended, deadline }
}

fn check(run: &Run) {
    let server = run.server.borrow();
    let counters = &run.counters;
    // Exactly one verdict a token, with all its items.
    let mut tokens: Vec<_> = run.verdicts.iter().map(|(token, _)| *token).collect();
    let order = tokens.clone();
    tokens.sort_unstable();
    assert_eq!(tokens, (0..run.pushed.len()).collect::<Vec<_>>());
    let first = server.first();
    let taken: HashMap<u64, ()> = first.iter().map(|item| (*item, ())).collect();
    for (token, verdict) in &run.verdicts {
        let items = run.pushed[*token].clone();
        let count = items.end - items.start;
        assert_eq!(verdict.delivered + verdict.rejected + verdict.refused, count, "{verdict:?}");
        assert_eq!(verdict.refusal.is_some(), verdict.refused > 0, "{verdict:?}");
        let stored = items.filter(|item| taken.contains_key(item)).count() as u64;
        // What is not called delivered may have arrived only if the verdict says so, or an earlier attempt of a part that
        // was then rejected did.
        assert!(stored >= verdict.delivered, "{stored} stored, {verdict:?}");
        if !verdict.ambiguous && !run.permanent {
            assert_eq!(stored, verdict.delivered, "{verdict:?}");
        }
        if !run.permanent {
            assert_ne!(verdict.refusal, Some(Refusal::Permanent));
        }
    }
    // Order of first acceptance is order of arrival.
    assert!(first.is_sorted_by(|a, b| a < b), "{first:?}");
    if run.settings.on_full == OnFull::Block {
        let nonempty = |token: &usize| !run.pushed[*token].is_empty();
        assert!(order.iter().copied().filter(|token| nonempty(token)).is_sorted(), "{order:?}");
    }
    assert!(server.duplicates() <= counters.ambiguous, "{} > {}", server.duplicates(), counters.ambiguous);
    assert!(run.ended <= run.deadline, "late by {:?}", run.ended - run.deadline);
    assert!(run.most_queue_bytes <= run.settings.max_queue_bytes as u64);
    assert!(server.largest <= run.settings.batch.max_bytes, "{} > {}", server.largest, run.settings.batch.max_bytes);
    assert!(server.attempts.iter().all(|(_, items)| items.len() <= run.settings.batch.max_items));
    assert!(server.closed, "the wire is closed");
    assert!(counters.balanced(), "{counters:?}");
    assert_eq!(counters.held, 0);
    assert_eq!((counters.queue_items, counters.queue_bytes, counters.queue_batches), (0, 0, 0));
    assert_eq!((counters.in_flight_items, counters.in_flight_bytes), (0, 0));
    assert_eq!(counters.received, run.pushed.iter().map(|items| items.end - items.start).sum::<u64>());
    assert_eq!(counters.verdicts, counters.payloads);
    assert_eq!(counters.attempts, server.attempts.len() as u64);
    assert_eq!(counters.oldest, None);
}

fn seeds(on_full: OnFull) {
    for seed in 0..200 {
        let result = std::panic::catch_unwind(|| check(&simulate(run(seed, on_full))));
        if let Err(panic) = result {
            std::panic::panic_any(format!("seed {seed}, {on_full:?}: {panic:?}"));
        }
    }
}

/// One verdict a token, order, no loss, doubles only where ambiguous, end by the deadline, bounds, balance.
#[test]
fn any_script_with_blocking() {
    seeds(OnFull::Block);
}

/// The same where a full lane refuses.
#[test]
fn any_script_with_nack() {
    seeds(OnFull::Nack);
}

/// The same where a full lane drops its oldest.
#[test]
fn any_script_with_drop_oldest() {
    seeds(OnFull::DropOldest);
}

/// Without a deadline and without an end to retrying, everything arrives.
#[test]
fn everything_arrives_in_the_end() {
    for seed in 0..100 {
        simulate(async {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut settings = settings(&mut random, OnFull::Block);
            settings.retry.max_elapsed = None;
            let (wire, server) = Scripted::new(script(random.fork(), false, 60));
            let (verdicts, mut given) = mpsc::unbounded_channel();
            let (handle, lane) = lane(0, settings, wire, verdicts);
            let lane = spawn_local(lane.seeded(seed).run());
            for token in 0..30 {
                let mut load = Load::logs(token * 10..token * 10 + 10);
                while let Err(PushError::Full(back, _)) = handle.push(load.clone(), token) {
                    load = back;
                    handle.ready(load.bytes()).await;
                }
            }
            drop(handle);
            timeout(millis(10_000_000), lane).await.expect("an end").expect("no panic").expect("no failure");
            assert_eq!(server.borrow().first(), (0..300).collect::<Vec<_>>(), "seed {seed}");
            for token in 0..30 {
                let resolved = given.recv().await.expect("a verdict");
                assert_eq!((resolved.token, resolved.verdict.refusal), (token, None));
            }
        });
    }
}
