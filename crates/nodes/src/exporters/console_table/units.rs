//! Numbers with their unit, short enough to compare at a glance.

/// A number in its UCUM unit: bytes with binary prefixes, times in the unit that suits them, others as they are.
pub(super) fn readable(value: f64, unit: &str) -> String {
    match unit {
        "By" => scaled(value, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"]),
        "ns" => duration(value),
        "us" => duration(value * 1e3),
        "ms" => duration(value * 1e6),
        "s" => duration(value * 1e9),
        _ => plain(value),
    }
}

fn scaled(value: f64, step: f64, names: &[&str]) -> String {
    let mut value = value;
    let mut at = 0;
    while value.abs() >= step && at + 1 < names.len() {
        value /= step;
        at += 1;
    }
    format!("{} {}", plain(value), names[at])
}

fn duration(ns: f64) -> String {
    const UNITS: [(f64, &str); 5] = [(3.6e12, "h"), (6e10, "min"), (1e9, "s"), (1e6, "ms"), (1e3, "us")];
    match UNITS.iter().find(|(size, _)| ns.abs() >= *size) {
        Some((size, name)) => format!("{} {name}", plain(ns / size)),
        None if ns == 0.0 => "0".to_owned(),
        None => format!("{} ns", plain(ns)),
    }
}

/// Three significant digits below 1000, all of a whole number.
pub(super) fn plain(value: f64) -> String {
    if value.fract() == 0.0 || !value.is_finite() || value.abs() >= 1e15 {
        return format!("{value}");
    }
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn numbers_are_short() {
        for (value, unit, expected) in [
            (568.0, "By", "568 B"),
            (16_308.0, "By", "15.9 KiB"),
            (1_502_520.0, "By", "1.43 MiB"),
            (7.0, "ms", "7 ms"),
            (1_002.0, "ms", "1.00 s"),
            (0.0, "ms", "0"),
            (0.25, "ms", "250 us"),
            (-1.0, "ms", "-1 ms"),
            (90.0, "s", "1.50 min"),
            (5.0, "", "5"),
            (1_234.5, "{packet}", "1234"),
        ] {
            assert_eq!(readable(value, unit), expected, "{value} {unit}");
        }
    }
}
