//! Look-up of metrics in the order of the columns.

use indexmap::IndexMap;

use crate::answer::Metric;

/// A place in the metrics of a row. The columns of a table are requested in the order of the
/// metrics, which is that of most rows: a metric is found, or known to be absent, without its hash.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MetricCursor {
    next: usize,
    /// Whether the metrics are in their order; unknown at first.
    in_order: Option<bool>,
}

impl MetricCursor {
    /// The value of a metric. The metrics are the same in each call.
    pub(super) fn find<'m, V>(
        &mut self,
        metrics: &'m IndexMap<Metric, V>,
        metric: Metric,
    ) -> Option<&'m V> {
        let next = metrics.get_index(self.next);
        if let Some((_, value)) = next.filter(|(next, _)| **next == metric) {
            self.next += 1;
            return Some(value);
        }
        let previous = self.next.checked_sub(1).and_then(|place| metrics.get_index(place));
        let is_between = previous.is_none_or(|(previous, _)| *previous < metric)
            && next.is_none_or(|(next, _)| metric < *next);
        if is_between && *self.in_order.get_or_insert_with(|| metrics.keys().is_sorted()) {
            return None;
        }
        let (place, _, value) = metrics.get_full(&metric)?;
        self.next = place + 1;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_found_in_any_order() {
        let all = Metric::ALL;
        // In their order with gaps, in the reverse order, and in neither.
        let every_third: Vec<Metric> = all.iter().copied().step_by(3).collect();
        let reverse: Vec<Metric> = every_third.iter().rev().copied().collect();
        let neither = [&every_third[3..], &every_third[..2]].concat();
        for known in [every_third.clone(), reverse, neither, Vec::new()] {
            let metrics: IndexMap<Metric, usize> = known.into_iter().zip(0..).collect();
            let backwards: Vec<Metric> = all.iter().rev().copied().collect();
            for requested in [all, &backwards, &every_third] {
                let mut cursor = MetricCursor::default();
                for metric in requested {
                    assert_eq!(cursor.find(&metrics, *metric), metrics.get(metric), "{metric}");
                }
            }
        }
    }
}
