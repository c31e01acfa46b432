//! Search for the cheapest candidate that meets the limits, and for alternatives.

use gridhaul_report::quantity;
use gridhaul_scenario::scenario::Choice;

use super::candidate::{Candidate, CostModel, ParameterSet};
use super::evaluate::Evaluator;
use crate::error::Error;

/// Candidates in order of cost, and their evaluator.
pub(crate) struct Search<'a> {
    pub(crate) candidates: &'a [Candidate],
    pub(crate) choices: &'a [Choice],
    pub(crate) cost_model: CostModel<'a>,
    pub(crate) evaluator: Evaluator<'a>,
}

/// An alternative to the winner.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Alternative {
    /// Difference from the winner: `next fewer`, `cheapest with reno`.
    pub(crate) what: String,
    pub(crate) candidate: Candidate,
    /// Whether it meets the limits: in its simulation or, without one, by the model.
    pub(crate) meets_limits: bool,
}

impl Search<'_> {
    /// The cheapest accepted candidate that meets the limits; among equal costs, the one
    /// with the largest margin. Limited quantities need not be monotonic in the values, so that
    /// every cheaper candidate is evaluated.
    pub(crate) fn cheapest(
        &mut self,
        accept: impl Fn(&Candidate) -> bool,
    ) -> Result<Option<usize>, Error> {
        let candidates = self.candidates;
        let mut best: Option<(f64, usize)> = None;
        let mut cost = f64::NEG_INFINITY;
        for (index, candidate) in candidates.iter().enumerate() {
            // The candidates are in order of cost: all with the lowest cost have been compared.
            if candidate.cost > cost && best.is_some() {
                break;
            }
            cost = candidate.cost;
            if !accept(candidate) || !self.evaluator.meets_limits(&candidate.parameters)? {
                continue;
            }
            let (used, _) = self.evaluator.worst(&candidate.parameters)?;
            if best.is_none_or(|(minimum, _)| used < minimum) {
                best = Some((used, index));
            }
        }
        Ok(best.map(|(_, index)| index))
    }

    /// The accepted candidate that is closest to meeting all limits.
    pub(crate) fn nearest(
        &mut self,
        accept: impl Fn(&Candidate) -> bool,
    ) -> Result<Option<usize>, Error> {
        let candidates = self.candidates;
        let mut best: Option<(f64, usize)> = None;
        for (index, candidate) in candidates.iter().enumerate() {
            if !accept(candidate) {
                continue;
            }
            let (used, _) = self.evaluator.worst(&candidate.parameters)?;
            if best.is_none_or(|(minimum, _)| used < minimum) {
                best = Some((used, index));
            }
        }
        Ok(best.map(|(_, index)| index))
    }

    /// Alternatives to a winner: the next cheapest, the cheapest with each other value of a
    /// non-numeric key, and the neighbouring values of each numeric key with all other values
    /// equal.
    pub(crate) fn others(&mut self, winner: &Candidate) -> Result<Vec<Alternative>, Error> {
        let mut others = Vec::new();
        let own = |candidate: &Candidate| candidate.parameters == winner.parameters;
        if let Some(next) = self.cheapest(|candidate| !own(candidate))? {
            others.push(self.other("runner-up", next));
        }
        if self
            .candidates
            .iter()
            .any(|candidate| candidate.parameters.aggregators != winner.parameters.aggregators)
        {
            let difference = if winner.parameters.aggregators {
                "without aggregators"
            } else {
                "with aggregators"
            };
            let differs = |c: &Candidate| c.parameters.aggregators != winner.parameters.aggregators;
            self.add_cheapest(&mut others, difference, differs)?;
        }
        let choices = self.choices;
        for (key, choice) in choices.iter().enumerate() {
            let Some(value) = &winner.parameters.values[key] else { continue };
            if is_numeric(choice) {
                for (difference, lower) in [(down(choice), true), (up(choice), false)] {
                    // A neighbour shows how close the limits are, also if it violates them.
                    let Some(next) = neighbour(choice, value, lower) else { continue };
                    let parameters = winner.parameters.with(key, next);
                    let meets_limits = self.evaluator.meets_limits(&parameters)?;
                    let candidate =
                        Candidate { cost: self.cost_model.cost(&parameters), parameters };
                    others.push(Alternative {
                        what: format!("{difference}, all else equal"),
                        candidate,
                        meets_limits,
                    });
                }
                continue;
            }
            for other in choice.values.iter().filter(|other| *other != value) {
                let has = |c: &Candidate| c.parameters.values[key].as_ref() == Some(other);
                self.add_cheapest(&mut others, &format!("with {other}"), has)?;
            }
        }
        Ok(others)
    }

    /// Adds the cheapest accepted candidate or, if none meets the limits, the one closest to them.
    fn add_cheapest(
        &mut self,
        others: &mut Vec<Alternative>,
        difference: &str,
        accept: impl Fn(&Candidate) -> bool,
    ) -> Result<(), Error> {
        if let Some(index) = self.cheapest(&accept)? {
            others.push(self.other(&format!("cheapest {difference}"), index));
        } else if let Some(index) = self.nearest(&accept)? {
            let mut other = self.other(&format!("nearest {difference}"), index);
            other.meets_limits = false;
            others.push(other);
        }
        Ok(())
    }

    fn other(&self, what: &str, index: usize) -> Alternative {
        let candidate = self.candidates[index].clone();
        Alternative { what: what.to_owned(), candidate, meets_limits: true }
    }
}

/// Whether all values of a choice are quantities of the same unit.
pub(crate) fn is_numeric(choice: &Choice) -> bool {
    let units: Vec<_> = choice.values.iter().map(|v| quantity(v).map(|(_, unit)| unit)).collect();
    units.iter().all(|unit| unit.is_some() && *unit == units[0])
}

/// The neighbouring value, lower or higher.
fn neighbour<'c>(choice: &'c Choice, value: &str, lower: bool) -> Option<&'c str> {
    let (own, _) = quantity(value)?;
    let numbers = choice.values.iter().filter_map(|text| Some((quantity(text)?.0, text.as_str())));
    let beyond = numbers.filter(|(number, _)| if lower { *number < own } else { *number > own });
    let nearest = beyond.min_by(|(a, _), (b, _)| (a - own).abs().total_cmp(&(b - own).abs()));
    nearest.map(|(_, text)| text)
}

fn down(choice: &Choice) -> &'static str {
    if choice.key.ends_with(".count") { "next fewer" } else { "next lower" }
}

fn up(choice: &Choice) -> &'static str {
    if choice.key.ends_with(".count") { "next more" } else { "next higher" }
}

/// The values of a parameter set that differ from those of another one.
pub(crate) fn differences(
    parameters: &ParameterSet,
    from: &ParameterSet,
    choices: &[Choice],
) -> String {
    let mut only = parameters.clone();
    for (value, other) in only.values.iter_mut().zip(&from.values) {
        if value == other {
            *value = None;
        }
    }
    only.aggregators = parameters.aggregators || !from.aggregators;
    only.describe(choices)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::candidate::candidates;
    use super::super::limits::limits;
    use super::super::test_backends::{FakeBackend, district, plan_of};
    use super::*;
    use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Scenario};

    const CHOOSE: &str = "\"node.collector.count\" = [1, 2, 4, 8]\n\
        \"stack.upstream.congestion_control\" = [\"reno\", \"vegas\"]\n\
        \"link.wan.both.rate\" = [\"1 Mbit/s\", \"2 Mbit/s\", \"4 Mbit/s\"]";
    const COST: &str = "\"node.collector.count\" = 900\n\"link.wan.both.rate\" = 150";

    /// Calls a function with a search over a plan whose candidates have a given loss.
    fn searched<R>(
        choose: &str,
        cost: &str,
        loss: impl Fn(&Scenario) -> Option<f64>,
        body: impl FnOnce(&mut Search<'_>) -> R,
    ) -> R {
        let scenario = district(choose, cost);
        let (plan, choices) = plan_of(&scenario);
        let limits = limits(&scenario, &plan);
        let candidates = candidates(&scenario, &plan, choices.keys());
        let fake = FakeBackend::new(loss);
        body(&mut Search {
            candidates: &candidates,
            choices: choices.keys(),
            cost_model: CostModel::new(&scenario, &plan, choices.keys()),
            evaluator: Evaluator::new(&fake, &choices, &limits),
        })
    }

    /// The product of aggregators and rate must reach 8; Reno needs twice as much.
    fn enough(scenario: &Scenario) -> Option<f64> {
        let rate = scenario.link["wan"].forward().unwrap().rate.as_bits_per_sec() as f64 / 1e6;
        let count = f64::from(scenario.node["collector"].count);
        let reno =
            scenario.stack["upstream"].congestion_control == Some(CongestionControlAlgorithm::Reno);
        let needed = if reno { 16.0 } else { 8.0 };
        Some(0.02 * needed / (count * rate))
    }

    #[test]
    fn the_winner_and_its_alternatives() {
        searched(CHOOSE, COST, enough, |search| {
            let winner = search.cheapest(|_| true).unwrap().unwrap();
            let winner = search.candidates[winner].clone();
            let words = |c: &Candidate| c.parameters.describe(search.choices);
            assert_eq!(words(&winner), "2 collectors, vegas, wan 4 Mbit/s");
            assert_eq!(winner.cost, 2400.0);
            let alternatives: Vec<_> = search
                .others(&winner)
                .unwrap()
                .iter()
                .map(|o| {
                    let mark = if o.meets_limits { "met" } else { "violated" };
                    let words = o.candidate.parameters.describe(search.choices);
                    format!("{}: {words}: {} {mark}", o.what, o.candidate.cost)
                })
                .collect();
            assert_eq!(
                alternatives,
                [
                    "runner-up: 4 collectors, vegas, wan 2 Mbit/s: 3900 met",
                    "next fewer, all else equal: 1 collector, vegas, wan 4 Mbit/s: 1500 violated",
                    "next more, all else equal: 4 collectors, vegas, wan 4 Mbit/s: 4200 met",
                    "cheapest with reno: 4 collectors, reno, wan 4 Mbit/s: 4200 met",
                    "next lower, all else equal: 2 collectors, vegas, wan 2 Mbit/s: 2100 violated",
                ]
            );
        });
    }

    #[test]
    fn of_equal_costs_the_one_with_the_larger_margin_wins() {
        let free = "\"stack.upstream.congestion_control\" = 0\n\"node.collector.count\" = 1";
        let free = free.replace("\"stack.upstream.congestion_control\" = 0\n", "");
        let loss = |scenario: &Scenario| {
            let vegas = scenario.stack["upstream"].congestion_control
                == Some(CongestionControlAlgorithm::Vegas);
            Some(if vegas { 0.001 } else { 0.01 })
        };
        searched(CHOOSE, &free, loss, |search| {
            let winner = search.cheapest(|_| true).unwrap().unwrap();
            let words = search.candidates[winner].parameters.describe(search.choices);
            assert!(words.starts_with("1 collector, vegas"), "{words}");
        });
    }

    #[test]
    fn the_search_stops_at_the_next_cost() {
        let evaluated = searched(
            CHOOSE,
            COST,
            |_| Some(0.0),
            |search| {
                search.cheapest(|_| true).unwrap();
                search.evaluator.evaluated()
            },
        );
        // Two algorithms at the lowest cost; candidates of the next cost are not evaluated.
        assert_eq!(evaluated, 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_winner_is_the_cheapest_of_the_whole_grid(
            losses in prop::collection::vec(0.0..0.06_f64, 24),
            count in 0.0..1000.0_f64,
            rate in 0.0..1000.0_f64,
        ) {
            let loss = |scenario: &Scenario| {
                let count = scenario.node["collector"].count.trailing_zeros() as usize;
                let rate = scenario.link["wan"].forward().unwrap().rate.as_bits_per_sec();
                let rate = (rate / 1_000_000).trailing_zeros() as usize;
                let reno = usize::from(scenario.stack["upstream"].congestion_control ==
                    Some(CongestionControlAlgorithm::Reno));
                Some(losses[count * 6 + rate * 2 + reno])
            };
            let cost = format!("\"node.collector.count\" = {count}\n\"link.wan.both.rate\" = \
                                {rate}");
            searched(CHOOSE, &cost, loss, |search| {
                let found = search.cheapest(|_| true).unwrap().map(|at| search.candidates[at].cost);
                // Exhaustive search, with an independent computation of the cost.
                let mut minimum: Option<f64> = None;
                for (at, loss) in losses.iter().enumerate() {
                    let cost = count * f64::from(1 << (at / 6))
                        + rate * f64::from(1 << (at % 6 / 2));
                    if *loss <= 0.02 && minimum.is_none_or(|minimum| cost < minimum) {
                        minimum = Some(cost);
                    }
                }
                match (found, minimum) {
                    (Some(found), Some(minimum)) => {
                        prop_assert!((found - minimum).abs() <= 1e-9 * minimum.max(1.0));
                    }
                    (found, minimum) => prop_assert_eq!(found, minimum),
                }
                Ok(())
            })?;
        }
    }
}
