//! Values as they stand in attributes, and the numbers they spell.

use super::observations::Fate;
use super::query::TextNumbers;

/// A value of an attribute that is neither absent nor (unless taken as bytes) a list or map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scalar<'a> {
    /// UTF-8 by promise of the sender; checked where it is kept.
    Text(&'a [u8]),
    Int(i64),
    Double(f64),
    Bool(bool),
    /// Bytes, or a list or map in its encoded form.
    Bytes(&'a [u8]),
}

/// The observed number; `None` is an absent value.
pub(super) fn number(value: Option<Scalar<'_>>, text: TextNumbers) -> Result<f64, Fate> {
    match value {
        None => Err(Fate::NoValue),
        #[allow(clippy::cast_precision_loss, reason = "values above 2^53 are documented to lose their last bits")]
        Some(Scalar::Int(value)) => Ok(value as f64),
        // Zero has no sign: columns of zeros are left out on the way, and with them the sign.
        Some(Scalar::Double(value)) => Ok(value + 0.0),
        Some(Scalar::Text(value)) => match text {
            TextNumbers::Refuse => None,
            TextNumbers::Decimal => decimal(value),
            TextNumbers::Duration => duration(value),
        }
        .ok_or(Fate::NotANumber),
        Some(Scalar::Bool(_) | Scalar::Bytes(_)) => Err(Fate::NotANumber),
    }
}

/// How many observations an item stands for: a finite number of at least 1, also as text; 1 if absent.
///
/// A weight that is no whole number, such as the 1/p of a sampler, becomes one of its two neighbours, so that sums of weights
/// are right on average whatever their order and series. `draw` decides: a number of the item's own, so that the same item
/// has the same weight when it comes again.
pub(super) fn weight(value: Option<Scalar<'_>>, draw: impl Fn() -> u64) -> Option<u64> {
    let weight = match value {
        None => 1,
        Some(Scalar::Int(value)) => u64::try_from(value).ok()?,
        Some(Scalar::Double(value)) => round(value, draw)?,
        Some(Scalar::Text(value)) => {
            let text = as_text(value)?;
            text.parse().ok().or_else(|| round(text.parse().ok()?, draw))?
        }
        Some(_) => return None,
    };
    (weight > 0).then_some(weight)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be within the range")]
#[allow(clippy::cast_precision_loss, reason = "the upper 53 bits only")]
fn round(weight: f64, draw: impl Fn() -> u64) -> Option<u64> {
    /// Below this, doubles hold every integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !(1.0..EXACT).contains(&weight) {
        return None;
    }
    let (whole, fraction) = (weight as u64, weight.fract());
    let up = fraction > 0.0 && ((mix(draw()) >> 11) as f64 / EXACT) < fraction;
    Some(whole + u64::from(up))
}

/// Every bit of the result depends on every bit of `x`: the output function of SplitMix64 (Steele, Lea and Flood, 2014).
const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn as_text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value.trim_ascii()).ok()
}

fn decimal(value: &[u8]) -> Option<f64> {
    as_text(value)?.parse().ok()
}

/// Seconds of a duration: numbers with units, the larger first or not, as many as there are; one sign before all. A
/// number without a unit is no duration, except zero.
fn duration(value: &[u8]) -> Option<f64> {
    let text = as_text(value)?;
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0.0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        seconds += match &rest[..unit] {
            "ns" => number / 1e9,
            // Also with the micro sign and with the Greek letter.
            "us" | "\u{b5}s" | "\u{3bc}s" => number / 1e6,
            "ms" => number / 1e3,
            "s" => number,
            "m" => number * 60.0,
            "h" => number * 3_600.0,
            "d" => number * 86_400.0,
            _ => return None,
        };
        rest = &rest[unit..];
    }
    Some(sign * seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units, sums of units, signs; what has no unit or an unknown one is no duration.
    #[test]
    fn durations_are_seconds() {
        let seconds = |text: &str| number(Some(Scalar::Text(text.as_bytes())), TextNumbers::Duration);
        for (text, expected) in [
            ("1.5s", 1.5),
            ("20ms", 0.02),
            ("1h2m", 3_720.0),
            (" 250us ", 0.000_25),
            ("250\u{b5}s", 0.000_25),
            ("1d", 86_400.0),
            ("7ns", 7e-9),
            ("-2m0.5s", -120.5),
            ("0", 0.0),
        ] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        for text in ["", "-", "s", "12", "1.2.3s", "1x", "1s2", "1 s", "inf", "nans", "\u{1f600}", "1\u{1f600}s"] {
            assert_eq!(seconds(text), Err(Fate::NotANumber), "{text}");
        }
    }

    /// Numbers count as they are; text only on request.
    #[test]
    fn text_is_a_number_on_request() {
        let text = Some(Scalar::Text(b" 7.5 "));
        assert_eq!(number(text, TextNumbers::Decimal), Ok(7.5));
        assert_eq!(number(text, TextNumbers::Refuse), Err(Fate::NotANumber));
        assert_eq!(number(Some(Scalar::Int(3)), TextNumbers::Duration), Ok(3.0));
        assert_eq!(number(Some(Scalar::Bool(true)), TextNumbers::Decimal), Err(Fate::NotANumber));
        assert_eq!(number(None, TextNumbers::Decimal), Err(Fate::NoValue));
    }

    /// Numbers from 1 in any type.
    #[test]
    fn weights_are_numbers_from_one() {
        let of = |value| weight(value, || 0);
        assert_eq!(of(None), Some(1));
        assert_eq!(of(Some(Scalar::Int(1_000))), Some(1_000));
        assert_eq!(of(Some(Scalar::Double(64.0))), Some(64));
        assert_eq!(of(Some(Scalar::Text(b"512"))), Some(512));
        for bad in [
            Scalar::Int(0),
            Scalar::Int(-1),
            Scalar::Double(0.5),
            Scalar::Double(f64::INFINITY),
            Scalar::Double(f64::NAN),
            Scalar::Text(b"many"),
            Scalar::Text(b"0.9"),
            Scalar::Bool(true),
            Scalar::Bytes(b"1"),
        ] {
            assert_eq!(of(Some(bad)), None, "{bad:?}");
        }
    }

    /// Fractions become a neighbour, with the right sum: in all, and of each of three series that take turns.
    #[test]
    fn fractions_are_right_on_average() {
        for (value, text) in [(10.0 / 3.0, "3.3333333333333335"), (1.001, "1.001"), (99.9, "99.9")] {
            let mut sums = [0; 3];
            for n in 0..30_000_u32 {
                let scalar = if n % 2 == 0 { Scalar::Double(value) } else { Scalar::Text(text.as_bytes()) };
                let given = weight(Some(scalar), || u64::from(n)).expect("a weight");
                assert!((given as f64 - value).abs() < 1.0, "{given}");
                sums[n as usize % 3] += given;
            }
            for sum in sums {
                // Four standard deviations of ten thousand roundings, at most 0.5 each.
                assert!((sum as f64 - value * 10_000.0).abs() < 200.0, "{sum} of {value}");
            }
        }
    }
}
