use proptest::prelude::*;

use super::*;
use crate::accumulator::{AccumulatorConfig, Method, QuantileAccumulator, WhenFull};

pub(super) type TestWindows = Windows<u32, AccumulatorConfig>;
pub(super) type TestClosed = ClosedWindow<u32, QuantileAccumulator>;

pub(super) const EXACT: Method = Method::Exact { max_values: 1000, when_full: WhenFull::Refuse };

pub(super) fn windows_of(spec: WindowSpec, max_series: usize, method: Method) -> TestWindows {
    let config = WindowConfig { spec, max_series, idle_ns: 30 };
    let factory = AccumulatorConfig::new(method, 7).expect("valid method");
    Windows::new(config, factory).expect("valid windows")
}

/// Windows of 10, lateness 5, at most 100 into the future.
pub(super) fn tumbling(max_series: usize) -> TestWindows {
    let spec = WindowSpec::Tumbling { size_ns: 10, allowed_lateness_ns: 5, max_future_ns: 100 };
    windows_of(spec, max_series, EXACT)
}

/// Start, end, and the count of each series.
pub(super) type ClosedShape = (i64, i64, Vec<(SeriesKey<u32>, u64)>);

pub(super) fn shape(closed: &[TestClosed]) -> Vec<ClosedShape> {
    let series = |window: &TestClosed| {
        let series = window.series.iter();
        series.map(|(key, accumulator)| (*key, accumulator.count())).collect()
    };
    closed.iter().map(|window| (window.start_ns, window.end_ns, series(window))).collect()
}

fn total(closed: &[TestClosed]) -> u64 {
    let series = closed.iter().flat_map(|window| &window.series);
    series.map(|(_, accumulator)| accumulator.count()).sum()
}

use SeriesKey::{Overflow, Series};

/// Half open windows aligned to the epoch, also before it; closed by the watermark, oldest first.
#[test]
fn event_time_windows_close_by_the_watermark() {
    let mut windows = tumbling(9);
    for (key, time) in [(1, 0), (2, 9), (1, -1), (1, 10), (1, 14)] {
        assert_eq!(windows.observe(&key, time, 1.0, 0), Outcome::Used);
    }
    // The watermark is 9: only what ends at 0 is complete.
    assert_eq!(windows.watermark_ns(), Some(9));
    assert_eq!(shape(&windows.poll_closed()), [(-10, 0, vec![(Series(1), 1)])]);
    windows.observe(&1, 15, 1.0, 0);
    let closed = windows.poll_closed();
    assert_eq!(shape(&closed), [(0, 10, vec![(Series(1), 1), (Series(2), 1)])]);
    assert_eq!((closed[0].sequence, closed[0].reason), (1, CloseReason::Complete));
    assert!(windows.poll_closed().is_empty());
    assert_eq!(windows.open_series(), 1);
}

/// A point is late once its window is closed, and not before; a window that nobody opened closes
/// as well.
#[test]
fn late_is_what_belongs_to_a_closed_window() {
    let mut windows = tumbling(9);
    windows.observe(&1, 5, 1.0, 0);
    windows.observe(&1, 40, 1.0, 0);
    assert_eq!(windows.observe(&1, 6, 2.0, 0), Outcome::Used, "not yet polled");
    assert_eq!(shape(&windows.poll_closed()), [(0, 10, vec![(Series(1), 2)])]);
    assert_eq!(windows.observe(&1, 6, 3.0, 0), Outcome::Late);
    assert_eq!(windows.observe(&1, 29, 3.0, 0), Outcome::Late, "never opened");
    assert_eq!(windows.observe(&1, 30, 3.0, 0), Outcome::Used);
    assert_eq!(windows.counters().late, 2);
    assert_eq!(shape(&windows.flush_all()).len(), 2);
}

/// One clock far ahead moves nothing; the bound itself is allowed.
#[test]
fn future_points_do_not_move_the_watermark() {
    let mut windows = tumbling(9);
    windows.observe(&1, 1000, 1.0, 1000);
    assert_eq!(windows.observe(&2, 1101, 1.0, 1000), Outcome::Future);
    assert_eq!(windows.watermark_ns(), Some(995));
    assert_eq!(windows.observe(&2, 1100, 1.0, 1000), Outcome::Used);
    assert_eq!(windows.watermark_ns(), Some(1095));
    // The clock of the receiver goes back: what was near is far, and the watermark stays.
    assert_eq!(windows.observe(&2, 1100, 1.0, 500), Outcome::Future);
    assert_eq!(windows.watermark_ns(), Some(1095));
    assert_eq!(windows.counters().future, 2);
}

/// Beyond the largest number all series share one, in each window anew; known series keep theirs.
#[test]
fn further_series_fold_into_overflow() {
    let mut windows = tumbling(2);
    for key in [1, 2] {
        assert_eq!(windows.observe(&key, 1, 1.0, 0), Outcome::Used);
    }
    for key in [3, 4, 3] {
        assert_eq!(windows.observe(&key, 2, 1.0, 0), Outcome::OverflowFolded);
    }
    assert_eq!(windows.observe(&2, 3, 1.0, 0), Outcome::Used);
    assert_eq!(windows.observe(&3, 11, 1.0, 0), Outcome::Used, "another window");
    let first = vec![(Series(1), 1), (Series(2), 2), (Overflow, 3)];
    assert_eq!(shape(&windows.flush_all()), [(0, 10, first), (10, 20, vec![(Series(3), 1)])]);
    let counters = windows.counters();
    assert_eq!((counters.used, counters.overflow_folded), (7, 3));
    assert_eq!(counters.offered(), 7);
}

/// What is dropped is told with its index, and the rest of the run is used.
#[test]
fn runs_tell_what_they_drop() {
    let mut windows = tumbling(9);
    windows.observe(&1, 50, 1.0, 0);
    windows.poll_closed();
    let times = [50, 7, 51, 200, 61, 50, 52];
    let values = [1.0, 2.0, f64::NAN, 4.0, 5.0, f64::NAN, 7.0];
    let mut dropped = Vec::new();
    let tally = windows.observe_run(&1, &times, &values, 0, |index, why| dropped.push((index, why)));
    assert_eq!(dropped, [(1, Outcome::Late), (2, Outcome::NotANumber), (3, Outcome::Future), (5, Outcome::NotANumber)]);
    assert_eq!((tally.used, tally.dropped(), tally.offered()), (3, 4, 7));
    assert_eq!(windows.counters().used, 4);
}

/// A full accumulator refuses the rest of its window only.
#[test]
fn full_accumulators_are_counted() {
    let method = Method::Exact { max_values: 2, when_full: WhenFull::Refuse };
    let mut windows = windows_of(WindowSpec::Count(4), 9, method);
    let mut dropped = Vec::new();
    windows.observe_run(&1, &[1; 6], &[1.0; 6], 0, |index, why| dropped.push((index, why)));
    assert_eq!(dropped, [(2, Outcome::Full), (3, Outcome::Full)]);
    assert_eq!(shape(&windows.poll_closed()), [(1, 1, vec![(Series(1), 2)])]);
    assert_eq!(windows.counters().full, 2);
    assert_eq!(shape(&windows.flush_all()), [(1, 1, vec![(Series(1), 2)])]);
}

/// An idle window closes when its end and the lateness have passed by the clock, and only if
/// nothing has come for the idle time.
#[test]
fn idle_windows_are_flushed() {
    let mut windows = tumbling(9);
    windows.observe(&1, 5, 1.0, 0);
    windows.observe(&1, 65, 1.0, 0);
    assert_eq!(shape(&windows.poll_closed()).len(), 1);
    assert!(windows.flush_idle(29).is_empty(), "not idle long enough");
    assert!(windows.flush_idle(74).is_empty(), "end 70 and lateness 5 have not passed");
    let closed = windows.flush_idle(75);
    assert_eq!(shape(&closed), [(60, 70, vec![(Series(1), 1)])]);
    assert_eq!(closed[0].reason, CloseReason::Idle);
    assert_eq!(windows.observe(&1, 66, 1.0, 75), Outcome::Late, "never emitted twice");
    assert_eq!(windows.observe(&1, 70, 1.0, 75), Outcome::Used);
    assert!(windows.flush_idle(104).is_empty());
    assert_eq!(windows.flush_idle(105).len(), 1);
}

/// After a flush of old data the stream goes on where it was, not at the receiver's clock.
#[test]
fn idle_flush_does_not_jump_to_the_clock() {
    let mut windows = tumbling(9);
    windows.observe(&1, 5, 1.0, 1_000_000);
    assert_eq!(windows.flush_idle(2_000_000).len(), 1);
    assert_eq!(windows.observe(&1, 12, 1.0, 2_000_000), Outcome::Used);
    assert_eq!(windows.watermark_ns(), Some(10));
}

/// A clock that is set back delays the idle flush by the idle time, not by the step.
#[test]
fn idle_flush_survives_a_clock_set_back() {
    let count = windows_of(WindowSpec::Count(9), 9, EXACT);
    for mut windows in [tumbling(9), count] {
        windows.observe(&1, 5, 1.0, 1_000_000);
        assert!(windows.flush_idle(100).is_empty());
        assert_eq!(windows.flush_idle(130).len(), 1);
    }
}

/// Shutdown drains everything, complete windows first, and what comes then is late.
#[test]
fn shutdown_drains() {
    let mut windows = tumbling(9);
    windows.observe(&1, 5, 1.0, 0);
    windows.observe(&1, 25, 1.0, 0);
    let closed = windows.flush_all();
    let reasons: Vec<CloseReason> = closed.iter().map(|window| window.reason).collect();
    assert_eq!(reasons, [CloseReason::Complete, CloseReason::Shutdown]);
    assert_eq!(windows.observe(&1, 29, 1.0, 0), Outcome::Late);
    assert!(windows.flush_all().is_empty());
    assert_eq!(windows.open_series(), 0);
}

/// Exactly N observations of a series close its window; NaN do not count; times are the extremes.
#[test]
fn count_windows_close_each_series_by_itself() {
    let mut windows = windows_of(WindowSpec::Count(3), 9, EXACT);
    let times = [5, 3, 4, 9, 8, 7, 1];
    let values = [1.0, f64::NAN, 2.0, 3.0, 4.0, 5.0, 6.0];
    windows.observe_run(&1, &times, &values, 0, |_, _| {});
    windows.observe(&2, 1, 1.0, 0);
    let closed = windows.poll_closed();
    assert_eq!(shape(&closed), [(4, 9, vec![(Series(1), 3)]), (1, 8, vec![(Series(1), 3)])]);
    assert_eq!(closed[1].series[0].1.sum(), Some(15.0));
    assert_eq!(windows.open_series(), 1);
    assert_eq!(shape(&windows.flush_all()), [(1, 1, vec![(Series(2), 1)])]);
}

/// In count windows the limit is on open series, and each idle series closes alone.
#[test]
fn count_windows_limit_and_flush_series() {
    let mut windows = windows_of(WindowSpec::Count(2), 1, EXACT);
    windows.observe(&1, 1, 1.0, 0);
    assert_eq!(windows.observe(&2, 1, 1.0, 10), Outcome::OverflowFolded);
    let idle = windows.flush_idle(30);
    assert_eq!(shape(&idle), [(1, 1, vec![(Series(1), 1)])]);
    assert_eq!(windows.observe(&2, 1, 1.0, 31), Outcome::Used, "a place is free");
    assert_eq!(windows.observe(&3, 1, 1.0, 31), Outcome::OverflowFolded);
    assert_eq!(shape(&windows.poll_closed()), [(1, 1, vec![(Overflow, 2)])]);
    assert_eq!(total(&windows.flush_all()), 1);
}

/// Windows of one series have unrelated coins, and the same input gives the same bytes.
#[test]
fn sketches_follow_seed_series_and_window() {
    let run = || {
        let spec = WindowSpec::Tumbling { size_ns: 10, allowed_lateness_ns: 0, max_future_ns: u64::MAX };
        let mut windows = windows_of(spec, 9, Method::Kll { k: 8 });
        let values: Vec<f64> = (0..1000).map(f64::from).collect();
        for (key, time) in [(1, 0), (1, 10), (2, 0)] {
            windows.observe_run(&key, &[time; 1000], &values, 0, |_, _| {});
        }
        let closed = windows.flush_all();
        let series = closed.iter().flat_map(|window| &window.series);
        series.map(|(_, accumulator)| accumulator.sketch().expect("kll").to_bytes()).collect::<Vec<_>>()
    };
    let bytes = run();
    assert_eq!(bytes, run());
    assert_ne!(bytes[0], bytes[1]);
    assert_ne!(bytes[0], bytes[2]);
}

/// Times at the ends of the scale neither panic nor stop the others.
#[test]
fn extreme_times_are_harmless() {
    for size_ns in [1, 10, i64::MAX as u64] {
        let spec = WindowSpec::Tumbling { size_ns, allowed_lateness_ns: u64::MAX, max_future_ns: u64::MAX };
        let mut windows = windows_of(spec, 9, EXACT);
        let times = [i64::MIN, i64::MAX, 0, i64::MAX, i64::MIN, -1];
        let tally = windows.observe_run(&1, &times, &[1.0; 6], 0, |_, _| {});
        assert_eq!(tally.used, 6);
        let mut closed = windows.poll_closed();
        closed.extend(windows.flush_idle(i64::MAX));
        closed.extend(windows.flush_all());
        assert_eq!(total(&closed), 6);
    }
}

/// Settings that make no windows are refused by name.
#[test]
fn bad_settings_are_refused() {
    let factory = AccumulatorConfig::new(EXACT, 1).expect("valid method");
    let error = |spec, max_series| {
        let config = WindowConfig { spec, max_series, idle_ns: 1 };
        Windows::<u32, _>::new(config, factory).expect_err("refused")
    };
    let sized = |size_ns| WindowSpec::Tumbling { size_ns, allowed_lateness_ns: 0, max_future_ns: 0 };
    assert_eq!(error(WindowSpec::Count(0), 1), WindowError::Count);
    assert_eq!(error(sized(0), 1), WindowError::Size { size_ns: 0 });
    assert_eq!(error(sized(1 << 63), 1), WindowError::Size { size_ns: 1 << 63 });
    assert_eq!(error(sized(1), 0), WindowError::MaxSeries { max_series: 0 });
}

/// A thousand windows of changing series leave no more behind than the last.
#[test]
fn churn_leaves_nothing_behind() {
    let mut tumbling = tumbling(100);
    let mut count = windows_of(WindowSpec::Count(2), 100, EXACT);
    for round in 0..1000 {
        for series in 0..20 {
            let key = round * 20 + series;
            let time = i64::from(round) * 10;
            tumbling.observe(&key, time, 1.0, time);
            count.observe(&key, time, 1.0, time);
        }
        tumbling.poll_closed();
        count.flush_idle(i64::from(round) * 10);
        assert!(tumbling.open_series() <= 40);
        assert!(count.open_series() <= 80);
    }
    assert!(tumbling.retained_bytes() < 100_000);
    assert!(count.retained_bytes() < 100_000);
    assert_eq!(tumbling.counters().offered(), 20_000);
}

#[derive(Debug, Clone)]
enum Step {
    Run(u32, Vec<(i64, Option<u8>)>),
    Poll,
    Idle,
    Clock(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let point = (-50i64..400, prop::option::weighted(0.9, any::<u8>()));
    let run = (0u32..8, prop::collection::vec(point, 0..12));
    let step = prop_oneof![
        6 => run.prop_map(|(key, points)| Step::Run(key, points)),
        1 => Just(Step::Poll),
        1 => Just(Step::Idle),
        2 => (-40i64..120).prop_map(Step::Clock),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Points in are points out and points dropped by reason, for any order of points, polls,
    /// clock steps and a shutdown at any time; every event time window comes out once, in order.
    #[test]
    fn every_point_is_accounted_for(steps in steps(), by_count: bool, refuse: bool, max_series in 1usize..6) {
        let spec = if by_count {
            WindowSpec::Count(3)
        } else {
            WindowSpec::Tumbling { size_ns: 20, allowed_lateness_ns: 15, max_future_ns: 60 }
        };
        let method = if refuse {
            Method::Exact { max_values: 2, when_full: WhenFull::Refuse }
        } else {
            Method::Kll { k: 8 }
        };
        let mut windows = windows_of(spec, max_series, method);
        let (mut offered, mut reported, mut now) = (0, 0, 0);
        let mut closed = Vec::new();
        let mut watermark = None;
        for step in steps {
            match step {
                Step::Run(key, points) => {
                    offered += points.len() as u64;
                    let times: Vec<i64> = points.iter().map(|point| point.0).collect();
                    let value = |point: &(i64, Option<u8>)| point.1.map_or(f64::NAN, f64::from);
                    let values: Vec<f64> = points.iter().map(value).collect();
                    let mut last = None;
                    let tally = windows.observe_run(&key, &times, &values, now, |index, _| {
                        assert!(last < Some(index), "indexes ascend");
                        last = Some(index);
                        reported += 1;
                    });
                    prop_assert_eq!(tally.offered(), points.len() as u64);
                }
                Step::Poll => closed.extend(windows.poll_closed()),
                Step::Idle => closed.extend(windows.flush_idle(now)),
                Step::Clock(by) => now += by,
            }
            prop_assert!(windows.watermark_ns() >= watermark, "never goes back");
            watermark = windows.watermark_ns();
        }
        closed.extend(windows.flush_all());
        let counters = windows.counters();
        prop_assert_eq!(counters.offered(), offered);
        prop_assert_eq!(counters.dropped(), reported);
        prop_assert_eq!(counters.used, total(&closed));
        prop_assert_eq!(windows.open_series(), 0);
        for (number, window) in closed.iter().enumerate() {
            prop_assert_eq!(window.sequence, number as u64);
            prop_assert!(!window.series.is_empty());
            prop_assert!(window.series.len() <= max_series + 1);
        }
        if !by_count {
            let starts: Vec<i64> = closed.iter().map(|window| window.start_ns).collect();
            prop_assert!(starts.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", starts);
        }
    }
}
