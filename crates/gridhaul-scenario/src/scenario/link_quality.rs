//! Distribution of the quality of a link over the members of a group.

use serde::{Deserialize, Serialize};

use crate::units::{BitRate, Duration, Probability};

/// Quality of the links of a group, of which each member has its own: measured quantiles in place
/// of equal links.
///
/// A list has values at the ranks `rank`, or at equal steps of the rank, from 0 % to 100 %: two
/// values are the ends of a uniform distribution; five are minimum, quartiles and maximum; eleven
/// are deciles. Values between are interpolated. Each member has random ranks, new ones in each
/// replication.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LinkQuality {
    /// Path of a CSV file with the quantiles, relative to the folder of the scenario file, in place
    /// of the lists. The first line names the columns, such as
    /// `rank_percent,rate_bit_per_s,loss_percent,delay_ms`: a rank (percent or ratio) and at least
    /// one of a rate (bit, kbit or mbit per s), a loss (percent or ratio) and a delay (ms or s).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Ranks of the values of all lists, ascending from 0 % to 100 %. Absent: equal steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rank: Vec<Probability>,
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
        let value = self.quantile(&self.rate, rank, |rate| rate.as_bits_per_sec() as f64)?;
        Some(BitRate::from_bits_per_sec(value.round().max(1.0) as u64))
    }

    /// The probability of loss of a rank.
    #[must_use]
    pub fn loss_at(&self, rank: f64) -> Option<Probability> {
        Probability::new(self.quantile(&self.loss, rank, |loss| loss.ratio())?)
    }

    /// The additional delay of a rank.
    #[must_use]
    pub fn delay_at(&self, rank: f64) -> Option<Duration> {
        let value = self.quantile(&self.delay, rank, |delay| delay.as_nanos() as f64)?;
        Some(Duration::from_nanos(value.round() as u64))
    }

    /// The mean of the distribution of the rate: that of a trapezoid for each step.
    #[must_use]
    pub fn mean_rate(&self) -> Option<BitRate> {
        let last = self.rate.len().checked_sub(1).filter(|last| *last > 0)?;
        let rank = |index: usize| match self.rank.get(index) {
            Some(rank) => rank.ratio(),
            None => index as f64 / last as f64,
        };
        let steps = self.rate.windows(2).enumerate().map(|(index, pair)| match pair {
            [low, high] => {
                let middle = (low.as_bits_per_sec() as f64 + high.as_bits_per_sec() as f64) / 2.0;
                middle * (rank(index + 1) - rank(index))
            }
            _ => 0.0,
        });
        Some(BitRate::from_bits_per_sec(steps.sum::<f64>().round() as u64))
    }

    /// The value of a rank, between those of the next ranks; `None` without quantiles.
    fn quantile<T: Copy>(&self, values: &[T], rank: f64, number: impl Fn(T) -> f64) -> Option<f64> {
        let last = values.len().checked_sub(1)?;
        let rank = rank.clamp(0.0, 1.0);
        let position = match self.rank.partition_point(|known| known.ratio() <= rank) {
            0 => rank * last as f64,
            above => {
                let below = above - 1;
                let start = self.rank[below].ratio();
                let end = self.rank.get(above).map_or(start, |end| end.ratio());
                let step = end - start;
                below as f64 + if step > 0.0 { (rank - start) / step } else { 0.0 }
            }
        };
        let index = (position as usize).min(last);
        let low = number(values[index]);
        let high = values.get(index + 1).map_or(low, |value| number(*value));
        Some(low + (high - low) * (position - index as f64))
    }
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
            common_rank: true,
            ..LinkQuality::default()
        };
        let rates = [0.0, 0.25, 0.5, 0.75, 1.0].map(|rank| quality.rate_at(rank).unwrap());
        assert_eq!(rates, [100, 60, 20, 15, 10].map(kbit));
        assert_eq!(quality.loss_at(0.25), Some(percent(2.5)));
        assert_eq!(quality.delay_at(0.5), None);
        // (100 + 20) / 2 and (20 + 10) / 2, half of the members each.
        assert_eq!(quality.mean_rate(), Some(BitRate::from_bits_per_sec(37_500)));
    }

    #[test]
    fn ranks_may_have_unequal_steps() {
        let ratio = |ratio| Probability::new(ratio).unwrap();
        let quality = LinkQuality {
            rank: [0.0, 0.9, 1.0].map(ratio).to_vec(),
            rate: [10_000, 100_000, 300_000].map(BitRate::from_bits_per_sec).to_vec(),
            ..LinkQuality::default()
        };
        let rates = [0.0, 0.45, 0.9, 0.95, 1.0].map(|rank| quality.rate_at(rank).unwrap());
        let expected = [10_000, 55_000, 100_000, 200_000, 300_000];
        assert_eq!(rates, expected.map(BitRate::from_bits_per_sec));
        // 0.9 * 55 kbit/s and 0.1 * 200 kbit/s.
        assert_eq!(quality.mean_rate(), Some(BitRate::from_bits_per_sec(69_500)));
    }
}
