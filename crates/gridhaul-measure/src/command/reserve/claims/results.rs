//! Results of the measurements, as statements use them.

use crate::command::cells::CellResult;
use crate::command::reserve::matrix::Cell;

/// Results by system, protocol and rate, with 10 values and without Nagle's algorithm.
pub(super) struct Results<'a>(pub(super) &'a [Cell]);

impl<'a> Results<'a> {
    pub(super) fn one(
        &self,
        system: &str,
        protocol: &str,
        rate: u32,
        nodelay: bool,
    ) -> Option<&'a CellResult> {
        let cell = self.0.iter().find(|it| {
            (it.system, it.protocol, it.rate_per_s) == (system, protocol, rate)
                && it.values == 10
                && it.nodelay == nodelay
        });
        cell?.result.as_ref()
    }

    /// Results at all rates, in ascending order of the rate; empty unless all are known.
    pub(super) fn rates(&self, system: &str, protocol: &str) -> Vec<&'a CellResult> {
        let mut rates: Vec<_> = self.0.iter().map(|it| it.rate_per_s).collect();
        rates.sort_unstable();
        rates.dedup();
        let found: Option<Vec<_>> =
            rates.iter().map(|&rate| self.one(system, protocol, rate, true)).collect();
        found.unwrap_or_default()
    }
}

pub(super) fn means(results: &[&CellResult]) -> String {
    let means: Vec<_> = results.iter().map(|it| format!("{:.2}", it.mean_s * 1e3)).collect();
    if means.is_empty() { "–".into() } else { format!("{} ms", means.join(", ")) }
}

pub(super) fn known(result: Option<&CellResult>) -> String {
    means(&result.into_iter().collect::<Vec<_>>())
}

/// Whether each mean is below that of the other protocol at the same rate; `None` unless all are known.
pub(super) fn are_below(lower: &[&CellResult], higher: &[&CellResult]) -> Option<bool> {
    let is_known = !lower.is_empty() && lower.len() == higher.len();
    is_known.then(|| lower.iter().zip(higher).all(|(lower, higher)| lower.mean_s < higher.mean_s))
}

/// Whether all means are in a range; `None` without a mean.
pub(super) fn all_within(results: &[&CellResult], low: f64, high: f64) -> Option<bool> {
    (!results.is_empty()).then(|| results.iter().all(|it| (low..=high).contains(&it.mean_s)))
}

/// Largest mean divided by the least.
pub(super) fn ratio(results: &[&CellResult]) -> Option<f64> {
    let means = || results.iter().map(|it| it.mean_s);
    Some(means().reduce(f64::max)? / means().reduce(f64::min)?)
}

/// Whether the mean at the highest rate is below that at the lowest.
pub(super) fn falls(results: &[&CellResult]) -> Option<bool> {
    let (first, last) = (results.first()?, results.last()?);
    (results.len() > 1).then_some(last.mean_s < first.mean_s)
}
