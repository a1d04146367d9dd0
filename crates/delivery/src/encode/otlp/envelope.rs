//! Resources and scopes around items, the same for all signals.

use arrow::array::{Array, StringArray, UInt32Array};
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::consts;

use super::attributes::{AttributeCache, Attributes};
use super::sink::{Message, Sink};
use crate::encode::error::EncodeError;
use crate::encode::groups::Groups;
use crate::encode::table::{Column, Table, number, value};

/// Items of a root table.
pub(super) trait Items {
    /// Writes the item of a row.
    fn item<S: Sink>(&self, row: usize, sink: &mut S);
}

/// What the rows of a root table say about resource and scope.
#[derive(Debug)]
pub(super) struct Envelope<'a> {
    groups: Groups,
    resource_dropped: Option<&'a UInt32Array>,
    resource_url: Option<Column<'a, StringArray>>,
    scope_name: Option<Column<'a, StringArray>>,
    scope_version: Option<Column<'a, StringArray>>,
    scope_dropped: Option<&'a UInt32Array>,
    scope_url: Option<Column<'a, StringArray>>,
    resource_attributes: Attributes,
    scope_attributes: Attributes,
}

const RESOURCE_ATTRIBUTES: (ArrowPayloadType, u32) = (ArrowPayloadType::ResourceAttrs, 1);
const SCOPE_ATTRIBUTES: (ArrowPayloadType, u32) = (ArrowPayloadType::ScopeAttrs, 3);

impl<'a> Envelope<'a> {
    pub(super) fn new(
        records: &OtapArrowRecords,
        root: Table<'a>,
        fields: &arrow::datatypes::Fields,
        cache: &mut AttributeCache,
    ) -> Result<Self, EncodeError> {
        let (resource, _) = root.structure(consts::RESOURCE)?;
        let (scope, _) = root.structure(consts::SCOPE)?;
        Ok(Self {
            groups: Groups::new(&root, fields)?,
            resource_dropped: resource.plain(consts::DROPPED_ATTRIBUTES_COUNT, "numbers of 32 bits")?,
            resource_url: resource.column(consts::SCHEMA_URL, "texts")?,
            scope_name: scope.column(consts::NAME, "texts")?,
            scope_version: scope.column(consts::VERSION, "texts")?,
            scope_dropped: scope.plain(consts::DROPPED_ATTRIBUTES_COUNT, "numbers of 32 bits")?,
            scope_url: root.column(consts::SCHEMA_URL, "texts")?,
            resource_attributes: cache.take(records, RESOURCE_ATTRIBUTES.0, RESOURCE_ATTRIBUTES.1)?,
            scope_attributes: cache.take(records, SCOPE_ATTRIBUTES.0, SCOPE_ATTRIBUTES.1)?,
        })
    }

    /// Gives the attributes back to the cache.
    pub(super) fn give_back(self, records: &OtapArrowRecords, cache: &mut AttributeCache) {
        cache.put(records, RESOURCE_ATTRIBUTES.0, self.resource_attributes);
        cache.put(records, SCOPE_ATTRIBUTES.0, self.scope_attributes);
    }

    fn resource<S: Sink>(&self, row: usize, sink: &mut S) {
        sink.message(1, |sink| {
            sink.raw(self.resource_attributes.of(self.groups.resources.get(row)));
            sink.nonzero_varint(2, u64::from(number(self.resource_dropped, row).unwrap_or_default()));
        });
    }

    fn scope<S: Sink>(&self, row: usize, sink: &mut S) {
        sink.message(1, |sink| {
            sink.nonempty_bytes(1, value(&self.scope_name, row).unwrap_or_default().as_bytes());
            sink.nonempty_bytes(2, value(&self.scope_version, row).unwrap_or_default().as_bytes());
            sink.raw(self.scope_attributes.of(self.groups.scopes.get(row)));
            sink.nonzero_varint(4, u64::from(number(self.scope_dropped, row).unwrap_or_default()));
        });
    }
}

/// A request: items in their envelopes.
pub(super) struct Request<'r, 'a, I> {
    pub(super) envelope: &'r Envelope<'a>,
    pub(super) items: &'r I,
}

impl<I: Items> Message for Request<'_, '_, I> {
    fn write<S: Sink>(&self, sink: &mut S) {
        let Envelope { groups, resource_url, scope_url, .. } = self.envelope;
        for (first, scopes) in groups.by_resource() {
            sink.message(1, |sink| {
                self.envelope.resource(first, sink);
                for (first, places) in groups.by_scope(scopes) {
                    sink.message(2, |sink| {
                        self.envelope.scope(first, sink);
                        places.for_each(|place| sink.message(2, |sink| self.items.item(groups.row(place), sink)));
                        sink.nonempty_bytes(3, value(scope_url, first).unwrap_or_default().as_bytes());
                    });
                }
                sink.nonempty_bytes(3, value(resource_url, first).unwrap_or_default().as_bytes());
            });
        }
    }
}

/// Ids of root items, for their children.
pub(super) fn root_id(ids: &Option<crate::encode::ids::Ids<'_>>, row: usize) -> Option<u32> {
    ids.as_ref().and_then(|ids| ids.get(row))
}

/// Whether a structure has a value in a row.
pub(super) fn is_there(structure: Option<&arrow::array::StructArray>, row: usize) -> bool {
    structure.is_some_and(|structure| row < structure.len() && structure.is_valid(row))
}
