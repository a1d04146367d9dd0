//! Targets for sketches under any order of operations, and for the collector of windows.

use std::collections::BTreeMap;

use catchment_quantile::exchange::{
    Collector, CollectorConfig, Expected, MessageId, Part, Refusal, Restarted, Scope, SourceId, Verdict, WindowBounds,
};
use catchment_quantile::kll::MAX_N;
use catchment_quantile::{KllError, KllSketch};

use crate::quantile::check_queries;

/// Operations of one input: enough for every path, and quick.
const MAX_OPERATIONS: usize = 400;

/// Operations of four bytes each on a sketch of small `k`: values one by one, in slices, in bulk and with weights,
/// merges with a second sketch, and the way through the bytes.
///
/// Asserted after each: the count is that of a model, weights add up to it, extremes are exact, queries ascend, and
/// what is refused changes nothing.
pub fn kll_operations(input: &[u8]) {
    let Some((&k, operations)) = input.split_first() else { return };
    let new = |seed| KllSketch::new(u16::from(k.max(8)), seed).expect("a valid k");
    let (mut sketch, mut other) = (new(1), new(2));
    let (mut n, mut other_n) = (0u64, 0u64);
    let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
    for operation in operations.as_chunks::<4>().0.iter().take(MAX_OPERATIONS) {
        let [kind, length, low, high] = *operation;
        let value = f64::from(i16::from_le_bytes([low, high]));
        let values: Vec<f64> = (0..u32::from(length) * 8).map(|step| value + f64::from(step * 37 % 101)).collect();
        let mut saw = |value: f64| {
            min = min.min(value);
            max = max.max(value);
        };
        match kind % 7 {
            0 => {
                sketch.update(value);
                n += 1;
                saw(value);
            }
            1 | 2 => {
                if kind % 7 == 1 {
                    sketch.update_slice(&values)
                } else {
                    sketch.update_bulk(&values)
                }
                n += values.len() as u64;
                values.iter().copied().for_each(&mut saw);
            }
            3 => {
                let weight = u64::from(low) << (high % 62);
                match sketch.update_weighted(value, weight) {
                    Ok(()) => {
                        n += weight;
                        saw(value);
                    }
                    Err(KllError::Weight) => assert_eq!(weight, 0),
                    Err(_) => assert!(n.saturating_add(weight) > MAX_N),
                }
            }
            4 => {
                // Half of the values go to a sketch that is merged later.
                other.update_slice(&values);
                other_n += values.len() as u64;
                values.iter().copied().for_each(&mut saw);
                other.update(value);
                other_n += 1;
                saw(value);
            }
            5 => match sketch.merge(&other) {
                Ok(()) => n += other_n,
                Err(_) => assert!(n + other_n > MAX_N),
            },
            _ => sketch = KllSketch::from_bytes(&sketch.to_bytes(), u64::from(length)).expect("own bytes"),
        }
        assert_eq!((sketch.n(), other.n()), (n, other_n));
        let view = sketch.sorted_view();
        assert_eq!(view.cumulative_weights().last().copied().unwrap_or(0), n);
        if let (Some(least), Some(most)) = (sketch.min(), sketch.max()) {
            assert!(least >= min && most <= max);
        }
    }
    check_queries(&sketch);
    if other_n > 0 && sketch.merge(&other).is_ok() {
        assert_eq!((sketch.min(), sketch.max()), (Some(min), Some(max)));
    }
}

/// Messages of six bytes each, and steps of the clock, for a collector of little memory.
///
/// Asserted: each message counts at most once and exactly if it was told so, windows come out with what was merged into
/// them, memory is bounded, and the counters add up.
pub fn quantile_exchange(input: &[u8]) {
    let Some((&options, steps)) = input.split_first() else { return };
    let config = CollectorConfig {
        expected: Expected::Count(1 + usize::from(options & 3)),
        scope: if options & 4 == 0 { Scope::Window } else { Scope::Series },
        restarted: if options & 8 == 0 { Restarted::Add } else { Restarted::Replace },
        max_wait_ns: 20,
        dedupe_horizon_ns: 50,
        max_windows: 1 + usize::from(options >> 4),
        max_parts: 4,
        max_instances: 64,
    };
    let max_windows = config.max_windows;
    let mut collector: Collector<Vec<MessageId>> = Collector::new(config).expect("valid limits");
    let mut merged: BTreeMap<String, u32> = BTreeMap::new();
    let mut out = Vec::new();
    let mut replaced = 0;
    let mut now = 0;
    for step in steps.as_chunks::<6>().0.iter().take(MAX_OPERATIONS) {
        let [who, window, part, sequence, kind, time] = *step;
        let id = MessageId {
            source: SourceId { name: (who & 3).to_string().into(), instance: u128::from(who >> 2 & 7) },
            metric: (who >> 5 & 1).to_string().into(),
            series: Box::new([who >> 6]),
            window: WindowBounds { start_ns: i64::from(window), end_ns: i64::from(window) + i64::from(kind >> 4) - 1 },
            part: Part { index: u32::from(part & 7), of: u32::from(part >> 4) },
            sequence: u64::from(sequence),
            announces: part & 8 == 8,
        };
        // Part and sequence number tell the messages of an instance for a window apart, whatever their series.
        let by_series = if options & 4 == 0 { None } else { Some(&id.series) };
        let name = format!("{:?}", (&id.source, &id.metric, by_series, id.window, id.part, id.sequence));
        let fails = kind & 1 == 1 && kind & 2 == 2;
        let verdict = collector.offer(&id, now, Vec::new, |window| {
            if fails {
                return Err(());
            }
            window.push(id.clone());
            Ok(())
        });
        match verdict {
            Verdict::Merged => {
                let times = merged.entry(name).or_default();
                *times += 1;
                assert_eq!(*times, 1, "{id:?} counts twice");
            }
            Verdict::Duplicate => assert!(merged.contains_key(&name)),
            Verdict::Late => {}
            Verdict::Replaced => assert_eq!(options & 8, 8),
            Verdict::Refused(Refusal::Part { .. } | Refusal::Window { .. }) => assert!(!merged.contains_key(&name)),
            // Full, or at odds with what a window reopened after it was forgotten has by now.
            Verdict::Refused(_) => {}
        }
        match kind >> 2 & 3 {
            0 => now += i64::from(time.cast_signed()),
            1 => out.extend(collector.take_complete(now)),
            2 => out.extend(collector.expire(now)),
            _ => {}
        }
        replaced += collector.take_replaced().iter().map(Vec::len).sum::<usize>() as u64;
        assert!(collector.open_windows() + collector.remembered_windows() <= max_windows);
        assert!(collector.known_instances() <= 64);
        assert_eq!(collector.counters().accounted(), collector.counters().received);
    }
    out.extend(collector.flush(now));
    assert_eq!(collector.open_windows(), 0);
    let mut messages = 0;
    for emission in &out {
        let counted = emission.contents.concat();
        assert_eq!(emission.messages, counted.len() as u64);
        assert!(counted.iter().all(|id| id.window == emission.window && id.metric == emission.metric));
        messages += emission.messages;
    }
    assert_eq!((collector.counters().merged, collector.counters().waiting), (messages, 0));
    assert_eq!(merged.len() as u64, messages + replaced);
}
