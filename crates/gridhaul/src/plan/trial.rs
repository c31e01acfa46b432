//! Candidates: values of the chosen keys, and what they cost.

use gridhaul_report::quantity;
use gridhaul_scenario::scenario::{Choice, PlanSpecification, Scenario};

/// Values of the chosen keys, in their order; `None` where a key is not chosen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Trial {
    pub(crate) values: Vec<Option<String>>,
    /// Whether the scenario keeps its collectors.
    pub(crate) collectors: bool,
}

/// A trial and its cost.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) trial: Trial,
    pub(crate) cost: f64,
}

impl Trial {
    /// The same with another value of one key.
    pub(crate) fn with(&self, key: usize, value: &str) -> Self {
        let mut trial = self.clone();
        trial.values[key] = Some(value.to_owned());
        trial
    }

    /// The values in a row: `count 38, variant vegas, rate 2 Mbit/s`.
    pub(crate) fn words(&self, choices: &[Choice]) -> String {
        let mut parts = Vec::new();
        if !self.collectors {
            parts.push("without collectors".to_owned());
        }
        for (value, choice) in self.values.iter().zip(choices) {
            if let Some(value) = value {
                parts.push(told(&choice.key, value, choices));
            }
        }
        parts.join(", ")
    }
}

/// A value with as much of its key as it needs.
fn told(key: &str, value: &str, choices: &[Choice]) -> String {
    let steps: Vec<_> = key.split('.').collect();
    if let ["node", name, "count"] = steps[..] {
        let plural = if value == "1" { "" } else { "s" };
        return format!("{value} {name}{plural}");
    }
    // `buffer 100 messages`; a word such as `vegas` speaks for itself where no other key is like it.
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

/// All candidates, the cheapest first; equally expensive ones in the order of the file.
pub(crate) fn candidates(
    scenario: &Scenario,
    plan: &PlanSpecification,
    choices: &[Choice],
) -> Vec<Candidate> {
    let mut trials = combined(choices, |_| true, true);
    if plan.without_aggregators {
        trials.extend(combined(choices, |choice| !choice.of_aggregators, false));
    }
    let prices = Prices::new(scenario, plan, choices);
    let mut candidates: Vec<_> =
        trials.into_iter().map(|trial| Candidate { cost: prices.cost(&trial), trial }).collect();
    candidates.sort_by(|one, other| one.cost.total_cmp(&other.cost));
    candidates
}

fn combined(choices: &[Choice], chosen: impl Fn(&Choice) -> bool, collectors: bool) -> Vec<Trial> {
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
    rows.into_iter().map(|values| Trial { values, collectors }).collect()
}

/// What candidates cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prices<'a> {
    scenario: &'a Scenario,
    plan: &'a PlanSpecification,
    choices: &'a [Choice],
}

/// One part of a cost.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    /// Index of the key.
    pub(crate) key: usize,
    /// Units of one node or link, such as 2 for 2 Mbit/s.
    pub(crate) units: f64,
    /// Nodes or links that are paid for.
    pub(crate) times: u32,
    pub(crate) cost: f64,
}

impl<'a> Prices<'a> {
    pub(crate) const fn new(
        scenario: &'a Scenario,
        plan: &'a PlanSpecification,
        choices: &'a [Choice],
    ) -> Self {
        Self { scenario, plan, choices }
    }

    /// The whole cost of a trial.
    pub(crate) fn cost(&self, trial: &Trial) -> f64 {
        self.items(trial).iter().map(|item| item.cost).sum()
    }

    /// What is paid for.
    pub(crate) fn items(&self, trial: &Trial) -> Vec<Item> {
        let chosen = self.choices.iter().zip(&trial.values).enumerate();
        let items = chosen.filter_map(|(key, (choice, value))| {
            let price = *self.plan.cost.get(&choice.key)?;
            let units = units(value.as_deref()?)?;
            let times = self.times(&choice.key, trial);
            Some(Item { key, units, times, cost: price * units * f64::from(times) })
        });
        items.collect()
    }

    /// Number of nodes or links that a key stands for.
    fn times(&self, key: &str, trial: &Trial) -> u32 {
        let steps: Vec<_> = key.split('.').collect();
        match steps[..] {
            ["node", _, "count"] => 1,
            ["node", name, ..] => self.count(name, trial),
            ["link", name, ..] => {
                let Some(link) = self.scenario.link.get(name) else { return 1 };
                let (from, to) = (self.count(&link.from, trial), self.count(&link.to, trial));
                let shared = self.chosen(&format!("link.{name}.shared"), trial);
                let shared = shared.map_or(link.shared, |value| value == "true");
                if shared { from.min(to) } else { from.max(to) }
            }
            _ => 1,
        }
    }

    fn count(&self, node: &str, trial: &Trial) -> u32 {
        let written = self.scenario.node.get(node).map_or(1, |node| node.count);
        let chosen = self.chosen(&format!("node.{node}.count"), trial);
        chosen.and_then(|value| value.parse().ok()).unwrap_or(written)
    }

    fn chosen<'t>(&self, key: &str, trial: &'t Trial) -> Option<&'t str> {
        let index = self.choices.iter().position(|choice| choice.key == key)?;
        trial.values[index].as_deref()
    }
}

/// Number of units that a value is: megabits a second, kilobytes, seconds, or what is counted.
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
    use super::super::fake::{district, plan_of};
    use super::*;

    #[test]
    fn costs_are_paid_for_each_node_and_each_link() {
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
        // Two collectors: 2·900 + 2·50·0.1 + 2·0.5·40 + 2·150; the wide-area link is one.
        assert_eq!(costs, [1800.0 + 10.0 + 40.0 + 300.0, 9000.0 + 50.0 + 200.0 + 300.0]);
        let words = found[0].trial.words(choices.keys());
        assert_eq!(words, "2 collectors, buffer 50 messages, access 500 kbit/s, wan 2 Mbit/s");
    }

    #[test]
    fn without_collectors_nothing_of_them_is_chosen_or_paid() {
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
        assert_eq!((found[0].trial.collectors, found[0].cost), (false, 300.0));
        assert_eq!(found[0].trial.words(choices.keys()), "without collectors, wan 2 Mbit/s");
        let bare = choices.scenario(&found[0].trial.values, false).unwrap();
        assert!(bare.node["collector"].aggregator.is_none());
        assert!(bare.plan.is_none());
    }
}
