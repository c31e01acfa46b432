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
    use std::sync::Arc;

    use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Profile, Stack};
    use gridhaul_scenario::units::{Duration, Instant};

    use super::*;
    use crate::tcp::params::StackParams;

    const READING: u64 = 200;

    fn params() -> Arc<StackParams> {
        Arc::new(StackParams::resolve(&Stack::default()))
    }

    fn ends() -> [Connection; 2] {
        let mut ends = [Connection::connect(params(), 100), Connection::listen(params(), 900)];
        ends.iter_mut().for_each(Connection::offer_fast_open);
        ends
    }

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    /// Sends all that is due from one end to the other one; returns the number of segments.
    fn exchange(now: Instant, from: &mut Connection, to: &mut Connection) -> usize {
        let mut number = 0;
        while let Some(segment) = from.poll_transmit(now) {
            to.handle_segment(now, &segment);
            number += 1;
        }
        number
    }

    #[test]
    fn data_in_syn_arrives_before_the_handshake_is_complete() {
        let [mut client, mut server] = ends();
        client.write(READING);
        let syn = client.poll_transmit(at(0)).unwrap();
        assert!(syn.flags.has(Flags::SYN) && u64::from(syn.len) == READING);
        assert_eq!(client.poll_transmit(at(0)), None);
        server.handle_segment(at(10), &syn);
        assert!(server.is_open_early());
        assert_eq!(server.receiver().delivered(), READING);
        // The server answers at once, after SYN-ACK.
        server.write(50);
        let syn_ack = server.poll_transmit(at(10)).unwrap();
        assert_eq!(syn_ack.ack, 100 + 1 + READING as u32);
        let response = server.poll_transmit(at(10)).unwrap();
        assert_eq!((response.len, response.flags.has(Flags::SYN)), (50, false));
        client.handle_segment(at(20), &syn_ack);
        client.handle_segment(at(20), &response);
        assert_eq!(client.receiver().delivered(), 50);
        exchange(at(20), &mut client, &mut server);
        assert_eq!([client.state(), server.state()], [State::Established; 2]);
        assert_eq!(client.first_unacknowledged(), 301);
    }

    #[test]
    fn a_retransmitted_syn_has_no_data_which_follows_after_the_handshake() {
        let [mut client, mut server] = ends();
        client.write(READING);
        let lost = client.poll_transmit(at(0)).unwrap();
        let again = client.next_deadline();
        client.handle_timeout(again);
        let syn = client.poll_transmit(again).unwrap();
        assert!(syn.flags.has(Flags::SYN) && syn.len == 0);
        assert_eq!(usize::from(lost.header), usize::from(syn.header) + COOKIE);
        assert_eq!(client.poll_transmit(again), None);
        server.handle_segment(again, &syn);
        assert!(!server.is_open_early());
        exchange(again, &mut server, &mut client);
        exchange(again, &mut client, &mut server);
        assert_eq!(server.receiver().delivered(), READING);
        assert_eq!(server.state(), State::Established);
    }

    #[test]
    fn data_in_syn_waits_for_the_handshake_without_a_timer() {
        for profile in [Profile::Linux, Profile::Rfc] {
            for &congestion_control in CongestionControlAlgorithm::ALL {
                let congestion_control = Some(congestion_control);
                let stack = Stack { profile, congestion_control, ..Stack::default() };
                check_lost_syns(Arc::new(StackParams::resolve(&stack)));
            }
        }
    }

    /// Three SYN are lost; the fourth one arrives, and the data follows at once.
    fn check_lost_syns(params: Arc<StackParams>) {
        let mut client = Connection::connect(Arc::clone(&params), 100);
        let mut server = Connection::listen(params, 900);
        [&mut client, &mut server].into_iter().for_each(Connection::offer_fast_open);
        client.write(READING);
        let mut syn = client.poll_transmit(at(0)).unwrap();
        let mut now = at(1);
        for _ in 0..3 {
            assert_eq!(client.poll_transmit(now), None);
            let deadline = client.next_deadline();
            assert!(deadline > now, "{deadline:?}");
            now = deadline;
            client.handle_timeout(now);
            syn = client.poll_transmit(now).unwrap();
            assert_eq!((syn.len, client.poll_transmit(now)), (0, None));
            assert!(client.next_deadline() > now);
        }
        server.handle_segment(now, &syn);
        exchange(now, &mut server, &mut client);
        exchange(now, &mut client, &mut server);
        assert_eq!(server.receiver().delivered(), READING);
    }

    #[test]
    fn a_lost_syn_ack_does_not_lose_the_data() {
        let [mut client, mut server] = ends();
        client.write(READING);
        exchange(at(0), &mut client, &mut server);
        assert!(server.poll_transmit(at(0)).is_some());
        let again = client.next_deadline();
        client.handle_timeout(again);
        exchange(again, &mut client, &mut server);
        exchange(again, &mut server, &mut client);
        exchange(again, &mut client, &mut server);
        assert_eq!([client.state(), server.state()], [State::Established; 2]);
        assert_eq!(server.receiver().delivered(), READING);
    }

    #[test]
    fn a_client_without_a_cookie_requests_one() {
        let [mut client, mut server] = ends();
        let plain = Connection::connect(params(), 1).poll_transmit(at(0)).unwrap();
        let syn = client.poll_transmit(at(0)).unwrap();
        assert_eq!(usize::from(syn.header), usize::from(plain.header) + REQUEST);
        server.handle_segment(at(0), &syn);
        let syn_ack = server.poll_transmit(at(0)).unwrap();
        assert_eq!(usize::from(syn_ack.header), usize::from(plain.header) + COOKIE);
    }
}
