//! The rows of an answer, and which flows and links belong to each.

use gridhaul_data::link_trace;
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::{Directions, Scenario};

use crate::aggregation::Topology;

/// The rows of an answer, which depend on the scenario only.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Name and number of equal flows of each row.
    pub flows: Vec<(String, u64)>,
    /// The directions of all links, and their rows.
    pub directions: Directions,
    /// The upstream connections of aggregators, and the row of each of their groups.
    pub aggregation: Topology,
    pub group_row: Vec<u32>,
    /// The comparisons of flows.
    pub comparisons: Vec<Comparison>,
}

/// Flows whose goodputs are compared.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub name: String,
    /// Rows of the flows.
    pub rows: Vec<u32>,
}

impl Layout {
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, RunError> {
        let mut layout = Self {
            flows: Vec::new(),
            directions: link_trace::directions(scenario)?,
            aggregation: Topology::new(scenario)?,
            group_row: Vec::new(),
            comparisons: Vec::new(),
        };
        for (name, flow) in &scenario.flow {
            layout.flows.push((name.clone(), scenario.connections(flow)));
        }
        layout.add_groups();
        let row = |name: &String| scenario.flow.get_index_of(name).map(|row| row as u32);
        let compared = scenario.record.fairness.iter().map(|(name, flows)| Comparison {
            name: name.clone(),
            rows: flows.iter().filter_map(row).collect(),
        });
        layout.comparisons = compared.collect();
        Ok(layout)
    }

    /// Name and number of connections of each row of flows of the answer.
    pub(crate) fn answer_flows(&self) -> Vec<(String, u64)> {
        let count = |row: &u32| self.flows[*row as usize].1;
        let compared = self.comparisons.iter().map(|comparison| {
            let connections = comparison.rows.iter().map(count).sum();
            (comparison.name.clone(), connections)
        });
        self.flows.iter().cloned().chain(compared).collect()
    }

    /// Adds the rows of upstream connections, in the order of the path of the data.
    fn add_groups(&mut self) {
        self.group_row = vec![u32::MAX; self.aggregation.groups.len()];
        let order: Vec<usize> = (0..self.aggregation.flows.len())
            .flat_map(|flow| self.aggregation.after(flow))
            .collect();
        let own = self.flows.len();
        for index in order {
            if self.group_row[index] != u32::MAX {
                continue;
            }
            let group = &self.aggregation.groups[index];
            let name = group.row_name();
            let known = self.flows[own..].iter().position(|(row, _)| *row == name);
            let row = known.map_or(self.flows.len(), |known| own + known);
            if row == self.flows.len() {
                self.flows.push((name, 0));
            }
            self.flows[row].1 += group.count;
            self.group_row[index] = row as u32;
        }
    }

    /// The rows of the stages on the path of a row's data. Empty for upstream connections, which
    /// may carry data of several flows.
    pub(crate) fn stages(&self, row: usize) -> Vec<usize> {
        if row >= self.aggregation.flows.len() {
            return Vec::new();
        }
        let after = self.aggregation.after(row).map(|group| self.group_row[group] as usize);
        std::iter::once(row).chain(after).collect()
    }
}

/// Number of flows for a group of nodes at either end: one for each member.
pub(crate) fn members(scenario: &Scenario, from: &str, to: &str) -> u64 {
    scenario.members(from, to).map_or(1, u64::from)
}
