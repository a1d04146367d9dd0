//! What can be wrong with a datagram, as typed errors and as a bounded set of labels.

use thiserror::Error;

use crate::list::ListError;
use crate::template::TemplateError;

macro_rules! problem_kinds {
    ($($(#[$doc:meta])* $kind:ident => $label:literal,)*) => {
        /// Kind of a problem; few enough to be a metric label.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ProblemKind {
            $($(#[$doc])* $kind,)*
        }

        impl ProblemKind {
            /// All kinds, in the order of their discriminants.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// Label of the kind, such as `set_length`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => $label,)*
                }
            }
        }
    };
}

problem_kinds! {
    /// Fewer bytes than a message header.
    Truncated => "truncated",
    /// Not a version that is read.
    Version => "version",
    /// Message length below its header or beyond what was received.
    MessageLength => "message_length",
    /// Set length below its header or beyond the message.
    SetLength => "set_length",
    /// Template record that does not fit its set.
    TemplateOverrun => "template_overrun",
    /// Value of variable length that does not fit its set.
    RecordOverrun => "record_overrun",
    /// Template record that makes no sense.
    TemplateInvalid => "template_invalid",
    /// Template over a limit of the session.
    TemplateLimit => "template_limit",
    /// Template for which there is no room among those of all exporters.
    TemplateBudget => "template_budget",
    /// Template redefined over a stream without a withdrawal before.
    TemplateRedefined => "template_redefined",
    /// Options template without a scope; taken all the same.
    EmptyScope => "empty_scope",
    /// Template whose records take no bytes, or data for it.
    EmptyRecords => "empty_records",
    /// Withdrawal over UDP, which is ignored.
    WithdrawalIgnored => "withdrawal_ignored",
    /// Withdrawal of a template that is not known.
    WithdrawalUnknown => "withdrawal_unknown",
    /// Set with a reserved id, which is skipped.
    ReservedSet => "reserved_set",
    /// Data whose template is not known.
    UnknownTemplate => "unknown_template",
    /// List that is not well formed.
    MalformedList => "malformed_list",
    /// Records in a list whose template is not known.
    UnknownSubTemplate => "unknown_sub_template",
    /// Record count of a v5 header that the datagram does not hold.
    RecordCount => "record_count",
    /// Bytes after the message.
    TrailingBytes => "trailing_bytes",
}

/// A problem with its particulars.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// Fewer bytes than a message header.
    #[error("{available} bytes are no message, its header takes {needed}")]
    Truncated {
        /// Bytes there are.
        available: usize,
        /// Bytes of the header.
        needed: usize,
    },
    /// Not a version that is read.
    #[error("version {version} is neither 5, 9 nor 10")]
    Version {
        /// The version given.
        version: u16,
    },
    /// Message length out of range.
    #[error("message length {length} is not between 16 and the {available} bytes received")]
    MessageLength {
        /// Length given by the header.
        length: usize,
        /// Bytes there are.
        available: usize,
    },
    /// Bytes at the end of a message that are too few for a set header.
    #[error("{available} bytes are left for a set, its header takes 4")]
    SetHeader {
        /// Bytes left in the message.
        available: usize,
    },
    /// Set length out of range.
    #[error("set {id} has length {length}, not between 4 and the {available} bytes left in the message")]
    SetLength {
        /// Id of the set.
        id: u16,
        /// Length given by its header.
        length: usize,
        /// Bytes left in the message.
        available: usize,
    },
    /// Template record that does not fit its set.
    #[error("template {id} with {fields} fields does not fit the {available} bytes left in its set")]
    TemplateOverrun {
        /// Id of the template; no longer known after this.
        id: u16,
        /// Number of fields announced.
        fields: usize,
        /// Bytes left in the set.
        available: usize,
    },
    /// Record that does not fit its set.
    #[error("record of template {template_id} reaches past the {available} bytes left in its set")]
    RecordOverrun {
        /// Id of the template.
        template_id: u16,
        /// Bytes left in the set.
        available: usize,
    },
    /// Template record that makes no sense.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// Template with too many fields.
    #[error("template {id} has {fields} fields, {empty} of them of length 0; allowed are {limit} and {empty_limit}")]
    TemplateLimit {
        /// Id of the template.
        id: u16,
        /// Number of fields.
        fields: usize,
        /// Number of fields of length 0.
        empty: usize,
        /// Most fields allowed.
        limit: usize,
        /// Most fields of length 0 allowed.
        empty_limit: usize,
    },
    /// Template for which there is no room.
    #[error(
        "template {id} has {fields} fields, all templates of its session have room for {available}, with 8 for each"
    )]
    TemplateBudget {
        /// Id of the template; not known after this.
        id: u16,
        /// Number of fields.
        fields: usize,
        /// Fields that there is room for in all templates of the session together, each counting as 8 more.
        available: usize,
    },
    /// Template redefined over a stream without a withdrawal before.
    #[error("template {id} was redefined without a withdrawal")]
    TemplateRedefined {
        /// Id of the template.
        id: u16,
    },
    /// Options template without a scope.
    #[error("options template {id} has no scope field, it needs one")]
    EmptyScope {
        /// Id of the template.
        id: u16,
    },
    /// Template whose records take no bytes.
    #[error("records of template {id} take no bytes")]
    EmptyRecords {
        /// Id of the template.
        id: u16,
    },
    /// Withdrawal over UDP.
    #[error("withdrawal of template {id} over UDP is ignored")]
    WithdrawalIgnored {
        /// Id of the template, or 2 or 3 for all.
        id: u16,
    },
    /// Withdrawal of a template that is not known.
    #[error("withdrawn template {id} is not known")]
    WithdrawalUnknown {
        /// Id of the template.
        id: u16,
    },
    /// Set with a reserved id.
    #[error("set id {id} is reserved")]
    ReservedSet {
        /// Id of the set.
        id: u16,
    },
    /// Data whose template is not known.
    #[error("template {template_id} of domain {domain} is not known")]
    UnknownTemplate {
        /// Observation domain or source id.
        domain: u32,
        /// Id of the template.
        template_id: u16,
    },
    /// List that is not well formed.
    #[error("template {template_id} has a malformed list")]
    MalformedList {
        /// Id of the template of the data set.
        template_id: u16,
        /// What is wrong with the list.
        #[source]
        source: ListError,
    },
    /// Records in a list whose template is not known.
    #[error("template {id} is not known, a list needs it")]
    UnknownSubTemplate {
        /// Id of the template.
        id: u16,
    },
    /// Record count of a v5 header that the datagram does not hold.
    #[error("header counts {count} records, the datagram holds {available}")]
    RecordCount {
        /// Count given by the header.
        count: u16,
        /// Whole records in the datagram.
        available: usize,
    },
    /// Bytes after the message.
    #[error("{length} bytes after the message")]
    TrailingBytes {
        /// How many.
        length: usize,
    },
}

impl Fault {
    /// The kind of the fault.
    #[must_use]
    pub fn kind(&self) -> ProblemKind {
        match self {
            Self::Truncated { .. } => ProblemKind::Truncated,
            Self::Version { .. } => ProblemKind::Version,
            Self::MessageLength { .. } => ProblemKind::MessageLength,
            Self::SetHeader { .. } | Self::SetLength { .. } => ProblemKind::SetLength,
            Self::TemplateOverrun { .. } => ProblemKind::TemplateOverrun,
            Self::RecordOverrun { .. } => ProblemKind::RecordOverrun,
            Self::Template(_) => ProblemKind::TemplateInvalid,
            Self::TemplateLimit { .. } => ProblemKind::TemplateLimit,
            Self::TemplateBudget { .. } => ProblemKind::TemplateBudget,
            Self::TemplateRedefined { .. } => ProblemKind::TemplateRedefined,
            Self::EmptyScope { .. } => ProblemKind::EmptyScope,
            Self::EmptyRecords { .. } => ProblemKind::EmptyRecords,
            Self::WithdrawalIgnored { .. } => ProblemKind::WithdrawalIgnored,
            Self::WithdrawalUnknown { .. } => ProblemKind::WithdrawalUnknown,
            Self::ReservedSet { .. } => ProblemKind::ReservedSet,
            Self::UnknownTemplate { .. } => ProblemKind::UnknownTemplate,
            Self::MalformedList { .. } => ProblemKind::MalformedList,
            Self::UnknownSubTemplate { .. } => ProblemKind::UnknownSubTemplate,
            Self::RecordCount { .. } => ProblemKind::RecordCount,
            Self::TrailingBytes { .. } => ProblemKind::TrailingBytes,
        }
    }
}

/// Something that was wrong with a datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where in the datagram.
    pub offset: usize,
    /// What, as a label.
    pub kind: ProblemKind,
    /// What, with its particulars.
    pub fault: Fault,
    /// Whether the message was discarded from here on. At most one problem of a message does that.
    pub discarded: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Labels are different and fit for a metric.
    #[test]
    fn labels() {
        let mut labels: Vec<&str> = ProblemKind::ALL.iter().map(|kind| kind.as_str()).collect();
        assert!(labels.iter().all(|label| label.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'_'))));
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), ProblemKind::ALL.len());
        for (index, kind) in ProblemKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, index);
        }
    }

    /// A message says what is wrong and what would be right.
    #[test]
    fn texts() {
        let fault = Fault::MessageLength { length: 1_384, available: 1_316 };
        assert_eq!(fault.to_string(), "message length 1384 is not between 16 and the 1316 bytes received");
        assert_eq!(fault.kind().as_str(), "message_length");
    }
}
