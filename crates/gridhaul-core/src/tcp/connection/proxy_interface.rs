//! What a proxy needs of its ends that an application does not.

use std::sync::Arc;

use gridhaul_scenario::units::Instant;

use super::{Connection, State};
use crate::tcp::params::StackParams;
use crate::tcp::segment::{Flags, Segment};

impl Connection {
    /// An end that takes the target of another in an open connection: `isn` is that one's number for position
    /// 0, `peer_isn` the peer's, which offers `window` bytes and has agreed on selective acknowledgements or
    /// not. Without timestamps.
    pub(crate) fn adopted(
        params: Arc<StackParams>,
        isn: u32,
        peer_isn: u32,
        window: u32,
        sack: bool,
    ) -> Self {
        let mut end = Self::new(params, isn, State::Established);
        end.peer_isn = peer_isn;
        let sender = end.sending.activate(&end.params);
        sender.skip_handshake(window, peer_isn);
        end.receiver.handle_syn();
        end.last_ack = end.receiver.next();
        end.negotiate_options(None, sack);
        end
    }

    /// Room for `bytes` that were read becomes free, without an acknowledgement that says so.
    pub(crate) fn release(&mut self, bytes: u64) {
        self.receiver.release(bytes);
    }

    /// Sequence number of a byte of the peer, counted from 0.
    pub(crate) const fn sequence_of(&self, offset: u64) -> u32 {
        self.peer_isn.wrapping_add(offset as u32).wrapping_add(1)
    }

    /// A window of so many bytes as the peer reads it: rounded down to whole units of its scale.
    #[inline]
    pub(crate) const fn scaled_window(&self, window: u32) -> u32 {
        window >> self.receiver.window_shift << self.receiver.window_shift
    }

    /// Asks for an acknowledgement at once: the next poll returns one. For an application that
    /// acknowledges when data is stored, and for proxies.
    pub fn request_ack(&mut self) {
        self.receiver.request_ack();
    }

    /// Ends the connection from outside: the peer is sent RST, and what was written is given up (RFC 9293,
    /// 3.10.5). In TIME-WAIT the peer has everything and is not notified.
    pub fn reset(&mut self) {
        self.abort(false);
    }

    /// From now on segments carry their windows in units of 2^`shift` bytes (RFC 7323, section 2.3): windows
    /// are rounded down to whole units when they are offered, so that the peer reads what this one believes
    /// that it has offered. At most 14, and the receive buffer must not exceed 65,535 units. The window of
    /// SYN is not scaled, and windows of incoming segments are handed over in bytes.
    pub fn set_window_shift(&mut self, shift: u8) {
        // RFC 7323, section 2.3: a larger one is read as 14.
        self.receiver.window_shift = if shift > 14 { 14 } else { shift };
    }

    /// Position that the last segment from here has acknowledged.
    pub(crate) const fn last_ack(&self) -> u64 {
        self.last_ack
    }

    /// Sequence number that is expected from the peer.
    pub(crate) const fn expected(&self) -> u32 {
        self.peer_isn.wrapping_add(self.receiver.next() as u32)
    }

    /// Whether this acknowledges what was never sent from here. A probe of a closed window is a byte that
    /// does not count as sent.
    #[inline]
    pub(crate) fn is_unsent(&self, ack: u32) -> bool {
        let next = self.isn.wrapping_add(self.sending.next() as u32);
        let out_of_order = ack.wrapping_sub(next).cast_signed();
        if out_of_order <= 0 || matches!(self.state, State::Closed | State::Listen) {
            return false;
        }
        out_of_order > 1 || self.peer_window() >= self.params.mss
    }

    /// The window that the peer offers.
    pub(crate) fn peer_window(&self) -> u32 {
        self.sender().map_or(u32::MAX, |sender| sender.offer().0)
    }

    /// Whether the retransmission timer or the persist timer expires now.
    pub(crate) fn is_timing_out(&self, now: Instant) -> bool {
        self.sender().is_some_and(|sender| sender.is_timing_out(now))
    }

    /// Whether everything has gone and come, FIN included, in both directions.
    pub(crate) fn is_finished(&self) -> bool {
        self.receiver.finished() && self.sending.fin_acknowledged()
    }

    /// Whether FIN has been sent from here and acknowledged.
    pub(crate) fn fin_acknowledged(&self) -> bool {
        self.sending.fin_acknowledged()
    }

    /// The connection is given up from here (RFC 9293, 3.10.5). The peer is told also in LAST-ACK and
    /// CLOSING: here, it is not its own application that gives up. In TIME-WAIT it is told if its close was
    /// not acknowledged (`owes_close`).
    pub(crate) fn abort(&mut self, owes_close: bool) {
        match self.state {
            State::Closed => return,
            State::TimeWait if !owes_close => return,
            State::Listen | State::SynSent => {}
            _ => {
                let seq = self.isn.wrapping_add(self.sending.next() as u32);
                let (ack, header) = (self.expected(), self.params.header as u8);
                let flags = Flags::RST.with(Flags::ACK);
                self.closing().reset =
                    Some(Segment { seq, ack, flags, header, ..Segment::default() });
            }
        }
        self.enter_closed();
    }

    /// TIME-WAIT restarts, or begins where LAST-ACK has just ended: the peer is still to be told something.
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

    use super::*;

    /// The end that only receives knows how long the way is from SYN and its answer, and waits no longer
    /// than that with acknowledgements (Linux), also when it keeps no sender.
    #[test]
    fn an_acknowledgement_waits_no_longer_than_the_way() {
        let stack = Stack { profile: Profile::Linux, quick_ack: Some(0), ..Stack::default() };
        let params = Arc::new(StackParams::resolve(&stack));
        let mut near = Connection::connect(Arc::clone(&params), 3);
        let mut far = Connection::listen(params, 7);
        far.receive_only();
        near.write(100_000);
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let syn = near.poll_transmit(at(0)).unwrap();
        far.handle_segment(at(30), &syn);
        let answer = far.poll_transmit(at(30)).unwrap();
        near.handle_segment(at(60), &answer);
        let sent: Vec<_> = std::iter::from_fn(|| near.poll_transmit(at(60))).collect();
        let mut waits = Vec::new();
        for (segment, ms) in sent.iter().zip([90, 92, 200, 300, 400, 500, 600]) {
            far.handle_segment(at(ms), segment);
            let due = far.next_deadline();
            if due != Instant::NEVER {
                waits.push(due.since(at(ms)).as_nanos() / 1_000_000);
                far.handle_timeout(due);
                far.poll_transmit(due).unwrap();
            }
        }
        // Twice as long each time that it ran out in vain, but no longer than the 60 ms of the way.
        assert_eq!(waits, [40, 60, 60, 60, 60, 60]);
    }

    /// RFC 9293, 3.10.7.4: SND.WL1 begins with the number of the peer's SYN. With 0 in its target, half of
    /// all numbers would look older than that, and their windows be left unread.
    #[test]
    fn the_first_window_counts_whatever_the_numbers_are() {
        for peer_isn in [0, 7, 1 << 31, u32::MAX - 3, u32::MAX] {
            let params = Arc::new(StackParams::resolve(&Stack::default()));
            let opened = Connection::established(params.clone(), 100, &params, peer_isn);
            let adopted = Connection::adopted(params.clone(), 100, peer_isn, 9_000, false);
            for mut end in [opened, adopted] {
                let seq = peer_isn.wrapping_add(1);
                let flags = Flags::ACK;
                let news = Segment { seq, ack: 101, flags, window: 1_234, ..Segment::default() };
                end.handle_segment(Instant::ZERO, &news);
                assert_eq!(end.peer_window(), 1_234, "{peer_isn}");
            }
        }
    }
}
