//! Units of information elements.

mod table;

use crate::elements::REVERSE_ENTERPRISE;
use table::UNITS;

/// Unit of the values of an element, in UCUM as OpenTelemetry writes it: `By`, `{packet}`, `ms`. Elements of the IANA
/// registry (enterprise 0) and their counterparts in the reverse direction have one if the registry names it.
#[must_use]
pub fn element_unit(enterprise: u32, id: u16) -> Option<&'static str> {
    if enterprise != 0 && enterprise != REVERSE_ENTERPRISE {
        return None;
    }
    let index = UNITS.binary_search_by_key(&id, |(known, _)| *known).ok()?;
    UNITS.get(index).map(|(_, unit)| *unit)
}
