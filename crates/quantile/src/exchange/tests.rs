mod restarts;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

type Numbers = Collector<Vec<u64>>;

fn collector(expected: usize) -> Numbers {
    let config = CollectorConfig {
        expected: Expected::Count(expected),
        max_wait_ns: 100,
        dedupe_horizon_ns: 1000,
        max_windows: 50,
        max_parts: 8,
        restarted: Restarted::Add,
        ..CollectorConfig::default()
    };
    Collector::new(config).expect("valid")
}

fn message(source: &str, window: i64, part: (u32, u32), sequence: u64) -> MessageId {
    MessageId {
        source: SourceId { name: source.into(), instance: 1 },
        metric: "latency".into(),
        series: Box::new(*b"series"),
        window: WindowBounds { start_ns: window, end_ns: window + 10 },
        part: Part { index: part.0, of: part.1 },
        sequence,
        announces: false,
    }
}

/// Offers a message whose content is its sequence number.
fn offer(collector: &mut Numbers, id: &MessageId, now_ns: i64) -> Verdict<&'static str> {
    collector.offer(id, now_ns, Vec::new, |numbers| {
        numbers.push(id.sequence);
        Ok(())
    })
}

/// All that counts of a window.
fn numbers(emission: &Emission<Vec<u64>>) -> Vec<u64> {
    emission.contents.concat()
}

fn refusal(collector: &mut Numbers, id: &MessageId) -> String {
    match offer(collector, id, 0) {
        Verdict::Refused(refusal) => refusal.to_string(),
        other => panic!("{other:?} instead of a refusal"),
    }
}

/// Windows that are not complete are given out by what is in them, if so asked.
#[test]
fn windows_are_flushed_by_content() {
    let mut collector = collector(2);
    for (window, sequence) in [(0, 1), (10, 2), (20, 3)] {
        assert_eq!(offer(&mut collector, &message("a", window, (0, 1), sequence), 0), Verdict::Merged);
    }
    assert_eq!(offer(&mut collector, &message("b", 0, (0, 1), 4), 0), Verdict::Merged);
    let flushed = collector.flush_where(0, |numbers| numbers.contains(&3));
    assert_eq!(flushed.iter().map(numbers).collect::<Vec<_>>(), [vec![1, 4], vec![3]]);
    assert_eq!((collector.open_windows(), collector.counters().waiting), (1, 1));
}

/// A window is given out once both sources have delivered all parts, in any order.
#[test]
fn window_is_complete_with_all_parts_of_all_sources() {
    let mut collector = collector(2);
    for id in [message("a", 0, (1, 2), 1), message("b", 0, (0, 1), 7), message("a", 0, (0, 2), 2)] {
        assert!(collector.take_complete(1).is_empty());
        assert_eq!(offer(&mut collector, &id, 1), Verdict::Merged);
    }
    let emissions = collector.take_complete(1);
    let [emission] = emissions.as_slice() else { panic!("{emissions:?}") };
    assert_eq!(emission.contents, [vec![1, 2], vec![7]]);
    assert!(emission.is_complete());
    assert_eq!((emission.sources, emission.expected_sources, emission.messages), (2, 2, 3));
    assert_eq!((&*emission.metric, emission.window.end_ns, &*emission.series), ("latency", 10, &b""[..]));
    assert_eq!(collector.counters(), ExchangeCounters { received: 3, merged: 3, ..ExchangeCounters::default() });
}

/// A repeat is one before and after the window was emitted; once that is forgotten it is late, and
/// it never counts.
#[test]
fn repeats_never_count_twice() {
    let mut collector = collector(1);
    let id = message("a", 0, (0, 1), 5);
    assert_eq!(offer(&mut collector, &id, 0), Verdict::Merged);
    assert_eq!(offer(&mut collector, &id, 0), Verdict::Duplicate);
    assert_eq!(collector.take_complete(0).len(), 1);
    assert_eq!(offer(&mut collector, &id, 999), Verdict::Duplicate);
    assert!(collector.expire(999).is_empty());
    assert_eq!(collector.remembered_windows(), 1);
    assert!(collector.expire(1000).is_empty());
    assert_eq!((collector.remembered_windows(), collector.known_instances()), (0, 1));
    assert_eq!(offer(&mut collector, &id, 1001), Verdict::Late);
    assert_eq!(offer(&mut collector, &message("a", 10, (0, 1), 6), 1001), Verdict::Merged);
    let counters = collector.counters();
    assert_eq!((counters.received, counters.merged, counters.duplicates, counters.late), (5, 1, 2, 1));
    assert_eq!(counters.accounted(), 5);
}

/// A window that waited enough is given out with the number of sources that delivered; what comes
/// then is late.
#[test]
fn incomplete_windows_are_given_out_after_the_wait() {
    let mut collector = collector(2);
    offer(&mut collector, &message("a", 0, (0, 1), 1), 50);
    assert!(collector.expire(149).is_empty());
    let emissions = collector.expire(150);
    assert_eq!((emissions.len(), emissions[0].sources, emissions[0].is_complete()), (1, 1, false));
    assert_eq!(offer(&mut collector, &message("b", 0, (0, 1), 1), 151), Verdict::Late);
    assert!(collector.expire(10_000).is_empty(), "not a second time");
    assert_eq!(collector.counters().accounted(), 2);
}

/// A clock that was set back delays by the wait, not by the step.
#[test]
fn wait_survives_a_clock_set_back() {
    let mut collector = collector(2);
    offer(&mut collector, &message("a", 0, (0, 1), 1), 1_000_000);
    assert!(collector.expire(0).is_empty());
    assert_eq!(collector.expire(100).len(), 1);
    assert_eq!(collector.remembered_windows(), 1);
    collector.expire(-5000);
    collector.expire(-4000);
    assert_eq!(collector.remembered_windows(), 0);
}

/// Messages that contradict themselves or earlier ones are refused by name and change nothing.
#[test]
fn contradictions_are_refused() {
    let mut collector = collector(2);
    offer(&mut collector, &message("a", 0, (0, 2), 1), 0);
    for (id, expected) in [
        (
            message("a", 0, (2, 2), 2),
            "part must be below the number of parts, of which at most 8 are allowed: got part 2 of 2",
        ),
        (message("a", 0, (0, 0), 2), "part must be below the number of parts"),
        (message("a", 0, (0, 9), 2), "part must be below the number of parts, of which at most 8"),
        (message("a", 0, (1, 3), 2), "number of parts must be 2 as in earlier messages of the window, got 3"),
        (message("a", 0, (0, 2), 2), "part must have been sent once: it came with sequence 1, now with 2"),
    ] {
        let text = refusal(&mut collector, &id);
        assert!(text.starts_with(expected), "{text}");
    }
    let mut backwards = message("a", 0, (0, 1), 3);
    backwards.window.end_ns = -1;
    assert_eq!(refusal(&mut collector, &backwards), "window must not end before it begins: got 0 to -1");
    assert_eq!((collector.counters().refused, collector.counters().waiting), (6, 1));
    assert_eq!(numbers(&collector.flush(0)[0]), [1]);
}

/// Content that cannot be merged is refused, and the same part may come again.
#[test]
fn failed_content_may_come_again() {
    let mut collector = collector(1);
    let id = message("a", 0, (0, 1), 1);
    let verdict = collector.offer(&id, 0, Vec::new, |_| Err("damaged"));
    assert_eq!(verdict, Verdict::Refused(Refusal::Content("damaged")));
    assert_eq!(collector.open_windows(), 0);
    assert_eq!(offer(&mut collector, &id, 0), Verdict::Merged);
    assert_eq!(collector.take_complete(0).len(), 1);
}

/// Only named sources count where names are given.
#[test]
fn unknown_sources_are_refused() {
    let names = BTreeSet::from(["a".into(), "b".into()]);
    let config = CollectorConfig { expected: Expected::Named(names), ..CollectorConfig::default() };
    let mut collector: Numbers = Collector::new(config).expect("valid");
    assert_eq!(refusal(&mut collector, &message("c", 0, (0, 1), 1)), "source must be one of those expected");
    offer(&mut collector, &message("a", 0, (0, 1), 1), 0);
    offer(&mut collector, &message("b", 0, (0, 1), 1), 0);
    assert!(collector.take_complete(0)[0].is_complete());
}

/// Series come out together or each by itself.
#[test]
fn scope_decides_what_comes_together() {
    for (scope, emissions) in [(Scope::Window, 1), (Scope::Series, 2)] {
        let config = CollectorConfig { scope, ..CollectorConfig::default() };
        let mut collector: Numbers = Collector::new(config).expect("valid");
        for (number, series) in [b"x", b"y"].into_iter().enumerate() {
            let part = if scope == Scope::Window { (number as u32, 2) } else { (0, 1) };
            let mut id = message("a", 0, part, number as u64);
            id.series = Box::new(*series);
            assert_eq!(offer(&mut collector, &id, 0), Verdict::Merged);
        }
        assert_eq!(collector.take_complete(0).len(), emissions);
    }
}

/// Memory is bounded: emitted windows give way, open ones do not, and repeats stay out.
#[test]
fn windows_in_memory_are_bounded() {
    let mut collector = collector(1);
    for number in 0..200 {
        offer(&mut collector, &message("a", number * 10, (0, 1), number as u64), 0);
        collector.take_complete(0);
        assert!(collector.remembered_windows() <= 50);
    }
    assert_eq!(offer(&mut collector, &message("a", 0, (0, 1), 0), 0), Verdict::Late);
    assert_eq!(offer(&mut collector, &message("a", 1990, (0, 1), 199), 0), Verdict::Duplicate);
    for number in 200..250 {
        offer(&mut collector, &message("a", number * 10, (0, 2), number as u64), 0);
    }
    let text = refusal(&mut collector, &message("a", 5000, (0, 1), 500));
    assert_eq!(text, "open windows must not exceed 50: try again later");
}

/// Limits of zero are refused by name.
#[test]
fn bad_settings_are_refused() {
    let config = CollectorConfig { expected: Expected::Count(0), ..CollectorConfig::default() };
    let error = Collector::<()>::new(config).expect_err("refused");
    assert_eq!(error.to_string(), "number of expected sources must be at least 1, got 0");
}

#[derive(Debug, Clone)]
enum Step {
    Deliver(usize),
    Time(i64),
    Take,
    Expire,
}

/// All messages of a run: up to 3 sources that may restart, 4 windows, up to 3 parts.
fn messages() -> impl Strategy<Value = Vec<MessageId>> {
    let delivery = (0u8..3, 1u128..3, 0i64..4, 1u32..4);
    prop::collection::btree_map((0u8..3, 1u128..3, 0i64..4), delivery, 1..14).prop_map(|deliveries| {
        let mut sequences = BTreeMap::new();
        let mut all = Vec::new();
        for ((source, instance, window), (.., of)) in deliveries {
            for index in 0..of {
                let sequence = sequences.entry((source, instance)).or_insert(0u64);
                *sequence += 1;
                let name = char::from(b'a' + source).to_string();
                let mut id = message(&name, window * 10, (index, of), *sequence);
                id.source.instance = instance;
                all.push(id);
            }
        }
        all
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0usize..200).prop_map(Step::Deliver),
        1 => (-60i64..400).prop_map(Step::Time),
        1 => Just(Step::Take),
        1 => Just(Step::Expire),
    ];
    prop::collection::vec(step, 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Any order, repeats, losses, restarts, clock steps and little memory: each message counts at
    /// most once, exactly if it was told so, each window comes out once, and the counters add up.
    #[test]
    fn each_message_counts_at_most_once(all in messages(), steps in steps(), expected in 1usize..4, max_windows in 1usize..6, replace in any::<bool>()) {
        let restarted = if replace { Restarted::Replace } else { Restarted::Add };
        let config = CollectorConfig {
            expected: Expected::Count(expected),
            max_wait_ns: 100,
            dedupe_horizon_ns: 300,
            max_windows,
            max_parts: 3,
            restarted,
            ..CollectorConfig::default()
        };
        let mut collector: Collector<Vec<usize>> = Collector::new(config).expect("valid");
        let mut told = BTreeSet::new();
        let mut replaced = BTreeSet::new();
        let mut emissions = Vec::new();
        let (mut now, mut went_back) = (1000, false);
        for step in steps {
            match step {
                Step::Deliver(number) => {
                    let number = number % all.len();
                    let verdict = collector.offer(&all[number], now, Vec::new, |numbers| {
                        numbers.push(number);
                        Ok::<(), ()>(())
                    });
                    match verdict {
                        Verdict::Merged => prop_assert!(told.insert(number), "{number} twice"),
                        Verdict::Duplicate => prop_assert!(told.contains(&number)),
                        Verdict::Late | Verdict::Refused(Refusal::Full { .. }) => {}
                        Verdict::Replaced => prop_assert!(replace),
                        Verdict::Refused(other) => prop_assert!(false, "{other:?}"),
                    }
                }
                Step::Time(by) => {
                    now += by;
                    went_back |= now < 1000;
                }
                Step::Take => emissions.extend(collector.take_complete(now)),
                Step::Expire => emissions.extend(collector.expire(now)),
            }
            replaced.extend(collector.take_replaced().concat());
            prop_assert!(collector.open_windows() + collector.remembered_windows() <= max_windows);
            let counters = collector.counters();
            prop_assert_eq!(counters.accounted(), counters.received);
        }
        emissions.extend(collector.flush(now));
        prop_assert_eq!(collector.open_windows(), 0);
        let mut counted: Vec<usize> = emissions.iter().flat_map(|emission| emission.contents.concat()).collect();
        counted.sort_unstable();
        prop_assert_eq!(&counted, &told.difference(&replaced).copied().collect::<Vec<_>>());
        prop_assert!(replaced.is_subset(&told) && (replace || replaced.is_empty()));
        let counters = collector.counters();
        prop_assert_eq!((counters.waiting, counters.merged), (0, counted.len() as u64));
        let windows: BTreeSet<WindowBounds> = emissions.iter().map(|emission| emission.window).collect();
        prop_assert!(windows.len() == emissions.len() || went_back, "a window came out twice");
        for emission in &emissions {
            let counted = emission.contents.concat();
            prop_assert_eq!(emission.messages, counted.len() as u64);
            // Complete means that of so many sources every instance that counts has sent every part.
            let ids: Vec<&MessageId> = counted.iter().map(|&number| &all[number]).collect();
            let mut complete = BTreeMap::new();
            for id in &ids {
                let parts = ids.iter().filter(|other| other.source == id.source).count();
                *complete.entry(&id.source.name).or_insert(true) &= parts == id.part.of as usize;
                prop_assert_eq!(id.window, emission.window);
            }
            prop_assert_eq!(emission.sources, complete.values().filter(|complete| **complete).count());
        }
    }

    /// Without losses, and before any wait ends, every order gives the same windows with the same
    /// messages, repeats or not.
    #[test]
    fn order_and_repeats_change_nothing(
        all in messages(),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..120),
    ) {
        let run = |order: Vec<usize>| {
            let mut collector = collector(9);
            for number in order {
                offer(&mut collector, &all[number], 0);
            }
            let mut windows = BTreeMap::new();
            for emission in collector.flush(0) {
                let mut merged = numbers(&emission);
                merged.sort_unstable();
                windows.insert(emission.window, (merged, emission.sources));
            }
            windows
        };
        let mut shuffled: Vec<usize> = order.iter().map(|index| index.index(all.len())).collect();
        shuffled.extend((0..all.len()).rev());
        prop_assert_eq!(run(shuffled), run((0..all.len()).collect()));
    }
}
