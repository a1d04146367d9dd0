//! Structured data (RFC 6313): lists of values and of records inside a field.
//!
//! Parsing checks the shape of one list; what it holds is parsed when it is looked at. The templates that records in
//! lists need are those known when the message was received, see [`SubTemplates`].
//!
//! An entry takes at least one byte besides those of the entries inside it, so all lists of a message together never
//! have more entries than the message has bytes, which are at most 65,535.

use std::iter;
use std::sync::Arc;

use thiserror::Error;

use crate::context::DecodeContext;
use crate::elements::DataType;
use crate::field::{ENTERPRISE_BIT, FieldSpec};
use crate::records::Records;
use crate::template::Template;
use crate::value::{Value, decode};
use crate::wire;

/// How the entries of a list relate to each other (RFC 6313 section 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListSemantic {
    /// None of the entries is a property of the record.
    NoneOf,
    /// Exactly one of them is.
    ExactlyOneOf,
    /// At least one of them is.
    OneOrMoreOf,
    /// All of them are.
    AllOf,
    /// They are, and their order matters.
    Ordered,
    /// Not said.
    Undefined,
    /// A number without a registered meaning.
    Unassigned(u8),
}

impl ListSemantic {
    fn from_wire(number: u8) -> Self {
        match number {
            0 => Self::NoneOf,
            1 => Self::ExactlyOneOf,
            2 => Self::OneOrMoreOf,
            3 => Self::AllOf,
            4 => Self::Ordered,
            255 => Self::Undefined,
            other => Self::Unassigned(other),
        }
    }

    /// The registered name, such as `allOf`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoneOf => "noneOf",
            Self::ExactlyOneOf => "exactlyOneOf",
            Self::OneOrMoreOf => "oneOrMoreOf",
            Self::AllOf => "allOf",
            Self::Ordered => "ordered",
            Self::Undefined => "undefined",
            Self::Unassigned(_) => "unassigned",
        }
    }
}

/// Why bytes are no list. Offsets count from the start of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ListError {
    /// The header is cut off.
    #[error("list of {length} bytes ends inside its header of {needed}")]
    Header {
        /// Bytes there are.
        length: usize,
        /// Bytes the header needs.
        needed: usize,
    },
    /// An entry reaches past the end of the list.
    #[error("list entry at offset {offset} reaches past the end of the list at {length}")]
    Entry {
        /// Where the entry starts.
        offset: usize,
        /// Bytes of the list.
        length: usize,
    },
    /// Entries without bytes, but bytes for entries.
    #[error("list with entries of length 0 has {content} bytes of them")]
    EmptyEntries {
        /// Bytes after the header.
        content: usize,
    },
    /// A group shorter than its own header.
    #[error("list group at offset {offset} has length {length}, its header takes 4")]
    GroupLength {
        /// Where the group starts.
        offset: usize,
        /// Length it gives.
        length: u16,
    },
    /// The type given is not that of a list.
    #[error("{0:?} is not a list type")]
    NotAList(DataType),
}

/// A list whose shape has been checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List<'a> {
    /// Values of one element.
    Basic(BasicList<'a>),
    /// Records of one template.
    SubTemplate(SubTemplateList<'a>),
    /// Groups of records, each of one template.
    SubTemplateMulti(SubTemplateMultiList<'a>),
}

impl<'a> List<'a> {
    /// Checks the shape of a list of the given type.
    ///
    /// # Errors
    ///
    /// See [`ListError`].
    pub fn parse(data_type: DataType, bytes: &'a [u8]) -> Result<Self, ListError> {
        match data_type {
            DataType::BasicList => BasicList::parse(bytes).map(Self::Basic),
            DataType::SubTemplateList => SubTemplateList::parse(bytes).map(Self::SubTemplate),
            DataType::SubTemplateMultiList => SubTemplateMultiList::parse(bytes).map(Self::SubTemplateMulti),
            other => Err(ListError::NotAList(other)),
        }
    }

    /// How the entries relate to each other.
    #[must_use]
    pub fn semantic(&self) -> ListSemantic {
        let bytes = match self {
            Self::Basic(list) => list.bytes,
            Self::SubTemplate(list) => list.bytes,
            Self::SubTemplateMulti(list) => list.bytes,
        };
        bytes.first().map_or(ListSemantic::Undefined, |&number| ListSemantic::from_wire(number))
    }
}

/// A basicList: values of one element (RFC 6313 section 4.5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BasicList<'a> {
    bytes: &'a [u8],
}

impl<'a> BasicList<'a> {
    const HEADER_BYTES: usize = 5;
    const ENTERPRISE_HEADER_BYTES: usize = 9;

    fn parse(bytes: &'a [u8]) -> Result<Self, ListError> {
        let list = Self { bytes };
        let needed = list.header_length();
        if bytes.len() < needed {
            return Err(ListError::Header { length: bytes.len(), needed });
        }
        let mut elements = list.elements();
        while elements.next().is_some() {}
        match elements.rest.len() {
            0 => Ok(list),
            content if elements.length == 0 => Err(ListError::EmptyEntries { content }),
            rest => Err(ListError::Entry { offset: bytes.len() - rest, length: bytes.len() }),
        }
    }

    fn header_length(&self) -> usize {
        match wire::u16_at(self.bytes, 1) {
            Some(id) if id & ENTERPRISE_BIT != 0 => Self::ENTERPRISE_HEADER_BYTES,
            _ => Self::HEADER_BYTES,
        }
    }

    fn entry_length(&self) -> u16 {
        wire::u16_at(self.bytes, 3).unwrap_or_default()
    }

    /// The element that all values are of.
    #[must_use]
    pub fn field(&self) -> FieldSpec {
        let id = wire::u16_at(self.bytes, 1).unwrap_or_default();
        let enterprise = match id & ENTERPRISE_BIT {
            0 => 0,
            _ => wire::u32_at(self.bytes, 5).unwrap_or_default(),
        };
        FieldSpec::ipfix(id & !ENTERPRISE_BIT, enterprise, self.entry_length(), false)
    }

    /// The bytes of each value.
    #[must_use]
    pub fn elements(&self) -> Elements<'a> {
        Elements { length: self.entry_length(), rest: self.bytes.get(self.header_length()..).unwrap_or_default() }
    }

    /// The values; `context` is that of the list itself.
    pub fn values(&self, context: &DecodeContext) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let (field, nested) = (self.field(), context.nested());
        self.elements().map(move |bytes| decode(&field, bytes, &nested))
    }
}

/// The values of a basicList as bytes, made by [`BasicList::elements`].
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    length: u16,
    rest: &'a [u8],
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        let (prefix, length) = match self.length {
            // Entries without bytes would never end.
            0 => return None,
            crate::field::VARIABLE_LENGTH => wire::prefixed_length(self.rest)?,
            length => (0, usize::from(length)),
        };
        let (element, rest) = self.rest.get(prefix..)?.split_at_checked(length)?;
        self.rest = rest;
        Some(element)
    }
}

/// A subTemplateList: records of one template (RFC 6313 section 4.5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubTemplateList<'a> {
    bytes: &'a [u8],
}

impl<'a> SubTemplateList<'a> {
    const HEADER_BYTES: usize = 3;

    fn parse(bytes: &'a [u8]) -> Result<Self, ListError> {
        if bytes.len() < Self::HEADER_BYTES {
            return Err(ListError::Header { length: bytes.len(), needed: Self::HEADER_BYTES });
        }
        Ok(Self { bytes })
    }

    /// The records with the id of their template.
    #[must_use]
    pub fn group(&self) -> Group<'a> {
        Group {
            template_id: wire::u16_at(self.bytes, 1).unwrap_or_default(),
            bytes: self.bytes.get(Self::HEADER_BYTES..).unwrap_or_default(),
        }
    }
}

/// A subTemplateMultiList: groups of records (RFC 6313 section 4.5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubTemplateMultiList<'a> {
    bytes: &'a [u8],
}

impl<'a> SubTemplateMultiList<'a> {
    const GROUP_HEADER_BYTES: usize = 4;

    fn parse(bytes: &'a [u8]) -> Result<Self, ListError> {
        if bytes.is_empty() {
            return Err(ListError::Header { length: 0, needed: 1 });
        }
        let mut offset = 1;
        while offset < bytes.len() {
            let past_end = ListError::Entry { offset, length: bytes.len() };
            let length = wire::u16_at(bytes, offset + 2).ok_or(past_end)?;
            offset += match usize::from(length) {
                // Some exporters leave the header out of the length of a group without records.
                0 => Self::GROUP_HEADER_BYTES,
                1..Self::GROUP_HEADER_BYTES => return Err(ListError::GroupLength { offset, length }),
                length => length,
            };
            if offset > bytes.len() {
                return Err(past_end);
            }
        }
        Ok(Self { bytes })
    }

    /// The groups in the order of the wire.
    pub fn groups(&self) -> impl Iterator<Item = Group<'a>> + use<'a> {
        let mut rest = self.bytes.get(1..).unwrap_or_default();
        iter::from_fn(move || {
            let template_id = wire::u16_at(rest, 0)?;
            let length = usize::from(wire::u16_at(rest, 2)?).max(Self::GROUP_HEADER_BYTES);
            let (group, following) = rest.split_at_checked(length)?;
            rest = following;
            Some(Group { template_id, bytes: group.get(Self::GROUP_HEADER_BYTES..)? })
        })
    }
}

/// Records of one template inside a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group<'a> {
    /// Id of the template.
    pub template_id: u16,
    /// The bytes of the records.
    pub bytes: &'a [u8],
}

impl<'a> Group<'a> {
    /// The records; `None` when the template was not known. Decode their fields with the
    /// [nested](DecodeContext::nested) context.
    #[must_use]
    pub fn records<'t>(&self, templates: &'t SubTemplates) -> Option<Records<'t, 'a>> {
        Some(Records::new(templates.get(self.template_id)?, self.bytes))
    }
}

/// The templates that the lists of one data set need, as they were when the set was received.
///
/// A session looks them up while it admits the set, because by the time the records are decoded a template may have
/// been replaced or withdrawn.
#[derive(Debug, Clone, Default)]
pub struct SubTemplates(Option<Arc<[Arc<Template>]>>);

impl SubTemplates {
    /// Keeps templates by their id; of several with the same id one is kept.
    #[must_use]
    pub fn new(mut templates: Vec<Arc<Template>>) -> Self {
        if templates.is_empty() {
            return Self(None);
        }
        templates.sort_by_key(|template| template.id());
        templates.dedup_by_key(|template| template.id());
        Self(Some(templates.into()))
    }

    /// The template with an id.
    #[must_use]
    pub fn get(&self, id: u16) -> Option<&Template> {
        let templates = self.0.as_deref()?;
        let index = templates.binary_search_by_key(&id, |template| template.id()).ok()?;
        templates.get(index).map(AsRef::as_ref)
    }

    /// The templates in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Template>> {
        self.0.iter().flat_map(|templates| templates.iter())
    }
}

#[cfg(test)]
mod tests;
