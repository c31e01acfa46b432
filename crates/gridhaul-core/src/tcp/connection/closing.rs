//! Connection termination: FIN, TIME-WAIT and resets (RFC 9293, 3.6).

use gridhaul_scenario::units::{Duration, Instant};

use super::{Connection, State};
use crate::tcp::segment::Segment;
use crate::tcp::sender::SendRange;

/// State that an endpoint needs only for termination.
#[derive(Debug, Clone)]
pub(super) struct ClosingState {
    /// A reset to send in answer to a segment without a connection.
    pub(super) reset: Option<Segment>,
    pub(super) time_wait_until: Instant,
}

/// Twice the maximum segment lifetime (RFC 9293, 3.4.2: MSL of 2 minutes; here 30 s as in Linux, half of
/// TCP_TIMEWAIT_LEN).
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
        self.closing().time_wait_until = now + TIME_WAIT;
        State::TimeWait
    }

    pub(super) fn closing(&mut self) -> &mut ClosingState {
        self.closing.get_or_insert_with(|| {
            Box::new(ClosingState { reset: None, time_wait_until: Instant::NEVER })
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
