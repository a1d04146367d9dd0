//! The templates of a session.

use std::sync::Arc;
use std::time::Duration;

use crate::field::FieldSpec;
use crate::lru::LruMap;
use crate::message::Version;
use crate::session::Limits;
use crate::template::{Kind, Template};

/// Where a template is valid within its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TemplateKey {
    pub(super) version: Version,
    pub(super) domain: u32,
    pub(super) id: u16,
}

/// What became of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Learned {
    New,
    Refreshed,
    Replaced,
}

#[derive(Debug)]
struct Stored {
    template: Arc<Template>,
    /// When the template was last sent.
    sent: Duration,
}

/// Templates by key, bounded by their number and by the number of their fields.
#[derive(Debug)]
pub(super) struct TemplateStore {
    stored: LruMap<TemplateKey, Stored>,
    total_fields: usize,
}

impl Default for TemplateStore {
    fn default() -> Self {
        Self { stored: LruMap::new(), total_fields: 0 }
    }
}

impl TemplateStore {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&TemplateKey, &Arc<Template>)> {
        self.stored.iter().map(|(key, stored)| (key, &stored.template))
    }

    /// Finds a template; with `expiry` (now and the lifetime) one that is too old is removed instead, which the second
    /// value tells.
    pub(super) fn find(
        &mut self,
        key: TemplateKey,
        expiry: Option<(Duration, Duration)>,
    ) -> (Option<Arc<Template>>, bool) {
        let Some(stored) = self.stored.get_mut(&key) else {
            return (None, false);
        };
        if expiry.is_some_and(|(now, lifetime)| now.saturating_sub(stored.sent) > lifetime) {
            return (None, self.remove(key));
        }
        (Some(Arc::clone(&stored.template)), false)
    }

    /// Takes a definition. One that says the same as before keeps the template, so that its identity stays.
    pub(super) fn learn(&mut self, key: TemplateKey, kind: Kind, fields: &[FieldSpec], now: Duration) -> Learned {
        if let Some(stored) = self.stored.get_mut(&key)
            && stored.template.kind() == kind
            && stored.template.fields() == fields
        {
            stored.sent = now;
            return Learned::Refreshed;
        }
        let template = Arc::new(Template::compile(key.id, kind, fields.into()));
        match self.insert(key, template, now) {
            Some(_) => Learned::Replaced,
            None => Learned::New,
        }
    }

    pub(super) fn insert(&mut self, key: TemplateKey, template: Arc<Template>, now: Duration) -> Option<Arc<Template>> {
        self.total_fields += template.fields().len();
        let replaced = self.stored.insert(key, Stored { template, sent: now })?;
        self.total_fields -= replaced.template.fields().len();
        Some(replaced.template)
    }

    /// Forgets a template; gives whether there was one.
    pub(super) fn remove(&mut self, key: TemplateKey) -> bool {
        let Some(removed) = self.stored.remove(&key) else {
            return false;
        };
        self.total_fields -= removed.template.fields().len();
        true
    }

    /// Forgets all templates of a kind in a domain; gives their number.
    pub(super) fn remove_all(&mut self, version: Version, domain: u32, kind: Kind) -> u64 {
        let belongs = |key: &TemplateKey, template: &Template| {
            (key.version, key.domain, template.kind()) == (version, domain, kind)
        };
        let keys: Vec<TemplateKey> =
            self.iter().filter(|(key, template)| belongs(key, template)).map(|(key, _)| *key).collect();
        keys.into_iter().map(|key| u64::from(self.remove(key))).sum()
    }

    /// Forgets templates, those not used for longest first, until the limits hold; gives their number. The one used
    /// last stays in any case.
    pub(super) fn shrink(&mut self, limits: &Limits) -> u64 {
        let mut evicted = 0;
        while self.stored.len() > 1
            && (self.stored.len() > limits.max_templates || self.total_fields > limits.max_total_fields)
        {
            let Some((_, removed)) = self.stored.pop_oldest() else {
                break;
            };
            self.total_fields -= removed.template.fields().len();
            evicted += 1;
        }
        evicted
    }
}
