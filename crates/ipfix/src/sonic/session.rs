//! Telemetry sessions: a row of the table, checked.

use std::sync::Arc;

use thiserror::Error;

use super::SessionRow;
use super::template::{ObjectNames, SetItem, SetItems, SonicTemplate, SonicTemplateError};
use crate::message::{self, IPFIX_HEADER_BYTES, SET_HEADER_BYTES};
use crate::problem::Fault;
use crate::wire;

/// Set id of templates (RFC 7011 section 3.3.2).
pub(super) const TEMPLATE_SET: u16 = 2;

/// Why a row of the session table cannot be used, with the field at fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SonicSessionError {
    /// Another status than the two there are.
    #[error("stream_status is {found:?}, not enabled or disabled")]
    StreamStatus {
        /// The status given.
        found: String,
    },
    /// A kind of session that is not read.
    #[error("session_type is {found:?}, not ipfix")]
    SessionType {
        /// The type given.
        found: String,
    },
    /// Names and labels do not go together.
    #[error("object_names has {names} names, object_ids has {ids} labels; there must be as many")]
    Count {
        /// Number of names.
        names: usize,
        /// Number of labels.
        ids: usize,
    },
    /// A label out of range.
    #[error("object_ids has {found:?} at position {position}, labels are 1 to 32767")]
    Label {
        /// What stands there.
        found: String,
        /// Position, counted from 0.
        position: usize,
    },
    /// One label for two objects.
    #[error("object_ids has label {label} twice, for {first:?} and {second:?}")]
    RepeatedLabel {
        /// The label.
        label: u16,
        /// Object named first.
        first: String,
        /// Object named later.
        second: String,
    },
    /// Bytes that are no IPFIX messages.
    #[error("session_config is no sequence of ipfix messages, at byte {offset}: {source}")]
    Framing {
        /// Where.
        offset: usize,
        /// What is wrong.
        source: Fault,
    },
    /// Something else than templates.
    #[error("session_config has set {id} at byte {offset}, it holds template sets (2) only")]
    Set {
        /// Id of the set.
        id: u16,
        /// Where.
        offset: usize,
    },
    /// A template that cannot be used.
    #[error("session_config: {source}")]
    Template {
        /// What is wrong with it.
        #[from]
        source: SonicTemplateError,
    },
    /// Two definitions of one template.
    #[error("session_config defines template {id} of domain {domain} twice and differently")]
    RepeatedTemplate {
        /// Observation domain.
        domain: u32,
        /// Id of the template.
        id: u16,
    },
    /// No template at all.
    #[error("session_config holds no template")]
    NoTemplates,
    /// Another session defines a template differently.
    #[error("template {id} of domain {domain} has another definition in session {other:?}, which came first")]
    Conflict {
        /// Observation domain.
        domain: u32,
        /// Id of the template.
        id: u16,
        /// Key of the other session.
        other: String,
    },
    /// More sessions than are kept.
    #[error("there are {limit} sessions already, which is the limit")]
    TooManySessions {
        /// Most sessions kept.
        limit: usize,
    },
}

/// A checked session: its templates with the names of their objects.
#[derive(Debug, Clone)]
pub struct SonicSession {
    templates: Vec<Arc<SonicTemplate>>,
}

impl SonicSession {
    /// Checks a row. Its status is not looked at.
    ///
    /// # Errors
    /// [`SonicSessionError`] with the field at fault.
    pub fn from_row(row: &SessionRow) -> Result<Self, SonicSessionError> {
        if row.session_type != "ipfix" {
            return Err(SonicSessionError::SessionType { found: row.session_type.clone() });
        }
        let names = Arc::new(object_names(&row.object_names, &row.object_ids)?);
        Ok(Self { templates: templates(&row.session_config, &names)? })
    }

    /// The templates, in the order of the configuration.
    #[must_use]
    pub fn templates(&self) -> &[Arc<SonicTemplate>] {
        &self.templates
    }

    pub(super) fn find(&self, domain: u32, id: u16) -> Option<&Arc<SonicTemplate>> {
        self.templates.iter().find(|template| (template.domain(), template.id()) == (domain, id))
    }

    /// Whether both have the same templates and names.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.templates.len() == other.templates.len()
            && self.templates.iter().zip(&other.templates).all(|(own, other)| own.same(other))
    }

    /// Takes over what is the same in `earlier`, with all that was built for it.
    pub(super) fn adopt(&mut self, earlier: &Self) {
        for template in &mut self.templates {
            if let Some(known) = earlier.find(template.domain(), template.id()).filter(|known| known.same(template)) {
                *template = Arc::clone(known);
            }
        }
    }
}

/// The entries of a list separated by commas; an empty text has none.
fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(move |_| !list.trim().is_empty())
}

fn object_names(names: &str, ids: &str) -> Result<ObjectNames, SonicSessionError> {
    let (name_count, id_count) = (entries(names).count(), entries(ids).count());
    if name_count != id_count {
        return Err(SonicSessionError::Count { names: name_count, ids: id_count });
    }
    let mut known = ObjectNames::default();
    for (position, (name, id)) in entries(names).zip(entries(ids)).enumerate() {
        let label = id.parse().ok().filter(|label| (1..=0x7fff).contains(label));
        let label: u16 = label.ok_or_else(|| SonicSessionError::Label { found: id.to_owned(), position })?;
        if let Some(first) = known.0.insert(label, name.into()) {
            return Err(SonicSessionError::RepeatedLabel { label, first: first.into(), second: name.to_owned() });
        }
    }
    Ok(known)
}

fn templates(config: &[u8], names: &Arc<ObjectNames>) -> Result<Vec<Arc<SonicTemplate>>, SonicSessionError> {
    let _: usize =
        message::check_framing(config).map_err(|(offset, source)| SonicSessionError::Framing { offset, source })?;
    let mut session = SonicSession { templates: Vec::new() };
    let mut message_start = 0;
    while let Some(length) = wire::u16_at(config, message_start + 2).map(usize::from) {
        let domain = wire::u32_at(config, message_start + 12).unwrap_or_default();
        let mut at = message_start + IPFIX_HEADER_BYTES;
        message_start += length;
        while at < message_start {
            let id = wire::u16_at(config, at).unwrap_or_default();
            let set_length = wire::u16_at(config, at + 2).map_or(SET_HEADER_BYTES, usize::from);
            if id != TEMPLATE_SET {
                return Err(SonicSessionError::Set { id, offset: at });
            }
            for item in SetItems(config.get(at + SET_HEADER_BYTES..at + set_length).unwrap_or_default()) {
                let SetItem::Template(record) = item? else { continue };
                let template = SonicTemplate::compile(domain, record, names)?;
                match session.find(domain, template.id()) {
                    None => session.templates.push(Arc::new(template)),
                    Some(known) if known.same(&template) => {}
                    Some(_) => return Err(SonicSessionError::RepeatedTemplate { domain, id: template.id() }),
                }
            }
            at += set_length;
        }
    }
    if session.templates.is_empty() {
        return Err(SonicSessionError::NoTemplates);
    }
    Ok(session.templates)
}
