//! The logs table of one batch under construction.

use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::encode::record::attributes::AttributesRecordBatchBuilder;
use otel_arrow_dfe_pdata::encode::record::logs::LogsRecordBatchBuilder;
use otel_arrow_dfe_pdata::otap::Logs;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;

use crate::ColumnsError;
use crate::attributes::AttributeWriter;
use crate::text::utf8;

/// The columns of a log record that are not attributes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LogFields<'a> {
    /// When it happened by the device's word; `None` is written as 0, which OTLP and OTAP define as "unknown".
    pub(crate) time_unix_nano: Option<i64>,
    /// When it was received.
    pub(crate) observed_time_unix_nano: i64,
    pub(crate) severity_number: Option<i32>,
    pub(crate) severity_text: Option<&'a str>,
    /// Raw input, kept when the record could not be taken apart whole.
    pub(crate) body: Option<&'a [u8]>,
}

/// Builders of the tables `Logs` and `LogAttrs`, filled record by record.
pub(crate) struct LogsTable {
    logs: LogsRecordBatchBuilder,
    attributes: AttributesRecordBatchBuilder<u16>,
    scope: &'static str,
    rows: u16,
}

impl LogsTable {
    /// An empty batch whose records carry the instrumentation scope name `scope`.
    pub(crate) fn new(scope: &'static str) -> Self {
        Self { logs: LogsRecordBatchBuilder::new(), attributes: AttributesRecordBatchBuilder::new(), scope, rows: 0 }
    }

    /// Records written so far.
    pub(crate) fn rows(&self) -> usize {
        usize::from(self.rows)
    }

    /// Begins a record. The caller keeps [`LogsTable::rows`] below 65,536, as [`crate::MAX_BATCH_RECORDS`] does.
    pub(crate) fn record(&mut self, fields: LogFields<'_>) -> AttributeWriter<'_> {
        let id = self.rows;
        self.rows = self.rows.saturating_add(1);
        self.logs.append_id(Some(id));
        self.logs.append_time_unix_nano(fields.time_unix_nano.unwrap_or(0));
        self.logs.append_observed_time_unix_nano(fields.observed_time_unix_nano);
        self.logs.append_severity_number(fields.severity_number);
        self.logs.append_severity_text(fields.severity_text.map(str::as_bytes));
        match fields.body {
            Some(body) => self.logs.body.append_str(&utf8(body)),
            None => self.logs.body.append_null(),
        }
        AttributeWriter { table: &mut self.attributes, parent: id }
    }

    /// Takes the batch out and leaves an empty one behind.
    pub(crate) fn finish(&mut self) -> Result<OtapArrowRecords, ColumnsError> {
        let rows = self.rows();
        let mut full = std::mem::replace(self, Self::new(self.scope));
        let logs = &mut full.logs;
        logs.resource.append_id_n(0, rows);
        logs.resource.append_schema_url_n(None, rows);
        logs.resource.append_dropped_attributes_count_n(0, rows);
        logs.scope.append_id_n(0, rows);
        logs.scope.append_name_n(Some(self.scope.as_bytes()), rows);
        logs.scope.append_version_n(None, rows);
        logs.scope.append_dropped_attributes_count_n(0, rows);
        logs.append_schema_url_n(None, rows);
        logs.append_dropped_attributes_count_n(0, rows);
        logs.append_flags_n(None, rows);
        logs.append_trace_id_n(None, rows).map_err(ColumnsError::arrow("logs"))?;
        logs.append_span_id_n(None, rows).map_err(ColumnsError::arrow("logs"))?;

        let mut records = OtapArrowRecords::Logs(Logs::default());
        records
            .set(ArrowPayloadType::Logs, logs.finish().map_err(ColumnsError::arrow("logs"))?)
            .map_err(ColumnsError::otap("logs"))?;
        if !full.attributes.is_empty() {
            let attributes = full.attributes.finish().map_err(ColumnsError::arrow("log attributes"))?;
            records.set(ArrowPayloadType::LogAttrs, attributes).map_err(ColumnsError::otap("log attributes"))?;
        }
        Ok(records)
    }
}
