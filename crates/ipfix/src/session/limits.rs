//! Bounds on what a session keeps, and what carries its messages.

use std::time::Duration;

/// Bounds on what one session keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Most fields in one template.
    pub max_template_fields: usize,
    /// Most fields of length 0 in one template. They cost work without costing bytes.
    pub max_empty_fields: usize,
    /// Most templates of one session; beyond, those not used for longest go.
    pub max_templates: usize,
    /// Most fields in all templates of one session together; beyond, templates not used for longest go.
    pub max_total_fields: usize,
    /// Most observation domains whose sequence numbers are followed.
    pub max_domains: usize,
    /// Most facts (names, sampling rates, descriptions of elements) that options data may tell; beyond, new ones are
    /// not taken.
    pub max_facts: usize,
    /// Most problems kept with their particulars between two calls of [`Admitted::clear`](crate::Admitted::clear); all are counted.
    pub max_problems: usize,
    /// How long a template lives without being sent again, or three times as long as it once took to be sent again if
    /// that is longer. `None` is for ever, as streams want it (RFC 7011 section 8.1).
    pub template_lifetime: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_template_fields: 10_000,
            max_empty_fields: 64,
            max_templates: 2_048,
            max_total_fields: 1_000_000,
            max_domains: 1_024,
            max_facts: 16_384,
            max_problems: 64,
            template_lifetime: None,
        }
    }
}

/// What carries the messages of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Datagrams: messages may be lost, withdrawals are ignored, templates are replaced at will.
    Udp,
    /// TCP, TLS or a file: withdrawals count, and redefining a template without one is a fault of the exporter.
    Stream,
}
