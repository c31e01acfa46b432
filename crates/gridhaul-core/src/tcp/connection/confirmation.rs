//! An endpoint whose acknowledgements wait until the application confirms the data.

use super::Connection;

impl Connection {
    /// From now on the peer's data and FIN are acknowledged only after [`Self::confirm`], for an
    /// application that acknowledges what it has stored. Data that has arrived and is not confirmed
    /// takes up the receive window.
    pub fn acknowledge_on_confirmation(&mut self) {
        self.receiver.acknowledge_on_confirmation();
    }

    /// The application confirms the next `bytes` of the peer's stream, of which FIN is one.
    pub fn confirm(&mut self, bytes: u64) {
        self.receiver.confirm(bytes);
    }

    /// Bytes that have arrived in order and are not confirmed, FIN included.
    #[must_use]
    pub const fn unconfirmed(&self) -> u32 {
        self.receiver.unconfirmed()
    }

    /// Payload that the next acknowledgement states as received.
    #[must_use]
    pub fn acknowledged_payload(&self) -> u64 {
        self.receiver.acknowledged().saturating_sub(1).min(self.receiver.delivered())
    }

    /// Sequence number of the next segment without payload: SND.NXT.
    #[must_use]
    pub fn next_sequence_number(&self) -> u32 {
        self.isn.wrapping_add(self.sending.next() as u32)
    }

    /// Acknowledgement number of the next segment.
    #[must_use]
    pub const fn acknowledgement_number(&self) -> u32 {
        self.peer_isn.wrapping_add(self.receiver.acknowledged() as u32)
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::{Profile, Stack};
    use gridhaul_scenario::units::Duration;

    use super::super::pair::{CLIENT_ISN, Pair, at, resolve};
    use crate::tcp::{Flags, State};

    /// A client, and a server that confirms.
    fn pair() -> Pair {
        let stack = Stack { profile: Profile::Linux, nagle: Some(false), ..Stack::default() };
        let mut pair = Pair::established(&resolve(&stack));
        pair.server.acknowledge_on_confirmation();
        pair
    }

    #[test]
    fn no_segment_acknowledges_unconfirmed_data() {
        let mut pair = pair();
        pair.client.write(3_000);
        let data = pair.client_segments();
        assert_eq!(pair.deliver_to_server(&data), []);
        pair.server.write(100);
        let answers = pair.server_segments();
        let numbers: Vec<u32> = answers.iter().map(|answer| answer.ack).collect();
        assert_eq!(numbers, [CLIENT_ISN + 1]);
        pair.server.confirm(1_000);
        assert_eq!(pair.server_segments()[0].ack, CLIENT_ISN + 1_001);
        pair.server.reset();
        let reset = pair.server_segments()[0];
        assert!(reset.flags.has(Flags::RST) && reset.ack == CLIENT_ISN + 1_001, "{reset:?}");
    }

    #[test]
    fn fin_is_acknowledged_when_it_is_confirmed() {
        let mut pair = pair();
        pair.client.write(500);
        pair.client.close();
        let data = pair.client_segments();
        assert_eq!(pair.deliver_to_server(&data), []);
        assert_eq!((pair.server.state(), pair.server.unconfirmed()), (State::CloseWait, 501));
        for (confirmed, state) in [(500, State::FinWait1), (1, State::FinWait2)] {
            pair.server.confirm(confirmed);
            let answers = pair.server_segments();
            pair.deliver_to_client(&answers);
            assert_eq!((pair.client.state(), pair.server.acknowledged_payload()), (state, 500));
        }
    }

    /// RFC 7323, section 4.3: the timestamp of the earliest segment that is not acknowledged is
    /// echoed, so that the sender's retransmission timeout covers the wait for the confirmation.
    #[test]
    fn the_round_trip_of_the_sender_includes_the_wait_for_the_confirmation() {
        let mut pair = Pair { delay: Duration::from_millis(1), ..pair() };
        for ms in [0, 30] {
            pair.now = at(ms);
            pair.client.write(1_000);
            let data = pair.client_segments();
            pair.deliver_to_server(&data);
        }
        pair.now = at(80);
        pair.server.confirm(2_000);
        let answer = pair.server_segments();
        assert_eq!(answer[0].timestamps.map(|(_, echo)| echo), Some(0));
        pair.deliver_to_client(&answer);
        let rtt = pair.client.sender().and_then(|sender| sender.rtt().srtt());
        assert!(rtt.is_some_and(|rtt| rtt >= Duration::from_millis(81)), "{rtt:?}");
    }
}
