//! Doubles as integers: sorting and comparing `i64` is about twice as fast as `f64::total_cmp`.

/// The integer whose order among keys is the IEEE 754 total order of the doubles.
///
/// `-0.0` has the key just below that of `0.0`. The function is its own inverse on bit level, see
/// [`to_value`].
#[inline]
pub(crate) fn to_key(value: f64) -> i64 {
    flip(value.to_bits().cast_signed())
}

/// The double of a key.
#[inline]
pub(crate) fn to_value(key: i64) -> f64 {
    f64::from_bits(flip(key).cast_unsigned())
}

/// Turns the bits below the sign around where the sign is set: larger magnitudes of negative
/// numbers become smaller integers.
#[inline]
fn flip(bits: i64) -> i64 {
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The keys of ascending doubles ascend, with the two zeros apart.
    #[test]
    fn order_of_keys_is_order_of_values() {
        let ascending = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.5,
            -f64::MIN_POSITIVE,
            -5e-324,
            -0.0,
            0.0,
            5e-324,
            1.0,
            f64::MAX,
            f64::INFINITY,
        ];
        let keys: Vec<i64> = ascending.iter().map(|&value| to_key(value)).collect();
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "{keys:?}");
        assert_eq!(to_key(-0.0) + 1, to_key(0.0));
    }

    proptest! {
        /// Any bit pattern survives, and comparing keys is `total_cmp`.
        #[test]
        fn keys_are_reversible_and_totally_ordered(a: u64, b: u64) {
            let (a, b) = (f64::from_bits(a), f64::from_bits(b));
            prop_assert_eq!(to_value(to_key(a)).to_bits(), a.to_bits());
            prop_assert_eq!(to_key(a).cmp(&to_key(b)), a.total_cmp(&b));
        }
    }
}
