//! Attribute names of both schemas, in one place.

use crate::sampled;
use crate::table::NameId;

/// How the attributes are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Schema {
    /// The names of the engine's own syslog receiver, so that dashboards carry over.
    #[default]
    Upstream,
    /// As in the mapping of syslog in the log data model of OpenTelemetry: host, application and its version are of the
    /// resource, and the text is the body.
    Otel,
}

/// Declares what the receiver writes by itself, with its name in each schema. A name of `None` is not written in that
/// schema.
macro_rules! keys {
    ($($(#[$doc:meta])+ $key:ident: $upstream:expr, $otel:expr;)+) => {
        /// An attribute of the receiver.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Key {
            $($(#[$doc])+ $key,)+
        }

        const UPSTREAM: &[Option<&str>] = &[$($upstream),+];
        const OTEL: &[Option<&str>] = &[$($otel),+];
        /// Every key, in the order of its number.
        #[cfg(test)]
        pub(super) const ALL: &[Key] = &[$(Key::$key),+];
    };
}

keys! {
    /// How the line was read: `rfc3164`, `rfc5424`, `cef`, `cef_rfc3164` or `cef_rfc5424`.
    InputFormat: Some("input.format"), Some("input.format");
    /// Facility of PRI, 0 to 23.
    Facility: Some("syslog.facility"), Some("syslog.facility");
    /// Severity of PRI, 0 to 7. The severity number and text of the record have it in every schema.
    Severity: Some("syslog.severity"), None;
    /// VERSION of RFC 5424.
    Version: Some("syslog.version"), Some("syslog.version");
    /// HOSTNAME.
    HostName: Some("syslog.host_name"), None;
    /// APP-NAME, or the tag of RFC 3164 without process id.
    AppName: Some("syslog.app_name"), None;
    /// The tag of RFC 3164 with its process id.
    Tag: Some("syslog.tag"), None;
    /// Process id, where it is a number.
    ProcessId: Some("syslog.process_id"), None;
    /// PROCID of RFC 5424, or the bracketed text of an RFC 3164 tag; under `upstream` the latter only where it is no number.
    ProcessIdText: Some("syslog.process_id_str"), Some("syslog.procid");
    /// MSGID of RFC 5424.
    MsgId: Some("syslog.msg_id"), Some("syslog.msgid");
    /// STRUCTURED-DATA, as map of maps or as text.
    StructuredData: Some("syslog.structured_data"), Some("syslog.structured_data");
    /// Parameter `ip` of the SD-ELEMENT `origin`.
    ClientAddress: None, Some("client.address");
    /// MSG of RFC 5424.
    Message: Some("syslog.message"), None;
    /// CONTENT of RFC 3164.
    Content: Some("syslog.content"), None;
    /// The raw input, where it could not be taken apart whole.
    Original: None, Some("log.record.original");
    /// Version of the CEF header.
    CefVersion: Some("cef.version"), Some("cef.version");
    /// Device Vendor of the CEF header.
    CefDeviceVendor: Some("cef.device_vendor"), Some("cef.device_vendor");
    /// Device Product of the CEF header.
    CefDeviceProduct: Some("cef.device_product"), Some("cef.device_product");
    /// Device Version of the CEF header.
    CefDeviceVersion: Some("cef.device_version"), Some("cef.device_version");
    /// Device Event Class ID of the CEF header.
    CefDeviceEventClassId: Some("cef.device_event_class_id"), Some("cef.device_event_class_id");
    /// Name of the CEF header.
    CefName: Some("cef.name"), Some("cef.name");
    /// Severity of the CEF header.
    CefSeverity: Some("cef.severity"), Some("cef.severity");
    /// What stands before the stamp of some devices: counters, clock marks, uptime.
    Prefix: Some("syslog.prefix"), Some("syslog.prefix");
    /// True where only the beginning of an over-long message was kept.
    Truncated: Some("syslog.truncated"), Some("syslog.truncated");
    /// Address the message came from.
    PeerAddress: Some("network.peer.address"), Some("network.peer.address");
    /// Port the message came from.
    PeerPort: Some("network.peer.port"), Some("network.peer.port");
    /// `udp` or `tcp`.
    Transport: Some("network.transport"), Some("network.transport");
    /// Subject of the certificate that the sender has shown.
    TlsClientSubject: Some("tls.client.subject"), Some("tls.client.subject");
    /// Threshold of the sampler, on records that stand for others too.
    SamplingThreshold: Some(sampled::THRESHOLD), Some(sampled::THRESHOLD);
    /// How many messages such a record stands for.
    SamplingAdjustedCount: Some(sampled::ADJUSTED_COUNT), Some(sampled::ADJUSTED_COUNT);
}

/// Resource attribute for HOSTNAME under [`Schema::Otel`].
pub(super) const RESOURCE_HOST: &str = "host.name";
/// Resource attribute for APP-NAME or the tag under [`Schema::Otel`].
pub(super) const RESOURCE_SERVICE: &str = "service.name";
/// Resource attribute for parameter `swVersion` of the SD-ELEMENT `origin` under [`Schema::Otel`].
pub(super) const RESOURCE_VERSION: &str = "service.version";
/// Put before CEF extension keys that would collide with a name of the receiver; under [`Schema::Otel`] before all.
pub(super) const CEF_EXTENSION_PREFIX: &str = "cef.ext.";

impl Schema {
    /// The name of a key; nothing if this schema does not write it.
    pub(super) fn name(self, key: Key) -> Option<&'static str> {
        let names = match self {
            Self::Upstream => UPSTREAM,
            Self::Otel => OTEL,
        };
        names.get(key as usize).copied().flatten()
    }

    /// The names of all keys by their numbers, empty where a key is not written.
    pub(super) fn names(self) -> Vec<&'static str> {
        let names = match self {
            Self::Upstream => UPSTREAM,
            Self::Otel => OTEL,
        };
        names.iter().map(|name| name.unwrap_or("")).collect()
    }

    /// What stands before the names of structured data in its flat form.
    pub(super) fn structured_data_prefix(self) -> &'static str {
        match self {
            Self::Upstream => "syslog.structured_data.",
            Self::Otel => "syslog.",
        }
    }
}

impl Key {
    pub(super) fn id(self) -> NameId {
        self as NameId
    }
}

/// Whether a key sent by a device would pass for one of the receiver's own.
pub(super) fn is_reserved(key: &[u8]) -> bool {
    match key.first() {
        Some(b'c') => key.starts_with(b"cef.") || key == b"client.address",
        Some(b's') => {
            key.starts_with(b"syslog.")
                || key == sampled::THRESHOLD.as_bytes()
                || key == sampled::ADJUSTED_COUNT.as_bytes()
        }
        Some(b'i' | b'l' | b'n' | b't') => matches!(
            key,
            b"input.format"
                | b"log.record.original"
                | b"network.peer.address"
                | b"network.peer.port"
                | b"network.transport"
                | b"tls.client.subject"
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No name that the receiver writes can be sent by a device, and no two keys share a name.
    #[test]
    fn names_are_reserved_and_different() {
        for schema in [Schema::Upstream, Schema::Otel] {
            let mut names: Vec<_> = ALL.iter().filter_map(|key| schema.name(*key)).collect();
            assert!(names.iter().all(|name| is_reserved(name.as_bytes())), "{names:?}");
            let written = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), written);
        }
    }

    /// The number of a key is its position.
    #[test]
    fn numbers_are_positions() {
        for (position, key) in ALL.iter().enumerate() {
            assert_eq!(key.id() as usize, position);
            assert_eq!(Schema::Upstream.names()[position], Schema::Upstream.name(*key).unwrap_or(""));
        }
    }
}
