//! Facts shared by the sessions of one exporter address, and the part that one session has in them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::context::DecodeContext;
use crate::knowledge::learn::OptionsPlan;
use crate::knowledge::{Fact, Facts, Knowledge};
use crate::template::Template;

/// Most sources (pairs of session and observation domain) of one address, for established sessions and for others.
const MAX_SOURCES: usize = 64;

/// Most sources that one record can ask.
const MAX_LAYERS: usize = 16;

/// Most times that the data sets of one datagram see what those before them have told. Options data and other data take
/// turns less often in real exports; whoever has them do so for each record gets old views.
const MAX_CHANGES: usize = 16;

/// Most observation domains whose views are kept by a session, and most views of all sessions.
const MAX_VIEWS: usize = 8;
const MAX_SHARED_VIEWS: usize = 1_024;

/// The facts that options data of one exporter address has told.
#[derive(Debug, Default)]
pub(crate) struct AddressKnowledge {
    /// Number of changes; 0 while nothing has been learned.
    generation: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sources: Vec<Source>,
    /// What sessions look at now. Kept here and not by them, so that a change lets go of all that is old.
    views: Vec<Arc<Knowledge>>,
}

#[derive(Debug)]
struct Source {
    session: u64,
    domain: u32,
    established: bool,
    facts: Arc<Facts>,
}

impl AddressKnowledge {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self, state: &mut State) {
        state.views.clear();
        let _: u64 = self.generation.fetch_add(1, Ordering::Release);
    }

    /// Takes facts for a session and domain while there is room for more of them; gives how many more there are, how
    /// many fewer, and how many found no room.
    pub(crate) fn learn(&self, teller: Teller, domain: u32, facts: &[Fact<'_>], room: usize) -> Learned {
        let Teller { session, established } = teller;
        let mut learned = Learned::default();
        let mut state = self.state();
        let sources = &mut state.sources;
        let known = sources.iter().position(|source| (source.session, source.domain) == (session, domain));
        let place = match known {
            Some(place) => place,
            None if sources.iter().filter(|source| source.established == established).count() >= MAX_SOURCES => {
                learned.refused = facts.len();
                return learned;
            }
            None => {
                sources.push(Source { session, domain, established, facts: Arc::default() });
                sources.len() - 1
            }
        };
        let Some(source) = sources.get_mut(place) else {
            return learned;
        };
        let before = source.facts.len();
        let mut changed = false;
        for fact in facts {
            if source.facts.says(fact) {
                continue;
            }
            if source.facts.would_grow(fact) && source.facts.len() >= before.saturating_add(room) {
                learned.refused += 1;
                continue;
            }
            Arc::make_mut(&mut source.facts).take(fact);
            changed = true;
        }
        learned.more = source.facts.len().saturating_sub(before);
        learned.fewer = before.saturating_sub(source.facts.len());
        if source.facts.len() == 0 {
            let _: Source = sources.swap_remove(place);
        }
        if changed {
            self.changed(&mut state);
        }
        learned
    }

    /// Notes that a session has proved to be real, so that its facts come before those of sessions that have not.
    fn establish(&self, session: u64) {
        let mut state = self.state();
        let mut changed = false;
        for source in state.sources.iter_mut().filter(|source| source.session == session) {
            changed |= !source.established;
            source.established = true;
        }
        if changed {
            self.changed(&mut state);
        }
    }

    /// Forgets the facts of a session; gives whether other facts are left.
    pub(crate) fn forget(&self, session: u64) -> bool {
        let mut state = self.state();
        let before = state.sources.len();
        state.sources.retain(|source| source.session != session);
        if state.sources.len() != before {
            self.changed(&mut state);
        }
        !state.sources.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state().sources.is_empty()
    }

    /// All facts with their domain: those that were restored, then those of sessions.
    pub(crate) fn facts(&self) -> Vec<(u32, Arc<Facts>)> {
        let state = self.state();
        let mut all: Vec<&Source> = state.sources.iter().collect();
        all.sort_by_key(|source| source.session);
        all.into_iter().map(|source| (source.domain, Arc::clone(&source.facts))).collect()
    }

    /// What is known as seen from a session and domain.
    fn view(&self, session: u64, domain: u32) -> Option<Arc<Knowledge>> {
        let mut state = self.state();
        let layers = state.layers(session, domain);
        if layers.is_empty() {
            return None;
        }
        let view = Arc::new(Knowledge::new(layers));
        if state.views.len() >= MAX_SHARED_VIEWS {
            state.views.clear();
        }
        state.views.push(Arc::clone(&view));
        Some(view)
    }
}

impl State {
    /// The facts as seen from a session and domain, nearest first.
    fn layers(&self, session: u64, domain: u32) -> Vec<Arc<Facts>> {
        let distance = |source: &Source| match source {
            source if source.domain != domain => 2 + u8::from(source.session != session),
            source => u8::from(source.session != session),
        };
        // Sessions are numbered as they come, and newer ones know better.
        let age = |source: &Source| u64::MAX - source.session;
        let order = |source: &&Source| (distance(source), !source.established, age(source), source.domain);
        let mut near: Vec<&Source> = self.sources.iter().collect();
        if near.len() > MAX_LAYERS {
            let _ = near.select_nth_unstable_by_key(MAX_LAYERS, order);
            near.truncate(MAX_LAYERS);
        }
        near.sort_unstable_by_key(order);
        near.into_iter().map(|source| Arc::clone(&source.facts)).collect()
    }
}

/// Who tells facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Teller {
    /// Number of the session, in the order in which sessions begin.
    pub(crate) session: u64,
    /// Whether it has proved to be real.
    pub(crate) established: bool,
}

/// Stands for no session: facts that were restored, not received.
pub(crate) const RESTORED: Teller = Teller { session: 0, established: true };

/// What became of facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Learned {
    pub(crate) more: usize,
    pub(crate) fewer: usize,
    pub(crate) refused: usize,
}

/// The part that a session has in the facts of its exporter address.
#[derive(Debug)]
pub(crate) struct SessionKnowledge {
    shared: Arc<AddressKnowledge>,
    teller: Teller,
    views: Vec<View>,
    /// Views made anew for the current datagram.
    changes: usize,
    /// Facts that this session has told.
    facts: usize,
    /// Most of them.
    allowed: usize,
}

#[derive(Debug)]
struct View {
    domain: u32,
    generation: u64,
    /// `None` while there is nothing to know.
    knowledge: Option<Weak<Knowledge>>,
}

impl View {
    /// What is seen, unless that is not kept any more.
    fn get(&self) -> Option<Option<Arc<Knowledge>>> {
        match &self.knowledge {
            None => Some(None),
            Some(knowledge) => knowledge.upgrade().map(Some),
        }
    }
}

impl SessionKnowledge {
    pub(crate) fn new(shared: Arc<AddressKnowledge>, teller: Teller, allowed: usize) -> Self {
        Self { shared, teller, views: Vec::new(), changes: 0, facts: 0, allowed }
    }

    pub(crate) fn facts(&self) -> usize {
        self.facts
    }

    /// Makes the session count as real.
    pub(crate) fn establish(&mut self) {
        self.teller.established = true;
        self.shared.establish(self.teller.session);
    }

    pub(crate) fn allow(&mut self, facts: usize) {
        self.allowed = facts;
    }

    /// Notes that another datagram begins.
    pub(crate) fn begin_datagram(&mut self) {
        self.changes = 0;
    }

    /// What is known now, as seen from a domain; within a datagram what was known before, once it has changed
    /// [`MAX_CHANGES`] times. Allocates only after something was learned.
    pub(crate) fn view(&mut self, domain: u32) -> Option<Arc<Knowledge>> {
        let generation = self.shared.generation.load(Ordering::Acquire);
        if generation == 0 {
            return None;
        }
        let place = self.views.iter().position(|view| view.domain == domain);
        if let Some(view) = place.and_then(|place| self.views.get(place))
            && (view.generation == generation || self.changes >= MAX_CHANGES)
            && let Some(knowledge) = view.get()
        {
            return knowledge;
        }
        let knowledge = self.shared.view(self.teller.session, domain);
        let view = View { domain, generation, knowledge: knowledge.as_ref().map(Arc::downgrade) };
        match place.and_then(|place| self.views.get_mut(place)) {
            Some(known) => {
                self.changes += 1;
                *known = view;
            }
            None => {
                if self.views.len() >= MAX_VIEWS {
                    let _: View = self.views.remove(0);
                }
                self.views.push(view);
            }
        }
        knowledge
    }

    /// Learns from options data; gives how many facts found no room.
    pub(crate) fn learn(
        &mut self,
        domain: u32,
        plan: &OptionsPlan,
        template: &Template,
        records: &[u8],
        context: &DecodeContext,
    ) -> usize {
        let mut facts = Vec::new();
        plan.read(template, records, context, |fact| facts.push(fact.clone()));
        if facts.is_empty() {
            return 0;
        }
        let room = self.allowed.saturating_sub(self.facts);
        let learned = self.shared.learn(self.teller, domain, &facts, room);
        self.facts = (self.facts + learned.more).saturating_sub(learned.fewer);
        learned.refused
    }
}

impl Drop for SessionKnowledge {
    fn drop(&mut self) {
        if self.facts > 0 {
            let _: bool = self.shared.forget(self.teller.session);
        }
    }
}
