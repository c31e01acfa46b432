//! Data for the peer, segments to send, and their windows.

use std::collections::VecDeque;

use gridhaul_core::tcp::{Flags, Segment};
use gridhaul_scenario::units::Instant;

use super::Endpoint;
use crate::collector::user_tcp::window::Positions;

/// Bytes for a peer that are accepted: the window of a collector for the data of servers.
const OUTPUT_MAX: usize = 64 * 1024;

impl Endpoint {
    /// Accepts data for the peer, and returns how many bytes: none after [`Self::finish`].
    pub(in crate::collector::user_tcp) fn write(&mut self, bytes: &[u8]) -> usize {
        if self.is_finishing {
            return 0;
        }
        let length = bytes.len().min(OUTPUT_MAX - self.output.len());
        self.output.extend(&bytes[..length]);
        if length > 0 {
            self.tcp.write(length as u64);
        }
        self.awaits_space |= length < bytes.len();
        length
    }

    /// Whether a write that was not accepted can be repeated: true once.
    pub(in crate::collector::user_tcp) fn take_space(&mut self) -> bool {
        let is_free = self.awaits_space && self.output.len() < OUTPUT_MAX;
        self.awaits_space &= !is_free;
        is_free
    }

    /// Closes this direction after all data.
    pub(in crate::collector::user_tcp) fn finish(&mut self) {
        self.is_finishing = true;
        self.tcp.close();
    }

    /// Whether the application has closed this direction.
    pub(in crate::collector::user_tcp) const fn is_finishing(&self) -> bool {
        self.is_finishing
    }

    /// Discards data that the peer has acknowledged.
    pub(super) fn release_output(&mut self) {
        let una = self.tcp.first_unacknowledged();
        let acknowledged = una.wrapping_sub(self.output_start).cast_signed().max(0) as usize;
        let length = acknowledged.min(self.output.len());
        self.output.drain(..length);
        self.output_start = self.output_start.wrapping_add(length as u32);
        if self.output.is_empty() {
            self.output = VecDeque::new();
        }
    }

    /// The next segment to send, whose window is scaled, while there is this space for records.
    pub(in crate::collector::user_tcp) fn poll(
        &mut self,
        now: Instant,
        space: u64,
    ) -> Option<Segment> {
        if std::mem::take(&mut self.is_probe_due) {
            self.tcp.request_ack();
            let mut segment = self.tcp.poll_transmit(now)?;
            if segment.sequence_len() == 0 {
                segment.seq = segment.seq.wrapping_sub(1);
            }
            return Some(self.with_window(segment, space));
        }
        let (before, una) = self.tcp.sent_and_acknowledged();
        let segment = self.tcp.poll_transmit(now)?;
        if before == una && segment.sequence_len() > 0 {
            self.sent_at = now;
        }
        Some(self.with_window(segment, space))
    }

    fn with_window(&mut self, mut segment: Segment, space: u64) -> Segment {
        if segment.flags.has(Flags::SYN) {
            segment.window = segment.window.min(u32::from(u16::MAX));
        } else if !segment.flags.has(Flags::RST) {
            let acknowledged = self.tcp.acknowledged_payload();
            let buffer_edge = acknowledged + u64::from(segment.window);
            let positions = Positions { acknowledged, read: self.read, buffer_edge };
            let window = self.window.offer(positions, space);
            segment.window = window >> self.own_scale().unwrap_or(0);
        }
        segment
    }

    /// Scale of the windows that are offered, if windows are scaled.
    pub(in crate::collector::user_tcp) fn own_scale(&self) -> Option<u8> {
        self.peer_scale.map(|_| self.tcp.params().window_shift())
    }

    /// Appends the payload of a segment to `bytes`.
    pub(in crate::collector::user_tcp) fn copy_payload(
        &self,
        segment: &Segment,
        bytes: &mut Vec<u8>,
    ) {
        let start = segment.seq.wrapping_sub(self.output_start) as usize;
        let end = (start + segment.len as usize).min(self.output.len());
        debug_assert!(segment.len as usize <= end.saturating_sub(start), "{segment:?}");
        bytes.extend(self.output.range(start.min(end)..end));
    }

    fn positions(&self) -> Positions {
        let receiver = self.tcp.receiver();
        let buffer_edge = receiver.delivered() + u64::from(receiver.window(self.tcp.params()));
        Positions { acknowledged: self.tcp.acknowledged_payload(), read: self.read, buffer_edge }
    }

    /// Whether the space for records limits the window.
    pub(in crate::collector::user_tcp) fn is_narrow(&self) -> bool {
        self.window.is_narrow(self.positions())
    }

    /// Requests an acknowledgement if this space for records opens the window. Returns whether it
    /// does.
    pub(in crate::collector::user_tcp) fn open_window(&mut self, space: u64) -> bool {
        let has_opened = self.window.has_opened(self.positions(), space);
        if has_opened {
            self.tcp.request_ack();
        }
        has_opened
    }
}
