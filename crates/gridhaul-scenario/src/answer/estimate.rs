//! The mean of a metric over replications, and its uncertainty.

use serde::{Deserialize, Serialize};

/// A metric over the replications of a point. The metric is computed for each replication; `mean`
/// is the mean of these values, also for ratios, percentiles and maxima.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Estimate {
    /// Mean over the replications; null if the quantity does not exist or is not known.
    pub mean: Option<f64>,
    /// Half width of the 95 % confidence interval of the mean (Student's t with n − 1 degrees of
    /// freedom); null with fewer than two replications and if the point is deterministic.
    pub ci95: Option<f64>,
    /// Number of replications in which the quantity exists, over which the mean is taken; at most
    /// the `replications` of the answer.
    pub n: u32,
    /// True if the mean is censored: it excludes what was not finished at the end of a run, such as
    /// the completion times of unfinished transfers. Absent otherwise.
    #[serde(default, skip_serializing_if = "is_false")]
    pub censored: bool,
}

impl Estimate {
    /// Mean and interval of independent replications.
    #[must_use]
    pub fn of(samples: &[f64]) -> Self {
        let Some(&first) = samples.first() else { return Self::default() };
        let n = samples.len();
        // Relative to the first value, so that equal values have exactly this mean and no variance.
        let mean = first + samples.iter().map(|sample| sample - first).sum::<f64>() / n as f64;
        let ci95 = (n > 1).then(|| {
            let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
            let variance = squares / (n - 1) as f64;
            student_t95(n - 1) * (variance / n as f64).sqrt()
        });
        Self { mean: Some(mean), ci95, n: n as u32, censored: false }
    }

    /// A value without a confidence interval, known in `n` replications.
    #[must_use]
    pub const fn exact(value: f64, n: u32) -> Self {
        Self { mean: Some(value), ci95: None, n, censored: false }
    }

    /// Half width of the 95 % confidence interval of the difference of two independent means, by
    /// the method of Welch (1947) with degrees of freedom after Satterthwaite (1946), rounded down.
    /// `None` where one of the two has no interval.
    #[must_use]
    pub fn ci95_of_difference(&self, other: &Self) -> Option<f64> {
        let (own, of_other) = (self.squared_error()?, other.squared_error()?);
        let sum = own + of_other;
        if sum <= 0.0 {
            return Some(0.0);
        }
        let part = |square: f64, n: u32| (square / sum).powi(2) / f64::from(n - 1);
        let degrees = 1.0 / (part(own, self.n) + part(of_other, other.n));
        // A whole number must not be rounded down because its last bit is missing.
        Some(student_t95((degrees + 1e-9) as usize) * sum.sqrt())
    }

    /// Square of the standard error of the mean.
    fn squared_error(&self) -> Option<f64> {
        let half_width = self.ci95?;
        (self.n > 1).then(|| (half_width / student_t95(self.n as usize - 1)).powi(2))
    }
}

/// Two-sided 95 % quantile of Student's t, by table up to 30 degrees of freedom and by the
/// Cornish–Fisher expansion above (error below 0.0005).
fn student_t95(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    if let Some(t) = TABLE.get(degrees.saturating_sub(1)) {
        return *t;
    }
    let (z, n) = (1.959_964_f64, degrees as f64);
    z + (z.powi(3) + z) / (4.0 * n)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_false(value: &bool) -> bool {
    !*value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(value: f64, expected: f64, within: f64) {
        assert!((value - expected).abs() <= within, "{value} is not {expected} ± {within}");
    }

    #[test]
    fn interval_of_a_known_sample() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!((estimate.mean, estimate.n), (Some(3.0), 5));
        // t(4) = 2.776, s = 1.5811, s / sqrt(5) = 0.7071.
        assert_close(estimate.ci95.unwrap(), 1.963, 0.001);
        // Two values: t(1) = 12.706, s / sqrt(2) = 0.5.
        assert_close(Estimate::of(&[1.0, 2.0]).ci95.unwrap(), 6.353, 1e-9);
        assert_eq!(Estimate::of(&[7.0]).ci95, None);
        assert_eq!(Estimate::of(&[]), Estimate::default());
    }

    #[test]
    fn quantiles_of_student_t() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2, column 0.975.
        let table = [
            (1, 12.706),
            (2, 4.303),
            (4, 2.776),
            (9, 2.262),
            (29, 2.045),
            (30, 2.042),
            (31, 2.040),
            (40, 2.021),
            (60, 2.000),
            (100, 1.984),
            (1_000_000, 1.960),
        ];
        for (degrees, t) in table {
            assert_close(student_t95(degrees), t, 0.0006);
        }
    }

    #[test]
    fn equal_values_have_their_own_mean_and_no_variance() {
        // 0.1 + 0.1 + 0.1 is not 0.3, and a third of it is not 0.1.
        for value in [0.1, 1.0 / 3.0, 1e300, -7.7e-9] {
            for n in 2..50 {
                let estimate = Estimate::of(&vec![value; n]);
                assert_eq!((estimate.mean, estimate.ci95), (Some(value), Some(0.0)), "{n}");
            }
        }
    }

    #[test]
    fn large_values_that_differ_little_keep_their_variance() {
        let estimate = Estimate::of(&[1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0]);
        assert_eq!(estimate.mean, Some(1e9 + 10.0));
        // The variance is 30; t(3) = 3.182.
        assert_close(estimate.ci95.unwrap(), 3.182 * (30.0_f64 / 4.0).sqrt(), 1e-6);
    }

    #[test]
    fn interval_of_a_difference_by_welch() {
        let a = Estimate::of(&[1.0, 2.0, 3.0, 4.0]);
        let b = Estimate::of(&[3.0, 5.0, 6.0, 4.0, 7.0]);
        let half_width = a.ci95_of_difference(&b).unwrap();
        // Variances 5/3 of four and 2.5 of five; df 6.98 is rounded down to 6: t = 2.447.
        let error = (5.0_f64 / 3.0 / 4.0 + 2.5 / 5.0).sqrt();
        assert_close(half_width, 2.447 * error, 1e-9);
        assert_eq!(b.ci95_of_difference(&a), Some(half_width));
        // Equal variances and numbers: twice the degrees of freedom of one.
        let equal = a.ci95_of_difference(&a).unwrap();
        assert_close(equal, 2.447 * (2.0 * 5.0_f64 / 3.0 / 4.0).sqrt(), 1e-9);
        // One without variance: the interval of the other alone.
        let constant = Estimate::of(&[2.0, 2.0, 2.0]);
        assert_close(a.ci95_of_difference(&constant).unwrap(), a.ci95.unwrap(), 1e-12);
        assert_eq!(constant.ci95_of_difference(&constant), Some(0.0));
        assert_eq!(a.ci95_of_difference(&Estimate::of(&[1.0])), None);
        assert_eq!(a.ci95_of_difference(&Estimate::exact(1.0, 5)), None);
    }

    #[test]
    fn the_mark_of_a_censored_mean_is_written_only_if_set() {
        let json = |estimate: Estimate| serde_json::to_string(&estimate).unwrap();
        let finished = Estimate::exact(1.5, 2);
        assert_eq!(json(finished), r#"{"mean":1.5,"ci95":null,"n":2}"#);
        let censored = Estimate { censored: true, ..finished };
        assert_eq!(json(censored), r#"{"mean":1.5,"ci95":null,"n":2,"censored":true}"#);
        assert_eq!(serde_json::from_str::<Estimate>(&json(finished)).unwrap(), finished);
        assert_eq!(serde_json::from_str::<Estimate>(&json(censored)).unwrap(), censored);
        assert_eq!(json(Estimate::default()), r#"{"mean":null,"ci95":null,"n":0}"#);
    }
}
