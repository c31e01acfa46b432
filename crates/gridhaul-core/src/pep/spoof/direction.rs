//! One direction of data through the proxy: what was received, stored, sent and acknowledged.

use std::ops::Range;

use gridhaul_scenario::units::Instant;

use super::store::{Store, StoredSegment};
use crate::pep::hop_timer::HopTimer;
use crate::pep::{BufferStatus, Side};
use crate::tcp::{Flags, Segment, StackParams, expand};

/// Data of one direction. Position 0 is that of SYN, or of the byte before the first that the proxy
/// accepts.
#[derive(Debug, Clone)]
pub(super) struct Direction {
    pub isn: u32,
    /// Size of the buffer, and the largest payload of a segment, in bytes.
    pub buffer: u64,
    pub mss: u64,
    pub sack: bool,
    pub store: Store,
    /// Next position that is expected from the sender.
    pub received: u64,
    /// Position of FIN, once it is stored.
    pub fin: Option<u64>,
    /// Next position that the next hop expects, and the end of what was sent to it.
    pub released: u64,
    pub sent_to: u64,
    /// Window of the next hop, and its right edge.
    pub next_window: u32,
    pub edge: u64,
    /// Acknowledgement and right edge of the window that were offered to the sender, and the unit
    /// of the window: 2^`shift` bytes.
    pub offered: u64,
    pub offered_edge: u64,
    pub shift: u8,
    /// The acknowledgement that was offered before [`Self::drain`].
    pub offered_before_drain: Option<u64>,
    /// The last segment that has arrived from the sender.
    pub latest: Range<u64>,
    pub timer: HopTimer,
    /// Since when the next hop owes an acknowledgement.
    pub unanswered_since: Option<Instant>,
    /// Number of transmissions over the hop, and of the latest one that has arrived.
    pub transmissions: u64,
    pub arrived: u64,
    /// Duplicate acknowledgements since the latest transmission of the segment at `released`.
    pub duplicates: u64,
    /// End of the highest range that the next hop has selectively acknowledged.
    pub sacked_to: u64,
    pub retransmissions: u64,
    pub timeouts: u64,
}

/// A segment to send: position, length, and whether FIN follows.
pub(super) type Transmission = (u64, u32, bool);

impl Direction {
    /// Data after the sequence number `isn`, toward a next hop that offers `window` bytes.
    pub(super) fn new(params: &StackParams, isn: u32, window: u32, sack: bool, shift: u8) -> Self {
        Self {
            isn,
            buffer: u64::from(params.receive_window),
            mss: u64::from(params.mss),
            sack,
            store: Store::default(),
            received: 1,
            fin: None,
            released: 1,
            sent_to: 1,
            next_window: window,
            edge: 1 + u64::from(window),
            offered: 1,
            offered_edge: 1 + u64::from(window.min(params.receive_window)),
            shift,
            offered_before_drain: None,
            latest: 1..1,
            timer: HopTimer::new(),
            unanswered_since: None,
            transmissions: 0,
            arrived: 0,
            duplicates: 0,
            sacked_to: 0,
            retransmissions: 0,
            timeouts: 0,
        }
    }

    pub(super) const fn sequence_number(&self, position: u64) -> u32 {
        self.isn.wrapping_add(position as u32)
    }

    /// Position of a sequence number of the sender.
    pub(super) const fn position(&self, seq: u32) -> Option<u64> {
        expand(seq, self.isn, self.received)
    }

    /// Position of an acknowledgement number of the next hop.
    pub(super) const fn acknowledged_position(&self, ack: u32) -> Option<u64> {
        expand(ack, self.isn, self.released)
    }

    /// The part of a segment that lies within the buffer, and whether FIN follows it.
    pub(super) fn acceptable(&self, segment: &Segment) -> Option<(Range<u64>, bool)> {
        if !segment.flags.has(Flags::ACK) || segment.sequence_len() == 0 {
            return None;
        }
        let start = self.position(segment.seq)?;
        let end = start + u64::from(segment.len);
        // Nothing beyond FIN is data, and nothing beyond the buffer was offered to the sender.
        let last = self.fin.unwrap_or(u64::MAX).min(self.released + self.buffer);
        let range = start.max(self.released)..end.min(last);
        // FIN is accepted only after all stored data and at one position: another one would end the
        // stream in the middle.
        let is_last = self.fin.is_none_or(|fin| fin == end)
            && self.store.end().is_none_or(|stored| stored <= end + 1);
        let fin = segment.flags.has(Flags::FIN) && is_last && end == range.end;
        let is_new = range.start < range.end || fin && range.start == range.end;
        is_new.then_some((range, fin))
    }

    /// Stores what is new in an acceptable segment. Returns the segments to forward at once.
    pub(super) fn store(
        &mut self,
        now: Instant,
        range: Range<u64>,
        fin: bool,
    ) -> Vec<Transmission> {
        let mut forwarded = Vec::new();
        let with_fin = range.start..range.end + u64::from(fin);
        for gap in self.store.gaps(with_fin.clone()) {
            let has_fin = fin && gap.end == with_fin.end;
            let index = self.store.insert(gap, has_fin);
            let waits = index == self.store.sent() && self.store.next_waiting(self.edge).is_none();
            if !waits && index < self.store.sent() {
                forwarded.push(self.transmit(now, index));
            }
        }
        if fin {
            self.fin = Some(range.end);
        }
        self.received = self.store.contiguous_to(self.received);
        self.latest = with_fin;
        self.update_timer(now);
        forwarded
    }

    /// Sends the segment with this index, which counts as sent.
    pub(super) fn transmit(&mut self, now: Instant, index: usize) -> Transmission {
        self.transmissions += 1;
        let after = (self.store.sent() - index - 1) as u64;
        let (released, duplicates) = (self.released, self.duplicates);
        let segment = self.store.get_mut(index);
        let is_hole = segment.start == released;
        segment.transmission = self.transmissions;
        segment.sent_at = now;
        segment.earlier_duplicates = after.saturating_sub(if is_hole { duplicates } else { 0 });
        self.sent_to = self.sent_to.max(segment.end());
        if is_hole {
            self.duplicates = 0;
        }
        (segment.start, segment.len, segment.fin)
    }

    /// Sends segments that wait, as far as the window of the next hop permits.
    pub(super) fn send_waiting(&mut self, now: Instant, into: &mut Vec<Transmission>) {
        while let Some(index) = self.store.next_waiting(self.edge) {
            into.push(self.transmit(now, index));
        }
    }

    /// The acknowledgement that the sender has received: FIN is acknowledged when the next hop has
    /// acknowledged it.
    pub(super) fn acknowledgement(&self) -> u64 {
        if let Some(before) = self.offered_before_drain {
            return before.max(self.released);
        }
        match self.fin {
            Some(fin) if self.received > fin && self.released <= fin => fin,
            _ => self.received,
        }
    }

    /// Whether the sender's FIN is acknowledged by the next hop.
    pub(super) fn is_closed(&self) -> bool {
        self.fin.is_some_and(|fin| self.released > fin)
    }

    /// Starts the timer if the segment at `released` is stored, and stops it otherwise.
    pub(super) fn update_timer(&mut self, now: Instant) {
        if self.store.first_at(self.released).is_none() {
            self.timer.stop();
            self.unanswered_since = None;
            return;
        }
        self.unanswered_since.get_or_insert(now);
        if !self.timer.is_running() {
            self.timer.start(now, self.store.sent() == 1);
        }
    }

    /// Payload bytes before a position.
    fn payload_before(&self, position: u64) -> u64 {
        position.min(self.fin.unwrap_or(u64::MAX)) - 1
    }

    pub(super) fn buffer_status(&self) -> BufferStatus {
        let acknowledged = self.payload_before(self.acknowledgement());
        let released = self.payload_before(self.released);
        BufferStatus {
            bytes: self.store.payload(),
            bytes_at_risk: acknowledged - released,
            received: self.payload_before(self.received),
            acknowledged,
            released,
        }
    }

    /// The end that receives the data of `from`.
    pub(super) const fn destination(from: Side) -> Side {
        from.other()
    }

    /// The stored segment that the next hop expects, if it was sent.
    pub(super) fn hole(&self) -> Option<&StoredSegment> {
        self.store.first_at(self.released).filter(|segment| segment.sent)
    }
}
