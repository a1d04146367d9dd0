//! Objects of a switch: their names, and the statistics that SAI has for them.

use std::ops::RangeInclusive;

use serde::Deserialize;

/// A kind of object. Numbers of objects and statistics are those of SAI (saitypes.h, and the header of each kind).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum SonicObject {
    /// `Ethernet0`, `Ethernet4`, ...
    Port,
    /// `Ethernet0|0` to `Ethernet0|7`, `Ethernet4|0`, ...
    Queue,
    /// `ingress_lossless_pool`, `egress_lossless_pool`, `ingress_lossy_pool`, `egress_lossy_pool`, `pool_4`, ...
    BufferPool,
    /// Priority groups, named as queues are.
    PriorityGroup,
}

impl SonicObject {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Port, Self::Queue, Self::BufferPool, Self::PriorityGroup];

    /// Id of the type of object.
    #[must_use]
    pub fn type_id(self) -> u16 {
        match self {
            Self::Port => 1,
            Self::Queue => 21,
            Self::BufferPool => 24,
            Self::PriorityGroup => 26,
        }
    }

    /// How many statistics there are here, with the ids from 0 on.
    #[must_use]
    pub fn statistics(self) -> u16 {
        match self {
            Self::Port => 91,
            Self::Queue => 47,
            Self::BufferPool => 25,
            Self::PriorityGroup => 15,
        }
    }

    /// Whether a statistic is a level or a watermark, which goes up and down, and no count of events.
    #[must_use]
    pub fn is_level(self, statistic: u16) -> bool {
        let levels: &[RangeInclusive<u16>] = match self {
            Self::Port => &[14..=14],
            Self::Queue => &[24..=27, 36..=37, 39..=39, 41..=44],
            Self::BufferPool => &[0..=1, 19..=24],
            Self::PriorityGroup => &[2..=7, 9..=14],
        };
        levels.iter().any(|range| range.contains(&statistic))
    }

    /// The part after the bar of keys in STATE_DB.
    pub(super) fn group(self) -> &'static str {
        match self {
            Self::Port => "PORT",
            Self::Queue => "QUEUE",
            Self::BufferPool => "BUFFER_POOL",
            Self::PriorityGroup => "INGRESS_PRIORITY_GROUP",
        }
    }

    /// Names of the first `count` objects, sorted: labels are given in this order, from 1 on.
    pub(super) fn names(self, count: u16) -> Vec<String> {
        let mut names: Vec<String> = (0..count).map(|index| self.name(index)).collect();
        names.sort_unstable();
        names
    }

    fn name(self, index: u16) -> String {
        // Ports have four lanes each, and are named after the first.
        match self {
            Self::Port => format!("Ethernet{}", 4 * u32::from(index)),
            Self::Queue | Self::PriorityGroup => format!("Ethernet{}|{}", 4 * u32::from(index / 8), index % 8),
            Self::BufferPool => match index {
                0 => "ingress_lossless_pool".to_owned(),
                1 => "egress_lossless_pool".to_owned(),
                2 => "ingress_lossy_pool".to_owned(),
                3 => "egress_lossy_pool".to_owned(),
                more => format!("pool_{more}"),
            },
        }
    }
}
