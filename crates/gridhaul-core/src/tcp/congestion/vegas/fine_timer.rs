//! The fine-grained timeout (section 3.1): like Jacobson's, but with exact times.

use gridhaul_scenario::units::{Duration, Instant};

/// Mean round trip, its deviation, and the timeout, in nanoseconds.
///
/// The paper gives no constants; these are ns-2's (`v_sa_`, `v_sd_`, `v_timeout_`), which scales
/// the mean by 8 and the deviation by 4 as BSD's integers did.
#[derive(Debug, Clone)]
pub(super) struct FineTimer {
    mean: f64,
    deviation: f64,
    timeout: f64,
}

impl FineTimer {
    pub(super) const fn new() -> Self {
        Self { mean: 0.0, deviation: 0.0, timeout: f64::INFINITY }
    }

    /// Adds a measurement. The timeout is mean + 2 deviations, and a sixteenth.
    #[inline]
    pub(super) fn measure(&mut self, rtt: Duration) {
        let rtt = rtt.as_nanos() as f64;
        if rtt <= 0.0 {
            return;
        }
        if self.mean <= 0.0 {
            (self.mean, self.deviation) = first(rtt);
        }
        let error = rtt - self.mean;
        self.mean += error / 8.0;
        self.deviation += (error.abs() - self.deviation) / 4.0;
        self.timeout = (self.mean + 2.0 * self.deviation) * 17.0 / 16.0;
    }

    /// Initialises the estimate with a round trip that is not a sample. ns-2 adds no sixteenth
    /// here.
    pub(super) fn begin(&mut self, rtt: Duration) {
        (self.mean, self.deviation) = first(rtt.as_nanos() as f64);
        self.timeout = self.mean + 2.0 * self.deviation;
    }

    /// A retransmission: the timeout grows by an eighth, or doubles if the segment was sent more
    /// than once already, until the next measurement.
    pub(super) fn back_off(&mut self, retransmitted: bool) {
        self.timeout *= if retransmitted { 2.0 } else { 1.125 };
    }

    /// Whether the timeout of a segment sent at `sent_at` has expired.
    pub(super) fn expired(&self, now: Instant, sent_at: Instant) -> bool {
        now.since(sent_at).as_nanos() as f64 >= self.timeout
    }
}

/// Mean and deviation of a single round trip: the deviation is taken as a quarter of it.
fn first(rtt: f64) -> (f64, f64) {
    (rtt, rtt / 4.0)
}
