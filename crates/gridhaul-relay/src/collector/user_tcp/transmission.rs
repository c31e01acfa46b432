//! Packets to send, and windows that open.

use gridhaul_scenario::units::Instant;

use super::endpoint::Phase;
use super::machine::UserTcp;
use super::packets::{self, Syn};
use super::table::ConnectionId;

/// Connections of which one call checks whether their window has opened.
const NARROW_CHECKED: usize = 64;

impl UserTcp {
    /// Writes the next packet to send. `space` returns the bytes of a connection for which there is
    /// space in the record log, beyond those that were read. False: there is no packet.
    pub fn poll_packet(
        &mut self,
        now: Instant,
        space: &dyn Fn(ConnectionId) -> u64,
        packet: &mut Vec<u8>,
    ) -> bool {
        packet.clear();
        if let Some((flow, segment)) = self.resets.pop_front() {
            return packets::write(&flow, &segment, Syn::default(), &[], packet).is_ok();
        }
        while let Some(&row) = self.queue.front() {
            if self.write_segment(now, row, space, packet) {
                return true;
            }
            self.queue.pop_front();
            self.finish_sending(row);
        }
        false
    }

    fn write_segment(
        &mut self,
        now: Instant,
        row: u32,
        space: &dyn Fn(ConnectionId) -> u64,
        packet: &mut Vec<u8>,
    ) -> bool {
        let Some(endpoint) = self.table.row_mut(row) else { return false };
        let id = ConnectionId { row, number: endpoint.number };
        // Only the connection of a meter has records.
        let is_open = endpoint.phase == Phase::Open;
        let space = if is_open { space(id) } else { u64::MAX };
        if let Some(since) = endpoint.acknowledge(now) {
            self.counters.note_confirmation(since, now);
        }
        let Some(segment) = endpoint.poll(now, space) else { return false };
        self.payload.clear();
        endpoint.copy_payload(&segment, &mut self.payload);
        let flow = endpoint.flow;
        let scale = endpoint.own_scale();
        let mss = self.parameters.own_mss(flow.local.is_ipv6());
        let syn = Syn { mss: Some(mss), window_scale: scale, has_timestamps: false };
        packets::write(&flow, &segment, syn, &self.payload, packet).is_ok()
    }

    /// A connection has no segment to send now.
    fn finish_sending(&mut self, row: u32) {
        let Some(endpoint) = self.table.row_mut(row) else { return };
        endpoint.is_queued = false;
        if endpoint.is_closed() && endpoint.phase != Phase::Open {
            self.remove(row);
            return;
        }
        let deadline = endpoint.deadline();
        self.timers.set(row, &mut endpoint.timer, deadline);
        if endpoint.phase == Phase::Open && endpoint.is_narrow() {
            self.narrow.insert(row);
        } else {
            self.narrow.remove(&row);
        }
    }

    /// Offers larger windows where the space for records has grown.
    pub fn open_windows(&mut self, space: &dyn Fn(ConnectionId) -> u64) {
        let from = self.narrow_from;
        let rows = self.narrow.range(from..).chain(self.narrow.range(..from));
        let rows: Vec<u32> = rows.take(NARROW_CHECKED).copied().collect();
        for row in rows {
            self.narrow_from = row.wrapping_add(1);
            let Some(endpoint) = self.table.row_mut(row) else { continue };
            let id = ConnectionId { row, number: endpoint.number };
            if endpoint.open_window(space(id)) {
                self.enqueue(row);
            }
        }
    }
}
