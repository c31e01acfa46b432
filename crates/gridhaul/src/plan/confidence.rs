//! Share of all runs that a number of successful runs shows.

/// Runs of the choice by default: with 95 % confidence, at least 86 % of all runs meet the limits.
pub(crate) const RUNS_DEFAULT: usize = 20;

/// Minimum share of all runs that meet the limits, with a confidence of 95 %, if all of `runs`
/// independent runs do: the lower limit of the one-sided interval of Clopper and Pearson
/// (Biometrika 26, 1934), which for `n` of `n` is `0.05^(1/n)`.
pub(crate) fn share_shown(runs: usize) -> f64 {
    if runs == 0 { 0.0 } else { 0.05_f64.powf(1.0 / runs as f64) }
}

/// `20 of 20 runs; with 95 % confidence, at least 86 % of runs`. The share is rounded down.
pub(crate) fn statement(runs: usize) -> String {
    let percent = (share_shown(runs) * 100.0).floor();
    format!("{runs} of {runs} runs; with 95 % confidence, at least {percent:.0} % of runs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_that_of_the_tables_of_clopper_and_pearson() {
        // If 86.09 % of runs meet the limits, 20 of 20 do with a probability of 5 %.
        assert!((share_shown(20).powi(20) - 0.05).abs() < 1e-12);
        assert!((share_shown(20) - 0.8609).abs() < 1e-4);
        // 59 is the smallest number of runs that shows 95 % (the rule of Wilks).
        assert!(share_shown(59) >= 0.95 && share_shown(58) < 0.95);
        assert_eq!(share_shown(0), 0.0);
        assert_eq!(statement(20), "20 of 20 runs; with 95 % confidence, at least 86 % of runs");
        assert_eq!(statement(3), "3 of 3 runs; with 95 % confidence, at least 36 % of runs");
    }
}
