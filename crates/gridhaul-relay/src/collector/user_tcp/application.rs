//! Calls of the application: data of connections, their ends, and their state.

use super::counters::UserTcpCounters;
use super::endpoint::{Endpoint, Phase, ReadResult};
use super::flow::Flow;
use super::machine::UserTcp;
use super::table::ConnectionId;

impl UserTcp {
    /// Reads data of a connection. The application confirms it when it is stored.
    pub fn read(&mut self, id: ConnectionId, buffer: &mut [u8]) -> ReadResult {
        let Some(endpoint) = self.table.get_mut(id) else { return ReadResult::Failed };
        endpoint.read(buffer)
    }

    /// The stream of a connection is stored up to this position: the next packet acknowledges it.
    pub fn confirm(&mut self, id: ConnectionId, position: u64) {
        if let Some(endpoint) = self.table.get_mut(id) {
            endpoint.confirm(position);
            self.enqueue(id.row);
        }
    }

    /// The whole stream of a connection and its FIN are stored: the next packet acknowledges FIN.
    pub fn confirm_end(&mut self, id: ConnectionId) {
        if let Some(endpoint) = self.table.get_mut(id) {
            endpoint.confirm_end();
            self.enqueue(id.row);
        }
    }

    /// Accepts data for the meter, and returns how many bytes: none after [`Self::finish`].
    pub fn write(&mut self, id: ConnectionId, bytes: &[u8]) -> usize {
        let Some(endpoint) = self.table.get_mut(id) else { return bytes.len() };
        let length = endpoint.write(bytes);
        self.enqueue(id.row);
        length
    }

    /// Closes the direction to the meter after all data.
    pub fn finish(&mut self, id: ConnectionId) {
        if let Some(endpoint) = self.table.get_mut(id) {
            endpoint.finish();
            self.enqueue(id.row);
        }
    }

    /// Aborts a connection.
    pub fn reset(&mut self, id: ConnectionId) {
        if let Some(endpoint) = self.table.get_mut(id) {
            endpoint.reset();
            self.enqueue(id.row);
        }
    }

    /// Aborts all connections.
    pub fn reset_all(&mut self) {
        for id in self.table.ids() {
            self.reset(id);
        }
    }

    /// The application has ended with a connection: if it has called [`Self::finish`], what was
    /// written is still sent; otherwise the connection is aborted.
    pub fn release(&mut self, id: ConnectionId) {
        let Some(endpoint) = self.table.get_mut(id) else { return };
        if !endpoint.is_finishing() {
            endpoint.reset();
        }
        endpoint.phase = Phase::Released;
        self.enqueue(id.row);
    }

    /// Addresses of a connection.
    #[must_use]
    pub fn flow(&self, id: ConnectionId) -> Option<Flow> {
        self.table.get(id).map(|endpoint| endpoint.flow)
    }

    /// Whether the meter has closed its direction, or the connection has failed: reading ends after
    /// the data that has arrived.
    #[must_use]
    pub fn has_ended(&self, id: ConnectionId) -> bool {
        self.table.get(id).is_none_or(|endpoint| {
            let progress = endpoint.progress();
            progress.is_finished || progress.has_failed
        })
    }

    /// Bytes of a connection that have arrived and were not read.
    #[must_use]
    pub fn unread(&self, id: ConnectionId) -> Option<u64> {
        self.table.get(id).map(Endpoint::unread)
    }

    /// Bytes of a connection that are acknowledged, or will be by the next segment.
    #[must_use]
    pub fn acknowledged(&self, id: ConnectionId) -> Option<u64> {
        self.table.get(id).map(Endpoint::acknowledged)
    }

    /// Number of connections, including those whose handshake is not complete.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no connection.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.len() == 0
    }

    /// Number of connections whose handshake is not complete.
    #[must_use]
    pub const fn half_open(&self) -> usize {
        self.half_open.len()
    }

    /// Bytes of all connections that have arrived in order and are not acknowledged.
    #[must_use]
    pub fn withheld(&self) -> u64 {
        self.table.iter().map(Endpoint::withheld).sum()
    }

    /// Counters.
    #[must_use]
    pub const fn counters(&self) -> &UserTcpCounters {
        &self.counters
    }
}
