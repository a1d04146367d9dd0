//! The templates of a session.

use std::sync::Arc;
use std::time::Duration;

use hashbrown::{HashMap, HashSet};

use crate::field::FieldSpec;
use crate::lru::LruMap;
use crate::message::Version;
use crate::session::Limits;
use crate::template::{Kind, Template};

/// What a template takes besides its fields, as so many fields.
pub(crate) const TEMPLATE_WEIGHT: usize = 8;

/// Where a template is valid within its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TemplateKey {
    pub(crate) version: Version,
    pub(crate) domain: u32,
    pub(crate) id: u16,
}

/// Templates of an exporter from before a restart.
#[derive(Debug, Default)]
pub(crate) struct Provisional {
    templates: HashMap<TemplateKey, Arc<Template>>,
    /// When they were restored, which stands for when they were last sent.
    restored: Duration,
}

impl Provisional {
    pub(crate) fn new(restored: Duration) -> Self {
        Self { templates: HashMap::default(), restored }
    }

    /// Puts in a template; gives the one it replaces.
    pub(crate) fn insert(&mut self, key: TemplateKey, template: Template) -> Option<Arc<Template>> {
        self.templates.insert(key, Arc::new(template))
    }

    pub(crate) fn get(&self, key: &TemplateKey) -> Option<(Arc<Template>, Duration)> {
        self.templates.get(key).map(|template| (Arc::clone(template), self.restored))
    }

    pub(crate) fn restored(&self) -> Duration {
        self.restored
    }

    pub(crate) fn len(&self) -> usize {
        self.templates.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&TemplateKey, &Arc<Template>)> {
        self.templates.iter()
    }
}

#[derive(Debug)]
struct Stored {
    template: Arc<Template>,
    /// When the template was last sent.
    sent: Duration,
    /// The longest time between two times that it was sent.
    refresh: Duration,
}

/// Templates by key, bounded by their number and by the number of their fields.
#[derive(Debug)]
pub(super) struct TemplateStore {
    stored: LruMap<TemplateKey, Stored>,
    /// Their ids by version, domain and kind.
    ids: HashMap<Group, HashSet<u16>>,
    total_fields: usize,
}

/// What is withdrawn together.
type Group = (Version, u32, Kind);

impl Default for TemplateStore {
    fn default() -> Self {
        Self { stored: LruMap::new(), ids: HashMap::default(), total_fields: 0 }
    }
}

impl TemplateStore {
    pub(super) fn len(&self) -> usize {
        self.stored.len()
    }

    pub(super) fn contains(&self, key: &TemplateKey) -> bool {
        self.stored.peek(key).is_some()
    }

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
        // RFC 7011 section 8.4 wants the lifetime to be at least three times the refresh of the exporter.
        let lives = |lifetime: Duration| lifetime.max(stored.refresh.saturating_mul(3));
        if expiry.is_some_and(|(now, lifetime)| now.saturating_sub(stored.sent) > lives(lifetime)) {
            return (None, self.remove(key));
        }
        (Some(Arc::clone(&stored.template)), false)
    }

    /// Takes note of a definition that says the same as before; gives whether it does. The template stays, and with it
    /// its identity.
    pub(super) fn refresh(&mut self, key: TemplateKey, kind: Kind, fields: &[FieldSpec], now: Duration) -> bool {
        let Some(stored) = self.stored.get_mut(&key) else {
            return false;
        };
        let same = stored.template.kind() == kind && stored.template.fields() == fields;
        if same {
            stored.refresh = stored.refresh.max(now.saturating_sub(stored.sent));
            stored.sent = now;
        }
        same
    }

    /// What all templates take, in fields.
    pub(super) fn weight(&self) -> usize {
        self.total_fields + TEMPLATE_WEIGHT * self.stored.len()
    }

    /// Forgets templates other than `key`, those not used for longest first, until it could have so many fields without
    /// all together weighing more than `allowed`. Gives whether there is room for it then.
    pub(super) fn make_room(&mut self, key: &TemplateKey, fields: usize, allowed: usize, evicted: &mut u64) -> bool {
        let weight = |fields: usize| fields.saturating_add(TEMPLATE_WEIGHT);
        if weight(fields) > allowed {
            return false;
        }
        // Looking it up makes it the one used last, and as such the last one to go.
        let replaced = self.stored.get_mut(key).map_or(0, |stored| weight(stored.template.fields().len()));
        let spared = usize::from(replaced > 0);
        while self.weight() - replaced + weight(fields) > allowed && self.stored.len() > spared {
            if !self.evict() {
                break;
            }
            *evicted += 1;
        }
        true
    }

    pub(super) fn insert(&mut self, key: TemplateKey, template: Arc<Template>, now: Duration) -> Option<Arc<Template>> {
        let (fields, kind) = (template.fields().len(), template.kind());
        let replaced = self.stored.insert(key, Stored { template, sent: now, refresh: Duration::ZERO });
        if let Some(replaced) = &replaced {
            self.forget(key, &replaced.template);
        }
        self.total_fields += fields;
        let _: bool = self.ids.entry((key.version, key.domain, kind)).or_default().insert(key.id);
        replaced.map(|replaced| replaced.template)
    }

    /// Forgets a template; gives whether there was one.
    pub(super) fn remove(&mut self, key: TemplateKey) -> bool {
        let Some(removed) = self.stored.remove(&key) else {
            return false;
        };
        self.forget(key, &removed.template);
        true
    }

    /// Forgets the template that was not used for longest; gives whether there was one.
    fn evict(&mut self) -> bool {
        let Some((key, removed)) = self.stored.pop_oldest() else {
            return false;
        };
        self.forget(key, &removed.template);
        true
    }

    /// Takes a template that is gone out of what is kept besides.
    fn forget(&mut self, key: TemplateKey, template: &Template) {
        self.total_fields -= template.fields().len();
        let group = (key.version, key.domain, template.kind());
        if let Some(ids) = self.ids.get_mut(&group) {
            let _: bool = ids.remove(&key.id);
            if ids.is_empty() {
                let _: Option<HashSet<u16>> = self.ids.remove(&group);
            }
        }
    }

    /// Forgets all templates of a kind in a domain; gives their number.
    pub(super) fn remove_all(&mut self, version: Version, domain: u32, kind: Kind) -> u64 {
        let ids = self.ids.remove(&(version, domain, kind)).unwrap_or_default();
        ids.into_iter().map(|id| u64::from(self.remove(TemplateKey { version, domain, id }))).sum()
    }

    /// Forgets templates, those not used for longest first, until the limits hold; gives their number. The one used
    /// last stays in any case.
    pub(super) fn shrink(&mut self, limits: &Limits) -> u64 {
        let mut evicted = 0;
        while self.stored.len() > 1
            && (self.stored.len() > limits.max_templates || self.total_fields > limits.max_total_fields)
        {
            if !self.evict() {
                break;
            }
            evicted += 1;
        }
        evicted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Withdrawing all templates of a kind finds those there are, whatever has become of others: replaced by one of the
    /// other kind, evicted, withdrawn one by one.
    #[test]
    fn all_of_a_kind() {
        let mut store = TemplateStore::default();
        let put = |store: &mut TemplateStore, domain: u32, id: u16, kind: Kind| {
            let template = Template::new(id, kind, vec![FieldSpec::ipfix(4, 0, 1, false)]).expect("a template");
            let key = TemplateKey { version: Version::Ipfix, domain, id };
            let _: Option<Arc<Template>> = store.insert(key, Arc::new(template), Duration::ZERO);
            key
        };
        for id in 256..266 {
            let _: TemplateKey = put(&mut store, 1, id, Kind::Flow);
        }
        let _: TemplateKey = put(&mut store, 2, 256, Kind::Flow);
        let replaced = put(&mut store, 1, 260, Kind::Options);
        assert!(store.remove(TemplateKey { id: 265, ..replaced }));
        assert_eq!(store.shrink(&Limits { max_templates: 9, ..Limits::default() }), 1, "256 was not used for longest");
        assert_eq!(store.remove_all(Version::Ipfix, 1, Kind::Flow), 7);
        assert_eq!(store.remove_all(Version::Ipfix, 1, Kind::Flow), 0);
        assert_eq!(store.remove_all(Version::V9, 1, Kind::Options), 0);
        assert_eq!(store.remove_all(Version::Ipfix, 1, Kind::Options), 1);
        assert_eq!((store.len(), store.weight()), (1, 1 + TEMPLATE_WEIGHT));
        assert_eq!(store.remove_all(Version::Ipfix, 2, Kind::Flow), 1);
        assert!(store.ids.is_empty() && store.weight() == 0);
    }
}
