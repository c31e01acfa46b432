//! Consistency checks of scenarios.

mod acknowledgement;
mod aqm;
mod attack;
mod coap;
mod connection;
mod drx;
mod ecmp;
mod exchange;
mod flow;
mod handover;
mod hybrid_router;
mod ip;
mod link;
mod link_quality;
mod link_trace;
mod load;
mod medium;
mod mqtt;
mod mtu;
mod plan;
mod power_line;
mod proxy;
mod radio;
mod rate_change;
mod record;
mod replications;
mod scheduler;
mod shaper;
mod stack;

use super::error::{COLLECTED, Diagnostic};
use super::route::Network;
use super::{Aggregator, NAME_RULE, Scenario, suggest};
use crate::units::{BufferLimit, Bytes};

/// Largest number of flows of a scenario: a larger number is probably a typing error, and the run
/// would exhaust the memory.
const FLOWS_MAX: u64 = 100_000_000;

const CONTROL_CHARACTER: &str = "the text contains a control character";
const REMOVE_IT: &str = "remove it: terminals obey some of these characters";

/// The first errors, in the order of the tables.
pub(super) fn diagnostics(scenario: &Scenario) -> Vec<Diagnostic> {
    let mut report = Report { scenario, diagnostics: Vec::new() };
    report.check_top_level_keys();
    report.replications();
    report.record();
    report.names();
    report.nodes();
    if scenario.node.is_empty() {
        // Otherwise every link and flow would be reported for its missing nodes.
        return report.diagnostics;
    }
    report.links();
    report.media();
    report.stacks();
    // Paths are checked only if nodes and links are valid, so that no error is reported twice.
    let network = report.diagnostics.is_empty().then(|| Network::new(scenario));
    report.shapers(network.as_ref());
    report.schedulers(network.as_ref());
    report.flows(network.as_ref());
    report.attacks(network.as_ref());
    report.plan();
    report.diagnostics
}

/// Collects the errors of a scenario.
struct Report<'s> {
    scenario: &'s Scenario,
    diagnostics: Vec<Diagnostic>,
}

impl Report<'_> {
    fn refuse(
        &mut self,
        key: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.add(Diagnostic::new(key, message, remedy));
    }

    fn add(&mut self, diagnostic: Diagnostic) {
        if !self.is_full() {
            self.diagnostics.push(diagnostic);
        }
    }

    fn is_full(&self) -> bool {
        self.diagnostics.len() >= COLLECTED
    }

    /// Reports a name that is not in a table of names.
    fn unknown<V>(
        &mut self,
        key: &str,
        what: &str,
        name: &str,
        table: &indexmap::IndexMap<String, V>,
    ) {
        if self.is_full() {
            return;
        }
        let known: Vec<_> = table.keys().map(String::as_str).collect();
        let message = format!("there is no {what} {name:?}");
        self.refuse(key, message, suggest::remedy(name, &known));
    }

    fn check_top_level_keys(&mut self) {
        let scenario = self.scenario;
        if scenario.title.trim().is_empty() {
            self.refuse("title", "the title is empty", "describe the scenario in one line");
        } else if scenario.title.contains(['\n', '\r']) {
            self.refuse(
                "title",
                "the title has several lines",
                "use `description` for longer texts",
            );
        } else if scenario.title.contains(char::is_control) {
            self.refuse("title", CONTROL_CHARACTER, REMOVE_IT);
        }
        // Lines of a description may be indented.
        let is_refused = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        if scenario.description.contains(is_refused) {
            self.refuse("description", CONTROL_CHARACTER, REMOVE_IT);
        }
        if scenario.duration.is_zero() {
            self.refuse("duration", "the duration of a run must be above 0", "write \"60 s\"");
        } else if scenario.warmup >= scenario.duration {
            let message = format!(
                "the warm-up ({}) leaves no time of the run ({}) for the measurement",
                scenario.warmup, scenario.duration
            );
            self.refuse("warmup", message, "make it shorter than `duration`");
        }
        if scenario.node.is_empty() {
            self.refuse("node", "there are no nodes", "add two: [node.meter] and [node.head]");
        }
        if scenario.flow.is_empty() {
            self.refuse(
                "flow",
                "there are no flows",
                "add one: [flow.readings] with from, to and load",
            );
        }
    }

    /// Names are parts of keys, columns and file names.
    fn names(&mut self) {
        let scenario = self.scenario;
        let names = (scenario.node.keys().map(|name| ("node", name)))
            .chain(scenario.link.keys().map(|name| ("link", name)))
            .chain(scenario.medium.keys().map(|name| ("medium", name)))
            .chain(scenario.stack.keys().map(|name| ("stack", name)))
            .chain(scenario.flow.keys().map(|name| ("flow", name)))
            .chain(scenario.attack.keys().map(|name| ("attack", name)));
        for (table, name) in names {
            if !Scenario::is_name(name) {
                let article = if table == "attack" { "an" } else { "a" };
                self.refuse(
                    format!("{table}.{name:?}"),
                    format!("{name:?} is not a valid name of {article} {table}"),
                    NAME_RULE,
                );
            }
        }
    }

    fn nodes(&mut self) {
        for (name, node) in &self.scenario.node {
            if node.count == 0 {
                self.refuse(
                    format!("node.{name}.count"),
                    "a group has at least one node",
                    "write 1, or remove the node",
                );
            }
            if let Some(aggregator) = &node.aggregator {
                self.aggregator(&format!("node.{name}.aggregator"), aggregator);
            }
            if let Some(proxy) = &node.proxy {
                self.proxy(name, node, proxy);
            }
            if let Some(router) = &node.router {
                self.hybrid_router(name, node, router);
            }
            if node.ecmp {
                self.ecmp(name, node);
            }
        }
    }

    fn aggregator(&mut self, key: &str, aggregator: &Aggregator) {
        if matches!(aggregator.buffer, BufferLimit::Messages(0))
            || aggregator.buffer == BufferLimit::Bytes(Bytes::new(0))
        {
            self.refuse(
                format!("{key}.buffer"),
                "an aggregator without a buffer accepts no data",
                "write \"100 messages\" or \"24 kB\"",
            );
        }
        if let Some(name) = &aggregator.stack
            && !self.scenario.stack.contains_key(name)
        {
            self.unknown(&format!("{key}.stack"), "stack", name, &self.scenario.stack);
        }
    }

    /// Checks the two ends of a link or flow. True if both exist and differ.
    fn ends(&mut self, key: &str, from: &str, to: &str) -> bool {
        let nodes = &self.scenario.node;
        for (end, name) in [("from", from), ("to", to)] {
            if !nodes.contains_key(name) {
                self.unknown(&format!("{key}.{end}"), "node", name, nodes);
            }
        }
        if !(nodes.contains_key(from) && nodes.contains_key(to)) {
            return false;
        }
        if from == to {
            self.refuse(
                format!("{key}.to"),
                format!("both ends are `{from}`"),
                "name two different nodes",
            );
            return false;
        }
        true
    }
}
