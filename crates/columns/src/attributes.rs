//! Writing the attributes of log records: one table, a parent id a row.

use otel_arrow_dfe_pdata::encode::record::attributes::AttributesRecordBatchBuilder;

use crate::text::utf8;

/// Writes attribute rows for one record at a time.
pub(crate) struct AttributeWriter<'t> {
    pub(crate) table: &'t mut AttributesRecordBatchBuilder<u16>,
    pub(crate) parent: u16,
}

impl AttributeWriter<'_> {
    fn key(&mut self, key: &[u8]) {
        self.table.append_parent_id(&self.parent);
        self.table.append_key(key);
    }

    /// A text value; bytes that are not UTF-8 become U+FFFD.
    pub(crate) fn text(&mut self, key: &str, value: &[u8]) {
        self.key(key.as_bytes());
        self.table.any_values_builder.append_str(&utf8(value));
    }

    /// An integer value.
    pub(crate) fn int(&mut self, key: &str, value: i64) {
        self.key(key.as_bytes());
        self.table.any_values_builder.append_int(value);
    }

    /// A floating point value.
    pub(crate) fn double(&mut self, key: &str, value: f64) {
        self.key(key.as_bytes());
        self.table.any_values_builder.append_double(value);
    }

    /// A boolean value.
    pub(crate) fn bool(&mut self, key: &str, value: bool) {
        self.key(key.as_bytes());
        self.table.any_values_builder.append_bool(value);
    }

    /// An opaque value.
    pub(crate) fn bytes(&mut self, key: &str, value: &[u8]) {
        self.key(key.as_bytes());
        self.table.any_values_builder.append_bytes(value);
    }

    /// A map, already encoded as CBOR.
    pub(crate) fn map(&mut self, key: &str, cbor: &[u8]) {
        self.key(key.as_bytes());
        self.table.any_values_builder.append_map(cbor);
    }

    /// A list, already encoded as CBOR.
    pub(crate) fn list(&mut self, key: &str, cbor: &[u8]) {
        self.key(key.as_bytes());
        self.table.any_values_builder.append_slice(cbor);
    }
}
