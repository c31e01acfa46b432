//! Roots of a function that changes its sign once.

/// A root and what it took to find it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Root {
    pub at: f64,
    pub evaluations: u32,
}

/// Finds where a function passes from positive to negative, between `low` (where it is taken to be
/// positive) and `high` (negative), to within `tolerance`.
///
/// Chandrupatla's method (Advances in Engineering Software 28, 1997): inverse quadratic
/// interpolation where three points allow it, else bisection; never slower than bisection by more
/// than a constant, and the bracket is never left.
pub(crate) fn falling_root(
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

/// Where a falling function passes zero near a point, by secants from a guess of its slope, which is
/// replaced by the last one seen. Found to within `tolerance`, and where the function is below ten
/// times that however steep it is. `None` as soon as a step does not come much nearer: then a bracket
/// is needed.
pub(crate) fn secant_root(
    mut f: impl FnMut(f64) -> f64,
    start: f64,
    slope: &mut f64,
    tolerance: f64,
) -> Option<f64> {
    let (mut x, mut fx) = (start, f(start));
    for steps in 0..NEAR {
        let step = -fx / *slope;
        if step.abs() < tolerance && fx.abs() < STEEP * tolerance {
            return Some(x);
        }
        if step.is_nan() || step.abs() >= LONGEST {
            break;
        }
        let (next, f_next) = (x + step, f(x + step));
        let seen = (f_next - fx) / step;
        // The first step tells how good the guess was; the next goes by what it has seen.
        let nearer = steps == 0 || f_next.abs() < 0.5 * fx.abs();
        if !(STEEPNESS.contains(&-seen) && nearer) {
            break;
        }
        (*slope, x, fx) = (seen, next, f_next);
    }
    *slope = -1.0;
    None
}

/// Value of the function over the tolerance of its place.
const STEEP: f64 = 10.0;
/// Secants that are tried.
const NEAR: u32 = 8;
/// Longest step: what is farther away is not near.
const LONGEST: f64 = 3.0;
/// Slopes that are believed; a flat function leaves its root open.
const STEEPNESS: std::ops::Range<f64> = 0.01..1e4;

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

        #[test]
        fn secants_find_the_root_or_say_that_they_do_not(
            root in -5.0..5.0_f64,
            bend in -0.9..0.9_f64,
            start in -5.0..5.0_f64,
        ) {
            let f = |x: f64| (root - x) + bend * (root - x).sin();
            let mut slope = -1.0;
            if let Some(at) = secant_root(f, start, &mut slope, 1e-10) {
                prop_assert!((at - root).abs() < 1e-8, "{at} {root}");
            } else {
                prop_assert!((start - root).abs() > 1e-3);
            }
        }

        #[test]
        fn a_wrong_guess_of_the_slope_costs_a_step(root in -5.0..5.0_f64, steep in 0.1..200.0_f64) {
            let (mut slope, mut evaluations, mut last) = (-1.0, 0, 1.0);
            let f = |x: f64| {
                evaluations += 1;
                last = steep * (root - x).sin();
                last
            };
            let at = secant_root(f, root - 0.001, &mut slope, 1e-10);
            prop_assert!(at.is_some_and(|at| (at - root).abs() < 1e-10), "{at:?}");
            prop_assert!(last.abs() < 1e-9 && evaluations <= 5, "{last} {evaluations}");
            prop_assert!((slope / -steep - 1.0).abs() < 0.01, "{slope}");
        }
    }
}
