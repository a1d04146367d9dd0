//! Counts by exporter.

use std::net::IpAddr;

use hashbrown::HashMap;

use crate::counters::Counters;

/// Most observation domains of a session that are counted apart; what further ones send is counted together.
const MAX_DOMAINS: usize = 16;

/// What one exporter has sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExporterCounters {
    /// Datagrams, or messages of a stream, that were read.
    pub datagrams: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Records, flows and options data alike.
    pub records: u64,
    /// Records, packets or flows that sequence numbers say are missing.
    pub lost: u64,
    /// Data sets without a known template.
    pub unknown_template_sets: u64,
    /// Problems of all kinds.
    pub problems: u64,
    /// Records that the caller has left out: see [`Collector::count_left_out`](crate::Collector::count_left_out).
    pub left_out: u64,
}

impl ExporterCounters {
    /// The counts of one exporter as they stand in those of an admission.
    fn of(counters: &Counters) -> Self {
        Self {
            datagrams: counters.datagrams,
            bytes: counters.bytes,
            records: counters.flow_records + counters.options_records,
            lost: counters.lost_records + counters.lost_packets + counters.lost_flows,
            unknown_template_sets: counters.unknown_template_sets,
            problems: counters.problems.iter().sum(),
            left_out: 0,
        }
    }

    fn pairs<'a>(&'a mut self, other: &'a Self) -> [(&'a mut u64, u64); 7] {
        [
            (&mut self.datagrams, other.datagrams),
            (&mut self.bytes, other.bytes),
            (&mut self.records, other.records),
            (&mut self.lost, other.lost),
            (&mut self.unknown_template_sets, other.unknown_template_sets),
            (&mut self.problems, other.problems),
            (&mut self.left_out, other.left_out),
        ]
    }

    /// What has come since `before`, which is 0 wherever `before` is larger.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut since = *self;
        since.subtract(before);
        since
    }

    /// Adds the counts of another exporter, or of another time.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in self.pairs(other) {
            *sum = sum.saturating_add(more);
        }
    }

    fn subtract(&mut self, other: &Self) {
        for (sum, less) in self.pairs(other) {
            *sum = sum.saturating_sub(less);
        }
    }
}

/// The counts of one exporter with its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExporterStatistics {
    /// Source address; `None` for a file.
    pub address: Option<IpAddr>,
    /// Observation domain or source id.
    pub domain: u32,
    /// What it has sent.
    pub counters: ExporterCounters,
}

/// The counts of the busiest exporters, and of all others together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExporterTotals {
    /// Those with the most datagrams, most first.
    pub busiest: Vec<ExporterStatistics>,
    /// Everything else: less busy exporters, sessions that are gone, and what belongs to no domain.
    pub others: ExporterCounters,
}

impl ExporterTotals {
    /// Sums counts by address and domain.
    pub(super) fn sum<'s>(
        sessions: impl Iterator<Item = (Option<IpAddr>, &'s DomainStatistics)>,
        gone: ExporterCounters,
        limit: usize,
    ) -> Self {
        let mut sums: HashMap<(Option<IpAddr>, u32), ExporterCounters> = HashMap::default();
        let mut others = gone;
        for (address, statistics) in sessions {
            others.add(&statistics.others);
            for (domain, counters) in &statistics.domains {
                sums.entry((address, *domain)).or_default().add(counters);
            }
        }
        let named = |((address, domain), counters)| ExporterStatistics { address, domain, counters };
        let mut busiest: Vec<ExporterStatistics> = sums.into_iter().map(named).collect();
        busiest.sort_unstable_by_key(|one| (u64::MAX - one.counters.datagrams, one.address, one.domain));
        for one in busiest.iter().skip(limit) {
            others.add(&one.counters);
        }
        busiest.truncate(limit);
        Self { busiest, others }
    }
}

/// The counts of one session by observation domain.
#[derive(Debug, Default)]
pub(super) struct DomainStatistics {
    /// The domain heard last is the first.
    domains: Vec<(u32, ExporterCounters)>,
    others: ExporterCounters,
    /// Whether the last admission is in `others`.
    last_in_others: bool,
}

impl DomainStatistics {
    /// Counts what an admission has added. Without a domain it belongs to the one heard last.
    pub(super) fn count(&mut self, domain: Option<u32>, before: &ExporterCounters, counters: &Counters) {
        let mut more = ExporterCounters::of(counters);
        more.subtract(before);
        let domain = domain.or_else(|| self.domains.first().map(|(domain, _)| *domain));
        self.last_in_others = true;
        let Some(domain) = domain else {
            self.others.add(&more);
            return;
        };
        let place = match self.domains.iter().position(|(known, _)| *known == domain) {
            Some(place) => place,
            None if self.domains.len() >= MAX_DOMAINS => {
                self.others.add(&more);
                return;
            }
            None => {
                self.domains.push((domain, ExporterCounters::default()));
                self.domains.len() - 1
            }
        };
        self.last_in_others = false;
        self.domains.swap(0, place);
        if let Some((_, sum)) = self.domains.first_mut() {
            sum.add(&more);
        }
    }

    /// Counts records of the last admission that the caller has left out.
    pub(super) fn count_left_out(&mut self, records: u64) {
        let sum = match self.domains.first_mut() {
            Some((_, sum)) if !self.last_in_others => sum,
            _ => &mut self.others,
        };
        sum.left_out = sum.left_out.saturating_add(records);
    }

    /// The state to count from, see [`DomainStatistics::count`].
    pub(super) fn mark(counters: &Counters) -> ExporterCounters {
        ExporterCounters::of(counters)
    }

    /// Everything together.
    pub(super) fn total(&self) -> ExporterCounters {
        let mut total = self.others;
        for (_, counters) in &self.domains {
            total.add(counters);
        }
        total
    }
}
