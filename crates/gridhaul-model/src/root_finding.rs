//! Root finding for functions with one change of sign.

/// A root and the number of function evaluations that were needed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Root {
    pub at: f64,
    pub evaluations: u32,
}

/// A value of a function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Evaluation {
    pub at: f64,
    pub value: f64,
}

/// Finds the zero of a falling function between `low` (assumed positive) and `high` (assumed
/// negative) to within `tolerance`.
///
/// Chandrupatla's method (Advances in Engineering Software 28, 1997): inverse quadratic
/// interpolation where three points allow it, else bisection. It is never slower than bisection by
/// more than a constant factor, and never leaves the bracket.
pub(crate) fn falling_root(
    mut f: impl FnMut(f64) -> f64,
    low: Evaluation,
    high: Evaluation,
    tolerance: f64,
) -> Root {
    let Evaluation { at: mut a, value: mut fa } = high;
    let Evaluation { at: mut b, value: mut fb } = low;
    let (mut c, mut fc);
    let mut t = 0.5;
    for evaluations in 1..=EVALUATIONS_MAX {
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
        t = interpolation([(a, fa), (b, fb), (c, fc)]).clamp(share, 1.0 - share);
    }
    Root { at: if fa.abs() < fb.abs() { a } else { b }, evaluations: EVALUATIONS_MAX }
}

/// Finds the zero of a falling function near `start` by the secant method. `slope` is the initial
/// estimate of the derivative and is replaced by the last one slope_now. The root is accurate to
/// within `tolerance`, and the function value there is below ten times `tolerance`. Returns `None`
/// as soon as a step does not halve the function value; a bracketing method is needed then.
pub(crate) fn secant_root(
    mut f: impl FnMut(f64) -> f64,
    start: f64,
    slope: &mut f64,
    tolerance: f64,
) -> Option<f64> {
    let (mut x, mut fx) = (start, f(start));
    for steps in 0..SECANT_STEPS_MAX {
        let step = -fx / *slope;
        if step.abs() < tolerance && fx.abs() < STEEP * tolerance {
            return Some(x);
        }
        if step.is_nan() || step.abs() >= LONGEST {
            break;
        }
        let (next, f_next) = (x + step, f(x + step));
        let slope_now = (f_next - fx) / step;
        // The first step measures the slope; only later steps must reduce the function value.
        let converges = steps == 0 || f_next.abs() < 0.5 * fx.abs();
        if !(STEEPNESS.contains(&-slope_now) && converges) {
            break;
        }
        (*slope, x, fx) = (slope_now, next, f_next);
    }
    *slope = -1.0;
    None
}

/// Largest accepted function value, in multiples of the tolerance of the root.
const STEEP: f64 = 10.0;
/// Maximum number of secant steps.
const SECANT_STEPS_MAX: u32 = 8;
/// Longest step that counts as near the start.
const LONGEST: f64 = 3.0;
/// Accepted absolute slopes; a flat function does not determine its root.
const STEEPNESS: std::ops::Range<f64> = 0.01..1e4;

/// Number of evaluations after which the best point so far is returned.
const EVALUATIONS_MAX: u32 = 100;

/// Position of the next evaluation between a and b, as a fraction.
fn interpolation([(a, fa), (b, fb), (c, fc)]: [(f64, f64); 3]) -> f64 {
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
            let evaluation = |at: f64| Evaluation { at, value: f(at) };
            let found = falling_root(f, evaluation(-10.0), evaluation(10.0), 1e-10);
            prop_assert!((found.at - root).abs() < 1e-9, "{found:?}");
            prop_assert!(found.evaluations <= 80);
        }

        #[test]
        fn secants_find_the_root_or_return_none(
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
        fn a_wrong_initial_slope_costs_one_step(root in -5.0..5.0_f64, steep in 0.1..200.0_f64) {
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
