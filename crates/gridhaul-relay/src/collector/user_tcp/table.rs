//! The table of connections.

use std::collections::BTreeMap;

use super::endpoint::Endpoint;
use super::flow::Flow;

/// Identifies a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId {
    /// Row in the table, which is reused.
    pub row: u32,
    /// Distinguishes the connections of a row.
    pub number: u32,
}

/// All connections, by row and by flow.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Option<Box<Endpoint>>>,
    free: Vec<u32>,
    by_flow: BTreeMap<Flow, u32>,
    next_number: u32,
}

impl Table {
    pub(super) fn insert(&mut self, mut endpoint: Endpoint) -> ConnectionId {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        endpoint.number = number;
        let flow = endpoint.flow;
        let row = self.free.pop().unwrap_or_else(|| {
            self.rows.push(None);
            (self.rows.len() - 1) as u32
        });
        self.rows[row as usize] = Some(Box::new(endpoint));
        self.by_flow.insert(flow, row);
        ConnectionId { row, number }
    }

    pub(super) fn find(&self, flow: &Flow) -> Option<u32> {
        self.by_flow.get(flow).copied()
    }

    pub(super) fn get(&self, id: ConnectionId) -> Option<&Endpoint> {
        self.row(id.row).filter(|endpoint| endpoint.number == id.number)
    }

    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Endpoint> {
        self.row_mut(id.row).filter(|endpoint| endpoint.number == id.number)
    }

    pub(super) fn row(&self, row: u32) -> Option<&Endpoint> {
        self.rows.get(row as usize)?.as_deref()
    }

    pub(super) fn row_mut(&mut self, row: u32) -> Option<&mut Endpoint> {
        self.rows.get_mut(row as usize)?.as_deref_mut()
    }

    pub(super) fn remove(&mut self, row: u32) -> Option<Box<Endpoint>> {
        let endpoint = self.rows.get_mut(row as usize)?.take()?;
        self.by_flow.remove(&endpoint.flow);
        self.free.push(row);
        Some(endpoint)
    }

    pub(super) fn len(&self) -> usize {
        self.by_flow.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Endpoint> {
        self.rows.iter().flatten().map(|endpoint| &**endpoint)
    }

    /// Identifiers of all connections.
    pub(super) fn ids(&self) -> Vec<ConnectionId> {
        let rows = self.rows.iter().enumerate();
        rows.filter_map(|(row, endpoint)| {
            let number = endpoint.as_ref()?.number;
            Some(ConnectionId { row: row as u32, number })
        })
        .collect()
    }
}
