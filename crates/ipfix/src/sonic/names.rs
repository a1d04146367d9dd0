//! SAI numbers and their names.
//!
//! SAI is the interface between SONiC and switch silicon. A counter is a statistic of an object; both come as numbers
//! in the enterprise number of a template field.

use std::borrow::Cow;

use super::tables::{OBJECT_TYPES, STATISTICS};

/// Where SAI's numbers of extensions begin.
const EXTENSION_BASE: u32 = 0x2000_0000;
/// Says in each half of an enterprise number that it counts from [`EXTENSION_BASE`].
const EXTENSION_BIT: u32 = 0x8000;

/// What a counter counts: a statistic of a kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StatisticId {
    /// SAI object type, 0x20000000 and above for extensions.
    pub object_type: u32,
    /// Number of the statistic among those of the type, 0x20000000 and above for extensions.
    pub statistic: u32,
}

impl StatisticId {
    /// Reads the enterprise number of a template field: type in the high half, statistic in the low one, each 15 bits
    /// below a bit that says "extension".
    #[must_use]
    pub fn from_enterprise(enterprise: u32) -> Self {
        Self { object_type: half(enterprise >> 16), statistic: half(enterprise & 0xffff) }
    }

    /// Name of the object type, such as `SAI_OBJECT_TYPE_PORT`; `UNKNOWN_SAI_OBJECT_TYPE_<number>` without one.
    #[must_use]
    pub fn object_type_name(self) -> Cow<'static, str> {
        object_type_name(self.object_type)
            .map_or_else(|| Cow::Owned(format!("UNKNOWN_SAI_OBJECT_TYPE_{}", self.object_type)), Cow::Borrowed)
    }

    /// Name of the statistic, such as `SAI_PORT_STAT_IF_IN_OCTETS`; `UNKNOWN_SAI_STAT_TYPE_<type>_ID_<number>` without
    /// one.
    #[must_use]
    pub fn statistic_name(self) -> Cow<'static, str> {
        statistic_name(self.object_type, self.statistic).map_or_else(
            || Cow::Owned(format!("UNKNOWN_SAI_STAT_TYPE_{}_ID_{}", self.object_type, self.statistic)),
            Cow::Borrowed,
        )
    }
}

fn half(bits: u32) -> u32 {
    let number = bits & (EXTENSION_BIT - 1);
    if bits & EXTENSION_BIT == 0 { number } else { number + EXTENSION_BASE }
}

/// Name of a SAI object type, such as `SAI_OBJECT_TYPE_PORT` for 1.
#[must_use]
pub fn object_type_name(object_type: u32) -> Option<&'static str> {
    let index = OBJECT_TYPES.binary_search_by_key(&object_type, |(number, _)| *number).ok()?;
    OBJECT_TYPES.get(index).map(|(_, name)| *name)
}

/// Name of a statistic of a SAI object type, such as `SAI_PORT_STAT_IF_IN_OCTETS` for 0 of type 1.
#[must_use]
pub fn statistic_name(object_type: u32, statistic: u32) -> Option<&'static str> {
    let key = (object_type, statistic);
    let index = STATISTICS.binary_search_by_key(&key, |(object_type, number, _)| (*object_type, *number)).ok()?;
    STATISTICS.get(index).map(|(_, _, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both halves of the enterprise number, with and without the bits for extensions.
    #[test]
    fn enterprise_numbers() {
        let parts = |enterprise| {
            let id = StatisticId::from_enterprise(enterprise);
            (id.object_type, id.statistic)
        };
        assert_eq!(parts(0x0001_0004), (1, 4));
        assert_eq!(parts(0x8001_8000), (0x2000_0001, 0x2000_0000));
        assert_eq!(parts(0xffff_7fff), (0x2000_7fff, 0x7fff));
        assert_eq!(parts(0x0001_8000), (1, 0x2000_0000));
    }

    /// What has no name gets one that tells its numbers.
    #[test]
    fn fallback_names() {
        let known = StatisticId { object_type: 1, statistic: 4 };
        assert_eq!(known.statistic_name(), "SAI_PORT_STAT_IF_IN_ERRORS");
        assert_eq!(known.object_type_name(), "SAI_OBJECT_TYPE_PORT");
        let unknown = StatisticId { object_type: 31_420, statistic: 5 };
        assert_eq!(unknown.object_type_name(), "UNKNOWN_SAI_OBJECT_TYPE_31420");
        assert_eq!(unknown.statistic_name(), "UNKNOWN_SAI_STAT_TYPE_31420_ID_5");
    }
}
