//! Contradictions in plans. The keys and their values are tried when the file is read.

use indexmap::IndexMap;

use super::Report;
use crate::scenario::{Load, PlanLimit, PlanSpecification, Values, suggest};
use crate::units::{self, Probability};

impl Report<'_> {
    pub(super) fn plan(&mut self) {
        let Some(plan) = &self.scenario.plan else { return };
        if plan.choose.is_empty() {
            self.refuse(
                "plan.choose",
                "there is nothing to choose",
                "name keys and values: \"node.collector.count\" = { log = [1, 100], points = 20 }",
            );
        }
        if plan.cost.is_empty() {
            self.refuse(
                "plan.cost",
                "nothing costs anything, so nothing is cheapest",
                "add the cost of one unit of a chosen key: \"node.collector.count\" = 900",
            );
        }
        self.costs(plan);
        if plan.limit.is_empty() {
            self.refuse(
                "plan.limit",
                "there are no limits, so the cheapest choice is the smallest of everything",
                "add what must hold for a flow: [plan.limit.reading] with loss = \"2 %\"",
            );
        }
        for (flow, limit) in &plan.limit {
            self.limit(flow, limit);
        }
        if plan.without_aggregators && self.scenario.node.values().all(|n| n.aggregator.is_none()) {
            self.refuse(
                "plan.without_aggregators",
                "there are no collectors to do without",
                "remove this key, or make a node a collector with `aggregator`",
            );
        }
    }

    fn costs(&mut self, plan: &PlanSpecification) {
        for (key, cost) in &plan.cost {
            let place = format!("plan.cost.{key:?}");
            if !(cost.is_finite() && *cost >= 0.0) {
                self.refuse(
                    place,
                    format!("a cost is a number that is not negative, not {cost}"),
                    "write the cost of one unit; 0 or no entry where it is free",
                );
                continue;
            }
            let Some(values) = plan.choose.get(key) else {
                self.unchosen(&place, key, &plan.choose);
                continue;
            };
            if let Values::List(list) = values
                && let Some(word) = list.iter().find(|value| !counts(value))
            {
                self.refuse(
                    place,
                    format!("{word} is no number of units, so it has no cost of one"),
                    "give a cost to keys whose values are numbers or quantities",
                );
            }
        }
    }

    fn unchosen(&mut self, place: &str, key: &str, choose: &IndexMap<String, Values>) {
        let known: Vec<_> = choose.keys().map(String::as_str).collect();
        let remedy = match suggest::nearest(key, &known) {
            Some(known) => format!("did you mean `{known}`?"),
            None => "add it to [plan.choose], or remove its cost: what is fixed costs the same \
                     whatever is chosen"
                .into(),
        };
        self.refuse(place, "this key is not chosen by the plan", remedy);
    }

    fn limit(&mut self, name: &str, limit: &PlanLimit) {
        let place = format!("plan.limit.{name}");
        let Some(flow) = self.scenario.flow.get(name) else {
            self.unknown(&place, "flow", name, &self.scenario.flow);
            return;
        };
        if *limit == PlanLimit::default() {
            self.refuse(
                place,
                "this limits nothing",
                "give one of `loss`, `delay_mean`, `delay_p98` and `deadline`",
            );
            return;
        }
        if limit.loss == Some(Probability::ONE) {
            self.refuse(
                format!("{place}.loss"),
                "everything may be lost: this limits nothing",
                "write \"2 %\", or leave it out",
            );
        }
        for (key, time) in [("delay_mean", limit.delay_mean), ("delay_p98", limit.delay_p98)] {
            if time.is_some_and(crate::units::Duration::is_zero) {
                self.refuse(
                    format!("{place}.{key}"),
                    "no message arrives at the moment it is ready",
                    "write \"20 s\", or leave it out",
                );
            }
            if time.is_some() && matches!(flow.load, Load::Bulk | Load::Transfer(_)) {
                self.refuse(
                    format!("{place}.{key}"),
                    "this judges messages, and the load of the flow is one long stream",
                    "remove it, or choose a load of messages such as `periodic`",
                );
            }
        }
        if limit.deadline && flow.effective_deadline().is_none() {
            self.refuse(
                format!("{place}.deadline"),
                format!("flow `{name}` has no deadline"),
                format!("add deadline = \"15 s\" to [flow.{name}], or write delay_p98 = \"15 s\""),
            );
        }
    }
}

/// Whether a value is a number of units.
fn counts(value: &toml::Value) -> bool {
    match value {
        toml::Value::Integer(_) | toml::Value::Float(_) => true,
        toml::Value::String(text) => {
            let (number, unit) = units::split(text);
            !unit.is_empty() && number.replace('_', "").parse::<f64>().is_ok_and(f64::is_finite)
        }
        _ => false,
    }
}
