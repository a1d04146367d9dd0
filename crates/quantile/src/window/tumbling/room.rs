//! Whether a batch finds room, before anything of it is put anywhere.

use std::collections::HashMap;
use std::hash::Hash;

use super::TumblingWindows;
use crate::accumulator::Accumulator;
use crate::window::interner::OVERFLOW;

impl<K: Hash + Eq + Clone, A: Accumulator> TumblingWindows<K, A> {
    /// Whether an accumulator would refuse one of these observations (series, times, values), offered in this order.
    /// `fresh` is the room of a new accumulator.
    pub(in crate::window) fn would_fill<'a>(
        &self,
        runs: impl Iterator<Item = (u32, &'a [i64], &'a [f64])>,
        now_ns: i64,
        fresh: u64,
    ) -> bool {
        let latest_allowed = now_ns.saturating_add_unsigned(self.max_future_ns);
        // What the accumulators of each window would get, and how many of them would be new.
        let mut added: HashMap<(i64, u32), u64> = HashMap::new();
        let mut begun: HashMap<i64, usize> = HashMap::new();
        for (series, times, values) in runs {
            let used = times.iter().zip(values).filter(|(time, value)| !value.is_nan() && **time <= latest_allowed);
            let mut starts = used.map(|(&time, _)| self.start_of(time)).filter(|&start| start >= self.closed_through);
            let mut next = starts.next();
            while let Some(start) = next {
                // Neighbours mostly belong together.
                let mut count = 1;
                next = starts.find(|&other| {
                    count += u64::from(other == start);
                    other != start
                });
                let at = self.open.binary_search_by_key(&start, |window| window.start).ok();
                let window = at.map(|index| &self.open[index].series);
                let own = window.and_then(|window| window.get(series));
                let is_known = series != OVERFLOW && (own.is_some() || added.contains_key(&(start, series)));
                let begun = begun.entry(start).or_default();
                let taken = window.map_or(0, |window| window.own_series()) + *begun;
                let is_folded = series == OVERFLOW || (!is_known && taken >= self.max_series);
                let (place, accumulator) = match is_folded {
                    true => (OVERFLOW, window.and_then(|window| window.overflow())),
                    false => (series, own),
                };
                *begun += usize::from(!is_known && !is_folded);
                let added = added.entry((start, place)).or_default();
                *added += count;
                if *added > accumulator.map_or(fresh, Accumulator::room) {
                    return true;
                }
            }
        }
        false
    }
}
