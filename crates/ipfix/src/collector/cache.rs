//! Templates and facts of all exporters as bytes, so that a restart loses nothing.
//!
//! The bytes are a head and a sequence of items, all numbers big-endian:
//!
//! - head: `CTIX`, a version (1), CRC-32C of all that follows in 4 bytes
//! - 1, exporter: 4 or 6 and an address of 4 or 16 bytes, then the listener in 4. All that follows is about it.
//! - 2, template: protocol (9 or 10), domain in 4 bytes, kind (0 flows, 1 options), id, number of fields and number of
//!   scope fields in 2 each, then the fields as they stand in template records (RFC 7011 section 3.2, RFC 3954 section
//!   5.2)
//! - 3, fact: domain in 4 bytes, kind, and what that needs, see the code of each kind. Texts have their length in two
//!   bytes before them.

mod read;
mod write;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::collector::limits::established_part;
use crate::collector::{Address, Collector};
use crate::knowledge::{Fact, Facts, RESTORED};
use crate::message::Version;
use crate::session::{Provisional, TEMPLATE_WEIGHT, TemplateKey};
use crate::template::{Template, TemplateError};

const MAGIC: [u8; 4] = *b"CTIX";
const FORMAT_VERSION: u8 = 1;
const HEAD_BYTES: usize = 9;

const TAG_EXPORTER: u8 = 1;
const TAG_TEMPLATE: u8 = 2;
const TAG_FACT: u8 = 3;

const FACT_SYSTEM_INIT: u8 = 0;
const FACT_SAMPLER: u8 = 1;
const FACT_INTERFACE: u8 = 2;
const FACT_VRF: u8 = 3;
const FACT_APPLICATION: u8 = 4;
const FACT_ELEMENT: u8 = 5;

/// Why bytes are no snapshot of templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("template snapshot at offset {offset}: {fault}")]
pub struct CacheError {
    /// Where in the bytes.
    pub offset: usize,
    /// What is wrong there.
    #[source]
    pub fault: CacheFault,
}

/// What is wrong with a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CacheFault {
    /// It does not start as a snapshot does.
    #[error("not a template snapshot, which starts with CTIX")]
    Magic,
    /// It was written by another version of this format.
    #[error("format version {0}, only version 1 is read")]
    Version(u8),
    /// Its bytes are not those that were written.
    #[error("checksum {found:08x}, the head says {expected:08x}")]
    Checksum {
        /// Checksum of the head.
        expected: u32,
        /// Checksum of the bytes.
        found: u32,
    },
    /// It ends too early.
    #[error("ends inside an item, {needed} more bytes are needed")]
    Truncated {
        /// Bytes that are missing.
        needed: usize,
    },
    /// A code that stands for nothing.
    #[error("{code} is no {what}")]
    Code {
        /// What was expected.
        what: &'static str,
        /// The code found.
        code: u64,
    },
    /// A template or fact without an exporter before it.
    #[error("item before the first exporter")]
    NoExporter,
    /// A template that is none.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A text that is not UTF-8.
    #[error("text is not UTF-8")]
    Text,
}

/// What was restored from a snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Restored {
    /// Source addresses.
    pub addresses: usize,
    /// Templates.
    pub templates: usize,
    /// Facts from options data.
    pub facts: usize,
    /// Templates and facts left out because they are over a limit of the collector.
    pub left_out: usize,
}

/// Whether bytes begin as [`Collector::templates_snapshot`] writes them.
#[must_use]
pub fn is_template_cache(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

type Definitions = BTreeMap<(Version, u32, u16), Arc<Template>>;

impl Collector {
    /// All templates of exporters over UDP and what their options data has told, as bytes to be given to
    /// [`Collector::restore`] after a restart. Source ports are left out, as exporters change them.
    ///
    /// Templates from before the last restart whose exporter was not heard from yet are in it as well, unless they are
    /// older than templates may be.
    #[must_use]
    pub fn templates_snapshot(&self) -> Vec<u8> {
        let mut templates: BTreeMap<(IpAddr, u32), Definitions> = BTreeMap::new();
        let mut keep = |exporter: (IpAddr, u32), key: &TemplateKey, template: &Arc<Template>| {
            let definitions = templates.entry(exporter).or_default();
            let _: Option<Arc<Template>> = definitions.insert((key.version, key.domain, key.id), Arc::clone(template));
        };
        for (address, known) in &self.addresses {
            for (listener, provisional) in &known.provisional {
                if !self.is_too_old(provisional.restored()) {
                    provisional.iter().for_each(|(key, template)| keep((*address, *listener), key, template));
                }
            }
        }
        // Established sessions come last, as they know better.
        for (key, entry) in self.newcomers.iter().chain(self.established.iter()) {
            for (version, domain, template) in entry.session.templates() {
                let template_key = TemplateKey { version, domain, id: template.id() };
                keep((key.address, key.listener), &template_key, template);
            }
        }
        let mut facts: BTreeMap<IpAddr, BTreeMap<u32, Facts>> = BTreeMap::new();
        for (address, known) in &self.addresses {
            for (domain, more) in known.knowledge.facts() {
                facts.entry(*address).or_default().entry(domain).or_default().absorb(&more);
            }
        }
        write::snapshot(&templates, &facts)
    }

    pub(super) fn is_too_old(&self, restored: Duration) -> bool {
        let lifetime = self.common.limits.session.template_lifetime;
        lifetime.is_some_and(|lifetime| self.common.clock.saturating_sub(restored) > lifetime)
    }

    /// Takes back what [`Collector::templates_snapshot`] gave, at the start and before the first datagram.
    ///
    /// The templates are provisional: a session over UDP of the same address, listener and domain uses them until it
    /// sends its own, so a listener has to have the number that it had before. The limits of the collector hold; what is over them is left out.
    ///
    /// # Errors
    ///
    /// [`CacheError`] with the offset for bytes that are no snapshot or are damaged; nothing is taken then.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<Restored, CacheError> {
        let exporters = read::snapshot(bytes)?;
        self.restored = Some(self.common.clock);
        let mut restored = Restored::default();
        let limits = &self.common.limits;
        let mut weight = established_part(limits.max_total_fields);
        let mut facts = established_part(limits.max_total_facts);
        let mut addresses = established_part(limits.max_sessions);
        for exporter in exporters {
            if !self.addresses.contains_key(&exporter.address) {
                if addresses == 0 {
                    restored.left_out += exporter.templates.len() + exporter.facts.len();
                    continue;
                }
                addresses -= 1;
                restored.addresses += 1;
            }
            let address = self.addresses.entry(exporter.address).or_default();
            let mut provisional = Provisional::new(self.common.clock);
            for (key, template) in exporter.templates {
                let fields = template.fields().len();
                let empty = template.fields().iter().filter(|field| field.length == 0).count();
                let limits = &self.common.limits.session;
                let fits = fields <= limits.max_template_fields
                    && empty <= limits.max_empty_fields
                    && provisional.len() < limits.max_templates
                    && fields + TEMPLATE_WEIGHT <= weight;
                if !fits {
                    restored.left_out += 1;
                    continue;
                }
                weight -= fields + TEMPLATE_WEIGHT;
                let replaced = provisional.insert(key, template);
                restored.templates += usize::from(replaced.is_none());
            }
            address.restore(exporter.listener, provisional);
            let mut of_address = self.common.limits.session.max_facts;
            for (domain, fact) in exporter.facts {
                let room = facts.min(of_address);
                let learned = address.knowledge.learn(RESTORED, domain, std::slice::from_ref(&fact), room);
                facts -= learned.more.min(facts);
                of_address -= learned.more.min(of_address);
                restored.facts += learned.more;
                restored.left_out += learned.refused;
            }
        }
        Ok(restored)
    }
}

impl Address {
    fn restore(&mut self, listener: u32, templates: Provisional) {
        if templates.len() == 0 {
            return;
        }
        self.provisional.retain(|(known, _)| *known != listener);
        self.provisional.push((listener, Arc::new(templates)));
    }
}

/// What a snapshot says of an exporter.
#[derive(Debug)]
struct Exporter {
    address: IpAddr,
    listener: u32,
    templates: Vec<(TemplateKey, Template)>,
    facts: Vec<(u32, Fact<'static>)>,
}

#[cfg(test)]
mod tests;
