//! Whether equations and simulation agree about a candidate.

use gridhaul_report::format;
use gridhaul_scenario::answer::{Metric, Point, Row};

use super::limits::{Limit, LimitKind};

/// Largest difference, as a share of the simulated value, with which the two agree.
pub(crate) const AGREEMENT: f64 = 0.1;

/// Shares below this (losses, retransmissions, late messages) are both next to nothing: one in a thousand.
const NEXT_TO_NOTHING: f64 = 1e-3;

/// One quantity, as the equations and the simulation see it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Comparison {
    /// Flow or upstream connections.
    pub(crate) row: String,
    /// Name of the quantity for people.
    pub(crate) what: &'static str,
    /// Its column in answers.
    pub(crate) column: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) model: f64,
    pub(crate) simulated: f64,
}

impl Comparison {
    /// Whether the two agree within [`AGREEMENT`].
    pub(crate) fn agrees(&self) -> bool {
        let small = self.unit.is_empty()
            && self.model.abs() < NEXT_TO_NOTHING
            && self.simulated.abs() < NEXT_TO_NOTHING;
        small || (self.model - self.simulated).abs() <= AGREEMENT * self.simulated.abs()
    }

    /// The two values in a row: `goodput of reading: 341 kbit/s by equations, 19.1 kbit/s simulated`.
    pub(crate) fn words(&self) -> String {
        format!(
            "{} of {}: {} by equations, {} simulated",
            self.what,
            self.row,
            self.shown(self.model),
            self.shown(self.simulated)
        )
    }

    /// A value in the unit of the quantity.
    pub(crate) fn shown(&self, value: f64) -> String {
        let rounded = |value: f64| format!("{value:.2e}").parse().unwrap_or(value);
        if self.unit.is_empty() {
            format!("{} %", format::number(rounded(value * 100.0)))
        } else {
            format::value(rounded(value), self.unit)
        }
    }
}

/// What is compared of every row, whatever the limits are.
const ALWAYS: [Metric; 3] = [Metric::Goodput, Metric::OfferedLoad, Metric::RetransmissionRatio];

/// Every quantity that limits depend on, and goodput, offered load and retransmissions of every row, as far
/// as both know it.
pub(crate) fn compare(limits: &[Limit], model: &Point, simulated: &Point) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for row in &simulated.flows {
        let Some(equations) = model.flows.iter().find(|other| other.name == row.name) else {
            continue;
        };
        let limited = limits.iter().filter(|limit| limit.flow == row.name);
        let metrics = ALWAYS.into_iter().chain(limited.map(|limit| metric(limit.kind)));
        comparisons.extend(metrics.filter_map(|metric| compared(metric, equations, row)));
    }
    comparisons
}

const fn metric(kind: LimitKind) -> Metric {
    match kind {
        LimitKind::Loss => Metric::SegmentLossTotal,
        LimitKind::DelayMean => Metric::DelayMean,
        LimitKind::DelayP98 => Metric::DelayP98,
        LimitKind::Deadline => Metric::DeadlineMet,
    }
}

fn compared(metric: Metric, equations: &Row, simulated: &Row) -> Option<Comparison> {
    let info = metric.info();
    // What is late is compared: of 99.9 % and 98 % in time one is twenty times the other.
    let late = metric == Metric::DeadlineMet;
    let value = |row: &Row| row.mean(metric).map(|value| if late { 1.0 - value } else { value });
    Some(Comparison {
        row: simulated.name.clone(),
        what: if late { "late messages" } else { info.heading },
        column: info.column,
        unit: info.unit,
        model: value(equations)?,
        simulated: value(simulated)?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::test_backends::point;
    use super::*;

    fn agree(metric: Metric, model: f64, simulated: f64) -> bool {
        let (model, simulated) = (point(&[(metric, model)]), point(&[(metric, simulated)]));
        let comparisons = compare(&[], &model, &simulated);
        assert_eq!(comparisons.len(), 1);
        comparisons[0].agrees()
    }

    #[test]
    fn ten_percent_of_the_simulated_value_are_allowed() {
        assert!(agree(Metric::Goodput, 109e3, 100e3) && agree(Metric::Goodput, 91e3, 100e3));
        assert!(!agree(Metric::Goodput, 111e3, 100e3) && !agree(Metric::Goodput, 89e3, 100e3));
        assert!(!agree(Metric::OfferedLoad, 1.0, 0.0));
    }

    #[test]
    fn shares_below_one_in_a_thousand_agree_and_others_do_not() {
        assert!(agree(Metric::RetransmissionRatio, 1e-9, 9e-4));
        assert!(!agree(Metric::RetransmissionRatio, 2.11e-3, 3.4e-4));
        assert!(!agree(Metric::RetransmissionRatio, 0.002, 0.1));
    }
}
