//! Whether simulator and kernel agree, chance considered.

use super::Outcome;
use super::measure::REPEATS;

/// A mean, the variance of one run, and how many there were.
#[derive(Debug, Clone, Copy)]
pub(super) struct Estimate {
    pub mean: f64,
    pub variance: f64,
    pub runs: u32,
}

/// Mean and variance of single runs.
pub(super) fn combine(runs: &[Outcome]) -> Outcome {
    let count = runs.len() as f64;
    [0, 1].map(|index| {
        let mean = runs.iter().map(|run| run[index].mean).sum::<f64>() / count;
        let squares: f64 = runs.iter().map(|run| (run[index].mean - mean).powi(2)).sum();
        Estimate { mean, variance: squares / (count - 1.0), runs: runs.len() as u32 }
    })
}

/// Whether the simulator agrees with the kernel: within a share of what the kernel says, within
/// `least`, or within what chance makes of the difference.
pub(super) fn agrees(simulated: Estimate, kernel: Estimate, share: f64, least: f64) -> bool {
    let off = (simulated.mean - kernel.mean).abs();
    off <= (share * kernel.mean).max(least).max(half_of_difference(simulated, kernel))
}

/// Half of the 95 % interval of the difference. A few runs that are all the same say little where the
/// repeats scatter, as where a single packet at the start decides: then the variance of both together
/// counts, as it is if they are draws of the same; else that of each side.
fn half_of_difference(simulated: Estimate, kernel: Estimate) -> f64 {
    let [repeats, runs] = [simulated, kernel].map(|side| f64::from(side.runs));
    let apart = (student(simulated.runs - 1) * (simulated.variance / repeats).sqrt())
        .hypot(student(kernel.runs - 1) * (kernel.variance / runs).sqrt());
    let both = simulated.runs + kernel.runs - 2;
    let pooled =
        ((repeats - 1.0) * simulated.variance + (runs - 1.0) * kernel.variance) / f64::from(both);
    apart.max(student(both) * (pooled * (1.0 / repeats + 1.0 / runs)).sqrt())
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
            unreachable!("{freedom} degrees of freedom: {REPEATS} repeats, and three to five runs")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the simulator says, and what the kernel does.
    fn pair(simulated: (f64, f64), kernel: (f64, f64)) -> (Estimate, Estimate) {
        let estimate = |(mean, variance), runs| Estimate { mean, variance, runs };
        (estimate(simulated, REPEATS), estimate(kernel, 5))
    }

    #[test]
    fn intervals_excuse_what_draws_explain() {
        let agree = |simulated, kernel, share, least| {
            let (simulated, kernel) = pair(simulated, kernel);
            agrees(simulated, kernel, share, least)
        };
        assert!(agree((109.0, 0.0), (100.0, 0.0), 0.1, 0.0));
        assert!(!agree((111.0, 0.0), (100.0, 0.0), 0.1, 0.0));
        assert!(agree((2.0, 0.0), (0.0, 0.0), 0.2, 2.0), "small counts");
        // Half of the interval of five runs with variance 100 is 2.776 * 10 / sqrt(5) = 12.4.
        assert!(agree((112.0, 0.0), (100.0, 100.0), 0.1, 0.0));
        assert!(!agree((113.0, 0.0), (100.0, 100.0), 0.1, 0.0));
        // Repeats that scatter by 10 leave five equal runs 2.035 * 9.4 * sqrt(1 / 30 + 1 / 5) = 9.2.
        let (wide, exact) = pair((100.0, 100.0), (91.0, 0.0));
        let half = half_of_difference(wide, exact);
        assert!((half - 9.215).abs() < 0.01, "{half}");
    }

    #[test]
    fn runs_have_a_mean_and_a_variance() {
        let run = |mean| [Estimate { mean, variance: 0.0, runs: 1 }; 2];
        let Estimate { mean, variance, runs } = combine(&[1.0, 2.0, 3.0].map(run))[0];
        assert_eq!((mean, variance, runs), (2.0, 1.0, 3));
    }
}
