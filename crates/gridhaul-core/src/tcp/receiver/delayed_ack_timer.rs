//! Delayed-ACK timer of Linux: the delay follows the interval between data segments, so that every
//! second segment is acknowledged on slow links as well (`tcp_event_data_recv`,
//! `tcp_delack_timer_handler` and `tcp_send_delayed_ack`).

use gridhaul_scenario::units::{Duration, Instant};

/// Delayed-ACK timer of one receiver. Times in ticks; four bytes, as there are many receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct DelayedAckTimer {
    /// Time of the last data segment: low bits.
    last: u16,
    /// The delay (`ato`); zero before the first data.
    wait: u8,
    /// Round trip of the handshake; zero if unknown.
    rtt: u8,
}

/// Linux counts these times in ticks, usually 250 per second.
const TICK: Duration = Duration::from_millis(4);
/// `TCP_ATO_MIN` and `TCP_DELACK_MIN`: 40 ms.
const ATO_MIN: u8 = 10;
/// Minimum of the timeout, in ticks.
const TIMEOUT_FLOOR: u16 = 50;

impl DelayedAckTimer {
    /// Notes the round trip of SYN and SYN-ACK.
    pub(super) fn note_handshake_rtt(&mut self, rtt: Duration) {
        self.rtt = u8::try_from(rtt.as_nanos() / TICK.as_nanos()).unwrap_or(u8::MAX).max(1);
    }

    /// In-order data arrives. Returns whether the pause before it was so long that the sender may
    /// have restarted with a small window, for which acknowledgements must not be delayed.
    pub(super) fn on_data(&mut self, now: Instant) -> bool {
        let timeout = self.timeout();
        let since = self.since_last(now);
        self.last = ticks(now);
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

    /// The timer has expired before more data arrived or was sent: doubles the delay. If an answer
    /// was expected, the delay becomes the minimum.
    pub(super) fn on_expired(&mut self, is_interactive: bool) {
        self.wait = if is_interactive { ATO_MIN } else { self.wait.saturating_mul(2) };
    }

    /// Whether data that is sent now answers received data (`tcp_event_data_sent`).
    #[inline]
    pub(super) fn is_answer(self, now: Instant) -> bool {
        self.since_last(now) < u16::from(self.wait)
    }

    /// The current delay; `max` is set by the stack.
    pub(super) fn wait(self, max: Duration) -> Duration {
        let bound = if self.rtt == 0 { u8::MAX } else { self.rtt.max(ATO_MIN) };
        (TICK * u64::from(self.wait.min(bound).max(ATO_MIN))).min(max)
    }

    /// Timeout estimated from the handshake: the round trip plus twice the round trip or the
    /// minimum. Unlimited if the round trip is unknown or a second and more, the largest value
    /// stored.
    fn timeout(self) -> u16 {
        match self.rtt {
            0 | u8::MAX => u16::MAX,
            rtt => u16::from(rtt) + (2 * u16::from(rtt)).max(TIMEOUT_FLOOR),
        }
    }

    /// Ticks since the last data segment.
    #[inline]
    fn since_last(self, now: Instant) -> u16 {
        ticks(now).wrapping_sub(self.last)
    }
}

/// Low bits of the time in ticks.
#[inline]
const fn ticks(now: Instant) -> u16 {
    (now.as_nanos() / TICK.as_nanos()) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_millis(200);

    fn after(delayed_ack_timer: &mut DelayedAckTimer, at_ms: u64) -> u64 {
        delayed_ack_timer.on_data(Instant::ZERO + Duration::from_millis(at_ms));
        delayed_ack_timer.wait(MAX).as_nanos() / 1_000_000
    }

    #[test]
    fn the_delay_grows_until_the_second_segment_arrives_in_time() {
        let mut delayed_ack_timer = DelayedAckTimer::default();
        assert_eq!(after(&mut delayed_ack_timer, 0), 40);
        // A segment each 100 ms: the timer expires and doubles until it is long enough.
        delayed_ack_timer.on_expired(false);
        assert_eq!(after(&mut delayed_ack_timer, 100), 80);
        delayed_ack_timer.on_expired(false);
        // 160 / 2 + 100.
        assert_eq!(after(&mut delayed_ack_timer, 200), 180);
        assert_eq!(after(&mut delayed_ack_timer, 300), 188);
        // Data in quick succession halves the delay, down to 40 ms.
        assert_eq!(after(&mut delayed_ack_timer, 301), 112);
        let waits: Vec<_> = (302..310).map(|at| after(&mut delayed_ack_timer, at)).collect();
        assert_eq!(waits[7], 40, "{waits:?}");
    }

    #[test]
    fn the_delay_is_bounded_by_the_round_trip_and_by_the_stack() {
        let mut delayed_ack_timer = DelayedAckTimer { wait: 50, ..DelayedAckTimer::default() };
        assert_eq!(delayed_ack_timer.wait(MAX), MAX);
        assert_eq!(delayed_ack_timer.wait(Duration::from_millis(30)), Duration::from_millis(30));
        delayed_ack_timer.note_handshake_rtt(Duration::from_millis(52));
        assert_eq!(delayed_ack_timer.wait(MAX), Duration::from_millis(52));
        delayed_ack_timer.note_handshake_rtt(Duration::from_millis(5));
        assert_eq!(delayed_ack_timer.wait(MAX), Duration::from_millis(40));
    }

    #[test]
    fn data_sent_within_the_delay_is_an_answer() {
        let mut delayed_ack_timer = DelayedAckTimer::default();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        assert!(!delayed_ack_timer.is_answer(at(0)), "nothing was received");
        delayed_ack_timer.on_data(at(100));
        assert!(delayed_ack_timer.is_answer(at(136)));
        assert!(!delayed_ack_timer.is_answer(at(140)));
    }

    #[test]
    fn a_pause_longer_than_the_timeout_is_reported() {
        let mut delayed_ack_timer = DelayedAckTimer::default();
        delayed_ack_timer.note_handshake_rtt(Duration::from_millis(100));
        let mut is_long_pause =
            |ms| delayed_ack_timer.on_data(Instant::ZERO + Duration::from_millis(ms));
        // 100 ms plus the minimum of 200 ms.
        assert_eq!([0, 300, 604, 700].map(&mut is_long_pause), [false, false, true, false]);
    }
}
