//! Connection establishment, resets for segments without a connection (RFC 9293, 3.10.7.1 to
//! 3.10.7.3), and option negotiation.

use gridhaul_scenario::units::Instant;

use super::features::Feature;
use super::{Connection, State, clock_option};
use crate::tcp::segment::{ClockOption, Flags, Segment};
use crate::tcp::sender::SendRange;

impl Connection {
    pub(super) fn handle_in_other_states(&mut self, now: Instant, segment: &Segment) {
        let flags = segment.flags;
        match self.state {
            State::Closed => self.reset_unknown(segment),
            State::Listen if flags.has(Flags::RST) => {}
            State::Listen if flags.has(Flags::ACK) => self.reset_unknown(segment),
            State::Listen if flags.has(Flags::SYN) => {
                self.on_syn(segment);
                self.state = State::SynReceived;
                self.sending
                    .activate(&self.params, self.isn)
                    .set_window(segment.window, segment.seq);
                self.take_data_of_syn(now, segment);
            }
            State::Listen => {}
            State::SynSent => self.handle_in_syn_sent(now, segment),
            State::SynReceived => self.handle_in_syn_received(now, segment),
            _ if flags.has(Flags::SYN) => {
                // RFC 9293, 3.10.7.4 with RFC 5961: a SYN in a synchronised state gets an ACK.
                self.receiver.request_ack();
            }
            _ => self.handle_established(now, segment),
        }
    }

    /// RFC 9293, 3.10.7.3.
    fn handle_in_syn_sent(&mut self, now: Instant, segment: &Segment) {
        let flags = segment.flags;
        let acknowledges = flags.has(Flags::ACK);
        // SND.UNA < SEG.ACK =< SND.NXT: with Fast Open, data may have been sent with SYN.
        let progress = u64::from(segment.ack.wrapping_sub(self.isn));
        let acceptable = (1..=self.sending.next()).contains(&progress);
        if acknowledges && !acceptable {
            self.reset_unknown(segment);
            return;
        }
        if flags.has(Flags::RST) {
            if acknowledges {
                self.enter_closed();
            }
            return;
        }
        if !flags.has(Flags::SYN) {
            return;
        }
        self.on_syn(segment);
        if !(acknowledges && self.params.policy.one_way_open) {
            self.receiver.request_ack();
        }
        if acknowledges {
            self.sending.handle_ack(now, segment, self.isn, &self.params);
            self.sending.activate(&self.params, self.isn).set_window(segment.window, segment.seq);
            self.on_established();
        } else {
            // RFC 9293, 3.5: simultaneous open.
            self.sending.activate(&self.params, self.isn).set_window(segment.window, segment.seq);
            self.state = State::SynReceived;
        }
    }

    fn handle_in_syn_received(&mut self, now: Instant, segment: &Segment) {
        let flags = segment.flags;
        if flags.has(Flags::RST) {
            // RFC 9293, 3.10.7.4: after a passive open an endpoint would return to LISTEN; a state
            // machine serves one connection here, so it closes.
            let next = self.receiver.next();
            self.on_reset(segment.seq == self.peer_isn.wrapping_add(next as u32));
            return;
        }
        if flags.has(Flags::ACK) {
            if !self.sending.handle_ack(now, segment, self.isn, &self.params) {
                self.reset_unknown(segment);
                return;
            }
            if self.sending.una() > 0 {
                self.on_established();
                if flags.has(Flags::SYN) {
                    // RFC 9293, 3.5, figure 8: this completes a simultaneous open.
                    self.receiver.request_ack();
                } else {
                    self.handle_established(now, segment);
                }
                return;
            }
        }
        if flags.has(Flags::SYN) {
            // The SYN-ACK was lost and the peer has retransmitted SYN: the timer retransmits
            // SYN-ACK.
            self.receiver.request_ack();
        }
    }

    /// Whether the last permitted retransmission of SYN has timed out.
    #[cold]
    pub(super) fn has_exhausted_syn_retransmissions(&self) -> bool {
        let timeouts = self.sending.sender().map_or(0, |sender| sender.stats().timeouts);
        self.params.policy.syn_retransmissions_max.is_some_and(|max| timeouts > u32::from(max))
    }

    fn on_established(&mut self) {
        self.state = State::Established;
        if let Some(rtt) = self.sending.sender().and_then(|sender| sender.rtt().srtt()) {
            self.receiver.note_handshake_rtt(rtt);
        }
        if self.features.has(Feature::ReceiveOnly) {
            self.sending.release_idle();
        }
    }

    /// Resets a segment that belongs to no connection (RFC 9293, 3.10.7.1).
    #[cold]
    fn reset_unknown(&mut self, segment: &Segment) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        let header = self.params.header as u8;
        let answer = if segment.flags.has(Flags::ACK) {
            Segment { seq: segment.ack, flags: Flags::RST, header, ..Segment::default() }
        } else {
            let ack = segment.seq.wrapping_add(segment.sequence_len());
            let flags = Flags::RST.with(Flags::ACK);
            Segment { ack, flags, header, ..Segment::default() }
        };
        self.rare().reset = Some(answer);
    }

    fn on_syn(&mut self, segment: &Segment) {
        self.peer_isn = segment.seq;
        self.receiver.handle_syn();
        let clock = segment.timestamps.map(|_| segment.clock);
        self.negotiate_options(clock, segment.sack_permitted);
        self.negotiate_ecn(segment.flags);
        if let Some((value, _)) = segment.timestamps
            && segment.clock == ClockOption::Timestamps
        {
            self.echo = value;
        }
    }

    /// Enables the options that both endpoints offer (RFC 7323, section 2.2; RFC 2018, section 2),
    /// with the same kind of timestamp option.
    pub(super) fn negotiate_options(&mut self, clock: Option<ClockOption>, sack: bool) {
        let has_clock = clock == Some(clock_option(&self.params));
        self.features.restrict(Feature::Timestamps, has_clock);
        self.features.restrict(Feature::Sack, sack);
        if !self.features.has(Feature::Sack) {
            self.sending.activate(&self.params, self.isn).without_sack(&self.params);
        }
    }

    #[cold]
    pub(super) fn poll_in_other_states(&mut self, now: Instant) -> Option<Segment> {
        if let Some(reset) = self.rare.as_mut().and_then(|rare| rare.reset.take()) {
            return Some(reset);
        }
        if !matches!(self.state, State::SynSent | State::SynReceived) {
            return None;
        }
        let mut range = SendRange { start: 0, len: 1 };
        if self.sending.next() == 0 {
            let sender = self.sending.activate(&self.params, self.isn);
            sender.send_syn(now, &self.params);
            if self.state == State::SynReceived && self.params.policy.one_way_open {
                sender.assume_opened();
                if self.features.has(Feature::ReceiveOnly) {
                    self.sending.release_idle();
                }
            }
            range.len += self.send_with_syn(now);
        } else if self.receiver.ack_due(now) && self.state == State::SynReceived {
            self.receiver.on_ack_sent(now, &self.params);
        } else if self.is_open_early() {
            range = self.sending.poll(now, &self.params)?;
        } else {
            self.sending.poll_syn(now, &self.params)?;
        }
        Some(self.segment(now, range))
    }
}
