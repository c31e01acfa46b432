//! Connection termination: FIN, TIME-WAIT and resets (RFC 9293, 3.6).

use gridhaul_scenario::units::{Duration, Instant};

use super::{Connection, State};
use crate::tcp::segment::Segment;
use crate::tcp::sender::SendRange;

/// State that few endpoints need, or only for termination.
#[derive(Debug, Clone)]
pub(super) struct RareState {
    /// A reset to send in answer to a segment without a connection.
    pub(super) reset: Option<Segment>,
    pub(super) time_wait_until: Instant,
    /// Data segments that arrived with a congestion mark.
    pub(super) marks: u64,
}

/// Twice the maximum segment lifetime (RFC 9293, 3.4.2: MSL of 2 minutes; here 30 s as in Linux,
/// half of TCP_TIMEWAIT_LEN).
const TIME_WAIT: Duration = Duration::from_secs(60);

impl Connection {
    /// Closes the connection at once: no retransmissions and no timers.
    #[cold]
    pub(super) fn enter_closed(&mut self) {
        self.state = State::Closed;
        self.sending.stop();
        self.receiver.on_ack_sent(Instant::ZERO, &self.params);
    }

    pub(super) fn on_peer_finished(&mut self, now: Instant) {
        let is_due = match self.state {
            // No FIN follows that could carry the acknowledgement.
            State::FinWait1 | State::FinWait2 => true,
            // Linux, `__tcp_ack_snd_check`: more than a full segment is acknowledged at once.
            State::Established | State::SynReceived => {
                self.receiver.next() - self.last_ack > u64::from(self.params.mss)
            }
            _ => false,
        };
        if is_due {
            self.receiver.request_ack();
        }
        self.state = match self.state {
            State::Established | State::SynReceived => State::CloseWait,
            State::FinWait1 if self.sending.fin_acknowledged() => self.time_wait(now),
            State::FinWait1 => State::Closing,
            State::FinWait2 => self.time_wait(now),
            other => other,
        };
    }

    pub(super) fn on_fin_progress(&mut self, now: Instant) {
        if !self.sending.fin_acknowledged() {
            return;
        }
        self.state = match self.state {
            State::FinWait1 => State::FinWait2,
            State::Closing => self.time_wait(now),
            State::LastAck => State::Closed,
            other => other,
        };
    }

    pub(super) fn time_wait(&mut self, now: Instant) -> State {
        self.rare().time_wait_until = now + TIME_WAIT;
        State::TimeWait
    }

    pub(super) fn rare(&mut self) -> &mut RareState {
        self.rare.get_or_insert_with(|| {
            Box::new(RareState { reset: None, time_wait_until: Instant::NEVER, marks: 0 })
        })
    }

    /// FIN is sent: updates the state (RFC 9293, figure 5).
    #[inline]
    pub(super) fn on_send_range(&mut self, range: SendRange) {
        let Some(fin) = self.sending.fin_position() else { return };
        if range.start + u64::from(range.len) > fin {
            self.state = match self.state {
                State::Established => State::FinWait1,
                State::CloseWait => State::LastAck,
                other => other,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gridhaul_scenario::scenario::{Profile, Stack};

    use super::*;
    use crate::tcp::{Flags, StackParams};

    /// Payload of the segments that a connection sends after a write and a close, and whether they
    /// carry FIN.
    fn sent(profile: Profile, bytes: u64) -> Vec<(u32, bool)> {
        let stack = Stack { profile, timestamps: Some(false), ..Stack::default() };
        let params = Arc::new(StackParams::resolve(&stack));
        let mut connection = Connection::established(Arc::clone(&params), 5, &params, 9);
        connection.write(bytes);
        connection.close();
        let segments = std::iter::from_fn(|| connection.poll_transmit(Instant::ZERO));
        segments.map(|segment| (segment.len, segment.flags.has(Flags::FIN))).collect()
    }

    #[test]
    fn fin_follows_data_that_linux_has_sent_before_the_application_closes() {
        assert_eq!(sent(Profile::Linux, 1_000), [(1_000, false), (0, true)]);
        assert_eq!(sent(Profile::Linux, 0), [(0, true)]);
        assert_eq!(sent(Profile::Rfc, 1_000), [(1_000, true)]);
        // Eleven segments and a window of ten: FIN joins the last one, which waits.
        let eleven = sent(Profile::Linux, 11 * 1_460);
        assert!(eleven.len() == 10 && eleven.iter().all(|segment| !segment.1), "{eleven:?}");
    }

    #[test]
    fn fin_joins_data_that_waits_for_the_window_in_linux() {
        let stack = Stack { profile: Profile::Linux, timestamps: Some(false), ..Stack::default() };
        let params = Arc::new(StackParams::resolve(&stack));
        let mut client = Connection::established(Arc::clone(&params), 5, &params, 9);
        let mut server = Connection::established(Arc::clone(&params), 9, &params, 5);
        client.write(11 * 1_460);
        client.close();
        let first: Vec<_> = std::iter::from_fn(|| client.poll_transmit(at(0))).collect();
        first.iter().for_each(|segment| server.handle_segment(at(10), segment));
        let answers: Vec<_> = std::iter::from_fn(|| server.poll_transmit(at(10))).collect();
        answers.iter().for_each(|segment| client.handle_segment(at(20), segment));
        let last = client.poll_transmit(at(20)).unwrap();
        assert_eq!((last.len, last.flags.has(Flags::FIN)), (1_460, true));
    }

    /// Ends of a connection, of which the first one has closed; FIN has arrived at 10 ms, behind
    /// `bytes` that were acknowledged if the receiver does so at once.
    fn closed_by_peer(profile: Profile, bytes: u64) -> [Connection; 2] {
        let stack = Stack { profile, timestamps: Some(false), ..Stack::default() };
        let params = Arc::new(StackParams::resolve(&stack));
        let mut ends = [(5, 9), (9, 5)]
            .map(|(isn, peer)| Connection::established(Arc::clone(&params), isn, &params, peer));
        let [client, server] = &mut ends;
        client.write(bytes);
        client.close();
        while let Some(segment) = client.poll_transmit(at(0)) {
            server.handle_segment(at(10), &segment);
            if !segment.flags.has(Flags::FIN) {
                server.poll_transmit(at(10));
            }
        }
        ends
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Linux, `tcp_fin`: three segments close a connection whose application closes at once, and
    /// four in stacks that acknowledge FIN before the application runs.
    #[test]
    fn fin_of_linux_carries_the_acknowledgement_of_fin() {
        for (profile, first) in [(Profile::Linux, 0), (Profile::Rfc, 1)] {
            let [mut client, mut server] = closed_by_peer(profile, 500);
            let before: Vec<_> = std::iter::from_fn(|| server.poll_transmit(at(10))).collect();
            assert_eq!(before.len(), first, "{profile:?}");
            server.close();
            let after: Vec<_> = std::iter::from_fn(|| server.poll_transmit(at(10))).collect();
            assert_eq!((after.len(), after[0].flags.has(Flags::FIN)), (1, true), "{profile:?}");
            before.iter().chain(&after).for_each(|sent| client.handle_segment(at(20), sent));
            let last = client.poll_transmit(at(20)).unwrap();
            server.handle_segment(at(30), &last);
            let states = [&client, &server].map(Connection::state);
            assert_eq!(states, [State::TimeWait, State::Closed], "{profile:?}");
        }
    }

    #[test]
    fn fin_is_acknowledged_after_40_ms_if_the_application_of_linux_does_not_close() {
        let [_, mut server] = closed_by_peer(Profile::Linux, 500);
        assert_eq!((server.poll_transmit(at(49)), server.next_deadline()), (None, at(50)));
        assert!(server.poll_transmit(at(50)).is_some());
    }

    /// Documentation/networking/ip-sysctl.rst, `tcp_syn_retries`: the last retransmission after 67
    /// s, the end after 131 s. Those of long timers are up to an eighth later.
    #[test]
    fn linux_gives_up_after_ten_retransmissions_of_syn() {
        let params = Arc::new(StackParams::resolve(&Stack::default()));
        let mut client = Connection::connect(params, 5);
        let mut times = Vec::new();
        let mut now = Instant::ZERO;
        while client.state() != State::Closed {
            while client.poll_transmit(now).is_some() {
                times.push(now.as_secs_f64());
            }
            now = client.next_deadline();
            client.handle_timeout(now);
        }
        let exact = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 11.0, 19.0, 35.0, 67.0];
        assert_eq!(times.len(), exact.len(), "{times:?}");
        for (time, exact) in times.iter().zip(exact) {
            assert!((exact..=exact * 1.125 + 0.01).contains(time), "{times:?}");
        }
        assert!((131.0..148.0).contains(&now.as_secs_f64()), "{now:?}");
        assert_eq!(client.next_deadline(), Instant::NEVER);
    }
}
