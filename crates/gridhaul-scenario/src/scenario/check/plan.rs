//! Checks of plans. The chosen keys and their values are tried when the file is read.

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
                "the plan has no keys to choose",
                "add keys and values: \
                 \"node.concentrator.count\" = { log = [1, 100], points = 20 }",
            );
        }
        if plan.cost.is_empty() {
            self.refuse(
                "plan.cost",
                "the plan has no costs, so no candidate is cheapest",
                "add the cost of one unit of a chosen key: \"node.concentrator.count\" = 900",
            );
        }
        self.costs(plan);
        if plan.limit.is_empty() {
            self.refuse(
                "plan.limit",
                "the plan has no limits, so the cheapest candidate has the smallest values",
                "add limits for a flow: [plan.limit.reading] with loss = \"2 %\"",
            );
        }
        for (flow, limit) in &plan.limit {
            self.limit(flow, limit);
        }
        if plan.without_aggregators && self.scenario.node.values().all(|n| n.aggregator.is_none()) {
            self.refuse(
                "plan.without_aggregators",
                "the scenario has no aggregators to remove",
                "remove this key, or add `aggregator` to a node",
            );
        }
    }

    fn costs(&mut self, plan: &PlanSpecification) {
        for (key, cost) in &plan.cost {
            let location = format!("plan.cost.{key:?}");
            if !(cost.is_finite() && *cost >= 0.0) {
                self.refuse(
                    location,
                    format!("expected a cost that is not negative, found {cost}"),
                    "write the cost of one unit; 0 or no entry if it is free",
                );
                continue;
            }
            let Some(values) = plan.choose.get(key) else {
                self.unchosen(&location, key, &plan.choose);
                continue;
            };
            // The values of a range are quantities.
            if let Values::List(list) = values
                && let Some(word) = list.iter().find(|value| !is_quantity(value))
            {
                self.refuse(
                    location,
                    format!("{word} is not a number of units, so it has no cost per unit"),
                    "use costs only for keys whose values are numbers or quantities",
                );
            }
        }
    }

    fn unchosen(&mut self, location: &str, key: &str, choose: &IndexMap<String, Values>) {
        let known: Vec<_> = choose.keys().map(String::as_str).collect();
        let remedy = match suggest::nearest(key, &known) {
            Some(known) => format!("did you mean `{known}`?"),
            None => {
                "add it to [plan.choose], or remove its cost: fixed costs do not influence the \
                     choice"
                    .into()
            }
        };
        self.refuse(location, "the plan does not choose this key", remedy);
    }

    fn limit(&mut self, name: &str, limit: &PlanLimit) {
        let location = format!("plan.limit.{name}");
        let Some(flow) = self.scenario.flow.get(name) else {
            self.unknown(&location, "flow", name, &self.scenario.flow);
            return;
        };
        if *limit == PlanLimit::default() {
            self.refuse(
                location,
                "the table has no limits",
                "add one of `loss`, `delay_mean`, `delay_p98` and `deadline`",
            );
            return;
        }
        if limit.loss == Some(Probability::ONE) {
            self.refuse(
                format!("{location}.loss"),
                "a loss of 100 % is not a limit",
                "write \"2 %\", or leave it out",
            );
        }
        for (key, time) in [("delay_mean", limit.delay_mean), ("delay_p98", limit.delay_p98)] {
            if time.is_some_and(crate::units::Duration::is_zero) {
                self.refuse(
                    format!("{location}.{key}"),
                    "the limit must be above 0",
                    "write \"20 s\", or leave it out",
                );
            }
            if time.is_some() && matches!(flow.load, Load::Bulk | Load::Transfer(_)) {
                self.refuse(
                    format!("{location}.{key}"),
                    "this limit applies to messages, and the load of the flow is a byte stream",
                    "remove it, or choose a load of messages such as `periodic`",
                );
            }
        }
        if limit.deadline && flow.effective_deadline().is_none() {
            self.refuse(
                format!("{location}.deadline"),
                format!("flow `{name}` has no deadline"),
                format!("add deadline = \"15 s\" to [flow.{name}], or write delay_p98 = \"15 s\""),
            );
        }
    }
}

/// Whether a value is a number, with or without a unit.
fn is_quantity(value: &toml::Value) -> bool {
    match value {
        toml::Value::Integer(_) | toml::Value::Float(_) => true,
        toml::Value::String(text) => {
            let (number, unit) = units::split(text);
            !unit.is_empty() && number.replace('_', "").parse::<f64>().is_ok_and(f64::is_finite)
        }
        _ => false,
    }
}
