//! Numbers for people: four significant digits, prefixed units, intervals.

use gridhaul_scenario::answer::Estimate;

/// A value with its unit: `1.21 Mbit/s`; `–` where it is not a number.
#[must_use]
pub fn value(value: f64, unit: &str) -> String {
    format!("{value} {unit}")
}

/// A mean with its 95 % interval: `1.21 ± 0.03 Mbit/s`; `–` where it is not known.
#[must_use]
pub fn estimate(estimate: &Estimate, unit: &str) -> String {
    estimate.mean.map_or_else(|| "–".into(), |mean| value(mean, unit))
}
