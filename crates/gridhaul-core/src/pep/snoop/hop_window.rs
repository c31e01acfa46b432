//! How much may be on the hop at a time.
//!
//! A copy that had to queue behind everything that was sent before would come late, and all that
//! the sender sends for one late acknowledgement comes as a burst that makes the next copy late.
//! Balakrishnan et al. give copies priority in the queue of the hop. That queue belongs to somebody
//! else here, so it is kept short: what the hop does not need waits in the cache, and copies pass
//! it by.

use gridhaul_scenario::units::{Duration, Instant};

/// A window over the hop, in segments: FAST TCP's (Wei, Jin, Low and Hegde, IEEE/ACM Transactions
/// on Networking 2006, equation 5 with γ = 1), which settles at `ALPHA` segments in the queue
/// whatever is lost.
#[derive(Debug, Clone)]
pub(super) struct HopWindow {
    segments: u64,
    /// Round trip of the empty hop, and when it was last found to be so.
    base_ns: u64,
    base_at: Instant,
    changed: Instant,
    /// The queue has not been seen yet: the window doubles.
    starting: bool,
    /// The hop is being emptied to measure it.
    probing: bool,
}

/// Segments that the hop's queue holds on average: with one of them lost, the others still show it.
const ALPHA: u64 = 4;

/// The window at the beginning (RFC 6928).
const INITIAL: u64 = 10;

/// The round trip of the empty hop is believed for so long (BBR's `RTpropFilterLen`).
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

    /// Segments that may be on the hop; no limit before the hop has been measured.
    pub(super) const fn segments(&self) -> u64 {
        match (self.base_ns, self.probing) {
            (u64::MAX, _) => u64::MAX,
            (_, true) => ALPHA,
            _ => self.segments,
        }
    }

    /// A segment that was sent at `sent`, as the last of `out` on the hop, has arrived. `limited`:
    /// others wait.
    pub(super) fn measure(&mut self, sent: Instant, now: Instant, out: u64, limited: bool) {
        let sample = now.since(sent).as_nanos().max(1);
        let old = now.since(self.base_at) >= BASE_AGE;
        if sample <= self.base_ns || old && out <= ALPHA {
            (self.base_ns, self.base_at, self.probing) = (sample, now, false);
        } else if old && limited {
            self.probing = true;
        }
        // Once for each round trip, and only where it is the window that was measured.
        if !limited || self.probing || sent < self.changed {
            return;
        }
        self.changed = now;
        let kept = u128::from(self.segments) * u128::from(self.base_ns) / u128::from(sample);
        let kept = u64::try_from(kept).unwrap_or(self.segments);
        self.starting &= self.segments - kept < ALPHA;
        self.segments = if self.starting { 2 * self.segments } else { kept + ALPHA };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hop that serves a segment a millisecond and is 20 ms long, always with enough to do.
    #[test]
    fn the_queue_of_the_hop_settles_at_alpha() {
        let mut window = HopWindow::new();
        let mut now = Instant::ZERO;
        let mut seen = Vec::new();
        assert_eq!(window.segments(), u64::MAX);
        window.measure(now, now + Duration::from_millis(20), 1, false);
        for _ in 0..20 {
            let out = window.segments();
            let sent = now;
            now += Duration::from_millis(out.max(20));
            window.measure(sent, now, out, true);
            seen.push(window.segments());
        }
        assert_eq!(seen[..4], [20, 40, 24, 24]);
        assert!(seen.iter().skip(2).all(|&segments| segments == 24));
    }

    #[test]
    fn a_longer_way_is_believed_after_the_hop_was_emptied() {
        let mut window = HopWindow::new();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        window.measure(at(0), at(10), 1, true);
        window.measure(at(11_000), at(11_100), 20, true);
        assert_eq!(window.segments(), ALPHA);
        window.measure(at(11_200), at(11_300), ALPHA, true);
        assert!(window.segments() > ALPHA);
    }
}
