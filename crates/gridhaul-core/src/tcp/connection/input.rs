//! Processing of segments on an open connection (RFC 9293, 3.10.7.4).

use gridhaul_scenario::units::Instant;

use super::features::Feature;
use super::{Connection, State};
use crate::tcp::segment::{ClockOption, Flags, OneWayDelay, Segment, expand};

impl Connection {
    #[inline(always)]
    pub(super) fn handle_established(&mut self, now: Instant, segment: &Segment) {
        let next = self.receiver.next();
        let in_sequence = segment.seq == self.peer_isn.wrapping_add(next as u32);
        if !in_sequence && !self.is_acceptable(segment) {
            // RFC 9293, 3.10.7.4, first: a segment outside the window is answered with an
            // acknowledgement and dropped.
            if !segment.flags.has(Flags::RST) {
                self.receiver.request_ack();
            }
            return;
        }
        if segment.flags.has(Flags::RST) {
            self.on_reset(in_sequence);
            return;
        }
        if self.features.has(Feature::Ecn) {
            self.note_congestion_notification(segment);
        }
        if segment.flags.has(Flags::ACK) {
            if !self.sending.handle_ack(now, segment, self.isn, &self.params) {
                self.receiver.request_ack();
                return;
            }
            if self.sending.fin_position().is_some() {
                self.on_fin_progress(now);
            }
        }
        if segment.sequence_len() > 0 {
            let start =
                if in_sequence { Some(next) } else { expand(segment.seq, self.peer_isn, next) };
            self.handle_payload(now, segment, start);
        }
    }

    /// RFC 5961, section 3.2: a reset is accepted only at exactly the expected sequence number;
    /// elsewhere in the window it triggers a challenge ACK.
    #[cold]
    pub(super) fn on_reset(&mut self, in_sequence: bool) {
        if in_sequence {
            self.enter_closed();
        } else {
            self.receiver.request_ack();
        }
    }

    /// The acceptability test of RFC 9293, 3.10.7.4, for a segment that does not start at the next
    /// expected sequence number. Old data is accepted here and answered where data is handled.
    #[cold]
    pub(super) fn is_acceptable(&self, segment: &Segment) -> bool {
        let next = self.receiver.next();
        let Some(start) = expand(segment.seq, self.peer_isn, next) else { return false };
        let limit = next + u64::from(self.receiver.window(&self.params));
        if segment.sequence_len() > 0 {
            // Data that begins at or before the expected number is trimmed later.
            start < limit.max(next + 1)
        } else {
            next <= start && start < limit
        }
    }

    /// Handles the payload of a segment that starts at this position of the peer's stream; `None`
    /// is a position before its beginning.
    #[inline(always)]
    pub(super) fn handle_payload(&mut self, now: Instant, segment: &Segment, start: Option<u64>) {
        let Some(start) = start else {
            self.receiver.request_ack();
            return;
        };
        let mut end = start + u64::from(segment.sequence_len());
        let mut flags = segment.flags;
        if !self.receiver.has_offered(end) {
            let Some(cut) = self.trim_to_window(segment, start, end) else {
                self.receiver.request_ack();
                return;
            };
            (end, flags) = cut;
        }
        if let Some((value, _)) = segment.timestamps {
            self.note_timestamps(now, segment.clock, value, start);
        }
        if self.state == State::TimeWait {
            // RFC 9293, 3.10.7.4, eighth: a retransmitted FIN restarts the TIME-WAIT timer.
            self.time_wait(now);
        }
        self.receiver.handle_data(now, start, end, flags, &self.params);
        if self.receiver.finished() {
            self.on_peer_finished(now);
        }
    }

    /// RFC 9293, 3.10.7.4: trims a segment to the window. Returns the end of the remaining range
    /// and its flags, without FIN and PSH if the end was cut off; `None` if no part is within the
    /// window. A FIN without data needs no buffer space.
    fn trim_to_window(&self, segment: &Segment, start: u64, end: u64) -> Option<(u64, Flags)> {
        let next = self.receiver.next();
        let limit = next + u64::from(self.receiver.window(&self.params));
        let fin = segment.flags.has(Flags::FIN);
        let bare_fin = fin && segment.len == 0 && start == next;
        if end <= limit || bare_fin {
            return Some((end, segment.flags));
        }
        let cut_off = Flags::FIN.with(Flags::PSH);
        (start < limit).then(|| (limit, segment.flags.without(cut_off)))
    }

    /// Updates the timestamp or delay of the next acknowledgement with a segment that begins at
    /// `start`.
    #[inline]
    fn note_timestamps(&mut self, now: Instant, clock: ClockOption, value: u32, start: u64) {
        match clock {
            ClockOption::Timestamps => {
                // RFC 7323, section 4.3: echo the latest timestamp of a segment that covers the
                // last acknowledgement.
                let later = value.wrapping_sub(self.echo).cast_signed() >= 0;
                if later && start <= self.last_ack {
                    self.echo = value;
                }
            }
            // Paper `medx`, section 2: T_recv - T_snd of every segment, in microseconds.
            ClockOption::OneWayDelay => {
                self.echo = OneWayDelay::stamp(now).wrapping_sub(value);
            }
        }
    }
}
