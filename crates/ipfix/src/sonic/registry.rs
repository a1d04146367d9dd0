//! The sessions known, the templates that sources send themselves, and which of them holds for a data set.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::SessionRow;
use super::session::{SonicSession, SonicSessionError};
use super::template::{ObjectNames, SetItem, SetItems, SonicTemplate, SonicTemplateError};
use crate::lru::LruMap;

/// Observation domain and template id.
pub(super) type Key = (u32, u16);

/// What applying a row came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// Its templates hold from now on.
    Active,
    /// Its templates hold as soon as there is data for one that the configuration before does not have.
    Pending,
    /// It says what is known already.
    Unchanged,
    /// The session is disabled; its templates are gone.
    Retired,
}

#[derive(Debug)]
struct Held {
    key: String,
    active: SonicSession,
    /// A newer configuration that has not been seen in data.
    pending: Option<SonicSession>,
}

#[derive(Debug)]
struct Live {
    template: Arc<SonicTemplate>,
    /// Only a pending configuration has it.
    pending: bool,
}

/// Sessions and learned templates.
#[derive(Debug)]
pub(super) struct Registry {
    sessions: Vec<Held>,
    live: FxHashMap<Key, Live>,
    learned: LruMap<(u64, Key), Arc<SonicTemplate>>,
    learned_fields: usize,
    unnamed: Arc<ObjectNames>,
}

/// What a template set did.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Learning {
    pub(super) learned: u64,
    pub(super) refused: u64,
    pub(super) withdrawn: u64,
    pub(super) evicted: u64,
    /// Why the last one was refused.
    pub(super) error: Option<SonicTemplateError>,
}

impl Registry {
    pub(super) fn new() -> Self {
        Self {
            sessions: Vec::new(),
            live: FxHashMap::default(),
            learned: LruMap::new(),
            learned_fields: 0,
            unnamed: Arc::new(ObjectNames::default()),
        }
    }

    pub(super) fn sessions(&self) -> usize {
        self.sessions.len()
    }

    pub(super) fn apply(
        &mut self,
        key: &str,
        row: &SessionRow,
        max_sessions: usize,
    ) -> Result<Applied, SonicSessionError> {
        match row.stream_status.as_str() {
            "enabled" => {}
            "disabled" => {
                let _: bool = self.remove(key);
                return Ok(Applied::Retired);
            }
            other => return Err(SonicSessionError::StreamStatus { found: other.to_owned() }),
        }
        let mut session = SonicSession::from_row(row)?;
        self.check_conflicts(key, &session)?;
        let Some(held) = self.sessions.iter_mut().find(|held| held.key == key) else {
            if self.sessions.len() >= max_sessions {
                return Err(SonicSessionError::TooManySessions { limit: max_sessions });
            }
            self.sessions.push(Held { key: key.to_owned(), active: session, pending: None });
            self.rebuild();
            return Ok(Applied::Active);
        };
        let applied = if held.active.same(&session) {
            held.pending = None;
            Applied::Unchanged
        } else if held.pending.as_ref().is_some_and(|pending| pending.same(&session)) {
            return Ok(Applied::Unchanged);
        } else {
            session.adopt(&held.active);
            let is_new = |template: &Arc<SonicTemplate>| held.active.find(template.domain(), template.id()).is_none();
            if session.templates().iter().any(is_new) {
                held.pending = Some(session);
                Applied::Pending
            } else {
                // Data would never tell that it holds.
                (held.active, held.pending) = (session, None);
                Applied::Active
            }
        };
        self.rebuild();
        Ok(applied)
    }

    pub(super) fn remove(&mut self, key: &str) -> bool {
        let before = self.sessions.len();
        self.sessions.retain(|held| held.key != key);
        if self.sessions.len() == before {
            return false;
        }
        self.rebuild();
        true
    }

    fn check_conflicts(&self, key: &str, session: &SonicSession) -> Result<(), SonicSessionError> {
        for held in self.sessions.iter().filter(|held| held.key != key) {
            for template in session.templates() {
                let (domain, id) = (template.domain(), template.id());
                let known = std::iter::once(&held.active).chain(&held.pending).filter_map(|held| held.find(domain, id));
                if known.into_iter().any(|known| !known.same(template)) {
                    return Err(SonicSessionError::Conflict { domain, id, other: held.key.clone() });
                }
            }
        }
        Ok(())
    }

    /// Which templates hold, from the sessions in the order in which they came.
    fn rebuild(&mut self) {
        self.live.clear();
        for held in &self.sessions {
            for template in held.active.templates() {
                let live = Live { template: Arc::clone(template), pending: false };
                let _ = self.live.insert((template.domain(), template.id()), live);
            }
        }
        for template in self.sessions.iter().filter_map(|held| held.pending.as_ref()).flat_map(SonicSession::templates)
        {
            let live = || Live { template: Arc::clone(template), pending: true };
            let _ = self.live.entry((template.domain(), template.id())).or_insert_with(live);
        }
        // What a source said before its session was known has no names.
        let live = &self.live;
        let is_configured = |key: &Key, template: &SonicTemplate| {
            live.get(key).is_some_and(|live| live.template.definition() == template.definition())
        };
        let known = self.learned.iter().filter(|((_, key), template)| is_configured(key, template));
        for key in known.map(|(key, _)| *key).collect::<Vec<_>>() {
            let _: bool = self.forget(key);
        }
    }

    /// The template for data of a source. Data for a template that only a pending configuration has makes that one hold.
    pub(super) fn find(&mut self, source: u64, key: Key) -> Option<Arc<SonicTemplate>> {
        let (template, pending) = self.look_up(source, key)?;
        let template = Arc::clone(template);
        if pending {
            self.promote(key);
        }
        Some(template)
    }

    /// The template that [`Registry::find`] would give, without further effect.
    pub(super) fn peek(&mut self, source: u64, key: Key) -> Option<&SonicTemplate> {
        self.look_up(source, key).map(|(template, _)| template.as_ref())
    }

    /// A template, and whether it comes from a pending configuration.
    fn look_up(&mut self, source: u64, key: Key) -> Option<(&Arc<SonicTemplate>, bool)> {
        if self.learned.len() > 0
            && let Some(template) = self.learned.get_mut(&(source, key))
        {
            return Some((template, false));
        }
        self.live.get(&key).map(|live| (&live.template, live.pending))
    }

    fn promote(&mut self, (domain, id): Key) {
        for held in &mut self.sessions {
            if held.pending.as_ref().is_some_and(|pending| pending.find(domain, id).is_some())
                && let Some(pending) = held.pending.take()
            {
                held.active = pending;
            }
        }
        self.rebuild();
    }

    /// Learns the templates of a set of a source.
    pub(super) fn learn(&mut self, source: u64, domain: u32, content: &[u8], max_fields: usize) -> Learning {
        let mut done = Learning::default();
        for item in SetItems(content) {
            let learned = match item {
                Ok(SetItem::Template(record)) => self.learn_template(source, domain, record),
                Ok(SetItem::Withdrawal(id)) => {
                    done.withdrawn += u64::from(self.forget((source, (domain, id))));
                    continue;
                }
                Err(error) => Err(error),
            };
            match learned {
                Ok(is_new) => done.learned += u64::from(is_new),
                Err(error) => {
                    done.refused += 1;
                    done.error = Some(error);
                }
            }
        }
        while self.learned_fields > max_fields && self.learned.len() > 1 {
            let Some((_, template)) = self.learned.pop_oldest() else { break };
            self.learned_fields -= template.fields();
            done.evicted += 1;
        }
        done
    }

    /// Whether the template was not known.
    fn learn_template(&mut self, source: u64, domain: u32, record: &[u8]) -> Result<bool, SonicTemplateError> {
        let id = crate::wire::u16_at(record, 0).unwrap_or_default();
        let key = (source, (domain, id));
        if self.learned.get_mut(&key).is_some_and(|known| known.definition() == record) {
            return Ok(false);
        }
        // Whatever the id meant before, it does not mean that any more.
        let _: bool = self.forget(key);
        let configured = self.live.get(&(domain, id)).map(|live| &live.template);
        if configured.is_some_and(|configured| configured.definition() == record) {
            return Ok(false);
        }
        let names = configured.map_or(&self.unnamed, |configured| configured.names());
        let template = SonicTemplate::compile(domain, record, names)?;
        self.learned_fields += template.fields();
        let _: Option<Arc<SonicTemplate>> = self.learned.insert(key, Arc::new(template));
        Ok(true)
    }

    fn forget(&mut self, key: (u64, Key)) -> bool {
        let Some(template) = self.learned.remove(&key) else { return false };
        self.learned_fields -= template.fields();
        true
    }

    /// Forgets what a source has sent.
    pub(super) fn forget_source(&mut self, source: u64) {
        let keys: Vec<_> = self.learned.iter().map(|(key, _)| *key).filter(|(other, _)| *other == source).collect();
        for key in keys {
            let _: bool = self.forget(key);
        }
    }
}
