//! Checks of recordings and of additional columns and rows of the answer.

use super::Report;
use crate::scenario::{NAME_RULE, Scenario, Transport};

/// Largest number of rows of a recorded series: a larger number is probably a typing error, and the
/// run would exhaust the memory.
const ROWS_MAX: u64 = 10_000_000;

impl Report<'_> {
    pub(super) fn record(&mut self) {
        let scenario = self.scenario;
        if let Some(interval) = scenario.record.interval {
            let rows = scenario.duration.as_nanos().checked_div(interval.as_nanos());
            match rows {
                None => self.refuse(
                    "record.interval",
                    "the sampling interval must be above 0",
                    "write \"100 ms\"",
                ),
                Some(ROWS_MAX..) => self.refuse(
                    "record.interval",
                    format!("{} sampled every {interval} gives too many rows", scenario.duration),
                    format!("the limit is {ROWS_MAX} rows per series; use a longer interval"),
                ),
                Some(_) => {}
            }
        }
        for (index, name) in scenario.record.pcap.iter().enumerate() {
            if !scenario.link.contains_key(name) {
                self.unknown(&format!("record.pcap[{index}]"), "link", name, &scenario.link);
            }
        }
        for (index, name) in scenario.record.events.iter().enumerate() {
            self.event_log(&format!("record.events[{index}]"), name);
        }
        self.known_flows("record.members", &scenario.record.members);
        self.known_flows("record.distribution", &scenario.record.distribution);
        for (name, flows) in &scenario.record.fairness {
            self.fairness(name, flows);
        }
    }

    /// An event log describes one TCP connection.
    fn event_log(&mut self, key: &str, name: &str) {
        let scenario = self.scenario;
        let Some(flow) = scenario.flow.get(name) else {
            self.unknown(key, "flow", name, &scenario.flow);
            return;
        };
        let connections = scenario.connections(flow);
        if flow.transport != Transport::Tcp {
            self.refuse(
                key,
                format!("flow {name:?} sends datagrams, which have no connection to log"),
                "name a flow over TCP, or capture the packets with `record.pcap`",
            );
        } else if connections != 1 {
            self.refuse(
                key,
                format!("flow {name:?} is a group of {connections} connections"),
                "log a flow of one connection: split one off as a flow of its own",
            );
        }
    }

    fn known_flows(&mut self, key: &str, flows: &[String]) {
        for (index, name) in flows.iter().enumerate() {
            if !self.scenario.flow.contains_key(name) {
                self.unknown(&format!("{key}[{index}]"), "flow", name, &self.scenario.flow);
            }
        }
    }

    /// A comparison of flows is a row of the answer, as each flow is.
    fn fairness(&mut self, name: &str, flows: &[String]) {
        let scenario = self.scenario;
        let key = format!("record.fairness.{name}");
        if !Scenario::is_name(name) {
            self.refuse(&key, format!("{name:?} is not a valid name of a comparison"), NAME_RULE);
        } else if scenario.flow.contains_key(name) {
            self.refuse(
                &key,
                format!("flow `{name}` has a row of this name"),
                "choose another name for the comparison",
            );
        }
        self.known_flows(&key, flows);
        let connections = |name: &String| {
            let flow = scenario.flow.get(name);
            flow.map_or(0, |flow| scenario.connections(flow))
        };
        let twice = flows.iter().enumerate().find(|(index, name)| flows[..*index].contains(name));
        if let Some((index, flow)) = twice {
            self.refuse(
                format!("{key}[{index}]"),
                format!("flow {flow:?} is named twice"),
                "name each flow once",
            );
        } else if flows.iter().map(connections).sum::<u64>() < 2 {
            self.refuse(
                &key,
                "there are no two connections to compare",
                "name two flows, or one with several connections",
            );
        }
    }
}
