//! What is answered: one schema for all backends.

mod capture;
mod delay;
mod metric;
mod recording;
mod runs;
mod series;
mod unopened;
mod verdict;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use capture::Capture;
pub use delay::{DelayCounts, DelayDistribution};
pub use metric::{Metric, MetricInfo, Scope};
pub use recording::{Recording, Window};
pub use runs::{Metrics, RowNames, RunRows};
pub use series::{Column, ColumnData, Series};
pub use verdict::Verdict;

/// The answer of one backend to one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// Version of this schema.
    pub schema: u32,
    /// Version of gridhaul that answered.
    pub gridhaul: String,
    /// Backend that answered: `sim`, later `model` and `emu`.
    pub backend: String,
    /// Title of the scenario.
    pub title: String,
    /// SHA-256 of the merged scenario without its `folder`, hexadecimal.
    pub scenario_sha256: String,
    /// Seed of the scenario.
    pub seed: u64,
    /// Runs behind each point.
    pub repeats: u32,
    /// One for each combination of swept values; one without a sweep.
    pub points: Vec<Point>,
    /// What a reader must know before trusting the numbers.
    pub warnings: Vec<Warning>,
    /// Recorded series. In files they are Parquet tables beside the JSON.
    #[serde(skip)]
    pub series: Vec<Series>,
    /// Recorded packets, as pcapng files.
    #[serde(skip)]
    pub captures: Vec<Capture>,
}

/// The answer for one combination of swept values.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Swept keys and their values, as text.
    pub parameters: IndexMap<String, String>,
    /// Swept keys and the labels of their values; only keys of sweep entries with `label`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub labels: IndexMap<String, String>,
    /// One for each flow of the scenario; equal flows are taken together. Then one for each group
    /// of connections from a collector onwards, named `<collector>><end>`.
    pub flows: Vec<Row>,
    /// One for each direction of each link, named `<link>.forward` or `<link>.backward`.
    pub links: Vec<Row>,
    /// One for each flow with a deadline: whether it is met.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Verdict>,
    /// One for each flow that sends messages, by its name: the distribution of their delays; null
    /// where no message arrived, and by equations.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub delays: IndexMap<String, Option<DelayDistribution>>,
}

/// The metrics of one flow or one direction of a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Name of the flow or direction.
    pub name: String,
    /// Number of equal flows or links that this row stands for.
    pub count: u64,
    /// Metrics by column name, `<quantity>_<unit>`.
    pub metrics: IndexMap<Metric, Estimate>,
}

/// A number with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Mean over the repeats; null where the backend cannot know it.
    pub mean: Option<f64>,
    /// Half width of the 95 % confidence interval of the mean (Student's t); null below two runs.
    pub ci95: Option<f64>,
    /// Runs in which the quantity existed.
    pub n: u32,
}

/// Something that touches the trust in an answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// What it is about: a key of the scenario or a name in it.
    pub about: String,
    /// What a reader must know.
    pub message: String,
}

impl Answer {
    /// Version of the schema that this code writes.
    pub const SCHEMA: u32 = 1;

    /// Takes what was recorded in a run. Where there are several points, the names say of which.
    pub fn keep(&mut self, point: Option<usize>, (series, captures): (Vec<Series>, Vec<Capture>)) {
        let suffix = point.map_or_else(String::new, |point| format!("-{point}"));
        self.series.extend(series.into_iter().map(|mut series| {
            series.name.push_str(&suffix);
            series
        }));
        self.captures.extend(captures.into_iter().map(|mut capture| {
            capture.name.push_str(&suffix);
            capture
        }));
    }
}

impl Row {
    /// Mean of a metric, if it is known.
    #[must_use]
    pub fn mean(&self, metric: Metric) -> Option<f64> {
        self.metrics.get(&metric).and_then(|estimate| estimate.mean)
    }
}

impl Estimate {
    /// Mean and interval of independent runs.
    #[must_use]
    pub fn of(samples: &[f64]) -> Self {
        let n = samples.len();
        if n == 0 {
            return Self::default();
        }
        let mean = samples.iter().sum::<f64>() / n as f64;
        let ci95 = (n > 1).then(|| {
            let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
            let variance = squares / (n - 1) as f64;
            student_t95(n - 1) * (variance / n as f64).sqrt()
        });
        Self { mean: Some(mean), ci95, n: n as u32 }
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
    if let Some(t) = degrees.checked_sub(1).and_then(|index| TABLE.get(index)) {
        return *t;
    }
    let (z, n) = (1.959_964_f64, degrees as f64);
    z + (z.powi(3) + z) / (4.0 * n)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_of_a_known_sample() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(estimate.mean, Some(3.0));
        // t(4) = 2.776, s = 1.5811, s / sqrt(5) = 0.7071.
        assert!((estimate.ci95.unwrap() - 1.963).abs() < 0.001);
        assert_eq!(Estimate::of(&[7.0]).ci95, None);
        assert_eq!(Estimate::of(&[]).mean, None);
    }
}
