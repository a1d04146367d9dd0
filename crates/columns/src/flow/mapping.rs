//! The settings: how flow records become log records.

use catchment_ipfix::TimeEncoding;

use crate::ParentIds;

/// How the attributes are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum FlowSchema {
    /// The names and types of the OpenTelemetry Collector's `netflowreceiver`; every other element follows as
    /// `ipfix.<name>`.
    #[default]
    Otel,
    /// The names of the IANA registry, such as `sourceIPv4Address`; elements of enterprises as `<pen>.<name or number>`.
    /// What the receiver adds keeps its names under `flow.`.
    Ipfix,
}

/// How values that the registries give names are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Enumerations {
    /// As text where there is a name, else as the number. Under [`FlowSchema::Otel`] attributes of the collector have its
    /// types: numbers, but for the protocol.
    #[default]
    Names,
    /// As numbers. The protocol has its name under [`FlowSchema::Otel`] all the same.
    Numbers,
}

/// How times are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum TimeForm {
    /// Nanoseconds since the Unix epoch, an integer.
    #[default]
    UnixNano,
    /// RFC 3339 in UTC with nine digits of a second, a text.
    Rfc3339,
}

/// What becomes of the sampling rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum SamplingUse {
    /// It is told as `flow.sampling_rate`; counters are as sent.
    #[default]
    Keep,
    /// Counters of octets and packets are multiplied by it as well, and `flow.sampling_applied` says so.
    Apply,
}

/// What becomes of options data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum OptionsData {
    /// It comes out as records, and what it tells is looked up for flows.
    #[default]
    Both,
    /// It comes out as records, and nothing is looked up.
    Emit,
    /// It does not come out, and what it tells is looked up for flows.
    Use,
}

/// How integers above the range of OTLP (2^63 - 1) are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum U64Overflow {
    /// As floating point numbers.
    #[default]
    Double,
    /// As text in decimal.
    String,
    /// As the largest integer.
    Saturate,
}

/// How records of both directions of a flow (RFC 5103) are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Biflow {
    /// One log record, with the reverse values under names of their own.
    #[default]
    One,
    /// Two log records: the second is the flow from destination to source with the reverse values under the names of
    /// the forward ones, and `flow.biflow_direction` tells which is which.
    Two,
}

/// Where the address of the exporter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum ExporterAt {
    /// On each record, so that a batch of many exporters has one resource.
    #[default]
    Record,
    /// On the resource, of which there is one for each exporter.
    Resource,
}

/// How flow records become log records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct FlowMapping {
    /// Names of the attributes.
    pub schema: FlowSchema,
    /// Values that have names.
    pub enumerations: Enumerations,
    /// Times, those of the receiver included.
    pub times: TimeForm,
    /// Sampling rates.
    pub sampling: SamplingUse,
    /// Options data.
    pub options: OptionsData,
    /// Integers that OTLP cannot hold.
    pub u64_overflow: U64Overflow,
    /// Lists (RFC 6313) are maps of `_semantic`, how their entries relate to each other, and `_values`, the list.
    pub list_semantics: bool,
    /// Records of both directions of a flow.
    pub biflow: Biflow,
    /// The address of the exporter.
    pub exporter_at: ExporterAt,
    /// Each log batch holds records of one exporter address and observation domain, in the order of their receipt.
    pub per_exporter: bool,
    /// How exporters write times in microseconds and nanoseconds.
    pub time_encoding: TimeEncoding,
    /// How the parent ids of attributes are written.
    pub parent_ids: ParentIds,
}

impl FlowMapping {
    /// Tells settings apart for which templates compile to different plans, with `elements` as a part.
    pub(super) fn plan_key(&self, elements_generation: u64) -> u64 {
        let settings = [
            self.schema == FlowSchema::Ipfix,
            self.enumerations == Enumerations::Numbers,
            self.times == TimeForm::Rfc3339,
            self.sampling == SamplingUse::Apply,
            self.biflow == Biflow::Two,
        ];
        let bits = settings.iter().fold(0, |bits, setting| (bits << 1) | u64::from(*setting));
        elements_generation.rotate_left(8) ^ bits
    }

    /// Whether what options data has told is looked up.
    pub(super) fn looks_up(&self) -> bool {
        self.options != OptionsData::Emit
    }
}
