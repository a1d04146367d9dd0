//! Template sets and options template sets.

use std::sync::Arc;

use crate::admitted::Admitted;
use crate::counters::Counters;
use crate::field::{ENTERPRISE_BIT, FieldSpec};
use crate::message::Version;
use crate::problem::Fault;
use crate::session::{Content, Session, TemplateKey, Transport};
use crate::template::{Kind, MIN_TEMPLATE_ID, Template, TemplateError};
use crate::wire;

/// Bytes of a field specifier without an enterprise number.
const FIELD_BYTES: usize = 4;

/// Memory that is used again for every template.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    fields: Vec<FieldSpec>,
}

/// The fixed part of a template record.
struct RecordHeader {
    id: u16,
    fields: usize,
    scope_fields: usize,
    length: usize,
    /// What makes the record senseless although its extent is known.
    error: Option<TemplateError>,
}

/// What follows in a template set.
enum Next {
    Template(RecordHeader),
    Withdrawal {
        id: u16,
    },
    /// A NetFlow v9 record without fields: means nothing.
    Nothing {
        length: usize,
    },
    Padding,
}

impl Session {
    /// Reads the templates of a set.
    pub(super) fn template_set(
        &mut self,
        kind: Kind,
        content: &Content<'_>,
        out: &mut Admitted,
    ) -> Result<(), (usize, Fault)> {
        let mut at = content.start;
        loop {
            let rest = content.datagram.get(at..content.end).unwrap_or_default();
            let length = match next(rest, kind, content.version) {
                Next::Padding => rest.len(),
                Next::Nothing { length } => length,
                Next::Withdrawal { id } => {
                    self.withdraw(id, kind, at, content, out);
                    FIELD_BYTES
                }
                Next::Template(header) => {
                    let read = self.template(kind, &header, at, content, out);
                    read.map_err(|fault| (at, fault))?
                }
            };
            Counters::add_bytes(&mut out.counters.template_bytes, length);
            at += length;
            if at >= content.end {
                return Ok(());
            }
        }
    }

    /// Reads one template and gives its length.
    fn template(
        &mut self,
        kind: Kind,
        header: &RecordHeader,
        at: usize,
        content: &Content<'_>,
        out: &mut Admitted,
    ) -> Result<usize, Fault> {
        let id = header.id;
        let key = content.key(id);
        let rest = content.datagram.get(at..content.end).unwrap_or_default();
        let length = self.read_fields(rest, header, content.version);
        let empty = self.scratch.fields.iter().filter(|field| field.length == 0).count();
        let limits = &self.limits;
        let fault = match (length, &header.error) {
            (None, _) => Some(Fault::TemplateOverrun { id, fields: header.fields, available: rest.len() }),
            (Some(_), Some(error)) => Some(Fault::Template(*error)),
            (Some(_), None) => (header.fields > limits.max_template_fields || empty > limits.max_empty_fields)
                .then_some(Fault::TemplateLimit {
                    id,
                    fields: header.fields,
                    empty,
                    limit: limits.max_template_fields,
                    empty_limit: limits.max_empty_fields,
                }),
        };
        if let Some(fault) = fault {
            // Whatever the id meant before, it does not mean that any more.
            out.counters.templates_invalidated += u64::from(self.forget_template(key));
            let Some(length) = length else {
                return Err(fault);
            };
            self.report(at, fault, out);
            return Ok(length);
        }
        if kind == Kind::Options && header.scope_fields == 0 {
            self.report(at, Fault::EmptyScope { id }, out);
        }
        if self.templates.refresh(key, kind, &self.scratch.fields, self.clock) {
            out.counters.templates_refreshed += 1;
        } else if !self.learn_template(key, kind, at, out) {
            return Ok(length.unwrap_or(rest.len()));
        }
        if self.scratch.fields.iter().all(|field| field.length == 0) {
            self.report(at, Fault::EmptyRecords { id }, out);
        }
        out.counters.templates_evicted += self.templates.shrink(&self.limits);
        Ok(length.unwrap_or(rest.len()))
    }

    /// Takes the fields read last as a new definition, if there is room for it.
    fn learn_template(&mut self, key: TemplateKey, kind: Kind, at: usize, out: &mut Admitted) -> bool {
        let fields = self.scratch.fields.len();
        let evicted = &mut out.counters.templates_evicted;
        if !self.templates.make_room(&key, fields, self.allowed_weight, evicted) {
            out.counters.templates_invalidated += u64::from(self.forget_template(key));
            out.counters.templates_refused += 1;
            let fault = Fault::TemplateBudget { id: key.id, fields, available: self.allowed_weight };
            self.report(at, fault, out);
            return false;
        }
        let unknown = self.scratch.fields.iter().filter(|field| field.element.is_none()).count();
        out.counters.unknown_elements += u64::try_from(unknown).unwrap_or(u64::MAX);
        let template = Template::compile(key.id, kind, self.scratch.fields.as_slice().into());
        if self.templates.insert(key, Arc::new(template), self.clock).is_none() {
            out.counters.templates_new += 1;
            return true;
        }
        out.counters.templates_replaced += 1;
        if self.transport == Transport::Stream && key.version == Version::Ipfix {
            self.report(at, Fault::TemplateRedefined { id: key.id }, out);
        }
        true
    }

    /// Reads the fields of a template and gives the length of the whole record, `None` when it does not fit. No more
    /// fields are kept than a template may have.
    fn read_fields(&mut self, rest: &[u8], header: &RecordHeader, version: Version) -> Option<usize> {
        self.scratch.fields.clear();
        let mut at = header.length;
        for index in 0..header.fields {
            let number = wire::u16_at(rest, at)?;
            let length = wire::u16_at(rest, at + 2)?;
            at += FIELD_BYTES;
            let scope = index < header.scope_fields;
            let enterprise_bit = version == Version::Ipfix && number & ENTERPRISE_BIT != 0;
            let enterprise = if enterprise_bit {
                at += FIELD_BYTES;
                wire::u32_at(rest, at - FIELD_BYTES)?
            } else {
                0
            };
            if self.scratch.fields.len() >= self.limits.max_template_fields {
                continue;
            }
            self.scratch.fields.push(match version {
                Version::Ipfix => FieldSpec::ipfix(number & !ENTERPRISE_BIT, enterprise, length, scope),
                _ if scope => FieldSpec::netflow_v9_scope(number, length),
                _ => FieldSpec::netflow_v9(number, length),
            });
        }
        (at <= rest.len()).then_some(at)
    }

    /// Withdraws one template, or with the id of a template set all templates of that kind (RFC 7011 section 8.1).
    fn withdraw(&mut self, id: u16, kind: Kind, at: usize, content: &Content<'_>, out: &mut Admitted) {
        let all = match kind {
            Kind::Flow => 2,
            Kind::Options => 3,
        };
        let fault = match (self.transport, id) {
            (Transport::Udp, _) => Some(Fault::WithdrawalIgnored { id }),
            (Transport::Stream, id) if id == all => {
                out.counters.templates_withdrawn += self.templates.remove_all(content.version, content.domain, kind);
                None
            }
            (Transport::Stream, id) if id < MIN_TEMPLATE_ID => Some(Fault::Template(TemplateError::ReservedId { id })),
            (Transport::Stream, id) => {
                let known = self.forget_template(content.key(id));
                out.counters.templates_withdrawn += u64::from(known);
                (!known).then_some(Fault::WithdrawalUnknown { id })
            }
        };
        if let Some(fault) = fault {
            self.report(at, fault, out);
        }
    }
}

/// Tells what stands at the start of the rest of a template set.
fn next(rest: &[u8], kind: Kind, version: Version) -> Next {
    let (Some(id), Some(second)) = (wire::u16_at(rest, 0), wire::u16_at(rest, 2)) else {
        return Next::Padding;
    };
    if id == 0 {
        return Next::Padding;
    }
    let third = wire::u16_at(rest, FIELD_BYTES);
    let fields = usize::from(second);
    let reserved = (id < MIN_TEMPLATE_ID).then_some(TemplateError::ReservedId { id });
    match (version, kind) {
        (Version::Ipfix, _) if second == 0 => Next::Withdrawal { id },
        (_, Kind::Flow) if second == 0 => Next::Nothing { length: FIELD_BYTES },
        (_, Kind::Flow) => {
            Next::Template(RecordHeader { id, fields, scope_fields: 0, length: FIELD_BYTES, error: reserved })
        }
        (Version::Ipfix, Kind::Options) => {
            // Without the count the record does not fit, as its fields do not either.
            let scope_fields = third.map_or(0, usize::from);
            let scope_error = (scope_fields > fields).then_some(TemplateError::ScopeCount { id, scope_fields, fields });
            Next::Template(RecordHeader {
                id,
                fields,
                scope_fields,
                length: FIELD_BYTES + 2,
                error: reserved.or(scope_error),
            })
        }
        (_, Kind::Options) => netflow_v9_options(id, second, third, reserved),
    }
}

/// The header of a NetFlow v9 options template, which gives lengths in bytes (RFC 3954 section 6.1).
fn netflow_v9_options(id: u16, scope_bytes: u16, option_bytes: Option<u16>, reserved: Option<TemplateError>) -> Next {
    // Without the second length only padding can be left.
    let Some(option_bytes) = option_bytes else {
        return Next::Padding;
    };
    let length = FIELD_BYTES + 2;
    if scope_bytes == 0 && option_bytes == 0 {
        return Next::Nothing { length };
    }
    let (scope, option) = (usize::from(scope_bytes), usize::from(option_bytes));
    let odd = (scope % FIELD_BYTES != 0 || option % FIELD_BYTES != 0).then_some(TemplateError::OptionsLength {
        id,
        scope_bytes,
        option_bytes,
    });
    Next::Template(RecordHeader {
        id,
        fields: (scope + option) / FIELD_BYTES,
        scope_fields: scope / FIELD_BYTES,
        // Bytes beyond whole fields still belong to the record.
        length: length + (scope + option) % FIELD_BYTES,
        error: reserved.or(odd),
    })
}
