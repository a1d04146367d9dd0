//! Codecs: batches that travel through pipelines as they were received and are decoded where somebody looks into them.

pub mod ipfix_batch;
pub mod syslog_batch;
