//! TCP Fast Open (RFC 7413): data in SYN, for a client that has a cookie of the server.

use gridhaul_scenario::units::Instant;

use super::features::Feature;
use super::{Connection, State};
use crate::tcp::segment::{FAST_OPEN_COOKIE as COOKIE, Flags, Segment};

/// Option that requests a cookie, with padding (RFC 7413, section 4.1.1: kind and length).
const REQUEST: usize = 4;

impl Connection {
    /// Both ends of the connection use Fast Open. What the client writes before its first SYN is
    /// sent with it, which only a client with a cookie does; SYN without data requests a cookie.
    pub fn offer_fast_open(&mut self) {
        self.features.set(Feature::FastOpen, true);
    }

    /// Whether the application of the server has data although the handshake is not complete: it
    /// may read and answer (RFC 7413, section 4.2.2).
    #[must_use]
    pub fn is_open_early(&self) -> bool {
        self.state == State::SynReceived && self.receiver.delivered() > 0
    }

    /// Takes the data of SYN, which a server without Fast Open leaves unacknowledged.
    pub(super) fn take_data_of_syn(&mut self, now: Instant, segment: &Segment) {
        if segment.len > 0 && self.features.has(Feature::FastOpen) {
            let end = 1 + u64::from(segment.len);
            self.receiver.handle_data(now, 1, end, Flags::NONE, &self.params);
            self.sending.activate(&self.params, self.isn).answer_early();
        }
    }

    /// Sends what the application has written with the first SYN. Returns the number of bytes.
    pub(super) fn send_with_syn(&mut self, now: Instant) -> u32 {
        if self.state != State::SynSent || !self.features.has(Feature::FastOpen) {
            return 0;
        }
        self.sending.activate(&self.params, self.isn).send_with_syn(now, &self.params)
    }

    /// Bytes of the option of SYN with this length of data.
    pub(super) fn fast_open_option(&self, data: u32) -> usize {
        if !self.features.has(Feature::FastOpen) {
            return 0;
        }
        match self.state {
            State::SynSent if data > 0 => COOKIE,
            // A retransmission carries neither data nor cookie (RFC 7413, section 4.2.2).
            State::SynSent if self.sending.next() > 1 => 0,
            State::SynSent => REQUEST,
            // The server answers a request with a cookie.
            _ if self.receiver.delivered() == 0 => COOKIE,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Profile, Stack};

    use super::super::pair::{CLIENT_ISN, Pair, at, resolve};
    use super::*;

    const READING: u64 = 200;

    fn pair(stack: &Stack) -> Pair {
        let params = resolve(stack);
        let mut pair = Pair::unopened(&params, &params);
        pair.client.offer_fast_open();
        pair.server.offer_fast_open();
        pair
    }

    #[test]
    fn data_in_syn_arrives_before_the_handshake_is_complete() {
        let mut pair = pair(&Stack::default());
        pair.client.write(READING);
        let syn = pair.client_segments();
        assert_eq!((syn.len(), u64::from(syn[0].len)), (1, READING));
        assert!(syn[0].flags.has(Flags::SYN));
        pair.server.handle_segment(pair.now, &syn[0]);
        assert!(pair.server.is_open_early());
        assert_eq!(pair.server.receiver().delivered(), READING);
        // The server answers at once, after SYN-ACK.
        pair.server.write(50);
        let answers = pair.server_segments();
        let parts: Vec<_> =
            answers.iter().map(|sent| (sent.flags.has(Flags::SYN), sent.len)).collect();
        assert_eq!(parts, [(true, 0), (false, 50)]);
        assert_eq!(answers[0].ack, CLIENT_ISN + 1 + READING as u32);
        let last = pair.deliver_to_client(&answers);
        assert_eq!(pair.client.receiver().delivered(), 50);
        pair.deliver_to_server(&last);
        assert_eq!([&pair.client, &pair.server].map(|end| end.state()), [State::Established; 2]);
        assert_eq!(pair.client.first_unacknowledged(), CLIENT_ISN + 1 + READING as u32);
    }

    #[test]
    fn a_retransmitted_syn_has_no_data_which_follows_after_the_handshake() {
        let mut pair = pair(&Stack::default());
        pair.client.write(READING);
        let lost = pair.client_segments();
        pair.expire_client_timer();
        let syn = pair.client_segments();
        assert_eq!((syn.len(), syn[0].len), (1, 0));
        assert!(syn[0].flags.has(Flags::SYN));
        assert_eq!(usize::from(lost[0].header), usize::from(syn[0].header) + COOKIE);
        let syn_ack = pair.deliver_to_server(&syn);
        assert!(!pair.server.is_open_early());
        let data = pair.deliver_to_client(&syn_ack);
        pair.deliver_to_server(&data);
        assert_eq!(pair.server.receiver().delivered(), READING);
        assert_eq!(pair.server.state(), State::Established);
    }

    #[test]
    fn data_in_syn_waits_for_the_handshake_without_a_timer() {
        for profile in [Profile::Linux, Profile::Rfc] {
            for &congestion_control in CongestionControlAlgorithm::ALL {
                let congestion_control = Some(congestion_control);
                check_lost_syns(&Stack { profile, congestion_control, ..Stack::default() });
            }
        }
    }

    /// Three SYN are lost; the fourth one arrives, and the data follows at once.
    fn check_lost_syns(stack: &Stack) {
        let mut pair = pair(stack);
        pair.client.write(READING);
        let mut syn = pair.client_segments();
        pair.now = at(1);
        for _ in 0..3 {
            assert_eq!(pair.client_segments(), []);
            let deadline = pair.client.next_deadline();
            assert!(deadline > pair.now, "{deadline:?}");
            pair.expire_client_timer();
            syn = pair.client_segments();
            assert_eq!((syn.len(), syn[0].len), (1, 0));
            assert!(pair.client.next_deadline() > pair.now);
        }
        let data = pair.exchange(&syn);
        pair.deliver_to_server(&data);
        assert_eq!(pair.server.receiver().delivered(), READING);
    }

    #[test]
    fn a_lost_syn_ack_does_not_lose_the_data() {
        let mut pair = pair(&Stack::default());
        pair.client.write(READING);
        let syn = pair.client_segments();
        let lost = pair.deliver_to_server(&syn);
        assert!(!lost.is_empty());
        pair.expire_client_timer();
        let last = pair.open();
        pair.deliver_to_server(&last);
        assert_eq!([&pair.client, &pair.server].map(|end| end.state()), [State::Established; 2]);
        assert_eq!(pair.server.receiver().delivered(), READING);
    }

    #[test]
    fn a_client_without_a_cookie_requests_one() {
        let mut pair = pair(&Stack::default());
        let params = resolve(&Stack::default());
        let plain = Pair::unopened(&params, &params).client_segments()[0].header;
        let syn = pair.client_segments();
        assert_eq!(usize::from(syn[0].header), usize::from(plain) + REQUEST);
        let syn_ack = pair.deliver_to_server(&syn);
        assert_eq!(usize::from(syn_ack[0].header), usize::from(plain) + COOKIE);
    }
}
