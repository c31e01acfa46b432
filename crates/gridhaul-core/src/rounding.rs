//! Rounding of floating-point numbers through integers.
//!
//! The functions of `f64` are calls to the library where the processor may have no instruction for
//! them, as x86-64 before SSE 4.1; simulations round several numbers for each message.

/// 1.5 · 2^52: the sum of this number and one of less than 2^51 has no bits for a fraction.
const NO_FRACTION: f64 = 6_755_399_441_055_744.0;

/// The largest integer that is not above `x`, as [`f64::floor`]; `x` must be between -2^63 and
/// 2^63.
#[inline]
pub(crate) const fn floor(x: f64) -> f64 {
    // The addition rounds to the next integer, in fewer instructions than a conversion, which
    // saturates.
    let is_small = x.abs() < NO_FRACTION / 3.0;
    let integer = if is_small { (x + NO_FRACTION) - NO_FRACTION } else { x as i64 as f64 };
    if integer > x { integer - 1.0 } else { integer }
}

/// `x` without its fraction, as [`f64::trunc`] apart from the sign of zero; `x` must be between
/// -2^63 and 2^63.
#[inline]
pub(crate) const fn truncate(x: f64) -> f64 {
    x as i64 as f64
}

/// The integer next to `x`, halves away from zero, as [`f64::round`]; [`u64::MAX`] if that is
/// smaller, and 0 for negative numbers.
#[inline]
pub(crate) const fn round_to_u64(x: f64) -> u64 {
    if x >= 0.0 && x < NO_FRACTION / 3.0 {
        // The last bits of the sum are the next integer, halves to an even one: fewer instructions
        // than a conversion, which saturates.
        let sum = x + NO_FRACTION;
        let next = sum.to_bits() - NO_FRACTION.to_bits();
        return next + (x - (sum - NO_FRACTION) >= 0.5) as u64;
    }
    let truncated = x as u64;
    // From 2^53 on, every number is an integer, and the difference is zero.
    truncated.saturating_add((x - truncated as f64 >= 0.5) as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Numbers of all magnitudes up to 2^62, half of them close to a multiple of one half.
    fn numbers() -> impl Strategy<Value = f64> {
        let magnitude = (1.0_f64..2.0, -60_i32..62).prop_map(|(m, e)| m * 2.0_f64.powi(e));
        let half = (0_u64..1 << 53, -2_i64..3).prop_map(|(halves, ulps)| {
            f64::from_bits((halves as f64 / 2.0).to_bits().saturating_add_signed(ulps))
        });
        prop_oneof![magnitude, half]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn results_equal_those_of_the_library(x in numbers()) {
            prop_assert_eq!(floor(x), x.floor());
            prop_assert_eq!(floor(-x), (-x).floor());
            prop_assert_eq!(truncate(x), x.trunc());
            prop_assert_eq!(truncate(-x), (-x).trunc());
            prop_assert_eq!(round_to_u64(x), x.round() as u64);
        }
    }

    #[test]
    fn rounding_saturates() {
        for x in [-1.0, -0.5, 0.0, -0.0, 0.49, 1.8e19, 1.9e19, f64::MAX, f64::INFINITY] {
            assert_eq!(round_to_u64(x), x.round() as u64, "{x}");
        }
    }
}
