use proptest::prelude::*;

use crate::accumulator::{AccumulatorConfig, Method, WhenFull};
use crate::window::SeriesKey::{Overflow, Series};
use crate::window::tests::{EXACT, TestWindows, shape, tumbling, windows_of};
use crate::window::{Outcome, SeriesSlot, WindowConfig, WindowSpec, Windows};

/// A slot finds its series without the key, in slices and row by row, in either shape of window.
#[test]
fn slots_are_keys() {
    for spec in [WindowSpec::Tumbling { size_ns: 10, allowed_lateness_ns: 0, max_future_ns: 50 }, WindowSpec::Count(3)]
    {
        let mut windows = windows_of(spec, 2, EXACT);
        let [a, b, c] = [1, 2, 3].map(|key| windows.intern(&key));
        assert_eq!(windows.intern(&1), a);
        windows.observe_slice(a, &[1, 2], &[1.0, 2.0], 0, |_, _| {}).expect("fresh");
        let mut dropped = Vec::new();
        let rows = [b, c, c, b, a, b];
        let values = [1.0, 2.0, f64::NAN, f64::NAN, 3.0, 5.0];
        let tally = windows
            .observe_rows(&rows, &[3, 4, 5, 6, 7, 9], &values, 0, |index, why| dropped.push((index, why)))
            .expect("fresh");
        assert_eq!(dropped, [(2, Outcome::NotANumber), (3, Outcome::NotANumber)]);
        assert_eq!((tally.used, tally.overflow_folded, tally.not_a_number), (4, 1, 2));
        assert_eq!(windows.counters().offered(), 8);
        let counts: Vec<_> = shape(&windows.flush_all()).into_iter().flat_map(|window| window.2).collect();
        assert_eq!(counts, [(Series(1), 3), (Series(2), 2), (Overflow, 1)]);
    }
}

/// Series that come and go take the numbers of others only in another epoch, and a slot of an
/// earlier one is refused, not counted for a stranger.
#[test]
fn stale_slots_are_refused() {
    let mut windows = tumbling(2);
    let first = windows.intern(&0);
    windows.observe_slice(first, &[1], &[1.0], 0, |_, _| {}).expect("fresh");
    for key in 1..5000 {
        windows.intern(&key);
    }
    let stale = windows.observe_slice(first, &[1], &[1.0], 0, |_, _| {}).expect_err("stale");
    assert_eq!((stale.slot, stale.epoch), (0, windows.slots_epoch()));
    let again = windows.intern(&0);
    windows.observe_rows(&[again, again], &[2, 3], &[1.0; 2], 0, |_, _| {}).expect("fresh");
    assert!(windows.observe_rows(&[again, first], &[2, 3], &[1.0; 2], 0, |_, _| {}).is_err());
    assert_eq!(shape(&windows.flush_all()), [(0, 10, vec![(Series(0), 3)])]);
    assert_eq!(windows.counters().offered(), 3);
}

/// More series in one batch than can have numbers: the slots settle, the rest goes to overflow,
/// and once a window has closed there is room again.
#[test]
fn room_for_slots_comes_back() {
    let mut windows = tumbling(1);
    let keys: Vec<u32> = (0..5000).collect();
    let slots = settled(&mut windows, &keys);
    let tally = windows.observe_rows(&slots, &[1; 5000], &[1.0; 5000], 0, |_, _| {}).expect("fresh");
    assert_eq!((tally.used, tally.overflow_full, tally.offered()), (1001, 3999, 5000));
    windows.observe(&0, 30, 1.0, 0);
    let epoch = windows.slots_epoch();
    assert_eq!(windows.poll_closed().len(), 1);
    assert_ne!(windows.slots_epoch(), epoch, "who got no slot may try again");
    let last = settled(&mut windows, &[4999]);
    windows.observe_slice(last[0], &[41], &[1.0], 0, |_, _| {}).expect("fresh");
    let closed = shape(&windows.flush_all());
    assert_eq!(closed.last(), Some(&(40, 50, vec![(Series(4999), 1)])));
}

/// Series that come and go by thousands: room is made a little at a time, when windows are looked at, and no series goes
/// without a place.
#[test]
fn room_is_made_bit_by_bit() {
    const MOST: usize = 20_000;
    let spec = WindowSpec::Tumbling { size_ns: 10, allowed_lateness_ns: 0, max_future_ns: u64::MAX };
    let mut windows = windows_of(spec, MOST, EXACT);
    let mut epochs = 0;
    for batch in 0..100_u32 {
        let keys: Vec<u32> = (batch * 1_000..(batch + 1) * 1_000).collect();
        let before = windows.slots_epoch();
        let slots: Vec<SeriesSlot> = keys.iter().map(|key| windows.intern(key)).collect();
        assert_eq!(windows.slots_epoch(), before, "not while keys come");
        assert!(slots.iter().all(|slot| (slot.series as usize) < 2 * MOST + 1_024));
        let times = vec![i64::from(batch / 5 * 10); 1_000];
        let tally = windows.observe_rows(&slots, &times, &[1.0; 1_000], 0, |_, _| {}).expect("fresh");
        assert_eq!((tally.used, tally.overflow_folded), (1_000, 0));
        assert!(shape(&windows.poll_closed()).iter().all(|window| window.2.len() == 5_000));
        epochs += u32::from(windows.slots_epoch() != before);
    }
    assert!((10..80).contains(&epochs), "{epochs}");
}

/// Very many count windows close in pieces: each once, whether idle or at the end.
#[test]
fn count_windows_close_in_pieces() {
    const SERIES: u32 = 10_000;
    let mut windows = windows_of(WindowSpec::Count(3), SERIES as usize, EXACT);
    let mut closed = vec![0_u32; SERIES as usize];
    for at_end in [false, true] {
        (0..SERIES).for_each(|key| assert_eq!(windows.observe(&key, 0, 1.0, 0), Outcome::Used));
        assert!(windows.flush_idle(1).is_empty() && windows.is_flushing(), "none is idle among the first");
        let mut calls = 0;
        loop {
            let piece = if at_end { windows.flush_all() } else { windows.flush_idle(100) };
            assert!(piece.len() <= 512);
            for (_, _, series) in shape(&piece) {
                let [(Series(key), 1)] = series[..] else { panic!("{series:?}") };
                closed[key as usize] += 1;
            }
            calls += 1;
            if windows.open_series() == 0 {
                break;
            }
            assert!(calls < 100);
        }
        assert!(calls >= 20, "{calls}");
    }
    assert!(closed.iter().all(|times| *times == 2));
}

/// Slots of one epoch for all keys: interning may begin another one, once.
fn settled(windows: &mut TestWindows, keys: &[u32]) -> Vec<SeriesSlot> {
    let mut rounds = (0..2).map(|_| keys.iter().map(|key| windows.intern(key)).collect::<Vec<_>>());
    let (_, last) = (rounds.next(), rounds.next().expect("two rounds"));
    last
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Rows by slot are observations one by one: the same windows, the same counters.
    #[test]
    fn rows_are_single_observations(
        rows in prop::collection::vec((0u32..6, -5i64..60, prop::option::weighted(0.9, 0i32..9)), 0..80),
        batch in 1usize..20,
        by_count: bool,
        refuse: bool,
        max_series in 1usize..4,
    ) {
        let spec = if by_count {
            WindowSpec::Count(3)
        } else {
            WindowSpec::Tumbling { size_ns: 20, allowed_lateness_ns: 5, max_future_ns: 40 }
        };
        let method = if refuse {
            Method::Exact { max_values: 2, when_full: WhenFull::Refuse }
        } else {
            Method::Kll { k: 8 }
        };
        let [mut single, mut bulk] = [(); 2].map(|()| windows_of(spec, max_series, method));
        let (mut from_single, mut from_bulk) = (Vec::new(), Vec::new());
        for rows in rows.chunks(batch) {
            let value = |value: Option<i32>| value.map_or(f64::NAN, f64::from);
            let mut outcomes = Vec::new();
            for (index, &(key, time, number)) in rows.iter().enumerate() {
                let outcome = single.observe(&key, time, value(number), 10);
                if !matches!(outcome, Outcome::Used | Outcome::OverflowFolded) {
                    outcomes.push((index, outcome));
                }
            }
            let slots = settled(&mut bulk, &rows.iter().map(|row| row.0).collect::<Vec<_>>());
            let times: Vec<i64> = rows.iter().map(|row| row.1).collect();
            let values: Vec<f64> = rows.iter().map(|row| value(row.2)).collect();
            let mut dropped = Vec::new();
            bulk.observe_rows(&slots, &times, &values, 10, |index, why| dropped.push((index, why))).expect("fresh");
            prop_assert_eq!(dropped, outcomes);
            prop_assert_eq!(bulk.counters(), single.counters());
            from_single.extend(single.poll_closed());
            from_bulk.extend(bulk.poll_closed());
        }
        from_single.extend(single.flush_all());
        from_bulk.extend(bulk.flush_all());
        prop_assert_eq!(shape(&from_single), shape(&from_bulk));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// What is said about room before a batch is what happens to it: with series beyond the limit, late and future
    /// observations, and numbers that are none.
    #[test]
    fn room_is_known_before(
        batches in prop::collection::vec(prop::collection::vec((0u8..6, 0i64..60, 0u8..8), 1..12), 1..12),
    ) {
        let spec = WindowSpec::Tumbling { size_ns: 10, allowed_lateness_ns: 5, max_future_ns: 40 };
        let config = WindowConfig { spec, max_series: 3, idle_ns: 1 };
        let method = Method::Exact { max_values: 3, when_full: WhenFull::Refuse };
        let mut windows = Windows::<u8, _>::new(config, AccumulatorConfig::new(method, 1).expect("valid")).expect("valid");
        for batch in batches {
            // Runs of a series, as a batch gives them.
            let runs: Vec<(SeriesSlot, Vec<i64>, Vec<f64>)> = batch
                .chunk_by(|a, b| a.0 == b.0)
                .map(|run| {
                    let values = run.iter().map(|item| if item.2 == 0 { f64::NAN } else { 1.0 });
                    (windows.intern(&run[0].0), run.iter().map(|item| item.1).collect(), values.collect())
                })
                .collect();
            let would_fill =
                windows.would_fill(runs.iter().map(|(slot, times, values)| (*slot, &times[..], &values[..])), 10);
            let mut full = 0;
            for (slot, times, values) in &runs {
                full += windows.observe_slice(*slot, times, values, 10, |_, _| {}).expect("fresh").full;
            }
            prop_assert_eq!(would_fill, Ok(full > 0));
            windows.poll_closed();
        }
    }
}
