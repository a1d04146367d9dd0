//! What is measured.

use super::super::rounds;

/// What the engine receives, and what an item of it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Counters of a switch, so many series: a point each, with three attributes.
    Sonic { series: u32 },
    /// IPFIX flow records of eleven fields: a log record each.
    Flow,
    /// The same of so many exporters, each with an address of its own, by which batches are told apart.
    FlowsOf(u8),
    /// RFC 5424 lines: a log record each.
    Syslog {
        /// No two lines are alike, instead of 256 that come with times of their own.
        unique: bool,
    },
}

/// What goes over the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    /// OTLP over gRPC, not compressed.
    Otlp,
    /// The same with messages compressed by zstd of a level.
    OtlpZstd(u8),
    /// The same with messages compressed by gzip.
    OtlpGzip,
    /// OTAP, not compressed.
    Otap,
    /// OTAP whose buffers are compressed by zstd of a level.
    OtapZstd(u8),
}

impl Wire {
    pub(super) fn is_otap(self) -> bool {
        matches!(self, Self::Otap | Self::OtapZstd(_))
    }
}

/// How batches find their lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lanes {
    /// One, with the order of everything.
    One,
    /// So many that take turns.
    Turns(u16),
    /// So many, each with the order of the exporters that are its own.
    Keyed(u16),
    /// One that makes requests of up to 65,535 items out of several batches.
    Merging,
}

/// The end of the pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Nothing: what the receiver costs alone.
    Noop,
    /// Ours.
    Lanes(Wire, Lanes),
    /// The engine's own exporter of the protocol.
    Upstream(Wire),
}

impl Side {
    /// What goes over the wire; nothing without an exporter.
    pub(super) fn wire(self) -> Option<Wire> {
        match self {
            Self::Noop => None,
            Self::Lanes(wire, _) | Self::Upstream(wire) => Some(wire),
        }
    }
}

/// Who takes what is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// The sink of the load generator, which counts every item.
    Counting,
    /// The engine's own receiver, in a second process, into nothing.
    Engine,
    /// The sink of the load generator, which reads and counts requests.
    Raw,
    /// The same behind a distance.
    Distant,
}

/// A load, and who carries it where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) source: Source,
    /// Most items of a batch of the receiver.
    pub(super) batch: u32,
    pub(super) target: Target,
    pub(super) sides: Vec<Side>,
}

/// All cases in the order in which they are measured.
pub(super) fn all() -> Vec<Case> {
    use Lanes::{Keyed, Merging, One, Turns};
    use Side::{Lanes as Ours, Noop, Upstream};
    use Target::{Counting, Distant, Engine, Raw};
    use Wire::{Otap, OtapZstd, Otlp, OtlpGzip, OtlpZstd};
    let case = |source, batch, target, sides: &[Side]| Case { source, batch, target, sides: sides.to_vec() };
    let sonic = |series| Source::Sonic { series };
    // tonic's zstd has level 3, arrow's level 1.
    let upstream = [Upstream(Otlp), Upstream(OtlpZstd(3)), Upstream(OtapZstd(1))];
    let main = [
        Ours(Otlp, One),
        Ours(OtlpZstd(1), One),
        Ours(OtlpZstd(3), One),
        Ours(OtlpGzip, One),
        Ours(Otap, One),
        Ours(OtapZstd(1), One),
        Ours(OtapZstd(3), One),
        Ours(OtapZstd(1), Turns(2)),
        Ours(OtapZstd(1), Turns(4)),
        Ours(OtapZstd(1), Merging),
        Noop,
        Upstream(OtlpGzip),
        Upstream(Otap),
    ];
    let each = [Ours(Otlp, One), Ours(OtlpZstd(1), One), Ours(OtapZstd(1), One), Noop];
    let compressed =
        [Ours(OtlpZstd(1), One), Ours(OtapZstd(1), One), Noop, Upstream(OtlpZstd(3)), Upstream(OtapZstd(1))];
    let small = [Ours(OtapZstd(1), One), Ours(OtapZstd(1), Merging), Noop, Upstream(OtapZstd(1))];
    let other = [Ours(Otlp, One), Ours(OtlpZstd(1), One), Ours(OtapZstd(1), One)];
    let raw = [
        Ours(Otlp, One),
        Ours(Otlp, Turns(4)),
        Ours(OtlpZstd(1), One),
        Ours(OtlpZstd(1), Turns(4)),
        Ours(OtapZstd(1), One),
        Ours(OtapZstd(1), Turns(2)),
        Ours(OtapZstd(1), Turns(4)),
        Noop,
    ];
    let order = [Ours(OtapZstd(1), Turns(4)), Ours(OtapZstd(1), Keyed(4))];
    vec![
        case(sonic(500), 8_192, Counting, &[&main[..], &upstream].concat()),
        case(sonic(500), 1_000, Counting, &small),
        case(sonic(500), 100, Counting, &[&[Ours(OtapZstd(1), Merging)], &compressed[..]].concat()),
        case(sonic(10), 8_192, Counting, &compressed),
        case(sonic(8_000), 8_192, Counting, &[&each[..], &upstream].concat()),
        case(sonic(50_000), 8_192, Counting, &small),
        case(Source::Flow, 8_192, Counting, &compressed),
        case(Source::Syslog { unique: false }, 8_192, Counting, &compressed),
        case(Source::Syslog { unique: true }, 8_192, Counting, &compressed),
        case(sonic(500), 8_192, Engine, &[&other[..], &upstream].concat()),
        case(sonic(500), 8_192, Raw, &raw),
        case(Source::Flow, 8_192, Raw, &[Ours(OtapZstd(1), One)]),
        case(Source::Syslog { unique: false }, 8_192, Raw, &[Ours(OtapZstd(1), One)]),
        case(Source::FlowsOf(8), 8_192, Raw, &order),
        case(sonic(500), 10_000, Distant, &[Ours(OtapZstd(1), Turns(16))]),
    ]
}

impl Case {
    pub(super) fn name(&self) -> String {
        let source = match self.source {
            Source::Sonic { series } => format!("sonic-{series}"),
            Source::Flow => "flow-11".to_owned(),
            Source::FlowsOf(exporters) => format!("flow-11-of-{exporters}"),
            Source::Syslog { unique: false } => "syslog".to_owned(),
            Source::Syslog { unique: true } => "syslog-unique".to_owned(),
        };
        let target = match self.target {
            Target::Counting => "",
            Target::Engine => "/to-engine",
            Target::Raw => "/raw",
            Target::Distant => "/20-ms-away",
        };
        format!("{source}/{}{target}", self.batch)
    }

    /// Name of the rows of a side.
    pub(super) fn name_of(&self, side: Side) -> String {
        format!("{}/{}", self.name(), rounds::Side::name(side))
    }

    /// Sides to put beside one of ours: the engine's exporter that does the same, or lanes without order beside those with.
    pub(super) fn peers(&self, side: Side) -> Vec<Side> {
        match side {
            Side::Noop | Side::Upstream(_) => Vec::new(),
            Side::Lanes(wire, Lanes::Keyed(count)) => vec![Side::Lanes(wire, Lanes::Turns(count))],
            // There is no counter that tells what the engine's exporters have delivered.
            Side::Lanes(..) if matches!(self.target, Target::Raw | Target::Distant) => Vec::new(),
            Side::Lanes(Wire::OtlpZstd(_), _) => vec![Side::Upstream(Wire::OtlpZstd(3))],
            Side::Lanes(Wire::OtapZstd(_), _) => vec![Side::Upstream(Wire::OtapZstd(1))],
            Side::Lanes(wire, _) => vec![Side::Upstream(wire)],
        }
    }

    /// Items of a run, about a second of work of a core.
    pub(super) fn items(&self, quick: bool) -> u64 {
        let items = match self.source {
            // A hundred round trips of sixteen lanes.
            Source::Sonic { .. } if self.target == Target::Distant => 16_000_000,
            Source::Sonic { .. } if self.batch <= 100 => 400_000,
            Source::Sonic { .. } => 4_000_000,
            Source::Flow | Source::FlowsOf(_) | Source::Syslog { .. } => 400_000,
        };
        if quick { items / 10 } else { items }
    }
}

impl rounds::Side for Side {
    fn name(self) -> &'static str {
        use Lanes::{Keyed, Merging, One, Turns};
        match self {
            Self::Noop => "receiver-alone",
            Self::Lanes(Wire::Otlp, One) => "otlp/1-lane",
            Self::Lanes(Wire::Otlp, Turns(4)) => "otlp/4-lanes",
            Self::Lanes(Wire::Otlp, _) => "otlp/lanes",
            Self::Lanes(Wire::OtlpZstd(1), One) => "otlp-zstd-1/1-lane",
            Self::Lanes(Wire::OtlpZstd(1), Turns(4)) => "otlp-zstd-1/4-lanes",
            Self::Lanes(Wire::OtlpZstd(_), One) => "otlp-zstd-3/1-lane",
            Self::Lanes(Wire::OtlpZstd(_), _) => "otlp-zstd/lanes",
            Self::Lanes(Wire::OtlpGzip, One) => "otlp-gzip/1-lane",
            Self::Lanes(Wire::OtlpGzip, _) => "otlp-gzip/lanes",
            Self::Lanes(Wire::Otap, One) => "otap/1-lane",
            Self::Lanes(Wire::Otap, _) => "otap/lanes",
            Self::Lanes(Wire::OtapZstd(1), One) => "otap-zstd-1/1-lane",
            Self::Lanes(Wire::OtapZstd(1), Turns(2)) => "otap-zstd-1/2-lanes",
            Self::Lanes(Wire::OtapZstd(1), Turns(16)) => "otap-zstd-1/16-lanes",
            Self::Lanes(Wire::OtapZstd(1), Turns(_)) => "otap-zstd-1/4-lanes",
            Self::Lanes(Wire::OtapZstd(1), Keyed(_)) => "otap-zstd-1/4-lanes-keyed",
            Self::Lanes(Wire::OtapZstd(1), Merging) => "otap-zstd-1/merging",
            Self::Lanes(Wire::OtapZstd(_), One) => "otap-zstd-3/1-lane",
            Self::Lanes(Wire::OtapZstd(_), _) => "otap-zstd/lanes",
            Self::Upstream(Wire::Otlp) => "upstream-otlp",
            Self::Upstream(Wire::OtlpZstd(_)) => "upstream-otlp-zstd-3",
            Self::Upstream(Wire::OtlpGzip) => "upstream-otlp-gzip",
            Self::Upstream(Wire::Otap) => "upstream-otap",
            Self::Upstream(Wire::OtapZstd(_)) => "upstream-otap-zstd-1",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every side of every case has rows of its own name.
    #[test]
    fn names() {
        let names: Vec<String> = all()
            .iter()
            .flat_map(|case| case.sides.iter().map(|side| case.name_of(*side)).collect::<Vec<_>>())
            .collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert!(names.contains(&"sonic-500/8192/otap-zstd-1/4-lanes".to_owned()), "{names:?}");
        assert!(names.contains(&"sonic-500/8192/to-engine/otlp/1-lane".to_owned()), "{names:?}");
        assert!(names.contains(&"sonic-500/8192/raw/otlp-zstd-1/4-lanes".to_owned()), "{names:?}");
    }

    /// What one of ours is put beside is measured in the same case.
    #[test]
    fn peers() {
        for case in all() {
            let ours = case.sides.iter().filter(|side| matches!(side, Side::Lanes(..)));
            for side in ours {
                assert!(case.peers(*side).iter().all(|peer| case.sides.contains(peer)), "{}", case.name_of(*side));
            }
        }
    }
}
