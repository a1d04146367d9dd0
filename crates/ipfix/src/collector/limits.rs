//! Bounds on what a collector keeps.

use std::time::Duration;

use crate::session::Limits;

/// Which messages share their templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TemplateScope {
    /// Those of one transport session, as RFC 7011 section 8 has it: source address and port over UDP.
    #[default]
    Session,
    /// Those from one source address over UDP, for exporters that send templates and data from different ports. Whoever
    /// can send from that address can then replace its templates without guessing a port. Streams are not concerned.
    Address,
}

/// Bounds on data that waits for its template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingLimits {
    /// Most bytes that one session waits with; beyond, those that came first go. Each set counts as its content and 128
    /// bytes.
    pub bytes_per_session: usize,
    /// Most bytes in all sessions; a quarter of them is for newcomers, the rest for established sessions.
    pub bytes_total: usize,
    /// How long a set waits at most.
    pub max_age: Duration,
}

impl Default for PendingLimits {
    fn default() -> Self {
        Self { bytes_per_session: 256 << 10, bytes_total: 64 << 20, max_age: Duration::from_secs(600) }
    }
}

/// When a sender is no longer listened to because nothing that it sends can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShutOutLimits {
    /// So many datagrams in a row without a whole message or a record ...
    pub datagrams: u32,
    /// ... over at least so long.
    pub period: Duration,
    /// How long its datagrams are then skipped. After that a good one makes everything as before, and a bad one starts
    /// the next pause.
    pub pause: Duration,
}

impl Default for ShutOutLimits {
    fn default() -> Self {
        Self { datagrams: 1_000, period: Duration::from_secs(30), pause: Duration::from_secs(60) }
    }
}

/// Bounds on what a [`Collector`](crate::Collector) keeps, and how it decides between sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectorLimits {
    /// Bounds of each session. The lifetime of templates is for UDP only: streams keep theirs.
    pub session: Limits,
    /// Most observation domains of a newcomer whose sequence numbers are followed.
    pub newcomer_domains: usize,
    /// Most sessions. Established ones and streams take at most three quarters.
    pub max_sessions: usize,
    /// Most sessions of one source address.
    pub max_sessions_per_address: usize,
    /// Most fields of templates in all sessions together, at 40 to 60 bytes each; every template counts as eight fields
    /// more. Established sessions take at most three quarters. Templates restored from before a restart take up to
    /// three quarters of this again.
    pub max_total_fields: usize,
    /// Most facts from options data in all sessions together, shared like fields.
    pub max_total_facts: usize,
    /// Which messages share their templates.
    pub template_scope: TemplateScope,
    /// A session is established once it has given data records of known templates over so long.
    pub establish_after: Duration,
    /// A newcomer that was silent for so long gives its place to another one.
    pub newcomer_hold: Duration,
    /// An established session over UDP that was silent for so long gives its place to others.
    pub idle: Duration,
    /// Bounds on data that waits for its template; `None` is not to wait.
    pub pending: Option<PendingLimits>,
    /// When senders of nonsense are shut out; `None` is never.
    pub shut_out: Option<ShutOutLimits>,
}

impl Default for CollectorLimits {
    fn default() -> Self {
        let lifetime = Duration::from_secs(3_600);
        Self {
            session: Limits { template_lifetime: Some(lifetime), ..Limits::default() },
            newcomer_domains: 32,
            max_sessions: 4_096,
            max_sessions_per_address: 256,
            max_total_fields: 2_000_000,
            max_total_facts: 500_000,
            template_scope: TemplateScope::Session,
            establish_after: Duration::from_secs(60),
            newcomer_hold: Duration::from_secs(60),
            idle: Duration::from_secs(3_600),
            pending: None,
            shut_out: Some(ShutOutLimits::default()),
        }
    }
}

/// What newcomers may use of a total at least; the rest is for established sessions at most.
pub(super) fn newcomers_part(total: usize) -> usize {
    total.div_ceil(4)
}

/// What established sessions may use of a total at most.
pub(super) fn established_part(total: usize) -> usize {
    total - newcomers_part(total)
}
