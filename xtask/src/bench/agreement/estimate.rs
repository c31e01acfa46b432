//! Statistical agreement of simulator and kernel.

use super::runs::REPLICATIONS;
use super::{METRICS, Outcome};

/// A mean, the variance of single runs, and the number of runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Estimate {
    pub mean: f64,
    pub variance: f64,
    pub runs: u32,
}

/// Mean and variance of single runs.
pub(super) fn combine(runs: &[Outcome]) -> Outcome {
    let mut combined = [None; METRICS.len()];
    for (index, combined) in combined.iter_mut().enumerate() {
        let means: Option<Vec<f64>> =
            runs.iter().map(|run| run[index].map(|estimate| estimate.mean)).collect();
        *combined = means.map(|means| {
            let count = means.len() as f64;
            let mean = means.iter().sum::<f64>() / count;
            let squares: f64 = means.iter().map(|run| (run - mean).powi(2)).sum();
            Estimate { mean, variance: squares / (count - 1.0), runs: means.len() as u32 }
        });
    }
    combined
}

/// Whether the simulator agrees with the kernel: within a share of the kernel's value, within
/// `least`, or within the confidence interval of the difference.
pub(super) fn agrees(simulated: Estimate, kernel: Estimate, share: f64, minimum: f64) -> bool {
    let deviation = (simulated.mean - kernel.mean).abs();
    deviation <= (share * kernel.mean).max(minimum).max(half_interval(simulated, kernel))
}

/// Half of the 95 % confidence interval of the difference. The larger of two estimates counts: with
/// separate variances, and with the pooled variance, because a few equal runs of the kernel
/// underestimate the variance where the replications of the simulator differ.
fn half_interval(simulated: Estimate, kernel: Estimate) -> f64 {
    let [replications, runs] = [simulated, kernel].map(|side| f64::from(side.runs));
    let separate = (student(simulated.runs - 1) * (simulated.variance / replications).sqrt())
        .hypot(student(kernel.runs - 1) * (kernel.variance / runs).sqrt());
    let freedom = simulated.runs + kernel.runs - 2;
    let pooled = ((replications - 1.0) * simulated.variance + (runs - 1.0) * kernel.variance)
        / f64::from(freedom);
    separate.max(student(freedom) * (pooled * (1.0 / replications + 1.0 / runs)).sqrt())
}

/// Student's t for 95 %, for the degrees of freedom that occur here.
pub(super) fn student(freedom: u32) -> f64 {
    match freedom {
        2 => 4.303,
        3 => 3.182,
        4 => 2.776,
        29 => 2.045,
        31 => 2.040,
        32 => 2.037,
        33 => 2.035,
        _ => {
            unreachable!(
                "{freedom} degrees of freedom: {REPLICATIONS} replications, and three to five runs"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance of the simulator and of the kernel.
    fn pair(simulated: (f64, f64), kernel: (f64, f64)) -> (Estimate, Estimate) {
        let estimate = |(mean, variance), runs| Estimate { mean, variance, runs };
        (estimate(simulated, REPLICATIONS), estimate(kernel, 5))
    }

    #[test]
    fn deviations_within_the_confidence_interval_agree() {
        let agree = |simulated, kernel, share, minimum| {
            let (simulated, kernel) = pair(simulated, kernel);
            agrees(simulated, kernel, share, minimum)
        };
        assert!(agree((109.0, 0.0), (100.0, 0.0), 0.1, 0.0));
        assert!(!agree((111.0, 0.0), (100.0, 0.0), 0.1, 0.0));
        assert!(agree((2.0, 0.0), (0.0, 0.0), 0.2, 2.0), "small counts");
        // Half of the interval of five runs with variance 100 is 2.776 * 10 / sqrt(5) = 12.4.
        assert!(agree((112.0, 0.0), (100.0, 100.0), 0.1, 0.0));
        assert!(!agree((113.0, 0.0), (100.0, 100.0), 0.1, 0.0));
        // Replications with a standard deviation of 10 and five equal runs give 2.035 * 9.4 *
        // sqrt(1 / 30 + 1 / 5) = 9.2.
        let (wide, exact) = pair((100.0, 100.0), (91.0, 0.0));
        let half = half_interval(wide, exact);
        assert!((half - 9.215).abs() < 0.01, "{half}");
    }

    #[test]
    fn runs_have_a_mean_and_a_variance() {
        let run = |mean| {
            let estimate = Some(Estimate { mean, variance: 0.0, runs: 1 });
            [estimate, estimate, None]
        };
        let [Some(Estimate { mean, variance, runs }), _, None] = combine(&[1.0, 2.0, 3.0].map(run))
        else {
            panic!("two metrics");
        };
        assert_eq!((mean, variance, runs), (2.0, 1.0, 3));
    }
}
