//! Columns of `record.distribution`: how goodput, delivered messages and delay differ between the
//! members of a flow.

use gridhaul_scenario::answer::{Metric, Metrics};
use gridhaul_scenario::units::Duration;

use super::{Members, RunState, WarmupSnapshot};

/// Adds the columns of a row.
pub(super) fn metrics(
    state: RunState<'_>,
    before: &WarmupSnapshot,
    row: usize,
    span: Duration,
    into: &mut Metrics,
) {
    let (mut goodputs, mut shares, mut delays) =
        (Values::default(), Values::default(), Values::default());
    let counters = &state.counters.members;
    let secs = state.goodput_secs(row, span);
    for (index, flow) in state.flows.iter().enumerate() {
        if flow.row as usize != row {
            continue;
        }
        let mut member = Members::default();
        member.add_flow(state, before, index, secs);
        let mut own = Metrics::new();
        member.deliveries(&mut own);
        let goodput = own.iter().find(|(metric, _)| *metric == Metric::Goodput);
        goodputs.0.extend(goodput.map(|&(_, value)| value));
        if flow.has_messages() {
            let messages = counters.delays(index);
            let (due, delivered) = (messages.due as f64, messages.messages as f64);
            shares.0.extend((messages.due > 0).then(|| delivered / due));
            let mean = messages.sum.as_secs_f64() / delivered;
            delays.0.extend((messages.messages > 0).then_some(mean));
        }
    }
    goodputs.percentiles(
        &[
            (Metric::MemberGoodputMin, 0),
            (Metric::MemberGoodputP1, 1),
            (Metric::MemberGoodputMedian, 50),
        ],
        into,
    );
    shares.percentiles(
        &[
            (Metric::MemberDeliveredMin, 0),
            (Metric::MemberDeliveredP1, 1),
            (Metric::MemberDeliveredMedian, 50),
        ],
        into,
    );
    delays.percentiles(
        &[
            (Metric::MemberDelayMedian, 50),
            (Metric::MemberDelayP99, 99),
            (Metric::MemberDelayMax, 100),
        ],
        into,
    );
}

/// A value of each member that has one.
#[derive(Debug, Default)]
struct Values(Vec<f64>);

impl Values {
    /// Adds percentiles as metrics; nothing without values.
    fn percentiles(mut self, wanted: &[(Metric, usize)], into: &mut Metrics) {
        self.0.sort_unstable_by(f64::total_cmp);
        for &(metric, percent) in wanted {
            // The smallest value that at least this share does not exceed; the first one for 0 %.
            let rank = (self.0.len() * percent).div_ceil(100).max(1);
            into.extend(self.0.get(rank - 1).map(|value| (metric, *value)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percentiles(values: impl Iterator<Item = u32>) -> Vec<f64> {
        let wanted = [
            (Metric::MemberDelayMedian, 0),
            (Metric::MemberDelayMedian, 1),
            (Metric::MemberDelayMedian, 50),
            (Metric::MemberDelayMedian, 99),
            (Metric::MemberDelayMedian, 100),
        ];
        let mut metrics = Metrics::new();
        Values(values.map(f64::from).collect()).percentiles(&wanted, &mut metrics);
        metrics.into_iter().map(|(_, value)| value).collect()
    }

    #[test]
    fn a_percentile_is_the_smallest_value_that_the_share_does_not_exceed() {
        assert_eq!(percentiles((1..=200).rev()), [1.0, 2.0, 100.0, 198.0, 200.0]);
        assert_eq!(percentiles(1..=3), [1.0, 1.0, 2.0, 3.0, 3.0]);
        assert_eq!(percentiles([7].into_iter()), [7.0; 5]);
        assert!(percentiles(std::iter::empty()).is_empty());
    }
}
