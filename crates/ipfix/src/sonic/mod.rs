//! SONiC's high-frequency telemetry: IPFIX whose templates and names travel beside the stream.
//!
//! A switch running SONiC streams counters of its silicon as IPFIX records. Each field of a template is a counter: the
//! element number is a label that stands for an object such as a port, and the enterprise number says which statistic of
//! which kind of object it is ([`StatisticId`]). Templates and names of objects lie in the switch's database, one
//! [`SessionRow`] a telemetry session; [`SonicSessions`] takes such rows and admits payloads by them.
//!
//! ```
//! use catchment_ipfix::sonic::{SessionRow, SonicLimits, SonicSessions};
//!
//! let template = [
//!     0, 10, 0, 40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // header: 40 bytes, domain 0
//!     0, 2, 0, 24, 1, 0, 0, 2, // a template set: template 256 of 2 fields
//!     1, 69, 0, 8, // the time
//!     128, 7, 0, 8, 0, 1, 0, 4, // label 7, statistic 4 of object type 1
//!     0, 0, 0, 0, // padding
//! ];
//! let row = SessionRow {
//!     stream_status: "enabled".into(),
//!     session_type: "ipfix".into(),
//!     object_names: "Ethernet0".into(),
//!     object_ids: "7".into(),
//!     session_config: template.to_vec(),
//! };
//! let mut sessions = SonicSessions::new(SonicLimits::default());
//! sessions.apply("profile|PORT", &row)?;
//!
//! let mut payload = vec![0, 10, 0, 36, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 20];
//! payload.extend(1_767_225_600_000_000_000_u64.to_be_bytes());
//! payload.extend(42_u64.to_be_bytes());
//! sessions.admit(0, &payload, 0, |set| {
//!     let counter = &set.template.counters()[0];
//!     assert_eq!(set.template.object_name(counter.label), Some("Ethernet0"));
//!     assert_eq!(counter.statistic.statistic_name(), "SAI_PORT_STAT_IF_IN_ERRORS");
//!     assert_eq!(set.bytes[counter.offset..][..counter.width], 42_u64.to_be_bytes());
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod admit;
mod limits;
mod names;
mod registry;
mod session;
mod tables;
mod template;

pub use admit::{SonicRecords, SonicSessions};
pub use limits::{SonicCounters, SonicLimits, SonicRejection};
pub use names::{StatisticId, object_type_name, statistic_name};
pub use registry::Applied;
pub use session::{SonicSession, SonicSessionError};
pub use template::{Counter, MAX_COUNTERS, RecordTime, SonicTemplate, SonicTemplateError};

/// A row of STATE_DB's table `HIGH_FREQUENCY_TELEMETRY_SESSION_TABLE`: one telemetry session, as it is written there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionRow {
    /// `enabled` or `disabled`.
    pub stream_status: String,
    /// `ipfix`.
    pub session_type: String,
    /// Names of the objects, separated by commas.
    pub object_names: String,
    /// Labels of the objects, separated by commas, in the order of the names.
    pub object_ids: String,
    /// IPFIX messages with the template sets of the session.
    pub session_config: Vec<u8>,
}

#[cfg(test)]
mod tests;
