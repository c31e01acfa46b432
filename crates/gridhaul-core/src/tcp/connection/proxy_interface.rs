//! Operations of a connection that proxies use and applications do not.

use std::sync::Arc;

use gridhaul_scenario::units::Instant;

use super::features::Feature;
use super::{Connection, State};
use crate::tcp::params::StackParams;
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::sender::SendRange;

impl Connection {
    /// An endpoint that takes the place of another in an established connection: `isn` is the
    /// latter's initial sequence number, `peer_isn` the peer's; the peer offers `window` bytes and
    /// has agreed on selective acknowledgements or not. Without timestamps.
    pub(crate) fn adopted(
        params: Arc<StackParams>,
        isn: u32,
        peer_isn: u32,
        window: u32,
        sack: bool,
    ) -> Self {
        let mut end = Self::new(params, isn, State::Established);
        end.peer_isn = peer_isn;
        let sender = end.sending.activate(&end.params, isn);
        sender.skip_handshake(window, peer_isn);
        end.receiver.handle_syn();
        end.last_ack = end.receiver.next();
        end.negotiate_options(None, sack);
        if end.features.has(Feature::Sack) {
            // Until data is written. Without selective acknowledgements, the sender has state.
            end.sending.release_idle();
        }
        end
    }

    /// Frees buffer space for `bytes` that were read, without a window update.
    pub(crate) fn release(&mut self, bytes: u64) {
        self.receiver.release(bytes);
    }

    /// Sequence number of a byte of the peer, counted from 0.
    #[must_use]
    pub const fn sequence_of(&self, offset: u64) -> u32 {
        self.peer_isn.wrapping_add(offset as u32).wrapping_add(1)
    }

    /// A window as the peer decodes it: rounded down to whole units of its scale.
    #[inline]
    pub(crate) const fn scaled_window(&self, window: u32) -> u32 {
        window >> self.receiver.window_shift << self.receiver.window_shift
    }

    /// Requests an immediate acknowledgement: the next poll returns one. For applications that
    /// acknowledge when data is stored, and for proxies.
    pub fn request_ack(&mut self) {
        self.receiver.request_ack();
    }

    /// Whether a poll would return nothing: all data is sent, none is lost, and no acknowledgement
    /// is due. The effects of the poll then have taken place, in fewer steps. False, without
    /// effect, where that is not known.
    #[inline]
    pub(crate) fn ends_event_without_segment(&mut self, now: Instant) -> bool {
        self.may_send()
            && !self.receiver.ack_due(now)
            && self.sending.ends_event_when_all_sent(now, &self.params)
    }

    /// A probe of keep-alive: an empty segment before the data that is sent next, which the peer
    /// answers with an acknowledgement (RFC 9293, section 3.8.4).
    pub fn keep_alive_probe(&mut self, now: Instant) -> Segment {
        let probe = self.segment(now, SendRange { start: self.sending.next(), len: 0 });
        Segment { seq: probe.seq.wrapping_sub(1), ..probe }
    }

    /// Gives the connection up without notice to the peer, as at a user timeout (RFC 5482, section
    /// 3).
    pub fn give_up(&mut self) {
        self.enter_closed();
    }

    /// Aborts the connection: the peer is sent RST, and unsent data is discarded (RFC 9293,
    /// 3.10.5). In TIME-WAIT the peer has received all data and no RST is sent.
    pub fn reset(&mut self) {
        self.abort(false);
    }

    /// Sets the window scale of outgoing segments to 2^`shift` bytes (RFC 7323, section 2.3):
    /// offered windows are rounded down to whole units, so that both endpoints agree on the offered
    /// window. The maximum is 14, and the receive buffer must not exceed 65,535 units. The window
    /// of SYN is not scaled, and windows of incoming segments are passed in bytes.
    pub fn set_window_shift(&mut self, shift: u8) {
        // RFC 7323, section 2.3: a larger value is treated as 14.
        self.receiver.window_shift = if shift > 14 { 14 } else { shift };
    }

    /// Position of the last acknowledgement sent.
    pub(crate) const fn last_ack(&self) -> u64 {
        self.last_ack
    }

    /// Next sequence number expected from the peer (RCV.NXT).
    pub(crate) const fn expected(&self) -> u32 {
        self.peer_isn.wrapping_add(self.receiver.next() as u32)
    }

    /// Whether `ack` acknowledges data that was never sent from here. A window probe is a byte that
    /// does not count as sent.
    #[inline]
    pub(crate) fn is_unsent(&self, ack: u32) -> bool {
        let next = self.next_sequence_number();
        let out_of_order = ack.wrapping_sub(next).cast_signed();
        if out_of_order <= 0 || matches!(self.state, State::Closed | State::Listen) {
            return false;
        }
        out_of_order > 1 || self.peer_window() >= self.params.mss
    }

    /// The window that the peer offers.
    pub(crate) fn peer_window(&self) -> u32 {
        self.sending.peer_window()
    }

    /// Whether the retransmission timer or the persist timer expires now.
    pub(crate) fn is_timing_out(&self, now: Instant) -> bool {
        self.sender().is_some_and(|sender| sender.is_timing_out(now))
    }

    /// Whether all data and FIN are delivered in both directions.
    pub(crate) fn is_finished(&self) -> bool {
        self.receiver.finished() && self.sending.fin_acknowledged()
    }

    /// Whether the local FIN has been acknowledged.
    pub(crate) fn fin_acknowledged(&self) -> bool {
        self.sending.fin_acknowledged()
    }

    /// Aborts the connection (RFC 9293, 3.10.5). RST is sent also in LAST-ACK and CLOSING, since it
    /// is the proxy that aborts, not the endpoint's own application. In TIME-WAIT RST is sent if
    /// the peer's close was not acknowledged (`owes_close`).
    pub(crate) fn abort(&mut self, owes_close: bool) {
        match self.state {
            State::Closed => return,
            State::TimeWait if !owes_close => return,
            State::Listen | State::SynSent => {}
            _ => self.send_reset(),
        }
        self.enter_closed();
    }

    /// Sends RST again to a peer that [`Self::abort`] has reset.
    pub(crate) fn repeat_reset(&mut self) {
        if self.state == State::Closed && self.rare.is_some() {
            self.send_reset();
        }
    }

    fn send_reset(&mut self) {
        let seq = self.isn.wrapping_add(self.sending.next() as u32);
        let ack = self.peer_isn.wrapping_add(self.receiver.acknowledged() as u32);
        let (flags, header) = (Flags::RST.with(Flags::ACK), self.params.header as u8);
        self.rare().reset = Some(Segment { seq, ack, flags, header, ..Segment::default() });
    }

    /// Restarts TIME-WAIT, or starts it where LAST-ACK has just ended, because a message to the
    /// peer is still due.
    pub(crate) fn restart_time_wait(&mut self, now: Instant) {
        if self.state == State::TimeWait || self.state == State::Closed && self.is_finished() {
            self.state = self.time_wait(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::{Profile, Stack};
    use gridhaul_scenario::units::Duration;

    use super::super::pair::{Pair, at, resolve};
    use super::*;

    /// A receive-only endpoint measures the round trip of SYN and SYN-ACK and delays
    /// acknowledgements no longer than that (Linux), also when it keeps no sender.
    #[test]
    fn an_acknowledgement_is_delayed_no_longer_than_the_round_trip() {
        let stack = Stack { profile: Profile::Linux, quick_ack: Some(0), ..Stack::default() };
        let params = resolve(&stack);
        let delay = Duration::from_millis(30);
        let mut pair = Pair { delay, ..Pair::unopened(&params, &params) };
        pair.server.receive_only();
        pair.client.write(100_000);
        let sent = pair.open();
        let Pair { mut server, .. } = pair;
        let mut waits = Vec::new();
        for (segment, ms) in sent.iter().zip([90, 92, 200, 300, 400, 500, 600]) {
            server.handle_segment(at(ms), segment);
            let due = server.next_deadline();
            if due != Instant::NEVER {
                waits.push(due.since(at(ms)).as_nanos() / 1_000_000);
                server.handle_timeout(due);
                server.poll_transmit(due).unwrap();
            }
        }
        // The timer doubles with each expiration, up to the round trip of 60 ms.
        assert_eq!(waits, [40, 60, 60, 60, 60, 60]);
    }

    /// A connection that has sent a segment of each of these sizes, of which the first is
    /// acknowledged, and the time of the acknowledgement. The timer that it restarts is not set.
    fn acknowledged_once(sizes: &[u64]) -> (Connection, Instant) {
        let stack = Stack { profile: Profile::Linux, nagle: Some(false), ..Stack::default() };
        let params = resolve(&stack);
        let mut sender = Connection::established(Arc::clone(&params), 3, &params, 7);
        let sent: Vec<_> = sizes
            .iter()
            .map(|&bytes| {
                sender.write(bytes);
                sender.poll_transmit(Instant::ZERO).unwrap()
            })
            .collect();
        let now = Instant::ZERO + Duration::from_millis(30);
        let (ack, flags) = (sent[0].seq.wrapping_add(sent[0].len), Flags::ACK);
        let seq = sender.acknowledgement_number();
        let answer = Segment { seq, ack, flags, window: sent[0].window, ..Segment::default() };
        sender.handle_segment(now, &answer);
        (sender, now)
    }

    #[test]
    fn an_event_without_segment_ends_as_with_a_poll() {
        let (mut polled, now) = acknowledged_once(&[500, 700]);
        let mut ended = polled.clone();
        assert_eq!(polled.next_deadline(), now, "the timer is not set");
        assert_eq!(polled.poll_transmit(now), None);
        assert!(ended.ends_event_without_segment(now));
        assert!(ended.next_deadline() > now);
        assert_eq!(format!("{ended:?}"), format!("{polled:?}"));
    }

    #[test]
    fn only_a_poll_ends_an_event_with_data_or_a_due_acknowledgement() {
        for writes in [true, false] {
            let (mut connection, now) = acknowledged_once(&[500, 700]);
            if writes {
                connection.write(100);
            } else {
                connection.request_ack();
            }
            let before = format!("{connection:?}");
            assert!(!connection.ends_event_without_segment(now));
            assert_eq!(format!("{connection:?}"), before, "no effect");
            assert!(connection.poll_transmit(now).is_some());
        }
    }

    /// RFC 9293, 3.10.7.4: SND.WL1 starts with the sequence number of the peer's SYN. If it started
    /// with 0, half of all sequence numbers would look older, and their windows would be ignored.
    #[test]
    fn the_first_window_update_is_accepted_for_all_sequence_numbers() {
        for peer_isn in [0, 7, 1 << 31, u32::MAX - 3, u32::MAX] {
            let params = resolve(&Stack::default());
            let opened = Connection::established(params.clone(), 100, &params, peer_isn);
            let adopted = Connection::adopted(params.clone(), 100, peer_isn, 9_000, false);
            for mut end in [opened, adopted] {
                let seq = peer_isn.wrapping_add(1);
                let flags = Flags::ACK;
                let update = Segment { seq, ack: 101, flags, window: 1_234, ..Segment::default() };
                end.handle_segment(Instant::ZERO, &update);
                assert_eq!(end.peer_window(), 1_234, "{peer_isn}");
            }
        }
    }
}
