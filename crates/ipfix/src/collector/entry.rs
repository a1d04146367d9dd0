//! One session of a collector, with what the collector knows of it.

use std::net::IpAddr;
use std::time::Duration;

use crate::admitted::Admitted;
use crate::collector::limits::{CollectorLimits, ShutOutLimits, established_part, newcomers_part};
use crate::collector::pending::{Arrival, Pending};
use crate::collector::statistics::{DomainStatistics, ExporterCounters};
use crate::collector::{Admission, CollectorCounters, Refusal};
use crate::counters::Counters;
use crate::session::Session;

/// What the sessions of a collector have in common.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) limits: CollectorLimits,
    pub(super) clock: Duration,
    pub(super) counters: CollectorCounters,
    /// What established sessions use together, and what newcomers do.
    pub(super) established: Usage,
    pub(super) newcomers: Usage,
    /// What sessions that are gone have sent.
    pub(super) gone: ExporterCounters,
    scratch: Admitted,
}

/// What sessions use of what is bounded for all together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Templates, as fields.
    pub(super) weight: usize,
    /// Facts from options data.
    pub(super) facts: usize,
    /// Data that waits for its template.
    pub(super) pending_bytes: usize,
}

impl Usage {
    pub(super) fn replace(&mut self, before: &Self, after: &Self) {
        self.weight = (self.weight + after.weight).saturating_sub(before.weight);
        self.facts = (self.facts + after.facts).saturating_sub(before.facts);
        self.pending_bytes = (self.pending_bytes + after.pending_bytes).saturating_sub(before.pending_bytes);
    }
}

impl Common {
    pub(super) fn new(limits: CollectorLimits) -> Self {
        Self {
            limits,
            clock: Duration::ZERO,
            counters: CollectorCounters::default(),
            established: Usage::default(),
            newcomers: Usage::default(),
            gone: ExporterCounters::default(),
            scratch: Admitted::default(),
        }
    }

    pub(super) fn usage(&mut self, established: bool) -> &mut Usage {
        if established { &mut self.established } else { &mut self.newcomers }
    }

    /// Whether all sessions together use more than they may. Newcomers have to go then.
    pub(super) fn is_over(&self) -> bool {
        let over = |part: fn(&Usage) -> usize, total| part(&self.established) + part(&self.newcomers) > total;
        over(|usage| usage.weight, self.limits.max_total_fields)
            || over(|usage| usage.facts, self.limits.max_total_facts)
    }

    /// How much a session may use that uses `own` now.
    fn allowed(&self, established: bool, own: usize, total: usize, part: fn(&Usage) -> usize) -> usize {
        let (settled, fresh) = (part(&self.established), part(&self.newcomers));
        let free = if established {
            established_part(total).saturating_sub(settled)
        } else {
            total.saturating_sub(settled + fresh)
        };
        own + free
    }

    /// Whether a session with this usage would still fit among the established ones.
    fn fits_established(&self, own: &Usage) -> bool {
        let fits = |part: fn(&Usage) -> usize, total| part(&self.established) + part(own) <= established_part(total);
        let pending = self.limits.pending.as_ref().map_or(0, |limits| limits.bytes_total);
        fits(|usage| usage.weight, self.limits.max_total_fields)
            && fits(|usage| usage.facts, self.limits.max_total_facts)
            && fits(|usage| usage.pending_bytes, pending)
    }

    /// Counts a datagram that is not looked at.
    pub(super) fn refuse(&mut self, datagram: &[u8], refusal: Refusal, out: &mut Admitted) -> Admission {
        out.counters.datagrams += 1;
        Counters::add_bytes(&mut out.counters.bytes, datagram.len());
        Counters::add_bytes(&mut out.counters.discarded_bytes, datagram.len());
        let counter = match refusal {
            Refusal::Sessions => &mut self.counters.refused_sessions,
            Refusal::SessionsOfAddress => &mut self.counters.refused_sessions_of_address,
            Refusal::ShutOut => &mut self.counters.refused_shut_out,
        };
        *counter += 1;
        Admission::Refused(refusal)
    }
}

/// Bad datagrams in a row.
#[derive(Debug, Default)]
struct BadRun {
    datagrams: u32,
    since: Duration,
    shut_until: Option<Duration>,
}

/// A session.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) session: Session,
    pub(super) address: Option<IpAddr>,
    /// Whether it has proved to be real; a stream is so from the start.
    pub(super) established: bool,
    /// When it was heard last.
    pub(super) heard: Duration,
    /// When it gave its first records.
    first_records: Option<Duration>,
    /// Whether the last datagram gave records.
    has_records: bool,
    bad: BadRun,
    pending: Pending,
    pub(super) statistics: DomainStatistics,
}

impl Entry {
    pub(super) fn new(session: Session, address: Option<IpAddr>) -> Self {
        Self {
            session,
            address,
            established: false,
            heard: Duration::ZERO,
            first_records: None,
            has_records: false,
            bad: BadRun::default(),
            pending: Pending::default(),
            statistics: DomainStatistics::default(),
        }
    }

    pub(super) fn usage(&self) -> Usage {
        Usage {
            weight: self.session.template_weight(),
            facts: self.session.facts(),
            pending_bytes: self.pending.bytes(),
        }
    }

    /// Number of data sets that wait for their template.
    pub(super) fn pending_sets(&self) -> usize {
        self.pending.len()
    }

    /// Whether the session has been silent for long enough to give its place away.
    pub(super) fn is_idle(&self, common: &Common) -> bool {
        let limit = if self.established { common.limits.idle } else { common.limits.newcomer_hold };
        common.clock.saturating_sub(self.heard) > limit
    }

    /// Whether a newcomer has earned to be established, and there is room for what it uses.
    pub(super) fn is_ripe(&self, common: &Common) -> bool {
        let long = |since| common.clock.saturating_sub(since) >= common.limits.establish_after;
        !self.established
            && self.has_records
            && self.first_records.is_some_and(long)
            && common.fits_established(&self.usage())
    }

    /// Makes a newcomer established.
    pub(super) fn establish(&mut self, common: &mut Common) {
        let usage = self.usage();
        common.newcomers.replace(&usage, &Usage::default());
        common.established.replace(&Usage::default(), &usage);
        self.established = true;
        self.session.establish(common.limits.session.max_domains);
        common.counters.sessions_established += 1;
    }

    /// Gives back what a session uses that is gone.
    pub(super) fn leave(self, common: &mut Common) {
        let usage = self.usage();
        common.usage(self.established).replace(&usage, &Usage::default());
        common.counters.pending_dropped_closed += u64::try_from(self.pending.len()).unwrap_or(u64::MAX);
        common.gone.add(&self.statistics.total());
    }

    /// Drops data that has waited for its template for too long.
    pub(super) fn expire(&mut self, common: &mut Common) {
        let Some(limits) = &common.limits.pending else {
            return;
        };
        let before = self.usage();
        self.pending.expire(common.clock, limits.max_age, &mut common.counters);
        let after = self.usage();
        common.usage(self.established).replace(&before, &after);
    }

    /// Admits a datagram.
    pub(super) fn admit(
        &mut self,
        common: &mut Common,
        port: u16,
        received_unix_nano: i64,
        datagram: &[u8],
        out: &mut Admitted,
    ) -> Admission {
        self.heard = common.clock;
        if self.bad.shut_until.is_some_and(|until| common.clock < until) {
            return common.refuse(datagram, Refusal::ShutOut, out);
        }
        let before = self.usage();
        let limits = &common.limits;
        let weight = common.allowed(self.established, before.weight, limits.max_total_fields, |usage| usage.weight);
        let facts = common.allowed(self.established, before.facts, limits.max_total_facts, |usage| usage.facts);
        self.session.allow(weight, facts);
        self.session.set_clock(common.clock);
        self.session.set_port(port);

        let mark = Mark::of(out);
        let (messages, unknown_sets) = (out.messages.len(), out.unknown_sets.len());
        let statistics = DomainStatistics::mark(&out.counters);
        self.session.admit(datagram, out);
        let now = Mark::of(out);
        let bad = now.good == mark.good && now.records == mark.records;
        self.note_records(now.records > mark.records, common.clock);
        self.wait(common, datagram, received_unix_nano, (unknown_sets, now.learned > mark.learned), out);
        let domain = out.messages.get(messages).map(|message| message.domain);
        self.statistics.count(domain, &statistics, &out.counters);
        if let Some(limits) = &common.limits.shut_out
            && self.bad.note(bad, common.clock, limits)
        {
            common.counters.shut_outs += 1;
        }
        let after = self.usage();
        if after != before {
            common.usage(self.established).replace(&before, &after);
        }
        Admission::Accepted
    }

    fn note_records(&mut self, any: bool, now: Duration) {
        self.has_records = any;
        if any && self.first_records.is_none() {
            self.first_records = Some(now);
        }
    }

    /// Holds the sets without template of a datagram, and releases those whose template came with it.
    fn wait(
        &mut self,
        common: &mut Common,
        datagram: &[u8],
        received_unix_nano: i64,
        (unknown_sets, learned): (usize, bool),
        out: &mut Admitted,
    ) {
        let Some(limits) = &common.limits.pending else {
            return;
        };
        self.pending.expire(common.clock, limits.max_age, &mut common.counters);
        if out.unknown_sets.len() > unknown_sets {
            let usage = if self.established { &common.established } else { &common.newcomers };
            let part = if self.established { established_part } else { newcomers_part };
            let room = part(limits.bytes_total).saturating_sub(usage.pending_bytes);
            let arrival = Arrival { datagram, first: unknown_sets, received_unix_nano, clock: common.clock, room };
            self.pending.hold(&arrival, out, limits, &mut common.counters);
        }
        if learned {
            self.pending.release(&mut self.session, out, &mut common.scratch, &mut common.counters);
        }
    }
}

/// Counters to compare before and after an admission.
struct Mark {
    /// Messages that were whole.
    good: u64,
    records: u64,
    /// Templates that say something new.
    learned: u64,
}

impl Mark {
    fn of(out: &Admitted) -> Self {
        let counters = &out.counters;
        Self {
            good: counters.messages - counters.incomplete_messages,
            records: counters.flow_records + counters.options_records,
            learned: counters.templates_new + counters.templates_replaced,
        }
    }
}

impl BadRun {
    /// Notes a datagram; gives whether the sender is shut out now.
    fn note(&mut self, bad: bool, now: Duration, limits: &ShutOutLimits) -> bool {
        self.shut_until = None;
        if !bad {
            self.datagrams = 0;
            return false;
        }
        if self.datagrams == 0 {
            self.since = now;
        }
        self.datagrams = self.datagrams.saturating_add(1);
        let shut = self.datagrams >= limits.datagrams && now.saturating_sub(self.since) >= limits.period;
        if shut {
            self.shut_until = Some(now + limits.pause);
        }
        shut
    }
}
