//! The table of windows.

use std::collections::{HashMap, VecDeque};

use super::config::{CollectorConfig, CollectorError, Scope};
use super::forgotten::{Arrivals, Forgotten};
use super::group::Deliveries;
use super::identity::{MessageId, WindowBounds};
use super::{ExchangeCounters, Refusal, Verdict};

/// A window that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emission<A> {
    /// What was measured.
    pub metric: Box<str>,
    /// The series; empty if all series of the window come together.
    pub series: Box<[u8]>,
    /// The window.
    pub window: WindowBounds,
    /// What the messages of each instance that counts were merged into, by source.
    pub contents: Vec<A>,
    /// Number of messages in it.
    pub messages: u64,
    /// Sources that have delivered all parts.
    pub sources: usize,
    /// Sources that were expected.
    pub expected_sources: usize,
}

impl<A> Emission<A> {
    /// Whether every expected source has delivered all parts.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.sources >= self.expected_sources
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct GroupKey {
    window: WindowBounds,
    /// Metric and series.
    stream: (Box<str>, Box<[u8]>),
}

#[derive(Debug)]
struct Group<A> {
    deliveries: Deliveries<A>,
    /// Whether it has not been emitted.
    is_open: bool,
    /// When it was opened, then when it was emitted.
    since_ns: i64,
}

/// Merges each message once and gives out windows when they are complete or have waited enough.
#[derive(Debug)]
pub struct Collector<A> {
    config: CollectorConfig,
    groups: HashMap<GroupKey, Group<A>>,
    /// Complete windows that have not been taken.
    complete: Vec<GroupKey>,
    /// Windows that were emitted, oldest first.
    emitted: VecDeque<GroupKey>,
    forgotten: Forgotten,
    arrivals: Arrivals,
    /// Contents that were replaced and have not been taken.
    replaced: Vec<A>,
    counters: ExchangeCounters,
}

impl<A> Collector<A> {
    /// Nothing collected yet.
    ///
    /// # Errors
    ///
    /// [`CollectorError`] names a limit that is 0.
    pub fn new(config: CollectorConfig) -> Result<Self, CollectorError> {
        for (setting, value) in [
            ("number of expected sources", config.expected.count()),
            ("max_windows", config.max_windows),
            ("max_parts", config.max_parts as usize),
            ("max_instances", config.max_instances),
        ] {
            if value == 0 {
                return Err(CollectorError { setting });
            }
        }
        Ok(Self {
            forgotten: Forgotten::new(config.max_instances, config.max_windows),
            arrivals: Arrivals::new(config.max_instances),
            replaced: Vec::new(),
            config,
            groups: HashMap::new(),
            complete: Vec::new(),
            emitted: VecDeque::new(),
            counters: ExchangeCounters::default(),
        })
    }

    /// Offers a message. If it is new, `merge` puts its content into that of its instance in the
    /// window, which `make` begins if the message is the first. `merge` must leave its argument as it
    /// was if it fails.
    pub fn offer<E>(
        &mut self,
        id: &MessageId,
        now_ns: i64,
        make: impl FnOnce() -> A,
        merge: impl FnOnce(&mut A) -> Result<(), E>,
    ) -> Verdict<E> {
        let verdict = self.judge_and_merge(id, now_ns, make, merge);
        self.counters.received += 1;
        match verdict {
            Verdict::Merged => self.counters.waiting += 1,
            Verdict::Duplicate => self.counters.duplicates += 1,
            Verdict::Late => self.counters.late += 1,
            Verdict::Replaced => self.counters.replaced += 1,
            Verdict::Refused(_) => self.counters.refused += 1,
        }
        verdict
    }

    fn judge_and_merge<E>(
        &mut self,
        id: &MessageId,
        now_ns: i64,
        make: impl FnOnce() -> A,
        merge: impl FnOnce(&mut A) -> Result<(), E>,
    ) -> Verdict<E> {
        if let Some(refusal) = self.refuse(id) {
            return Verdict::Refused(refusal);
        }
        let key = self.key_of(id);
        let (rank, restarted) = (self.arrivals.rank(&id.source), self.config.restarted);
        let merged = if let Some(group) = self.groups.get_mut(&key) {
            let verdict = group.deliveries.judge(id, rank, restarted);
            if !matches!(verdict, Verdict::Merged) {
                return verdict;
            }
            if !group.is_open || self.forgotten.has_message(&id.source, id.sequence) {
                return Verdict::Late;
            }
            group.deliveries.merge(id, rank, restarted, make, merge)
        } else {
            if self.forgotten.has_message(&id.source, id.sequence)
                || self.forgotten.has_window(&key.stream, id.window.end_ns)
            {
                return Verdict::Late;
            }
            if self.groups.len() >= self.config.max_windows && !self.forget_oldest(now_ns) {
                return Verdict::Refused(Refusal::Full { max_windows: self.config.max_windows });
            }
            let mut deliveries = Deliveries::default();
            let merged = deliveries.merge(id, rank, restarted, make, merge);
            if merged.is_ok() {
                self.groups.insert(key.clone(), Group { deliveries, is_open: true, since_ns: now_ns });
            }
            merged
        };
        match merged {
            Ok(replaced) => {
                for (content, messages) in replaced {
                    self.counters.waiting -= messages;
                    self.counters.replaced += messages;
                    self.replaced.push(content);
                }
            }
            Err(error) => return Verdict::Refused(Refusal::Content(error)),
        }
        self.note_complete(key);
        Verdict::Merged
    }

    /// What is wrong with a message whatever came before.
    fn refuse<E>(&self, id: &MessageId) -> Option<Refusal<E>> {
        let (part, window, max_parts) = (id.part, id.window, self.config.max_parts);
        if part.index >= part.of || part.of > max_parts {
            return Some(Refusal::Part { index: part.index, of: part.of, max_parts });
        }
        if window.start_ns > window.end_ns {
            return Some(Refusal::Window { start_ns: window.start_ns, end_ns: window.end_ns });
        }
        (!self.config.expected.allows(&id.source.name)).then_some(Refusal::UnknownSource)
    }

    fn key_of(&self, id: &MessageId) -> GroupKey {
        let series = match self.config.scope {
            Scope::Series => id.series.clone(),
            Scope::Window => Box::default(),
        };
        GroupKey { window: id.window, stream: (id.metric.clone(), series) }
    }

    /// Notes whether a window is complete that has got a message.
    fn note_complete(&mut self, key: GroupKey) {
        let Some(group) = self.groups.get(&key) else { return };
        // An instance that begins its parts after its window was complete makes it wait again.
        let complete = group.deliveries.complete_sources() >= self.config.expected.count();
        match (complete, self.complete.iter().position(|other| *other == key)) {
            (true, None) => self.complete.push(key),
            (false, Some(at)) => {
                self.complete.remove(at);
            }
            _ => {}
        }
    }

    /// What the messages of the same instance were merged into, while the window is open: for what
    /// comes with a repeat besides.
    pub fn content_mut(&mut self, id: &MessageId) -> Option<&mut A> {
        self.groups.get_mut(&self.key_of(id))?.deliveries.content_mut(&id.source)
    }

    /// The contents of all open windows, in no order.
    pub fn contents_mut(&mut self) -> impl Iterator<Item = &mut A> {
        self.groups.values_mut().flat_map(|group| group.deliveries.contents_mut())
    }

    /// Contents that do not count any more, as a newer instance of their source has delivered for
    /// their window.
    pub fn take_replaced(&mut self) -> Vec<A> {
        std::mem::take(&mut self.replaced)
    }

    /// The windows that are complete. To be called after each batch of messages.
    pub fn take_complete(&mut self, now_ns: i64) -> Vec<Emission<A>> {
        let complete = std::mem::take(&mut self.complete);
        complete.into_iter().filter_map(|key| self.emit(key, now_ns)).collect()
    }

    /// The windows that are complete or have waited enough, complete ones first, then by time; and
    /// forgets those whose horizon has passed. Visits every window: to be called now and then.
    pub fn expire(&mut self, now_ns: i64) -> Vec<Emission<A>> {
        let mut emissions = self.take_complete(now_ns);
        let wait = self.config.max_wait_ns;
        emissions.extend(self.emit_if(now_ns, |group| group.since_ns.saturating_add_unsigned(wait) <= now_ns));
        while let Some(group) = self.emitted.front().and_then(|key| self.groups.get_mut(key)) {
            group.since_ns = group.since_ns.min(now_ns);
            let end = group.since_ns.saturating_add_unsigned(self.config.dedupe_horizon_ns);
            if end > now_ns || !self.forget_oldest(now_ns) {
                break;
            }
        }
        emissions
    }

    /// All windows as they are, as at shutdown.
    pub fn flush(&mut self, now_ns: i64) -> Vec<Emission<A>> {
        self.flush_where(now_ns, |_| true)
    }

    /// The windows that are complete, and as they are those with a content that is `wanted`.
    pub fn flush_where(&mut self, now_ns: i64, wanted: impl Fn(&A) -> bool) -> Vec<Emission<A>> {
        let mut emissions = self.take_complete(now_ns);
        emissions.extend(self.emit_if(now_ns, |group| group.deliveries.contents().any(&wanted)));
        emissions
    }

    fn emit_if(&mut self, now_ns: i64, wanted: impl Fn(&Group<A>) -> bool) -> Vec<Emission<A>> {
        let mut keys = Vec::new();
        for (key, group) in &mut self.groups {
            // A clock that was set back must not delay by the step: wait anew.
            group.since_ns = group.since_ns.min(now_ns);
            if group.is_open && wanted(group) {
                keys.push(key.clone());
            }
        }
        keys.sort_unstable();
        keys.into_iter().filter_map(|key| self.emit(key, now_ns)).collect()
    }

    fn emit(&mut self, key: GroupKey, now_ns: i64) -> Option<Emission<A>> {
        let group = self.groups.get_mut(&key)?;
        if !std::mem::take(&mut group.is_open) {
            return None;
        }
        group.since_ns = now_ns;
        let contents = group.deliveries.take_contents();
        let messages = group.deliveries.messages();
        let sources = group.deliveries.complete_sources();
        self.counters.waiting -= messages;
        self.counters.merged += messages;
        self.emitted.push_back(key.clone());
        let GroupKey { window, stream: (metric, series) } = key;
        let expected_sources = self.config.expected.count();
        Some(Emission { metric, series, window, contents, messages, sources, expected_sources })
    }

    /// Forgets the window that was emitted first; `false` if there is none.
    fn forget_oldest(&mut self, now_ns: i64) -> bool {
        let Some((key, group)) = self.emitted.pop_front().and_then(|key| self.groups.remove_entry(&key)) else {
            return false;
        };
        for (source, sequence) in group.deliveries.largest_sequences() {
            self.forgotten.forget_message(source, sequence);
        }
        self.forgotten.forget_window(key.stream, key.window.end_ns, now_ns);
        true
    }

    /// What became of all messages so far.
    pub fn counters(&self) -> ExchangeCounters {
        self.counters
    }

    /// Number of windows that wait for messages, or to be taken.
    pub fn open_windows(&self) -> usize {
        self.groups.len() - self.emitted.len()
    }

    /// Number of windows that were emitted and are remembered.
    pub fn remembered_windows(&self) -> usize {
        self.emitted.len()
    }

    /// Number of instances of which something was forgotten.
    pub fn known_instances(&self) -> usize {
        self.forgotten.instances()
    }
}
