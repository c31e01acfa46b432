//! The cube root by additions, multiplications and divisions only: IEEE 754 defines their rounding,
//! whereas the library's `cbrt` may differ between platforms.

/// Cube root of a number that is not negative; zero for anything else.
pub(super) fn cube_root(x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 || x.is_infinite() {
        return 0.0;
    }
    // A third of the exponent (two thirds of its bias added back) is within a few per cent.
    let mut root = f64::from_bits(x.to_bits() / 3 + 2 * (1023 << 52) / 3);
    // Newton's steps for r^3 = x double the right digits: 5 % become 1e-16 within four; the others
    // cover subnormal numbers.
    for _ in 0..6 {
        root -= (root - x / (root * root)) / 3.0;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cubes_of_integers_have_exact_roots() {
        for number in 1..=100_u32 {
            let root = f64::from(number);
            assert!((cube_root(root * root * root) - root).abs() <= 1e-13 * root, "{number}");
        }
        assert_eq!([cube_root(0.0), cube_root(-8.0), cube_root(f64::NAN)], [0.0; 3]);
    }

    #[test]
    fn the_result_is_bit_identical_on_every_platform() {
        // W_max = 100 segments, cwnd = 70: K = (30 / 0.4)^(1/3) = 4.217163 s.
        assert_eq!(cube_root(75.0).to_bits(), 0x4010_de60_1024_fb88);
    }

    proptest! {
        #[test]
        fn the_root_cubed_is_the_number(x in 1e-300_f64..1e300) {
            let root = cube_root(x);
            prop_assert!((root * root * root / x - 1.0).abs() < 1e-14, "{x}: {root}");
        }
    }
}
