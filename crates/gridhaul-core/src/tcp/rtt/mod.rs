//! Round-trip estimate and retransmission timeout (RFC 6298).

mod mean_deviation;

use gridhaul_scenario::units::{Duration, Instant};

use self::mean_deviation::{MeanDeviation, OutstandingRange};
use super::params::StackParams;
use crate::coverage_mark::mark;

/// Smoothed round-trip time, its variation, and the timeout with its back-off.
#[derive(Debug, Clone, Copy)]
pub struct RttEstimator {
    srtt_ns: u64,
    variation: RttVariation,
    /// The minimum RTT in microseconds.
    min_rtt_us: u32,
    measured: bool,
    /// SYN was retransmitted at least once.
    syn_retransmitted: bool,
    backoff: u8,
}

/// The variation in the representation that the parameters of the stack select; a tag would cost
/// memory in each of many connections.
#[derive(Debug, Clone, Copy, Default)]
struct RttVariation([u32; 4]);

/// RFC 6298, 5.7: initial timeout for data after SYN was retransmitted.
const RTO_AFTER_SYN_LOSS: Duration = Duration::from_secs(3);

/// Maximum number of doublings of the timeout.
const BACKOFF_MAX: u8 = 16;

/// Maximum round trip in ticks, so that eight times the estimate fits in 32 bits.
const TICKS_MAX: u64 = 1 << 27;

/// The estimate in whole ticks of a coarse clock, as in BSD and ns-2: eight times the smoothed
/// round trip and four times its variation.
#[derive(Debug, Clone, Copy, Default)]
struct Ticks {
    srtt8: u32,
    rttvar4: u32,
}

/// A round trip, and the outstanding range after it.
#[derive(Debug, Clone, Copy)]
pub struct RttSample {
    /// When the segment was sent.
    pub sent: Instant,
    /// When its acknowledgement arrived.
    pub acknowledged: Instant,
    /// First unacknowledged position after that acknowledgement.
    pub una: u64,
    /// Position that is sent next.
    pub next: u64,
}

/// Expirations of the retransmission timer one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expirations {
    /// Their number.
    pub(crate) count: u32,
    /// The time until the last one.
    pub(crate) elapsed: Duration,
    /// The timeout after it.
    pub(crate) next: Duration,
}

impl RttEstimator {
    /// An estimator without measurements.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            srtt_ns: 0,
            variation: RttVariation([0; 4]),
            min_rtt_us: u32::MAX,
            measured: false,
            syn_retransmitted: false,
            backoff: 0,
        }
    }

    /// Adds a sample. Returns the round trip.
    #[inline]
    pub fn measure(&mut self, sample: &RttSample, params: &StackParams) -> Duration {
        let &RttSample { sent, acknowledged, una, next } = sample;
        let rtt = acknowledged.since(sent);
        let sample = quantise(sent, acknowledged, params.clock_granularity);
        if uses_coarse_clock(params) {
            let mut ticks = self.variation.ticks();
            ticks.measure(sample / params.clock_granularity.as_nanos());
            self.variation.set_ticks(ticks);
        }
        let outstanding = OutstandingRange { una: una as u32, next: next as u32 };
        let before = self.srtt_ns;
        // RFC 6298, 2.2 and 2.3: alpha = 1/8.
        self.srtt_ns = if self.measured { before - before / 8 + sample / 8 } else { sample };
        if params.rto_floor_on_variance {
            let floor = params.rto_min;
            let deviation = if self.measured {
                let mut deviation = MeanDeviation::of(self.variation.0);
                let error = i64::from(in_micros(sample)) - i64::from(in_micros(before));
                deviation.measure(error, floor, outstanding);
                deviation
            } else {
                MeanDeviation::first(in_micros(sample), floor, outstanding)
            };
            self.variation.0 = deviation.words();
        } else if !uses_coarse_clock(params) {
            let rttvar = self.variation.rttvar_ns();
            // RFC 6298, 2.2 and 2.3: beta = 1/4, with SRTT before the update.
            self.variation.set_rttvar_ns(if self.measured {
                rttvar - rttvar / 4 + before.abs_diff(sample) / 4
            } else {
                sample / 2
            });
        }
        self.measured = true;
        rtt
    }

    /// Updates the minimum RTT, an estimate of the path's round trip without queueing, with the
    /// round trip of the newest segment of an acknowledgement.
    #[inline]
    pub fn update_min_rtt(&mut self, rtt: Duration) {
        if rtt.as_nanos() < u64::from(self.min_rtt_us) * 1_000 {
            self.min_rtt_us = in_micros(rtt.as_nanos());
        }
    }

    /// The timeout, back-off included.
    #[inline]
    #[must_use]
    pub fn rto(&self, params: &StackParams) -> Duration {
        let base = if self.measured && uses_coarse_clock(params) {
            let ticks = self.variation.ticks().rto() * params.clock_granularity.as_nanos();
            ticks.max(params.rto_min.as_nanos())
        } else if self.measured && params.rto_floor_on_variance {
            // Linux, __tcp_set_rto: the minimum is part of the variation.
            self.srtt_ns + u64::from(MeanDeviation::of(self.variation.0).rttvar) * 1_000
        } else if self.measured {
            // RFC 6298, 2.3 and 2.4: SRTT + max(G, 4 * RTTVAR), at least the minimum.
            let variance = 4 * self.variation.rttvar_ns();
            let spread = variance.max(params.clock_granularity.as_nanos());
            (self.srtt_ns + spread).max(params.rto_min.as_nanos())
        } else if self.syn_retransmitted {
            mark!(rto_after_lost_syn);
            params.rto_initial.max(RTO_AFTER_SYN_LOSS).as_nanos()
        } else {
            params.rto_initial.as_nanos()
        };
        // RFC 6298, 5.5: doubled with each timeout, up to a maximum.
        let rto = Duration::from_nanos(base);
        let rto = if self.backoff == 0 { rto } else { rto * (1 << self.backoff) };
        rto.min(params.rto_max)
    }

    /// Time since the first retransmission, if the timer has just expired: the sum of the timeouts
    /// since then, each of which was twice as long as the one before.
    pub(super) fn since_first_retransmission(&self, params: &StackParams) -> Duration {
        let rto = self.rto(params);
        let first = Duration::from_nanos(rto.as_nanos() >> self.backoff);
        (rto.saturating_sub(first)) * 2
    }

    /// The timer has fired: doubles the timeout (RFC 6298, 5.5).
    pub fn back_off(&mut self, params: &StackParams) {
        self.back_off_by(1, params);
    }

    /// [`back_off`](Self::back_off) a number of times.
    fn back_off_by(&mut self, times: u32, params: &StackParams) {
        mark!(rto_back_off if times > 0);
        let backoff = times.saturating_add(u32::from(self.backoff));
        self.backoff = backoff.min(u32::from(BACKOFF_MAX)) as u8;
        if times > 0 && self.backoff > 3 && uses_coarse_clock(params) {
            // Once moved, nothing is left to move.
            let mut ticks = self.variation.ticks();
            ticks.fold_into_variation();
            self.variation.set_ticks(ticks);
        }
    }

    /// Lets the timer expire repeatedly within an idle time, beginning with the timeout `rto`, and
    /// backs off each time. The timeout doubles; that the smoothed round trip moves into the
    /// variation does not change it, because it is a summand of the timeout as well.
    pub(crate) fn expire_during(
        &mut self,
        idle: Duration,
        rto: Duration,
        params: &StackParams,
    ) -> Expirations {
        let mut expirations = Expirations { count: 0, elapsed: Duration::ZERO, next: rto };
        let doublings = u32::from(BACKOFF_MAX - self.backoff);
        while expirations.next <= idle - expirations.elapsed {
            expirations.elapsed += expirations.next;
            if expirations.count < doublings {
                expirations.next = (expirations.next * 2).min(params.rto_max);
            }
            expirations.count += 1;
        }
        self.back_off_by(expirations.count, params);
        expirations
    }

    /// SYN was retransmitted: data starts without back-off, but with a timeout of at least three
    /// seconds until a round trip is measured (RFC 6298, 5.7).
    pub fn restart_after_syn_loss(&mut self) {
        self.backoff = 0;
        self.syn_retransmitted = true;
    }

    /// New data was acknowledged and its round trip measured: resets the back-off (RFC 6298, 5.7).
    #[inline]
    pub fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    /// The minimum RTT, in whole microseconds; zero before the first measurement.
    #[must_use]
    pub fn min_rtt(&self) -> Duration {
        if self.measured {
            Duration::from_micros(u64::from(self.min_rtt_us))
        } else {
            Duration::ZERO
        }
    }

    /// Smoothed round-trip time, if one was measured.
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        self.measured.then_some(Duration::from_nanos(self.srtt_ns))
    }
}

impl Default for RttEstimator {
    fn default() -> Self {
        Self::new()
    }
}

impl RttVariation {
    /// RFC 6298: RTTVAR in nanoseconds.
    #[inline]
    const fn rttvar_ns(self) -> u64 {
        self.0[0] as u64 | (self.0[1] as u64) << 32
    }
    #[inline]
    const fn set_rttvar_ns(&mut self, ns: u64) {
        (self.0[0], self.0[1]) = (ns as u32, (ns >> 32) as u32);
    }

    #[inline]
    const fn ticks(self) -> Ticks {
        Ticks { srtt8: self.0[0], rttvar4: self.0[1] }
    }
    #[inline]
    const fn set_ticks(&mut self, ticks: Ticks) {
        (self.0[0], self.0[1]) = (ticks.srtt8, ticks.rttvar4);
    }
}

/// Whole microseconds, saturated at about 71 minutes.
#[inline]
fn in_micros(ns: u64) -> u32 {
    u32::try_from(ns / 1_000).unwrap_or(u32::MAX)
}

/// Whether one segment at a time is timed with a coarse clock: then the estimate is kept in ticks.
#[inline]
fn uses_coarse_clock(params: &StackParams) -> bool {
    !params.time_every_segment && params.clock_granularity > Duration::from_nanos(1)
}

impl Ticks {
    /// ns-2, `TcpAgent::rtt_update`; Jacobson 1988, appendix A.
    fn measure(&mut self, ticks: u64) {
        let ticks = ticks.min(TICKS_MAX) as u32;
        if self.srtt8 == 0 {
            self.srtt8 = 8 * ticks;
            self.rttvar4 = 2 * ticks;
            return;
        }
        let error = ticks.cast_signed() - (self.srtt8 >> 3).cast_signed();
        self.srtt8 = self.srtt8.saturating_add_signed(error).max(1);
        let change = error.abs() - (self.rttvar4 >> 2).cast_signed();
        self.rttvar4 = self.rttvar4.saturating_add_signed(change).max(1);
    }

    /// SRTT + 4 * RTTVAR in whole ticks.
    const fn rto(self) -> u64 {
        (8 * self.rttvar4 as u64 + self.srtt8 as u64) >> 3
    }

    /// After several back-offs the smoothed round trip is unreliable: it moves into the variation
    /// and is measured again (BSD, ns-2).
    const fn fold_into_variation(&mut self) {
        self.rttvar4 += self.srtt8 >> 3;
        self.srtt8 = 0;
    }
}

/// A sample measured with a coarse clock: the number of ticks between both times, at least one.
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

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::{Profile, Stack};

    use super::*;

    #[test]
    fn expirations_double_the_timeout_however_it_is_estimated() {
        for profile in [Profile::Rfc, Profile::Ns2, Profile::Linux] {
            let params = StackParams::resolve(&Stack { profile, ..Stack::default() });
            for (rto_min, rtts_ms) in [(1, &[3, 90, 7][..]), (200_000, &[1_700, 45]), (1, &[])] {
                let rto_min = Duration::from_micros(rto_min);
                let params = StackParams { rto_min, ..params.clone() };
                let mut estimator = RttEstimator::new();
                for &ms in rtts_ms {
                    let acknowledged = Instant::ZERO + Duration::from_millis(ms);
                    let sample = RttSample { sent: Instant::ZERO, acknowledged, una: 1, next: 9 };
                    estimator.measure(&sample, &params);
                }
                let (mut stepwise, first) = (estimator, estimator.rto(&params));
                let (mut rto, mut elapsed) = (first, Duration::ZERO);
                for count in 1..20 {
                    elapsed += rto;
                    stepwise.back_off(&params);
                    let (mut at_once, before) = (estimator, rto);
                    rto = stepwise.rto(&params);
                    let expected = Expirations { count, elapsed, next: rto };
                    let idle = elapsed + rto - Duration::from_nanos(1);
                    assert_eq!(at_once.expire_during(idle, first, &params), expected);
                    assert_eq!(at_once.rto(&params), rto, "{profile:?} {rto_min:?}");
                    assert!(rto == (before * 2).min(params.rto_max) || count > 16);
                }
            }
        }
    }
}
