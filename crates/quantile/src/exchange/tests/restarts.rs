//! Sources that go down and come back: each observation counts once, in whatever order kills, messages and
//! acknowledgements come.

use super::*;

fn restarting(restarted: Restarted, expected: usize) -> Numbers {
    let config = CollectorConfig { expected: Expected::Count(expected), restarted, ..CollectorConfig::default() };
    Collector::new(config).expect("valid")
}

/// The same message from another start of the source.
fn of_start(mut id: MessageId, instance: u128) -> MessageId {
    id.source.instance = instance;
    id
}

/// Where nothing is sent again, what two starts have delivered counts; what the first has begun stays missing.
#[test]
fn added_starts_both_count() {
    let mut collector = restarting(Restarted::Add, 1);
    offer(&mut collector, &message("a", 0, (0, 1), 1), 0);
    let second = of_start(message("a", 0, (0, 2), 1), 2);
    assert_eq!(offer(&mut collector, &second, 0), Verdict::Merged);
    assert!(collector.take_complete(0).is_empty(), "waits for the rest of the second instance");
    offer(&mut collector, &of_start(message("a", 0, (1, 2), 2), 2), 0);
    assert_eq!(collector.take_complete(0)[0].contents, [vec![1], vec![1, 2]]);

    offer(&mut collector, &message("a", 20, (0, 2), 3), 0);
    for instance in 2..33 {
        offer(&mut collector, &of_start(message("a", 20, (0, 1), 9), instance), 0);
    }
    assert!(collector.take_complete(0).is_empty(), "a part is lost");
    let one_more = of_start(message("a", 20, (0, 1), 9), 33);
    assert_eq!(refusal(&mut collector, &one_more), "source must not have more than 32 instances in one window");
    assert_eq!(collector.flush(0)[0].sources, 0);
}

/// Where all is sent again, the newer start takes the place of the older one, in windows for which it delivers and in
/// no others; what then still comes of the older one does not count, whatever part it is.
#[test]
fn newer_starts_replace_older_ones() {
    let mut collector = restarting(Restarted::Replace, 2);
    for id in [message("a", 0, (0, 2), 1), message("a", 20, (0, 1), 2), message("b", 0, (0, 1), 1)] {
        assert_eq!(offer(&mut collector, &id, 0), Verdict::Merged);
    }
    assert_eq!(offer(&mut collector, &of_start(message("a", 0, (0, 1), 9), 2), 0), Verdict::Merged);
    assert_eq!(collector.take_replaced(), [vec![1]]);
    for part in [(0, 2), (1, 2)] {
        assert_eq!(offer(&mut collector, &message("a", 0, part, 1), 0), Verdict::Replaced);
    }
    let emissions = collector.take_complete(0);
    assert_eq!((emissions.len(), numbers(&emissions[0]), emissions[0].messages), (1, vec![9, 1], 2));
    // After the window is out both are late.
    assert_eq!(offer(&mut collector, &of_start(message("a", 0, (0, 1), 1), 3), 0), Verdict::Late);
    assert_eq!(numbers(&collector.flush(0)[0]), [2], "nobody has delivered for it since");
    let counters = collector.counters();
    assert_eq!((counters.merged, counters.replaced, counters.late, counters.received), (3, 3, 1, 7));
}

/// Which start is the newer one is known of other windows too: a message of the older one that has been overtaken
/// replaces nothing.
#[test]
fn an_overtaken_message_does_not_replace() {
    let mut collector = restarting(Restarted::Replace, 2);
    offer(&mut collector, &message("a", 0, (0, 1), 1), 0);
    offer(&mut collector, &of_start(message("a", 20, (0, 1), 7), 2), 0);
    assert_eq!(offer(&mut collector, &message("a", 20, (0, 1), 2), 0), Verdict::Replaced);
    assert_eq!(collector.flush(0).iter().map(numbers).collect::<Vec<_>>(), [[1], [7]]);
}

/// That a new start has nothing does not take away what the older one had.
#[test]
fn announcements_replace_nothing() {
    let nothing = MessageId { announces: true, ..of_start(message("a", 0, (0, 1), 7), 2) };
    for first in [true, false] {
        let mut collector = restarting(Restarted::Replace, 1);
        let something = message("a", 0, (0, 1), 1);
        offer(&mut collector, &something, 0);
        if first {
            offer(&mut collector, &nothing, 0);
        }
        let emissions = collector.take_complete(0);
        assert_eq!((emissions[0].contents.concat().contains(&1), emissions[0].sources), (true, 1));
        if !first {
            assert_eq!(offer(&mut collector, &nothing, 0), Verdict::Late);
        }
    }
}

/// The content of a window that is open can be added to, that of others cannot.
#[test]
fn repeats_reach_the_open_window() {
    let mut collector = restarting(Restarted::Replace, 2);
    let id = message("a", 0, (0, 1), 1);
    assert!(collector.content_mut(&id).is_none());
    offer(&mut collector, &id, 0);
    assert_eq!(offer(&mut collector, &id, 0), Verdict::Duplicate);
    collector.content_mut(&id).expect("open").push(5);
    assert!(collector.content_mut(&of_start(id.clone(), 2)).is_none());
    assert_eq!(numbers(&collector.flush(0)[0]), [1, 5]);
    assert!(collector.content_mut(&id).is_none());
}

const SOURCES: [&str; 2] = ["a", "b"];
/// Observations of a source in each of the windows.
const OBSERVATIONS: usize = 3;
const WINDOWS: i64 = 3;

/// An observation: source, window, number. Its sender sends it again until it is acknowledged.
type Observation = (usize, i64, usize);

/// A message on its way, with whoever waits for its outcome.
#[derive(Debug, Clone)]
struct Posted {
    id: MessageId,
    holds: Vec<Observation>,
}

/// What a window of a collector is merged into: observations, and the messages that wait for it.
#[derive(Debug, Default, Clone)]
struct Mixed {
    holds: Vec<Observation>,
    waiting: Vec<MessageId>,
}

/// A process that sends windows: a branch or the merge.
#[derive(Debug, Default)]
struct Process {
    instance: u128,
    sequence: u64,
    /// What has no outcome yet, sent as often as one likes.
    posted: Vec<Posted>,
    closed: BTreeSet<i64>,
}

impl Process {
    fn post(&mut self, name: &str, window: i64, holds: &[Observation]) {
        // In two parts, or one if it is nothing.
        let parts: Vec<_> = holds.chunks(holds.len().div_ceil(2).max(1)).collect();
        let of = parts.len().max(1) as u32;
        for index in 0..of {
            self.sequence += 1;
            let mut id = of_start(message(name, window, (index, of), self.sequence), self.instance);
            id.announces = holds.is_empty();
            let holds = parts.get(index as usize).map(|part| part.to_vec()).unwrap_or_default();
            self.posted.push(Posted { id, holds });
        }
    }

    fn restart(&mut self) {
        *self = Self { instance: self.instance + 1, ..Self::default() };
    }

    /// Takes the messages that were acknowledged.
    fn acknowledge(&mut self, ids: &[MessageId]) -> Vec<Observation> {
        let (done, posted) = std::mem::take(&mut self.posted).into_iter().partition(|posted| ids.contains(&posted.id));
        self.posted = posted;
        Vec::into_iter(done).flat_map(|posted: Posted| posted.holds).collect()
    }
}

/// Two branches with their senders, a merge and an estimate.
struct World {
    branches: [Process; 2],
    merge: Process,
    merging: Collector<Mixed>,
    /// Of each window that the merge has sent: the messages that wait for its outcome.
    settling: BTreeMap<i64, Vec<MessageId>>,
    estimating: Collector<Mixed>,
    acknowledged: BTreeSet<Observation>,
    counted: Vec<Observation>,
    windows: Vec<i64>,
}

fn mixing(expected: usize) -> Collector<Mixed> {
    let config = CollectorConfig { expected: Expected::Count(expected), ..CollectorConfig::default() };
    Collector::new(config).expect("valid")
}

impl World {
    fn new() -> Self {
        Self {
            branches: Default::default(),
            merge: Process::default(),
            merging: mixing(2),
            settling: BTreeMap::new(),
            estimating: mixing(1),
            acknowledged: BTreeSet::new(),
            counted: Vec::new(),
            windows: Vec::new(),
        }
    }

    /// Senders have sent what is not acknowledged, and the window closes: with all that, or with nothing.
    fn close(&mut self, source: usize, window: i64) {
        if self.branches[source].closed.insert(window) {
            let all = (0..OBSERVATIONS).map(|number| (source, window, number));
            let open: Vec<_> = all.filter(|one| !self.acknowledged.contains(one)).collect();
            self.branches[source].post(SOURCES[source], window * 10, &open);
        }
    }

    /// Delivers a message of a branch, as often as it happens, and sends what is complete.
    fn deliver_to_merge(&mut self, source: usize, which: usize) {
        let posted = &self.branches[source].posted;
        let Some(posted) = posted.get(which % posted.len().max(1)).cloned() else { return };
        let id = posted.id.clone();
        let verdict = self.merging.offer(&id, 0, Mixed::default, |mixed| {
            mixed.holds.extend(&posted.holds);
            mixed.waiting.push(id.clone());
            Ok::<(), ()>(())
        });
        match verdict {
            Verdict::Merged => {}
            Verdict::Duplicate | Verdict::Late => {
                if let Some(open) = self.merging.content_mut(&id) {
                    open.waiting.push(id);
                } else if let Some(settling) = self.settling.get_mut(&id.window.start_ns) {
                    settling.push(id);
                } else {
                    self.settle(&[id]);
                }
            }
            other => panic!("{other:?}"),
        }
        // Who sent them is not there any more.
        let _ = self.merging.take_replaced();
        let done = self.merging.take_complete(0);
        self.pass_on(done);
    }

    fn pass_on(&mut self, emissions: Vec<Emission<Mixed>>) {
        for Emission { window, contents, .. } in emissions {
            let holds: Vec<_> = contents.iter().flat_map(|mixed| mixed.holds.clone()).collect();
            let waiting = contents.into_iter().flat_map(|mixed| mixed.waiting).collect();
            assert!(self.settling.insert(window.start_ns, waiting).is_none(), "a window twice");
            self.merge.post("m", window.start_ns, &holds);
        }
    }

    /// Delivers a message of the merge; the acknowledgement comes another time.
    fn deliver_to_estimate(&mut self, which: usize) {
        let posted = &self.merge.posted;
        let Some(posted) = posted.get(which % posted.len().max(1)).cloned() else { return };
        let _ = self.estimating.offer(&posted.id, 0, Mixed::default, |mixed| {
            mixed.holds.extend(&posted.holds);
            Ok::<(), ()>(())
        });
        for Emission { window, contents, .. } in self.estimating.take_complete(0) {
            self.windows.push(window.start_ns);
            self.counted.extend(contents.into_iter().flat_map(|mixed| mixed.holds));
        }
    }

    /// Acknowledges what is out of the estimate, as far as those are alive who wait for it.
    fn acknowledge(&mut self, window: i64) {
        if !self.windows.contains(&window) {
            return;
        }
        let ids: Vec<_> = self.merge.posted.iter().map(|posted| posted.id.clone()).collect();
        let ids: Vec<_> = ids.into_iter().filter(|id| id.window.start_ns == window).collect();
        if !ids.is_empty() {
            let _ = self.merge.acknowledge(&ids);
            let waiting = self.settling.remove(&window).unwrap_or_default();
            self.settle(&waiting);
        }
    }

    fn settle(&mut self, ids: &[MessageId]) {
        for branch in &mut self.branches {
            self.acknowledged.extend(branch.acknowledge(ids));
        }
    }

    fn kill_merge(&mut self) {
        self.merge.restart();
        self.merging = mixing(2);
        self.settling.clear();
    }

    /// Nothing fails any more, and everyone sends until it is acknowledged.
    fn finish(&mut self) {
        for window in 0..WINDOWS {
            for source in 0..2 {
                self.close(source, window);
            }
        }
        for round in 0..3 {
            for source in 0..2 {
                (0..self.branches[source].posted.len()).rev().for_each(|which| self.deliver_to_merge(source, which));
            }
            if round == 1 {
                // What waits for a source whose part has been out long since.
                let waited = self.merging.flush(0);
                self.pass_on(waited);
            }
            (0..self.merge.posted.len()).for_each(|which| self.deliver_to_estimate(which));
            (0..WINDOWS).for_each(|window| self.acknowledge(window * 10));
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Close(usize, i64),
    ToMerge(usize, usize),
    ToEstimate(usize),
    Acknowledge(i64),
    KillBranch(usize),
    KillMerge,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        6 => (0usize..2, 0..WINDOWS).prop_map(|(source, window)| Event::Close(source, window)),
        10 => (0usize..2, 0usize..9).prop_map(|(source, which)| Event::ToMerge(source, which)),
        5 => (0usize..9).prop_map(Event::ToEstimate),
        3 => (0..WINDOWS).prop_map(|window| Event::Acknowledge(window * 10)),
        2 => (0usize..2).prop_map(Event::KillBranch),
        1 => Just(Event::KillMerge),
    ];
    prop::collection::vec(event, 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    /// Branches and a merge are killed at any time: before they send, between parts, before they hear of it, after.
    /// With senders that send again what is not acknowledged, each observation counts once, and each window comes once.
    #[test]
    fn whatever_is_killed_all_counts_once(events in events()) {
        let mut world = World::new();
        for event in events {
            match event {
                Event::Close(source, window) => world.close(source, window),
                Event::ToMerge(source, which) => world.deliver_to_merge(source, which),
                Event::ToEstimate(which) => world.deliver_to_estimate(which),
                Event::Acknowledge(window) => world.acknowledge(window),
                Event::KillBranch(source) => world.branches[source].restart(),
                Event::KillMerge => world.kill_merge(),
            }
        }
        world.finish();
        let mut all: Vec<Observation> = (0..2)
            .flat_map(|source| (0..WINDOWS).flat_map(move |window| (0..OBSERVATIONS).map(move |at| (source, window, at))))
            .collect();
        world.counted.sort_unstable();
        all.sort_unstable();
        prop_assert_eq!(&world.counted, &all);
        prop_assert_eq!(world.acknowledged.len(), all.len(), "nobody sends any more");
        let mut windows = world.windows.clone();
        windows.sort_unstable();
        prop_assert_eq!(windows, (0..WINDOWS).map(|window| window * 10).collect::<Vec<_>>());
        for counters in [world.merging.counters(), world.estimating.counters()] {
            prop_assert_eq!((counters.accounted(), counters.refused, counters.waiting), (counters.received, 0, 0));
        }
    }
}
