//! Candidates: values of the chosen keys, and their cost.

use gridhaul_report::quantity;
use gridhaul_scenario::scenario::{Choice, PlanSpecification, Scenario};
use gridhaul_scenario::units::counted;

/// Values of the chosen keys, in their order; `None` for keys that do not apply.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ParameterSet {
    pub(crate) values: Vec<Option<String>>,
    /// Whether the scenario keeps its aggregators.
    pub(crate) aggregators: bool,
}

/// A parameter set and its cost.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) parameters: ParameterSet,
    pub(crate) cost: f64,
}

impl ParameterSet {
    /// A copy with another value of one key.
    pub(crate) fn with(&self, key: usize, value: &str) -> Self {
        let mut parameters = self.clone();
        parameters.values[key] = Some(value.to_owned());
        parameters
    }

    /// The values as text: `38 concentrators, vegas, wan 2 Mbit/s`.
    pub(crate) fn describe(&self, choices: &[Choice]) -> String {
        let mut parts = Vec::new();
        if !self.aggregators {
            parts.push("without aggregators".to_owned());
        }
        for (value, choice) in self.values.iter().zip(choices) {
            if let Some(value) = value {
                parts.push(describe_value(&choice.key, value, choices));
            }
        }
        parts.join(", ")
    }
}

/// A value with the part of its key that makes it unambiguous.
fn describe_value(key: &str, value: &str, choices: &[Choice]) -> String {
    let steps: Vec<_> = key.split('.').collect();
    if let ["node", name, "count"] = steps[..] {
        return value
            .parse::<u64>()
            .map_or_else(|_| format!("{value} {name}s"), |number| counted(number, name));
    }
    // `buffer 100 messages`; a value such as `vegas` is unambiguous unless another key has the same
    // last part.
    let short = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let alike = choices.iter().filter(|other| short(&other.key) == short(key)).count();
    let owner = match steps[..] {
        [_, name, ..] if alike > 1 || steps[0] == "link" => format!("{name} "),
        _ => String::new(),
    };
    match (quantity(value), steps[0]) {
        (None, _) if alike == 1 => value.to_owned(),
        (Some(_), "link") if steps.last() == Some(&"rate") => format!("{owner}{value}"),
        _ => format!("{owner}{} {value}", short(key)),
    }
}

/// All candidates in order of cost; equal costs in the order of the file.
pub(crate) fn candidates(
    scenario: &Scenario,
    plan: &PlanSpecification,
    choices: &[Choice],
) -> Vec<Candidate> {
    let mut parameter_sets = combined(choices, |_| true, true);
    if plan.without_aggregators {
        parameter_sets.extend(combined(choices, |choice| !choice.of_aggregators, false));
    }
    let cost_model = CostModel::new(scenario, plan, choices);
    let mut candidates: Vec<_> = parameter_sets
        .into_iter()
        .map(|parameters| Candidate { cost: cost_model.cost(&parameters), parameters })
        .collect();
    candidates.sort_by(|one, other| one.cost.total_cmp(&other.cost));
    candidates
}

fn combined(
    choices: &[Choice],
    chosen: impl Fn(&Choice) -> bool,
    aggregators: bool,
) -> Vec<ParameterSet> {
    let mut rows: Vec<Vec<Option<String>>> = vec![Vec::new()];
    for choice in choices {
        let values: Vec<Option<String>> = match chosen(choice) {
            true => choice.values.iter().cloned().map(Some).collect(),
            false => vec![None],
        };
        rows = rows
            .into_iter()
            .flat_map(|row| {
                values
                    .iter()
                    .map(move |value| [row.as_slice(), std::slice::from_ref(value)].concat())
            })
            .collect();
    }
    rows.into_iter().map(|values| ParameterSet { values, aggregators }).collect()
}

/// Cost of candidates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CostModel<'a> {
    scenario: &'a Scenario,
    plan: &'a PlanSpecification,
    choices: &'a [Choice],
}

/// One item of a cost.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CostItem {
    /// Index of the key.
    pub(crate) key: usize,
    /// Units of one node or link, such as 2 for 2 Mbit/s.
    pub(crate) units: f64,
    /// Number of nodes or links with this cost.
    pub(crate) times: u32,
    pub(crate) cost: f64,
}

impl<'a> CostModel<'a> {
    pub(crate) const fn new(
        scenario: &'a Scenario,
        plan: &'a PlanSpecification,
        choices: &'a [Choice],
    ) -> Self {
        Self { scenario, plan, choices }
    }

    /// The plan with the prices.
    pub(crate) const fn plan(&self) -> &'a PlanSpecification {
        self.plan
    }

    /// The total cost of a parameter set.
    pub(crate) fn cost(&self, parameters: &ParameterSet) -> f64 {
        self.items(parameters).iter().map(|item| item.cost).sum()
    }

    /// The items of the cost.
    pub(crate) fn items(&self, parameters: &ParameterSet) -> Vec<CostItem> {
        let chosen = self.choices.iter().zip(&parameters.values).enumerate();
        let items = chosen.filter_map(|(key, (choice, value))| {
            let price = *self.plan.cost.get(&choice.key)?;
            let units = units(value.as_deref()?)?;
            let times = self.times(&choice.key, parameters);
            Some(CostItem { key, units, times, cost: price * units * f64::from(times) })
        });
        items.collect()
    }

    /// Number of nodes or links that a key applies to.
    fn times(&self, key: &str, parameters: &ParameterSet) -> u32 {
        let steps: Vec<_> = key.split('.').collect();
        match steps[..] {
            ["node", _, "count"] => 1,
            ["node", name, ..] => self.count(name, parameters),
            ["link", name, ..] => {
                let Some(link) = self.scenario.link.get(name) else { return 1 };
                let (from, to) =
                    (self.count(&link.from, parameters), self.count(&link.to, parameters));
                let shared = self.chosen(&format!("link.{name}.shared"), parameters);
                let shared = shared.map_or(link.shared, |value| value == "true");
                if shared { from.min(to) } else { from.max(to) }
            }
            _ => 1,
        }
    }

    fn count(&self, node: &str, parameters: &ParameterSet) -> u32 {
        let written = self.scenario.node.get(node).map_or(1, |node| node.count);
        let chosen = self.chosen(&format!("node.{node}.count"), parameters);
        chosen.and_then(|value| value.parse().ok()).unwrap_or(written)
    }

    fn chosen<'t>(&self, key: &str, parameters: &'t ParameterSet) -> Option<&'t str> {
        let index = self.choices.iter().position(|choice| choice.key == key)?;
        parameters.values[index].as_deref()
    }
}

/// A value in cost units: megabits per second, kilobytes, seconds or a plain number.
fn units(value: &str) -> Option<f64> {
    let (number, unit) = quantity(value)?;
    Some(match unit {
        "bit/s" => number / 1e6,
        "B" => number / 1e3,
        _ => number,
    })
}

#[cfg(test)]
mod tests {
    use super::super::test_backends::{district, plan_of};
    use super::*;

    #[test]
    fn costs_count_each_node_and_each_link() {
        let scenario = district(
            "\"node.collector.count\" = [2, 10]\n\
             \"node.collector.aggregator.buffer\" = [\"50 messages\"]\n\
             \"link.access.both.rate\" = [\"500 kbit/s\"]\n\
             \"link.wan.both.rate\" = [\"2 Mbit/s\"]",
            "\"node.collector.count\" = 900\n\
             \"node.collector.aggregator.buffer\" = 0.1\n\
             \"link.access.both.rate\" = 40\n\
             \"link.wan.both.rate\" = 150",
        );
        let (plan, choices) = plan_of(&scenario);
        let found = candidates(&scenario, &plan, choices.keys());
        let costs: Vec<_> = found.iter().map(|candidate| candidate.cost).collect();
        // Two aggregators: 2·900 + 2·50·0.1 + 2·0.5·40 + 2·150; there is one wide-area link.
        assert_eq!(costs, [1800.0 + 10.0 + 40.0 + 300.0, 9000.0 + 50.0 + 200.0 + 300.0]);
        let words = found[0].parameters.describe(choices.keys());
        assert_eq!(words, "2 collectors, buffer 50 messages, access 500 kbit/s, wan 2 Mbit/s");
    }

    #[test]
    fn without_aggregators_their_keys_have_no_value_and_no_cost() {
        let mut scenario = district(
            "\"node.collector.count\" = [2, 10]\n\
             \"stack.upstream.congestion_control\" = [\"reno\", \"vegas\"]\n\
             \"link.wan.both.rate\" = [\"2 Mbit/s\", \"4 Mbit/s\"]",
            "\"node.collector.count\" = 900\n\"link.wan.both.rate\" = 150",
        );
        scenario.plan.as_mut().unwrap().without_aggregators = true;
        let (plan, choices) = plan_of(&scenario);
        let found = candidates(&scenario, &plan, choices.keys());
        assert_eq!(found.len(), 2 * 2 * 2 + 2);
        assert_eq!((found[0].parameters.aggregators, found[0].cost), (false, 300.0));
        assert_eq!(
            found[0].parameters.describe(choices.keys()),
            "without aggregators, wan 2 Mbit/s"
        );
        let bare = choices.scenario(&found[0].parameters.values, false).unwrap();
        assert!(bare.node["collector"].aggregator.is_none());
        assert!(bare.plan.is_none());
    }
}
