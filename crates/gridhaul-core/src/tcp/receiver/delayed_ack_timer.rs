//! How long an acknowledgement waits in Linux: the wait follows the pace at which data comes, so that on
//! slow links, too, every second segment is acknowledged (`tcp_event_data_recv`, `tcp_delack_timer_handler`
//! and `tcp_send_delayed_ack`).

use gridhaul_scenario::units::{Duration, Instant};

/// The wait of one receiver. Times in ticks; four bytes, as there are many receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct DelayedAckTimer {
    /// When data came last: low bits.
    last: u16,
    /// The wait; zero before the first data.
    wait: u8,
    /// How long the rtt took when the connection was opened; zero if that is not known.
    rtt: u8,
}

/// Linux counts these times in ticks, max often 250 a second.
const TICK: Duration = Duration::from_millis(4);
/// `TCP_ATO_MIN` and `TCP_DELACK_MIN`: 40 ms.
const ATO_MIN: u8 = 10;
/// The floor of a timeout, in ticks.
const TIMEOUT_FLOOR: u16 = 50;

impl DelayedAckTimer {
    /// The round trip of SYN and its answer.
    pub(super) fn note_handshake_rtt(&mut self, rtt: Duration) {
        self.rtt = u8::try_from(rtt.as_nanos() / TICK.as_nanos()).unwrap_or(u8::MAX).max(1);
    }

    /// Data comes in order. Returns whether so much time has passed that the sender may have begun anew,
    /// with a small window that must not wait.
    pub(super) fn on_data(&mut self, now: Instant) -> bool {
        let timeout = self.timeout();
        let now = (now.as_nanos() / TICK.as_nanos()) as u16;
        let since = now.wrapping_sub(self.last);
        self.last = now;
        if self.wait == 0 {
            self.wait = ATO_MIN;
            return false;
        }
        let wait = u16::from(self.wait);
        if since <= u16::from(ATO_MIN / 2) {
            self.wait = self.wait / 2 + ATO_MIN / 2;
        } else if since < wait {
            self.wait = u8::try_from(wait / 2 + since).unwrap_or(u8::MAX);
        }
        since > timeout
    }

    /// The wait has run out before more data came: the next one is twice as long.
    pub(super) fn on_expired(&mut self) {
        self.wait = self.wait.saturating_mul(2);
    }

    /// How long an acknowledgement may wait now; `max` is set by the stack.
    pub(super) fn wait(self, max: Duration) -> Duration {
        let bound = if self.rtt == 0 { u8::MAX } else { self.rtt.max(ATO_MIN) };
        (TICK * u64::from(self.wait.min(bound).max(ATO_MIN))).min(max)
    }

    /// The own timeout, as the opening of the connection has left it: the round trip, and twice that or
    /// the floor. Without end for ways of a second and more, of which no more is kept.
    fn timeout(self) -> u16 {
        match self.rtt {
            0 | u8::MAX => u16::MAX,
            rtt => u16::from(rtt) + (2 * u16::from(rtt)).max(TIMEOUT_FLOOR),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_millis(200);

    fn after(delayed_ack_timer: &mut DelayedAckTimer, at_ms: u64) -> u64 {
        delayed_ack_timer.on_data(Instant::ZERO + Duration::from_millis(at_ms));
        delayed_ack_timer.wait(MOST).as_nanos() / 1_000_000
    }

    #[test]
    fn it_grows_until_the_second_segment_comes_in_time() {
        let mut delayed_ack_timer = DelayedAckTimer::default();
        assert_eq!(after(&mut delayed_ack_timer, 0), 40);
        // A segment each 100 ms: the wait runs out, and doubles until it lasts.
        delayed_ack_timer.on_expired();
        assert_eq!(after(&mut delayed_ack_timer, 100), 80);
        delayed_ack_timer.on_expired();
        // 160 / 2 + 100.
        assert_eq!(after(&mut delayed_ack_timer, 200), 180);
        assert_eq!(after(&mut delayed_ack_timer, 300), 188);
        // Data in initial_quick_acks succession brings it down again: by half, to 40.
        assert_eq!(after(&mut delayed_ack_timer, 301), 112);
        let waits: Vec<_> = (302..310).map(|at| after(&mut delayed_ack_timer, at)).collect();
        assert_eq!(waits[7], 40, "{waits:?}");
    }

    #[test]
    fn it_is_no_longer_than_the_way_and_than_the_stack_allows() {
        let mut delayed_ack_timer = DelayedAckTimer { wait: 50, ..DelayedAckTimer::default() };
        assert_eq!(delayed_ack_timer.wait(MOST), MOST);
        assert_eq!(delayed_ack_timer.wait(Duration::from_millis(30)), Duration::from_millis(30));
        delayed_ack_timer.note_handshake_rtt(Duration::from_millis(52));
        assert_eq!(delayed_ack_timer.wait(MOST), Duration::from_millis(52));
        delayed_ack_timer.note_handshake_rtt(Duration::from_millis(5));
        assert_eq!(delayed_ack_timer.wait(MOST), Duration::from_millis(40));
    }

    #[test]
    fn a_pause_longer_than_the_timeout_is_told() {
        let mut delayed_ack_timer = DelayedAckTimer::default();
        delayed_ack_timer.note_handshake_rtt(Duration::from_millis(100));
        let mut told = |ms| delayed_ack_timer.on_data(Instant::ZERO + Duration::from_millis(ms));
        // 100 ms, and 200 as the floor: 300.
        assert_eq!([0, 300, 604, 700].map(&mut told), [false, false, true, false]);
    }
}
