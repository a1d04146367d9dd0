//! Receivers: bytes from the network or from files -> OTAP logs.

pub mod ipfix;
pub mod syslog;
