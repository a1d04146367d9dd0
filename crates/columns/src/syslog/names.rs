//! Attribute names, in one place. Those of the first block are upstream's, so that dashboards carry over.

/// How the line was read: `rfc3164`, `rfc5424`, `cef`, `cef_rfc3164` or `cef_rfc5424`.
pub const INPUT_FORMAT: &str = "input.format";
/// Facility of PRI, 0 to 23.
pub const FACILITY: &str = "syslog.facility";
/// Severity of PRI, 0 to 7.
pub const SEVERITY: &str = "syslog.severity";
/// VERSION of RFC 5424.
pub const VERSION: &str = "syslog.version";
/// HOSTNAME.
pub const HOST_NAME: &str = "syslog.host_name";
/// APP-NAME, or the tag of RFC 3164 without process id.
pub const APP_NAME: &str = "syslog.app_name";
/// The tag of RFC 3164 with its process id.
pub const TAG: &str = "syslog.tag";
/// Process id, where it is a number.
pub const PROCESS_ID: &str = "syslog.process_id";
/// PROCID of RFC 5424, or the bracketed text of an RFC 3164 tag where it is no number.
pub const PROCESS_ID_STR: &str = "syslog.process_id_str";
/// MSGID of RFC 5424.
pub const MSG_ID: &str = "syslog.msg_id";
/// STRUCTURED-DATA, as map of maps or as text; also the beginning of the names of its flat form.
pub const STRUCTURED_DATA: &str = "syslog.structured_data";
/// MSG of RFC 5424.
pub const MESSAGE: &str = "syslog.message";
/// CONTENT of RFC 3164.
pub const CONTENT: &str = "syslog.content";
/// Version of the CEF header.
pub const CEF_VERSION: &str = "cef.version";
/// Device Vendor of the CEF header.
pub const CEF_DEVICE_VENDOR: &str = "cef.device_vendor";
/// Device Product of the CEF header.
pub const CEF_DEVICE_PRODUCT: &str = "cef.device_product";
/// Device Version of the CEF header.
pub const CEF_DEVICE_VERSION: &str = "cef.device_version";
/// Device Event Class ID of the CEF header.
pub const CEF_DEVICE_EVENT_CLASS_ID: &str = "cef.device_event_class_id";
/// Name of the CEF header.
pub const CEF_NAME: &str = "cef.name";
/// Severity of the CEF header.
pub const CEF_SEVERITY: &str = "cef.severity";

/// What stands before the stamp of some devices: counters, clock marks, uptime.
pub const PREFIX: &str = "syslog.prefix";
/// True where only the beginning of an over-long message was kept.
pub const TRUNCATED: &str = "syslog.truncated";
/// Address the message came from.
pub const PEER_ADDRESS: &str = "network.peer.address";
/// Port the message came from.
pub const PEER_PORT: &str = "network.peer.port";
/// `udp` or `tcp`.
pub const TRANSPORT: &str = "network.transport";
/// Subject of the certificate that the sender has shown.
pub const TLS_CLIENT_SUBJECT: &str = "tls.client.subject";
/// Put before CEF extension keys that would collide with a name of this list.
pub const CEF_EXTENSION_PREFIX: &str = "cef.ext.";

/// Whether a key sent by a device would pass for one of the receiver's own.
#[must_use]
pub fn is_reserved(key: &str) -> bool {
    key == INPUT_FORMAT
        || key.starts_with("syslog.")
        || key.starts_with("cef.")
        || matches!(key, PEER_ADDRESS | PEER_PORT | TRANSPORT | TLS_CLIENT_SUBJECT)
}
