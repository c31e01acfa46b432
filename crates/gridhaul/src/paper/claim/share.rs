//! Claims about a share of a range of positions.

use gridhaul_report::format;

/// Smallest number of points for a claim about a share of a range.
pub(super) const SHARE_POINTS_MIN: usize = 4;

/// Results of a claim at several positions; shares are those of the range.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) holding: f64,
    pub(super) undecided: f64,
    pub(super) undecided_points: usize,
    pub(super) failing: Vec<f64>,
}

impl Parts {
    /// The results in words.
    pub(super) fn detail(&self, points: usize, required: f64) -> String {
        let holding = points - self.failing.len() - self.undecided_points;
        let mut detail = format!("{holding} of {points} points");
        if required < 1.0 {
            detail += &format!(", {:.0} % of the range", self.holding * 100.0);
        }
        if self.undecided_points > 0 {
            detail += &format!("; {} undecided", self.undecided_points);
        }
        if let (Some(first), Some(last)) = (self.failing.first(), self.failing.last()) {
            let (first, last) = (format::number(*first), format::number(*last));
            detail += &if self.failing.len() == 1 {
                format!("; not at {first}")
            } else {
                format!("; not between {first} and {last}")
            };
        }
        detail
    }
}

/// The share of a range that each position represents: the part that is closer to it than to other
/// positions. The share of the points would depend on the spacing of the points, such as a
/// logarithmic one.
pub(super) fn weights(positions: &[f64], from: f64, to: f64) -> Vec<f64> {
    if to <= from {
        return vec![1.0 / positions.len() as f64; positions.len()];
    }
    let limit = |index: usize| match (index.checked_sub(1), positions.get(index)) {
        (Some(before), Some(after)) => f64::midpoint(positions[before], *after),
        (None, _) => from,
        (_, None) => to,
    };
    (0..positions.len()).map(|index| (limit(index + 1) - limit(index)) / (to - from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_does_not_depend_on_the_spacing_of_the_points() {
        let below_200 = |positions: &[f64]| {
            let weights = weights(positions, 50.0, 250.0);
            assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            let share = positions.iter().zip(&weights).filter(|(x, _)| **x < 200.0);
            share.map(|(_, weight)| weight).sum::<f64>()
        };
        let linear: Vec<_> = (0..=40).map(|step| 50.0 + 5.0 * f64::from(step)).collect();
        let logarithmic: Vec<_> =
            (0..=40).map(|step| 50.0 * 5_f64.powf(f64::from(step) / 40.0)).collect();
        assert!((below_200(&linear) - 0.75).abs() < 0.02);
        assert!((below_200(&logarithmic) - 0.75).abs() < 0.02);
        // A share of the points would be 0.85.
        let points = logarithmic.iter().filter(|x| **x < 200.0).count();
        assert!(points as f64 / 41.0 > 0.84);
    }
}
