//! The window of segments in flight on the hop.
//!
//! A retransmission that waits in a long queue of the hop arrives late, and the burst that the
//! sender sends for one late acknowledgement delays the next retransmission. Balakrishnan et al.
//! give retransmissions priority in the queue of the hop. Here this queue belongs to another node,
//! and is kept short instead: further segments wait in the cache, and retransmissions overtake
//! them.

use gridhaul_scenario::units::{Duration, Instant};

/// A window over the hop, in segments: that of FAST TCP (Wei, Jin, Low and Hegde, IEEE/ACM
/// Transactions on Networking 2006, equation 5 with γ = 1), which converges to `ALPHA` segments in
/// the queue, independently of losses.
#[derive(Debug, Clone)]
pub(super) struct HopWindow {
    segments: u64,
    /// Round-trip time of the empty hop, and the time of its last sample.
    base_ns: u64,
    base_at: Instant,
    changed: Instant,
    /// No queue was observed yet: the window doubles, as in slow start.
    starting: bool,
    /// The window is reduced to drain the queue and to measure the base round-trip time.
    probing: bool,
}

/// Average number of segments in the queue of the hop: if one is lost, the others reveal the loss.
const ALPHA: u64 = 4;

/// Initial window (RFC 6928).
const INITIAL: u64 = 10;

/// Lifetime of the base round-trip time (`RTpropFilterLen` of BBR).
const BASE_AGE: Duration = Duration::from_secs(10);

impl HopWindow {
    pub(super) const fn new() -> Self {
        Self {
            segments: INITIAL,
            base_ns: u64::MAX,
            base_at: Instant::ZERO,
            changed: Instant::ZERO,
            starting: true,
            probing: false,
        }
    }

    /// Maximum number of outstanding segments; no limit before the first round-trip time sample.
    pub(super) const fn segments(&self) -> u64 {
        match (self.base_ns, self.probing) {
            (u64::MAX, _) => u64::MAX,
            (_, true) => ALPHA,
            _ => self.segments,
        }
    }

    /// Adds a round-trip time sample of a segment that was sent at `sent`, when `outstanding`
    /// segments were in flight. `limited`: segments wait for the window.
    pub(super) fn measure(&mut self, sent: Instant, now: Instant, outstanding: u64, limited: bool) {
        let sample = now.since(sent).as_nanos().max(1);
        let old = now.since(self.base_at) >= BASE_AGE;
        if sample <= self.base_ns || old && outstanding <= ALPHA {
            (self.base_ns, self.base_at, self.probing) = (sample, now, false);
        } else if old && limited {
            self.probing = true;
        }
        // The window changes once per round trip, and only if it limits the transmission.
        if !limited || self.probing || sent < self.changed {
            return;
        }
        self.changed = now;
        let in_transit = u128::from(self.segments) * u128::from(self.base_ns) / u128::from(sample);
        let in_transit = u64::try_from(in_transit).unwrap_or(self.segments);
        self.starting &= self.segments - in_transit < ALPHA;
        self.segments = if self.starting { 2 * self.segments } else { in_transit + ALPHA };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A saturated hop with one segment per millisecond and a round-trip time of 20 ms.
    #[test]
    fn the_queue_of_the_hop_converges_to_alpha() {
        let mut window = HopWindow::new();
        let mut now = Instant::ZERO;
        let mut seen = Vec::new();
        assert_eq!(window.segments(), u64::MAX);
        window.measure(now, now + Duration::from_millis(20), 1, false);
        for _ in 0..20 {
            let outstanding = window.segments();
            let sent = now;
            now += Duration::from_millis(outstanding.max(20));
            window.measure(sent, now, outstanding, true);
            seen.push(window.segments());
        }
        assert_eq!(seen[..4], [20, 40, 24, 24]);
        assert!(seen.iter().skip(2).all(|&segments| segments == 24));
    }

    #[test]
    fn a_longer_base_round_trip_time_is_accepted_after_the_queue_has_drained() {
        let mut window = HopWindow::new();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        window.measure(at(0), at(10), 1, true);
        window.measure(at(11_000), at(11_100), 20, true);
        assert_eq!(window.segments(), ALPHA);
        window.measure(at(11_200), at(11_300), ALPHA, true);
        assert!(window.segments() > ALPHA);
    }

    /// 10 segments, of which 10 * 16 / 26 are in transit and four in the queue.
    #[test]
    fn the_window_stops_to_double_once_four_segments_are_in_the_queue() {
        let mut window = HopWindow::new();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        window.measure(at(0), at(16), 1, false);
        window.measure(at(100), at(126), 10, true);
        assert_eq!(window.segments(), 6 + 4);
    }
}
