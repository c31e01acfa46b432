//! The minimum RTT of the last ten seconds (section 4.1.2).

use gridhaul_scenario::units::{Duration, Instant};

/// `RTpropFilterLen`: ten seconds.
const WINDOW: Duration = Duration::from_secs(10);

/// `RTprop` and the time of its last update.
#[derive(Debug, Clone)]
pub(super) struct MinRtt {
    minimum: Option<Duration>,
    seen_at: Instant,
}

impl MinRtt {
    pub(super) const fn new() -> Self {
        Self { minimum: None, seen_at: Instant::ZERO }
    }

    /// The minimum RTT, once a sample exists.
    #[inline]
    pub(super) const fn get(&self) -> Option<Duration> {
        self.minimum
    }

    /// Section 4.1.2.3, `BBRUpdateRTprop`. Returns whether the estimate had expired.
    #[inline]
    pub(super) fn update(&mut self, now: Instant, rtt: Option<Duration>) -> bool {
        let expired = self.minimum.is_some() && now > self.seen_at + WINDOW;
        if let Some(rtt) = rtt
            && !rtt.is_zero()
            && (expired || self.minimum.is_none_or(|minimum| rtt <= minimum))
        {
            self.minimum = Some(rtt);
            self.seen_at = now;
        }
        expired
    }

    /// Refreshes the estimate: it was probed with an empty queue.
    pub(super) fn refresh(&mut self, now: Instant) {
        self.seen_at = now;
    }
}
