//! Templates, compiled once so that records can be cut without looking at every field.

use std::any::Any;
use std::sync::Arc;

use thiserror::Error;

use crate::attachments::Attachments;
use crate::elements::DataType;
use crate::field::FieldSpec;
use crate::knowledge::OptionsPlan;
use crate::picks::Picks;
use crate::times::{self, TimeField};
use crate::wire;

/// Smallest template id; smaller set ids are reserved for templates themselves (RFC 7011 section 3.3.2).
pub const MIN_TEMPLATE_ID: u16 = 256;

/// What the records of a template are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Flows, or whatever else is measured.
    Flow,
    /// Facts about a scope: options data.
    Options,
}

/// Why a list of fields is no template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// The id is in the reserved range.
    #[error("template id {id} is reserved, templates start at 256")]
    ReservedId {
        /// The id given.
        id: u16,
    },
    /// There are no fields.
    #[error("template {id} has no fields")]
    NoFields {
        /// Id of the template.
        id: u16,
    },
    /// More scope fields than fields.
    #[error("options template {id} has {scope_fields} scope fields of {fields} fields in all")]
    ScopeCount {
        /// Id of the template.
        id: u16,
        /// Number of scope fields announced.
        scope_fields: usize,
        /// Number of fields in all.
        fields: usize,
    },
    /// Lengths of a NetFlow v9 options template that are not whole fields.
    #[error("options template {id} has {scope_bytes} bytes of scope and {option_bytes} of options, fields take 4 each")]
    OptionsLength {
        /// Id of the template.
        id: u16,
        /// Bytes of scope fields announced.
        scope_bytes: u16,
        /// Bytes of other fields announced.
        option_bytes: u16,
    },
}

/// A compiled template.
///
/// A template never changes: a new definition for the same id is a new value, so that whatever a consumer builds for
/// a template can be kept by the identity of its `Arc`.
#[derive(Debug, Clone)]
pub struct Template {
    id: u16,
    kind: Kind,
    scope_field_count: usize,
    fields: Box<[FieldSpec]>,
    min_record_length: usize,
    layout: Layout,
    has_lists: bool,
    /// The lists, with their types.
    lists: Picks<DataType>,
    time_fields: Box<[TimeField]>,
    options_plan: Option<OptionsPlan>,
    attachments: Attachments,
}

/// How to find the fields of a record.
#[derive(Debug, Clone)]
enum Layout {
    /// All records have one length; field `n` starts at `offsets[n]`.
    Fixed { offsets: Box<[usize]> },
    /// Each entry is the number of fixed bytes before a length prefix; `tail` bytes follow the last value.
    Variable { runs: Box<[usize]>, tail: usize },
}

/// How far the first record of some bytes reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// A whole record of so many bytes.
    Whole(usize),
    /// Fewer bytes than any record has.
    Padding,
    /// A value of variable length reaches past the end.
    Overrun,
}

impl Template {
    /// Compiles a template from its fields. Scope fields are those that say so and stand first.
    ///
    /// # Errors
    ///
    /// [`TemplateError::ReservedId`] for an id below 256, [`TemplateError::NoFields`] without fields.
    pub fn new(id: u16, kind: Kind, fields: Vec<FieldSpec>) -> Result<Self, TemplateError> {
        if id < MIN_TEMPLATE_ID {
            return Err(TemplateError::ReservedId { id });
        }
        if fields.is_empty() {
            return Err(TemplateError::NoFields { id });
        }
        Ok(Self::compile(id, kind, fields.into()))
    }

    /// Compiles fields that are known to make a template.
    pub(crate) fn compile(id: u16, kind: Kind, fields: Box<[FieldSpec]>) -> Self {
        let layout = if fields.iter().any(FieldSpec::is_variable) {
            let (mut runs, mut tail) = (Vec::new(), 0);
            for field in &fields {
                if field.is_variable() {
                    runs.push(std::mem::take(&mut tail));
                } else {
                    tail += usize::from(field.length);
                }
            }
            Layout::Variable { runs: runs.into(), tail }
        } else {
            let starts = fields.iter().scan(0, |at, field| {
                let start = *at;
                *at += usize::from(field.length);
                Some(start)
            });
            Layout::Fixed { offsets: starts.collect() }
        };
        let min_field_length = |field: &FieldSpec| match field.is_variable() {
            true => 1,
            false => usize::from(field.length),
        };
        let list_type = |field: &FieldSpec| Some(field.data_type()).filter(|data_type| data_type.is_list());
        let has_lists = fields.iter().any(|field| list_type(field).is_some());
        Self {
            id,
            kind,
            scope_field_count: fields.iter().take_while(|field| field.scope).count(),
            min_record_length: fields.iter().map(min_field_length).sum(),
            layout,
            has_lists,
            lists: Picks::new(if has_lists { &fields } else { &[] }, list_type),
            time_fields: times::time_fields(&fields),
            options_plan: (kind == Kind::Options).then(|| OptionsPlan::new(&fields)).flatten(),
            fields,
            attachments: Attachments::default(),
        }
    }

    /// What a consumer has made of the template, made now if it is not there yet. It lives as long as the template, so
    /// whatever is compiled for a definition is compiled once and goes with it.
    ///
    /// `key` tells consumers with different settings apart; a few are kept, and of more the one that came first is made
    /// again when it is asked for.
    pub fn attached<T: Any + Send + Sync>(&self, key: u64, make: impl FnOnce(&Self) -> T) -> Arc<T> {
        self.attachments.get_or_make(key, || make(self))
    }

    /// Id of the template, 256 or above; 5 for the built-in one of NetFlow v5.
    #[must_use]
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Whether the records are flows or options data.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The fields, in the order of the wire. Elements may be repeated.
    #[must_use]
    pub fn fields(&self) -> &[FieldSpec] {
        &self.fields
    }

    /// How many of the first fields are the scope of an options template.
    #[must_use]
    pub fn scope_field_count(&self) -> usize {
        self.scope_field_count
    }

    /// Bytes of the shortest record: all fixed lengths, and one for each value of variable length. A template where
    /// this is 0 has no records.
    #[must_use]
    pub fn min_record_length(&self) -> usize {
        self.min_record_length
    }

    /// Bytes of each record when no field has a variable length.
    #[must_use]
    pub fn fixed_record_length(&self) -> Option<usize> {
        matches!(self.layout, Layout::Fixed { .. }).then_some(self.min_record_length)
    }

    /// Where each field starts in a record, when no field has a variable length.
    #[must_use]
    pub fn offsets(&self) -> Option<&[usize]> {
        match &self.layout {
            Layout::Fixed { offsets } => Some(offsets),
            Layout::Variable { .. } => None,
        }
    }

    /// Whether any field holds a list (RFC 6313).
    #[must_use]
    pub fn has_lists(&self) -> bool {
        self.has_lists
    }

    /// The lists in a record.
    pub(crate) fn lists(&self) -> &Picks<DataType> {
        &self.lists
    }

    /// The fields that say when a flow began and ended, best first.
    pub(crate) fn time_fields(&self) -> &[TimeField] {
        &self.time_fields
    }

    /// What is learned from the records of an options template.
    pub(crate) fn options_plan(&self) -> Option<&OptionsPlan> {
        self.options_plan.as_ref()
    }

    /// How far the first record of `bytes` reaches.
    pub(crate) fn extent(&self, bytes: &[u8]) -> Extent {
        if self.min_record_length == 0 || bytes.len() < self.min_record_length {
            return Extent::Padding;
        }
        let Layout::Variable { runs, tail } = &self.layout else {
            return Extent::Whole(self.min_record_length);
        };
        let mut at = 0_usize;
        for run in runs {
            at += run;
            let Some((prefix, length)) = bytes.get(at..).and_then(wire::prefixed_length) else {
                return Extent::Overrun;
            };
            at += prefix + length;
        }
        at += tail;
        if at <= bytes.len() { Extent::Whole(at) } else { Extent::Overrun }
    }
}

/// Templates are equal when an exporter would send the same bytes for them.
impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.kind == other.kind && self.fields == other.fields
    }
}

impl Eq for Template {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::VARIABLE_LENGTH;

    fn template(lengths: &[u16]) -> Template {
        let fields = lengths.iter().map(|&length| FieldSpec::ipfix(82, 0, length, false));
        Template::new(256, Kind::Flow, fields.collect()).expect("a template")
    }

    /// Offsets exist exactly when all lengths are fixed.
    #[test]
    fn fixed_layout() {
        let fixed = template(&[4, 0, 2]);
        assert_eq!(fixed.offsets(), Some(&[0, 4, 4][..]));
        assert_eq!(fixed.fixed_record_length(), Some(6));
        let variable = template(&[4, VARIABLE_LENGTH, 2]);
        assert_eq!((variable.offsets(), variable.fixed_record_length()), (None, None));
        assert_eq!(variable.min_record_length(), 7);
    }

    /// Extents of records with values of variable length, in both forms of the prefix, cut at every byte.
    #[test]
    fn variable_extents() {
        let record = [9, 1, 7, 8, 255, 0, 2, 7, 7, 0, 8];
        let template = template(&[1, VARIABLE_LENGTH, 1, VARIABLE_LENGTH, VARIABLE_LENGTH, 1]);
        assert_eq!(template.extent(&record), Extent::Whole(record.len()));
        for end in 0..record.len() {
            let expected = if end < 6 { Extent::Padding } else { Extent::Overrun };
            assert_eq!(template.extent(&record[..end]), expected, "cut at {end}");
        }
    }

    /// A template whose records take no bytes never gives one.
    #[test]
    fn empty_records_do_not_exist() {
        assert_eq!(template(&[0, 0]).extent(&[1, 2, 3]), Extent::Padding);
    }

    /// Ids of the reserved range and empty lists are refused.
    #[test]
    fn no_template() {
        let field = FieldSpec::ipfix(1, 0, 4, false);
        assert_eq!(Template::new(255, Kind::Flow, vec![field]).err(), Some(TemplateError::ReservedId { id: 255 }));
        assert_eq!(Template::new(256, Kind::Flow, vec![]).err(), Some(TemplateError::NoFields { id: 256 }));
    }
}
