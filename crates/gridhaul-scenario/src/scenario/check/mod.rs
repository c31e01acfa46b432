//! Whether a scenario contradicts itself.

mod aqm;
mod flow;
mod ip;
mod link;
mod load;
mod plan;
mod power_line;
mod proxy;
mod shaper;
mod stack;

use super::error::{COLLECTED, Diagnostic};
use super::route::Network;
use super::{Aggregator, NAME_RULE, Scenario, suggest};
use crate::units::{BufferLimit, Bytes};

/// Most rows of a recorded series and most flows of a scenario: beyond, somebody has mistyped a
/// number, and the run would only end when memory does.
const ROWS_MAX: u64 = 10_000_000;
const FLOWS_MAX: u64 = 100_000_000;

/// The first contradictions, in the order of the tables.
pub(super) fn diagnostics(scenario: &Scenario) -> Vec<Diagnostic> {
    let mut report = Report { scenario, diagnostics: Vec::new() };
    report.whole();
    report.record();
    report.names();
    report.nodes();
    if scenario.node.is_empty() {
        // Every link and flow would be told to lack its nodes.
        return report.diagnostics;
    }
    report.links();
    report.stacks();
    // Ways make sense only where nodes and links do: nobody wants the same mistake told twice.
    let network = report.diagnostics.is_empty().then(|| Network::new(scenario));
    report.shapers(network.as_ref());
    report.flows(network.as_ref());
    report.plan();
    report.diagnostics
}

/// Collects what is wrong.
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

    /// Refuses a name that is not in a table of names.
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

    fn whole(&mut self) {
        let scenario = self.scenario;
        if scenario.title.trim().is_empty() {
            self.refuse("title", "the title is empty", "say in one line what is asked");
        } else if scenario.title.contains(['\n', '\r']) {
            self.refuse("title", "the title has several lines", "put the story into `description`");
        }
        if scenario.duration.is_zero() {
            self.refuse("duration", "a run must last longer than nothing", "write \"60 s\"");
        } else if scenario.warmup >= scenario.duration {
            let message = format!(
                "the warm-up ({}) leaves nothing of the run ({}) to measure",
                scenario.warmup, scenario.duration
            );
            self.refuse("warmup", message, "make it shorter than `duration`");
        }
        if scenario.replications == 0 {
            self.refuse(
                "replications",
                "there must be at least one run",
                "write 1, or leave it out",
            );
        }
        if scenario.node.is_empty() {
            self.refuse("node", "there are no nodes", "add two: [node.meter] and [node.head]");
        }
        if scenario.flow.is_empty() {
            self.refuse(
                "flow",
                "nothing is sent: there are no flows",
                "add one: [flow.readings] with from, to and load",
            );
        }
    }

    fn record(&mut self) {
        let scenario = self.scenario;
        if let Some(interval) = scenario.record.interval {
            let rows = scenario.duration.as_nanos().checked_div(interval.as_nanos());
            match rows {
                None => self.refuse(
                    "record.interval",
                    "the step of a series must be longer than nothing",
                    "write \"100 ms\"",
                ),
                Some(ROWS_MAX..) => self.refuse(
                    "record.interval",
                    format!("{} in steps of {interval} are too many rows", scenario.duration),
                    format!("a series has at most {ROWS_MAX} rows; take a longer step"),
                ),
                Some(_) => {}
            }
        }
        for (index, name) in scenario.record.pcap.iter().enumerate() {
            if !scenario.link.contains_key(name) {
                self.unknown(&format!("record.pcap[{index}]"), "link", name, &scenario.link);
            }
        }
    }

    /// Names become parts of keys, columns and file names.
    fn names(&mut self) {
        let scenario = self.scenario;
        let names = (scenario.node.keys().map(|name| ("node", name)))
            .chain(scenario.link.keys().map(|name| ("link", name)))
            .chain(scenario.stack.keys().map(|name| ("stack", name)))
            .chain(scenario.flow.keys().map(|name| ("flow", name)));
        for (table, name) in names {
            if !Scenario::is_name(name) {
                self.refuse(
                    format!("{table}.{name:?}"),
                    format!("{name:?} cannot be the name of a {table}"),
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
                    "a node stands for at least one",
                    "write 1, or remove the node",
                );
            }
            if let Some(collector) = &node.aggregator {
                self.collector(&format!("node.{name}.aggregator"), collector);
            }
            if let Some(proxy) = &node.proxy {
                self.proxy(name, node, proxy);
            }
        }
    }

    fn collector(&mut self, key: &str, collector: &Aggregator) {
        if matches!(collector.buffer, BufferLimit::Messages(0))
            || collector.buffer == BufferLimit::Bytes(Bytes::new(0))
        {
            self.refuse(
                format!("{key}.buffer"),
                "a collector without room takes nothing in",
                "write \"100 messages\" or \"24 kB\"",
            );
        }
        if let Some(name) = &collector.stack
            && !self.scenario.stack.contains_key(name)
        {
            self.unknown(&format!("{key}.stack"), "stack", name, &self.scenario.stack);
        }
    }

    /// Checks the two ends of a link or flow. True if both exist and pair up.
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
