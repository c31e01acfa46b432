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
    use gridhaul_scenario::scenario::{Profile, Stack};

    use super::super::pair::{Pair, at, resolve};
    use super::*;
    use crate::tcp::Flags;

    /// Ends whose client has written so many bytes and closed, and what it sends.
    fn closed(profile: Profile, bytes: u64) -> (Pair, Vec<Segment>) {
        let stack = Stack { profile, timestamps: Some(false), ..Stack::default() };
        let mut pair = Pair::established(&resolve(&stack));
        pair.client.write(bytes);
        pair.client.close();
        let sent = pair.client_segments();
        (pair, sent)
    }

    /// Payload of segments, and whether they carry FIN.
    fn contents(segments: &[Segment]) -> Vec<(u32, bool)> {
        segments.iter().map(|segment| (segment.len, segment.flags.has(Flags::FIN))).collect()
    }

    #[test]
    fn fin_follows_data_that_linux_has_sent_before_the_application_closes() {
        let sent = |profile, bytes| contents(&closed(profile, bytes).1);
        assert_eq!(sent(Profile::Linux, 1_000), [(1_000, false), (0, true)]);
        assert_eq!(sent(Profile::Linux, 0), [(0, true)]);
        assert_eq!(sent(Profile::Rfc, 1_000), [(1_000, true)]);
        // Eleven segments and a window of ten: FIN joins the last one, which waits.
        let eleven = sent(Profile::Linux, 11 * 1_460);
        assert!(eleven.len() == 10 && eleven.iter().all(|segment| !segment.1), "{eleven:?}");
    }

    #[test]
    fn fin_joins_data_that_waits_for_the_window_in_linux() {
        let (mut pair, first) = closed(Profile::Linux, 11 * 1_460);
        assert_eq!(contents(&pair.exchange(&first)), [(1_460, true)]);
    }

    /// Ends of which the client has closed; FIN has arrived at 10 ms, behind `bytes` that were
    /// acknowledged if the receiver does so at once. The server has not answered FIN.
    fn closed_by_peer(profile: Profile, bytes: u64) -> Pair {
        let (mut pair, sent) = closed(profile, bytes);
        let (fin, data) = sent.split_last().unwrap();
        pair.deliver_to_server(data);
        pair.server.handle_segment(pair.now, fin);
        pair
    }

    /// Linux, `tcp_fin`: three segments close a connection whose application closes at once, and
    /// four in stacks that acknowledge FIN before the application runs.
    #[test]
    fn fin_of_linux_carries_the_acknowledgement_of_fin() {
        for (profile, first) in [(Profile::Linux, 0), (Profile::Rfc, 1)] {
            let mut pair = closed_by_peer(profile, 500);
            let before = pair.server_segments();
            assert_eq!(before.len(), first, "{profile:?}");
            pair.server.close();
            let after = pair.server_segments();
            assert_eq!(contents(&after), [(0, true)], "{profile:?}");
            let last = pair.deliver_to_client(&[before, after].concat());
            pair.deliver_to_server(&last);
            let states = [&pair.client, &pair.server].map(|end| end.state());
            assert_eq!(states, [State::TimeWait, State::Closed], "{profile:?}");
        }
    }

    #[test]
    fn fin_is_acknowledged_after_40_ms_if_the_application_of_linux_does_not_close() {
        let Pair { mut server, .. } = closed_by_peer(Profile::Linux, 500);
        assert_eq!((server.poll_transmit(at(49)), server.next_deadline()), (None, at(50)));
        assert!(server.poll_transmit(at(50)).is_some());
    }

    /// Documentation/networking/ip-sysctl.rst, `tcp_syn_retries`: the last retransmission after 67
    /// s, the end after 131 s. Those of long timers are up to an eighth later.
    #[test]
    fn linux_gives_up_after_ten_retransmissions_of_syn() {
        let mut client = Connection::connect(resolve(&Stack::default()), 5);
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
