//! IPFIX (RFC 7011), NetFlow v9 (RFC 3954) and v5: messages, templates, fields. Bytes in, borrowed records out.
//!
//! Reading goes in two steps, so that records can be decoded later than their message is received:
//!
//! 1. A [`Session`] *admits* each datagram, or each message of a stream: it checks headers and sequence numbers, walks
//!    the sets, learns templates in the order of the wire, and gives for each data set its range in the datagram
//!    with the [`Template`] that was valid there.
//! 2. [`Records`] walks the bytes of a data set with that template, and [`decode`] turns the bytes of a field into a
//!    [`Value`].
//!
//! ```
//! use catchment_ipfix::{Admitted, Limits, Session, Transport, Value, decode};
//!
//! let datagram = [
//!     0, 10, 0, 36, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0, 0, 1, // header: 36 bytes, exported at 60 s, domain 1
//!     0, 2, 0, 12, 1, 0, 0, 1, 0, 1, 0, 4, // template 256: octetDeltaCount in 4 bytes
//!     1, 0, 0, 8, 0, 0, 3, 232, // a data set with one record
//! ];
//! let mut session = Session::new(Transport::Udp, Limits::default());
//! let mut admitted = Admitted::default();
//! session.admit(&datagram, &mut admitted);
//!
//! let set = &admitted.sets[0];
//! let context = admitted.messages[set.message].context();
//! for record in set.records(&datagram) {
//!     for (field, bytes) in record.fields() {
//!         assert_eq!(field.name().as_deref(), Some("octetDeltaCount"));
//!         assert_eq!(decode(field, bytes, &context), Value::Unsigned(1_000));
//!     }
//! }
//! ```
//!
//! A receiver of many exporters keeps a [`Collector`] instead: the sessions of all of them, with bounds that hold whatever
//! they send.
//!
//! Nothing here panics on any input, and what is allocated is bounded by a constant times the bytes received.

mod admitted;
mod attachments;
mod collector;
mod context;
mod counters;
mod elements;
mod field;
mod knowledge;
mod list;
mod lru;
mod message;
mod names;
mod netflow_v5;
mod picks;
mod problem;
mod records;
mod sampling;
mod sequence;
mod session;
pub mod sonic;
mod template;
#[cfg(test)]
mod test_wire;
mod times;
mod units;
mod value;
mod wire;

pub use admitted::{Admitted, DataSet, Released, UnknownSet};
pub use collector::{
    Admission, CacheError, CacheFault, Collector, CollectorCounters, CollectorLimits, ExporterCounters,
    ExporterStatistics, ExporterTotals, Gauges, PendingLimits, Refusal, Restored, SessionKey, ShutOutLimits,
    TemplateScope, is_template_cache,
};
pub use context::{DecodeContext, MAX_LIST_DEPTH, TimeEncoding};
pub use counters::Counters;
pub use elements::{
    DataType, Element, REVERSE_ENTERPRISE, Semantics, element, netflow_v9_field, netflow_v9_scope, reverse_element,
};
pub use field::{FieldSpec, Namespace, VARIABLE_LENGTH};
pub use knowledge::{DescribedElement, Knowledge, SamplingKey};
pub use list::{
    BasicList, Elements, Group, List, ListError, ListSemantic, SubTemplateList, SubTemplateMultiList, SubTemplates,
};
pub use message::{
    IPFIX_HEADER_BYTES, MessageInfo, NETFLOW_V5_HEADER_BYTES, NETFLOW_V9_HEADER_BYTES, Version, check_framing,
    stream_message_length,
};
pub use names::{enumeration_name, flow_end_reason_name, protocol_name};
pub use netflow_v5::netflow_v5_template;
pub use problem::{Fault, Problem, ProblemKind};
pub use records::{Fields, Record, Records};
pub use sampling::SamplingFields;
pub use sequence::SequenceCheck;
pub use session::{Limits, Session, Transport};
pub use template::{Kind, MIN_TEMPLATE_ID, Template, TemplateError};
pub use times::{FlowTimes, flow_times, uptime_unix_nano};
pub use units::element_unit;
pub use value::{Value, decode};
