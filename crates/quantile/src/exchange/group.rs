//! One window with what its sources have delivered.

use super::identity::{MessageId, SourceId};
use super::{Refusal, Restarted, Verdict};

/// Runs of one source in one window: more restarts than this are not followed.
const INSTANCES_PER_SOURCE: usize = 32;

/// What one instance has delivered of a window.
#[derive(Debug)]
struct Delivery<A> {
    instance: u128,
    /// Of two instances the one with the larger rank came first to this collector later.
    rank: u64,
    of: u32,
    /// Part and sequence number of each message, by ascending part.
    parts: Vec<(u32, u64)>,
    largest_sequence: u64,
    /// Whether it has only said that it has nothing.
    announces: bool,
    /// Whether a newer instance has sent what counts instead.
    replaced: bool,
    /// What the messages were merged into, until the window is emitted.
    content: Option<A>,
}

impl<A> Delivery<A> {
    fn is_complete(&self) -> bool {
        self.parts.len() == self.of as usize
    }
}

/// What one source has delivered, by its instances.
#[derive(Debug)]
struct Source<A> {
    name: Box<str>,
    instances: Vec<Delivery<A>>,
}

impl<A> Source<A> {
    /// Whether what counts of it is complete.
    fn is_complete(&self) -> bool {
        self.instances.iter().all(|delivery| delivery.replaced || delivery.is_complete())
    }
}

/// The deliveries of all sources.
#[derive(Debug)]
pub(super) struct Deliveries<A> {
    sources: Vec<Source<A>>,
}

impl<A> Default for Deliveries<A> {
    fn default() -> Self {
        Self { sources: Vec::new() }
    }
}

impl<A> Deliveries<A> {
    fn source(&self, name: &str) -> Option<&Source<A>> {
        self.sources.iter().find(|known| &*known.name == name)
    }

    /// What a message would be: `Merged` means that it is new and fits.
    pub(super) fn judge<E>(&self, id: &MessageId, rank: u64, restarted: Restarted) -> Verdict<E> {
        let Some(known) = self.source(&id.source.name) else {
            return Verdict::Merged;
        };
        let Some(delivery) = known.instances.iter().find(|delivery| delivery.instance == id.source.instance) else {
            let counts_instead = |delivery: &Delivery<A>| delivery.rank > rank && !delivery.announces;
            if restarted == Restarted::Replace && known.instances.iter().any(counts_instead) {
                return Verdict::Replaced;
            }
            return match known.instances.len() {
                INSTANCES_PER_SOURCE.. => Verdict::Refused(Refusal::Instances { most: INSTANCES_PER_SOURCE }),
                _ => Verdict::Merged,
            };
        };
        if delivery.replaced {
            return Verdict::Replaced;
        }
        if delivery.of != id.part.of {
            return Verdict::Refused(Refusal::PartsChanged { expected: delivery.of, actual: id.part.of });
        }
        match delivery.parts.binary_search_by_key(&id.part.index, |&(index, _)| index) {
            Err(_) => Verdict::Merged,
            Ok(at) if delivery.parts[at].1 == id.sequence => Verdict::Duplicate,
            Ok(at) => Verdict::Refused(Refusal::Conflict { earlier: delivery.parts[at].1, actual: id.sequence }),
        }
    }

    /// Merges a message that was judged to be new; changes nothing if that fails. Gives the contents that it replaces,
    /// with the number of their messages.
    pub(super) fn merge<E>(
        &mut self,
        id: &MessageId,
        rank: u64,
        restarted: Restarted,
        make: impl FnOnce() -> A,
        merge: impl FnOnce(&mut A) -> Result<(), E>,
    ) -> Result<Vec<(A, u64)>, E> {
        let at = self.sources.iter().position(|known| known.name == id.source.name);
        let instance = id.source.instance;
        let place = at.and_then(|at| {
            let place = self.sources[at].instances.iter().position(|delivery| delivery.instance == instance)?;
            Some((at, place))
        });
        let (at, place) = match place {
            Some((at, place)) => {
                merge(self.sources[at].instances[place].content.get_or_insert_with(make))?;
                (at, place)
            }
            None => {
                let mut content = make();
                merge(&mut content)?;
                let at = at.unwrap_or_else(|| {
                    self.sources.push(Source { name: id.source.name.clone(), instances: Vec::new() });
                    self.sources.len() - 1
                });
                let instances = &mut self.sources[at].instances;
                instances.push(Delivery {
                    instance,
                    rank,
                    of: id.part.of,
                    parts: Vec::new(),
                    largest_sequence: id.sequence,
                    announces: true,
                    replaced: false,
                    content: Some(content),
                });
                (at, instances.len() - 1)
            }
        };
        let instances = &mut self.sources[at].instances;
        let delivery = &mut instances[place];
        delivery.announces &= id.announces;
        delivery.largest_sequence = delivery.largest_sequence.max(id.sequence);
        if let Err(place) = delivery.parts.binary_search_by_key(&id.part.index, |&(index, _)| index) {
            delivery.parts.insert(place, (id.part.index, id.sequence));
        }
        let mut replaced = Vec::new();
        if restarted == Restarted::Replace && !id.announces {
            for older in instances.iter_mut().filter(|older| older.rank < rank && !older.replaced) {
                older.replaced = true;
                let messages = std::mem::take(&mut older.parts).len() as u64;
                replaced.extend(older.content.take().map(|content| (content, messages)));
            }
        }
        Ok(replaced)
    }

    /// What the messages of an instance were merged into, if its window is open.
    pub(super) fn content_mut(&mut self, source: &SourceId) -> Option<&mut A> {
        let known = self.sources.iter_mut().find(|known| known.name == source.name)?;
        let mut instances = known.instances.iter_mut();
        instances.find(|delivery| delivery.instance == source.instance)?.content.as_mut()
    }

    /// What the messages were merged into.
    pub(super) fn contents(&self) -> impl Iterator<Item = &A> {
        self.sources.iter().flat_map(|source| &source.instances).filter_map(|delivery| delivery.content.as_ref())
    }

    /// The same, to be changed.
    pub(super) fn contents_mut(&mut self) -> impl Iterator<Item = &mut A> {
        self.sources
            .iter_mut()
            .flat_map(|source| &mut source.instances)
            .filter_map(|delivery| delivery.content.as_mut())
    }

    /// Takes the contents out, by source and instance in the order of their first messages.
    pub(super) fn take_contents(&mut self) -> Vec<A> {
        let deliveries = self.sources.iter_mut().flat_map(|source| &mut source.instances);
        deliveries.filter_map(|delivery| delivery.content.take()).collect()
    }

    /// Number of sources of which all that counts is there.
    pub(super) fn complete_sources(&self) -> usize {
        self.sources.iter().filter(|source| source.is_complete()).count()
    }

    /// Each instance with the largest sequence number of its messages.
    pub(super) fn largest_sequences(&self) -> impl Iterator<Item = (SourceId, u64)> {
        self.sources.iter().flat_map(|source| {
            source.instances.iter().map(|delivery| {
                let id = SourceId { name: source.name.clone(), instance: delivery.instance };
                (id, delivery.largest_sequence)
            })
        })
    }

    /// Number of messages that count.
    pub(super) fn messages(&self) -> u64 {
        let deliveries = self.sources.iter().flat_map(|source| &source.instances);
        deliveries.map(|delivery| delivery.parts.len() as u64).sum()
    }
}
