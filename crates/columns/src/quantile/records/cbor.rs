//! Steps into a map or list attribute, which OTAP carries as CBOR.

use minicbor::Decoder;
use minicbor::data::Type;
use minicbor::decode::Error;

use crate::quantile::number::Scalar;

/// The value at the end of `steps`: by key in a map, where the last of equal keys wins, by position in a list. A list or
/// map at the end is given as its bytes; what cannot be read is absent.
pub(super) fn at<'a>(encoded: &'a [u8], steps: &[String]) -> Option<Scalar<'a>> {
    let mut decoder = Decoder::new(encoded);
    for step in steps {
        let position = enter(&mut decoder, step).ok().flatten()?;
        decoder.set_position(position);
    }
    leaf(&mut decoder, encoded)
}

/// The position of the value that `step` leads to.
fn enter(decoder: &mut Decoder<'_>, step: &str) -> Result<Option<usize>, Error> {
    let mut found = None;
    match decoder.datatype()? {
        Type::Map | Type::MapIndef => {
            let mut left = decoder.map()?;
            while more(decoder, &mut left)? {
                let is_wanted = match decoder.datatype()? {
                    Type::String => decoder.str()? == step,
                    _ => {
                        decoder.skip()?;
                        false
                    }
                };
                if is_wanted {
                    found = Some(decoder.position());
                }
                decoder.skip()?;
            }
        }
        Type::Array | Type::ArrayIndef => {
            let Ok(wanted) = step.parse::<u64>() else { return Ok(None) };
            let mut left = decoder.array()?;
            for _ in 0..wanted {
                if !more(decoder, &mut left)? {
                    return Ok(None);
                }
                decoder.skip()?;
            }
            if more(decoder, &mut left)? {
                found = Some(decoder.position());
            }
        }
        _ => {}
    }
    Ok(found)
}

/// Whether a map or list has another entry; `left` is `None` where only its end tells.
fn more(decoder: &mut Decoder<'_>, left: &mut Option<u64>) -> Result<bool, Error> {
    match left {
        Some(0) => Ok(false),
        Some(left) => {
            *left -= 1;
            Ok(true)
        }
        None => Ok(decoder.datatype()? != Type::Break),
    }
}

fn leaf<'a>(decoder: &mut Decoder<'a>, encoded: &'a [u8]) -> Option<Scalar<'a>> {
    let start = decoder.position();
    Some(match decoder.datatype().ok()? {
        Type::String => Scalar::Text(decoder.str().ok()?.as_bytes()),
        Type::Bytes => Scalar::Bytes(decoder.bytes().ok()?),
        Type::Bool => Scalar::Bool(decoder.bool().ok()?),
        Type::F16 => Scalar::Double(half(*encoded.get(start + 1..)?.first_chunk()?)),
        Type::F32 => Scalar::Double(f64::from(decoder.f32().ok()?)),
        Type::F64 => Scalar::Double(decoder.f64().ok()?),
        Type::Map | Type::MapIndef | Type::Array | Type::ArrayIndef => {
            decoder.skip().ok()?;
            Scalar::Bytes(encoded.get(start..decoder.position())?)
        }
        Type::Null | Type::Undefined => return None,
        _ => Scalar::Int(decoder.i64().ok()?),
    })
}

/// A half precision number (IEEE 754): the shortest form, which encoders take where nothing is lost.
fn half(bytes: [u8; 2]) -> f64 {
    let bits = u16::from_be_bytes(bytes);
    let fraction = f64::from(bits & 0x3ff);
    let magnitude = match bits >> 10 & 0x1f {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1024.0 + fraction) * 2f64.powi(i32::from(exponent) - 25),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(path: &[&str]) -> Vec<String> {
        path.iter().map(|step| (*step).to_owned()).collect()
    }

    /// Maps by key, lists by position, of known and unknown length; the last of equal keys wins.
    #[test]
    fn steps_lead_into_maps_and_lists() {
        // {"a": {_ "x": 1, "l": [_ 1.5 as half, "t"], "x": 2}, 5: 6, "n": null}
        let encoded = b"\xa3\x61a\xbf\x61x\x01\x61l\x9f\xf9\x3e\x00\x61t\xff\x61x\x02\xff\x05\x06\x61n\xf6";
        let at = |path: &[&str]| at(encoded, &steps(path));
        assert_eq!(at(&["a", "x"]), Some(Scalar::Int(2)));
        assert_eq!(at(&["a", "l", "0"]), Some(Scalar::Double(1.5)));
        assert_eq!(at(&["a", "l", "1"]), Some(Scalar::Text(b"t")));
        assert_eq!(at(&["a", "l"]), Some(Scalar::Bytes(b"\x9f\xf9\x3e\x00\x61t\xff")));
        for absent in [&["a", "l", "2"][..], &["a", "l", "t"], &["a", "y"], &["n"], &["n", "x"], &["5"]] {
            assert_eq!(at(absent), None, "{absent:?}");
        }
    }

    /// Any cut and any changed byte gives a value or none, and ends.
    #[test]
    fn damage_is_absence() {
        let encoded = b"\xa1\x61a\xbf\x61x\x9a\xff\xff\xff\xff\x01\xff".to_vec();
        for cut in 0..encoded.len() {
            let _ = at(&encoded[..cut], &steps(&["a", "x", "4000000000"]));
        }
        for place in 0..encoded.len() {
            for byte in 0..=u8::MAX {
                let mut damaged = encoded.clone();
                damaged[place] = byte;
                let _ = at(&damaged, &steps(&["a", "x", "0"]));
            }
        }
        assert_eq!(at(b"\xbf\x61a", &steps(&["a"])), None);
    }

    /// Normal, subnormal, infinite and negative halves.
    #[test]
    fn halves_are_read() {
        assert_eq!(half([0x3c, 0x00]), 1.0);
        assert_eq!(half([0xc0, 0x00]), -2.0);
        assert_eq!(half([0x00, 0x01]), 2f64.powi(-24));
        assert_eq!(half([0x7b, 0xff]), 65_504.0);
        assert_eq!(half([0xfc, 0x00]), f64::NEG_INFINITY);
        assert!(half([0x7e, 0x00]).is_nan());
    }
}
