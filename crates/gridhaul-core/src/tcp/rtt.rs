//! Round-trip estimate and retransmission timeout (RFC 6298).

use gridhaul_scenario::units::{Duration, Instant};

use super::params::StackParams;

/// Smoothed round-trip time, its variation, and the timeout with its back-off.
#[derive(Debug, Clone, Copy)]
pub struct RttEstimator {
    srtt_ns: u64,
    rttvar_ns: u64,
    latest: Duration,
    min: Duration,
    measured: bool,
    backoff: u32,
}

impl RttEstimator {
    /// Nothing measured yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            srtt_ns: 0,
            rttvar_ns: 0,
            latest: Duration::ZERO,
            min: Duration::MAX,
            measured: false,
            backoff: 0,
        }
    }

    /// Takes a measurement of a segment sent at `sent` and acknowledged at `now`.
    #[inline]
    pub fn measure(&mut self, sent: Instant, now: Instant, params: &StackParams) -> Duration {
        let rtt = now.since(sent);
        self.latest = rtt;
        if rtt < self.min {
            self.min = rtt;
        }
        let sample = quantise(sent, now, params.clock_granularity);
        if self.measured {
            // RFC 6298, 2.3: alpha = 1/8, beta = 1/4, RTTVAR before SRTT.
            let error = self.srtt_ns.abs_diff(sample);
            self.rttvar_ns = self.rttvar_ns - self.rttvar_ns / 4 + error / 4;
            self.srtt_ns = self.srtt_ns - self.srtt_ns / 8 + sample / 8;
        } else {
            // RFC 6298, 2.2.
            self.srtt_ns = sample;
            self.rttvar_ns = sample / 2;
            self.measured = true;
        }
        rtt
    }

    /// The timeout, back-off included.
    #[inline]
    #[must_use]
    pub fn rto(&self, params: &StackParams) -> Duration {
        let base = if self.measured {
            let variance = 4 * self.rttvar_ns;
            if params.rto_floor_on_variance {
                // Linux, __tcp_set_rto: srtt + max(4 * mdev, rto_min).
                self.srtt_ns + variance.max(params.rto_min.as_nanos())
            } else {
                // RFC 6298, 2.3 and 2.4: SRTT + max(G, 4 * RTTVAR), at least the minimum.
                let spread = variance.max(params.clock_granularity.as_nanos());
                (self.srtt_ns + spread).max(params.rto_min.as_nanos())
            }
        } else {
            params.rto_initial.as_nanos()
        };
        // RFC 6298, 5.5: doubled for each timeout, up to a maximum.
        let rto = Duration::from_nanos(base) * (1 << self.backoff);
        rto.min(params.rto_max)
    }

    /// The timer has fired: doubles the timeout (RFC 6298, 5.5).
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// New data was acknowledged and measured: the back-off ends (RFC 6298, 5.7).
    #[inline]
    pub fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Smoothed round-trip time, if one was measured.
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        self.measured.then_some(Duration::from_nanos(self.srtt_ns))
    }
    /// The last measurement.
    #[must_use]
    pub const fn latest(&self) -> Duration {
        self.latest
    }
    /// The least measurement; [`Duration::MAX`] before the first.
    #[must_use]
    pub const fn min(&self) -> Duration {
        self.min
    }
    /// How often the timer has fired since the last fresh measurement.
    #[must_use]
    pub const fn backoff(&self) -> u32 {
        self.backoff
    }
}

impl Default for RttEstimator {
    fn default() -> Self {
        Self::new()
    }
}

/// A measurement with a clock that ticks: the number of ticks between the two, at least one.
/// (ns-2, `TcpAgent::rtt_update`; BSD's slow timer counted in the same way.)
#[inline]
fn quantise(sent: Instant, now: Instant, granularity: Duration) -> u64 {
    let step = granularity.as_nanos();
    if step <= 1 {
        return now.since(sent).as_nanos().max(1);
    }
    let ticks = now.as_nanos() / step - sent.as_nanos() / step;
    ticks.max(1) * step
}
