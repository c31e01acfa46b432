//! Roots of a function that changes its sign once.

/// A root and what it took to find it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Root {
    pub at: f64,
    pub evaluations: u32,
}

/// Finds where a function passes from positive to negative, between `low` (where it is taken to be
/// positive) and `high` (negative), to within `tolerance`.
///
/// Chandrupatla's method (Advances in Engineering Software 28, 1997): inverse quadratic
/// interpolation where three points allow it, else bisection; never slower than bisection by more
/// than a constant, and the bracket is never left.
pub(super) fn falling_root(
    mut f: impl FnMut(f64) -> f64,
    (low, f_low): (f64, f64),
    (high, f_high): (f64, f64),
    tolerance: f64,
) -> Root {
    let (mut a, mut fa) = (high, f_high);
    let (mut b, mut fb) = (low, f_low);
    let (mut c, mut fc);
    let mut t = 0.5;
    for evaluations in 1..=MOST {
        let x = a + t * (b - a);
        let fx = f(x);
        if (fx > 0.0) == (fa > 0.0) {
            (c, fc) = (a, fa);
        } else {
            (c, b, fc, fb) = (b, a, fb, fa);
        }
        (a, fa) = (x, fx);
        let (best, f_best) = if fa.abs() < fb.abs() { (a, fa) } else { (b, fb) };
        let share = tolerance / (b - c).abs();
        if share > 0.5 || f_best == 0.0 {
            return Root { at: best, evaluations };
        }
        t = interpolation((a, fa), (b, fb), (c, fc)).clamp(share, 1.0 - share);
    }
    Root { at: if fa.abs() < fb.abs() { a } else { b }, evaluations: MOST }
}

/// Evaluations after which the best point so far is returned.
const MOST: u32 = 100;

/// Where between a and b to look next, as a share.
fn interpolation((a, fa): (f64, f64), (b, fb): (f64, f64), (c, fc): (f64, f64)) -> f64 {
    let xi = (a - b) / (c - b);
    let phi = (fa - fb) / (fc - fb);
    if phi * phi < xi && (1.0 - phi) * (1.0 - phi) < 1.0 - xi {
        fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    } else {
        0.5
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_the_root_of_steep_and_flat_functions(root in -5.0..5.0_f64, power in 1_u32..6) {
            let f = |x: f64| {
                let distance = root - x;
                distance.signum() * distance.abs().powi(power.cast_signed()) + 1e-3 * distance
            };
            let found = falling_root(f, (-10.0, f(-10.0)), (10.0, f(10.0)), 1e-10);
            prop_assert!((found.at - root).abs() < 1e-9, "{found:?}");
            prop_assert!(found.evaluations <= 80);
        }
    }
}
