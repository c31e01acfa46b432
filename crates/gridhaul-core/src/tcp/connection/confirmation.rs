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
    use std::sync::Arc;

    use gridhaul_scenario::scenario::{Profile, Stack};
    use gridhaul_scenario::units::{Duration, Instant};

    use super::*;
    use crate::tcp::{Flags, Segment, StackParams, State};

    /// A client, and a server that confirms.
    fn pair() -> [Connection; 2] {
        let stack = Stack { profile: Profile::Linux, nagle: Some(false), ..Stack::default() };
        let params = Arc::new(StackParams::resolve(&stack));
        let client = Connection::established(Arc::clone(&params), 5, &params, 9);
        let mut server = Connection::established(Arc::clone(&params), 9, &params, 5);
        server.acknowledge_on_confirmation();
        [client, server]
    }

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn sent(connection: &mut Connection, now: Instant) -> Vec<Segment> {
        std::iter::from_fn(|| connection.poll_transmit(now)).collect()
    }

    #[test]
    fn no_segment_acknowledges_unconfirmed_data() {
        let [mut client, mut server] = pair();
        client.write(3_000);
        for segment in sent(&mut client, at(0)) {
            server.handle_segment(at(1), &segment);
        }
        server.write(100);
        let answers = sent(&mut server, at(2));
        assert_eq!(answers.iter().map(|answer| answer.ack).collect::<Vec<_>>(), [6]);
        server.confirm(1_000);
        assert_eq!(sent(&mut server, at(3))[0].ack, 1_006);
        server.reset();
        let reset = server.poll_transmit(at(4)).unwrap();
        assert!(reset.flags.has(Flags::RST) && reset.ack == 1_006, "{reset:?}");
    }

    #[test]
    fn fin_is_acknowledged_when_it_is_confirmed() {
        let [mut client, mut server] = pair();
        client.write(500);
        client.close();
        for segment in sent(&mut client, at(0)) {
            server.handle_segment(at(1), &segment);
        }
        assert_eq!((server.state(), server.unconfirmed()), (State::CloseWait, 501));
        server.confirm(500);
        for answer in sent(&mut server, at(2)) {
            client.handle_segment(at(2), &answer);
        }
        assert_eq!((client.state(), server.acknowledged_payload()), (State::FinWait1, 500));
        server.confirm(1);
        for answer in sent(&mut server, at(3)) {
            client.handle_segment(at(3), &answer);
        }
        assert_eq!((client.state(), server.acknowledged_payload()), (State::FinWait2, 500));
    }

    /// RFC 7323, section 4.3: the timestamp of the earliest segment that is not acknowledged is
    /// echoed, so that the sender's retransmission timeout covers the wait for the confirmation.
    #[test]
    fn the_round_trip_of_the_sender_includes_the_wait_for_the_confirmation() {
        let [mut client, mut server] = pair();
        for ms in [0, 30] {
            client.write(1_000);
            for segment in sent(&mut client, at(ms)) {
                server.handle_segment(at(ms + 1), &segment);
            }
        }
        server.confirm(2_000);
        let answer = server.poll_transmit(at(80)).unwrap();
        assert_eq!(answer.timestamps.map(|(_, echo)| echo), Some(0));
        client.handle_segment(at(81), &answer);
        let rtt = client.sender().and_then(|sender| sender.rtt().srtt());
        assert!(rtt.is_some_and(|rtt| rtt >= Duration::from_millis(81)), "{rtt:?}");
    }
}
