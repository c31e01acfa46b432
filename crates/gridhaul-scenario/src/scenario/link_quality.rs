//! Distribution of the quality of a link over the members of a group.

use serde::{Deserialize, Serialize};

use crate::units::{BitRate, Duration, Probability};

/// Quality of the links of a group, of which each member has its own: measured quantiles in place
/// of equal links.
///
/// A list has values at equal steps of the rank, from 0 % to 100 %: two values are the ends of a
/// uniform distribution; five are minimum, quartiles and maximum; eleven are deciles. Values
/// between are interpolated. Each member has random ranks, new ones in each replication.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LinkQuality {
    /// Quantiles of the rate, which replaces `rate`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate: Vec<BitRate>,
    /// Quantiles of the probability of an independent loss, which replaces `loss`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loss: Vec<Probability>,
    /// Quantiles of a delay that is added to `delay`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delay: Vec<Duration>,
    /// Whether a member has one rank for all lists, also of the other direction: the first value of
    /// each list belongs to the same member, so that a list may fall. Otherwise ranks are
    /// independent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub common_rank: bool,
}

impl LinkQuality {
    /// The rate of a rank from 0 to 1; `None` without quantiles of the rate.
    #[must_use]
    pub fn rate_at(&self, rank: f64) -> Option<BitRate> {
        let value = quantile(&self.rate, rank, |rate| rate.as_bits_per_sec() as f64)?;
        Some(BitRate::from_bits_per_sec(value.round().max(1.0) as u64))
    }

    /// The probability of loss of a rank.
    #[must_use]
    pub fn loss_at(&self, rank: f64) -> Option<Probability> {
        Probability::new(quantile(&self.loss, rank, |loss| loss.ratio())?)
    }

    /// The additional delay of a rank.
    #[must_use]
    pub fn delay_at(&self, rank: f64) -> Option<Duration> {
        let value = quantile(&self.delay, rank, |delay| delay.as_nanos() as f64)?;
        Some(Duration::from_nanos(value.round() as u64))
    }

    /// The mean of the distribution of the rate: that of a trapezoid for each step.
    #[must_use]
    pub fn mean_rate(&self) -> Option<BitRate> {
        let steps = self.rate.windows(2).map(|pair| match pair {
            [low, high] => (low.as_bits_per_sec() as f64 + high.as_bits_per_sec() as f64) / 2.0,
            _ => 0.0,
        });
        let count = self.rate.len().checked_sub(1).filter(|count| *count > 0)?;
        Some(BitRate::from_bits_per_sec((steps.sum::<f64>() / count as f64).round() as u64))
    }
}

/// The value of a rank between the quantiles of equal distance; `None` without quantiles.
fn quantile<T: Copy>(values: &[T], rank: f64, number: impl Fn(T) -> f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let position = rank.clamp(0.0, 1.0) * last as f64;
    let index = (position as usize).min(last);
    let low = number(values[index]);
    let high = values.get(index + 1).map_or(low, |value| number(*value));
    Some(low + (high - low) * (position - index as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_between_quantiles_are_interpolated() {
        let kbit = |kbit: u64| BitRate::from_bits_per_sec(kbit * 1_000);
        let percent = |percent: f64| Probability::new(percent / 100.0).unwrap();
        let quality = LinkQuality {
            rate: vec![kbit(100), kbit(20), kbit(10)],
            loss: vec![percent(0.0), percent(10.0)],
            delay: Vec::new(),
            common_rank: true,
        };
        let rates = [0.0, 0.25, 0.5, 0.75, 1.0].map(|rank| quality.rate_at(rank).unwrap());
        assert_eq!(rates, [100, 60, 20, 15, 10].map(kbit));
        assert_eq!(quality.loss_at(0.25), Some(percent(2.5)));
        assert_eq!(quality.delay_at(0.5), None);
        // (100 + 20) / 2 and (20 + 10) / 2, half of the members each.
        assert_eq!(quality.mean_rate(), Some(BitRate::from_bits_per_sec(37_500)));
    }
}
