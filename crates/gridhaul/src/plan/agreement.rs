//! Agreement of analytical model and simulation about a candidate.

use gridhaul_report::format;
use gridhaul_scenario::answer::{Metric, Point, Row};

use super::limits::{Limit, LimitKind};

/// Largest relative deviation from the simulated value that counts as agreement.
pub(crate) const AGREEMENT: f64 = 0.1;

/// Ratios (of losses, retransmissions, late messages) below this value are negligible and therefore
/// agree.
const NEGLIGIBLE_RATIO: f64 = 1e-3;

/// A ratio with a limit is negligible only below this part of the limit. Otherwise a model that
/// computes half of the limit and a simulation without any loss would agree, and configurations
/// that the model rejects would count as rejected by both.
const NEGLIGIBLE_PART: f64 = 0.1;

/// One quantity of the analytical model and of the simulation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Comparison {
    /// Flow or upstream connections.
    pub(crate) row: String,
    /// Heading of the quantity.
    pub(crate) what: &'static str,
    /// Name of the metric in answers.
    pub(crate) column: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) model: f64,
    pub(crate) simulated: f64,
    /// Ratios below this value agree.
    pub(crate) negligible: f64,
}

impl Comparison {
    /// Whether the two agree within [`AGREEMENT`].
    pub(crate) fn agrees(&self) -> bool {
        let small = self.unit.is_empty()
            && self.model.abs() < self.negligible
            && self.simulated.abs() < self.negligible;
        small || (self.model - self.simulated).abs() <= AGREEMENT * self.simulated.abs()
    }

    /// Both values as text: `goodput of reading: 341 kbit/s (model), 19.1 kbit/s (simulation)`.
    pub(crate) fn describe(&self) -> String {
        format!(
            "{} of {}: {} (model), {} (simulation)",
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

/// Metrics that are compared for every row, independently of the limits.
const COMPARED: [Metric; 3] = [Metric::Goodput, Metric::OfferedLoad, Metric::RetransmissionRatio];

/// Compares goodput, offered load, retransmissions and the limited quantities of every flow, as far
/// as both have a value.
pub(crate) fn compare(limits: &[Limit], model: &Point, simulated: &Point) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for row in &simulated.flows {
        let Some(equations) = model.flows.iter().find(|other| other.name == row.name) else {
            continue;
        };
        let limited = limits
            .iter()
            .filter(|limit| limit.flow == row.name)
            .map(|limit| (metric(limit.kind), NEGLIGIBLE_RATIO.min(NEGLIGIBLE_PART * limit.bound)));
        let metrics = COMPARED.into_iter().map(|metric| (metric, NEGLIGIBLE_RATIO)).chain(limited);
        comparisons.extend(metrics.filter_map(|(metric, negligible)| {
            compared(metric, equations, row)
                .map(|comparison| Comparison { negligible, ..comparison })
        }));
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
    // The ratio of late messages is compared: 0.1 % and 2 % late differ more clearly than 99.9 %
    // and 98 % in time.
    let late = metric == Metric::DeadlineMet;
    let value = |row: &Row| row.mean(metric).map(|value| if late { 1.0 - value } else { value });
    Some(Comparison {
        row: simulated.name.clone(),
        what: if late { "late messages" } else { info.heading },
        column: info.column,
        unit: info.unit,
        model: value(equations)?,
        simulated: value(simulated)?,
        negligible: NEGLIGIBLE_RATIO,
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
    fn ten_percent_of_the_simulated_value_are_tolerated() {
        assert!(agree(Metric::Goodput, 109e3, 100e3) && agree(Metric::Goodput, 91e3, 100e3));
        assert!(!agree(Metric::Goodput, 111e3, 100e3) && !agree(Metric::Goodput, 89e3, 100e3));
        assert!(!agree(Metric::OfferedLoad, 1.0, 0.0));
    }

    #[test]
    fn a_limited_ratio_is_negligible_only_far_below_its_limit() {
        use super::super::limits::limits;
        use super::super::test_backends::{district, plan_of};

        let mut scenario = district("seed = [1]", "seed = 1");
        let agree = |scenario: &gridhaul_scenario::scenario::Scenario| {
            let losses = |loss| point(&[(Metric::SegmentLossTotal, loss)]);
            let limits = limits(scenario, &plan_of(scenario).0);
            compare(&limits, &losses(5.3e-4), &losses(6e-7))[0].agrees()
        };
        assert!(agree(&scenario), "a limit of 2 %");
        let limit = &mut scenario.plan.as_mut().unwrap().limit["reading"];
        limit.loss = Some("0.1 %".parse().unwrap());
        assert!(!agree(&scenario), "a limit of 0.1 %");
    }

    #[test]
    fn ratios_below_a_tenth_of_a_percent_agree() {
        assert!(agree(Metric::RetransmissionRatio, 1e-9, 9e-4));
        assert!(!agree(Metric::RetransmissionRatio, 2.11e-3, 3.4e-4));
        assert!(!agree(Metric::RetransmissionRatio, 0.002, 0.1));
    }
}
