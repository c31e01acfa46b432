//! Checks that no transmitter exceeds its rate.

use std::sync::Arc;

use gridhaul_scenario::scenario::{Direction, LinkTraceContent, RateSchedule};
use gridhaul_scenario::units::{BitRate, Instant};

use super::LinkRule;

/// Checks that a transmitter sends one packet at a time, that no packet and no sequence of
/// back-to-back packets is faster than the rate, to the nanosecond.
#[derive(Debug, Clone)]
pub(super) struct TransmitterCheck {
    rate: u64,
    free_at: Instant,
    /// Transmission time that the packets of the present busy period lack so far, in 1/rate
    /// nanoseconds. Times are whole nanoseconds, so rounding may add up to one nanosecond and no
    /// more. Excess time of earlier packets gives no credit: the deficit is never below zero.
    deficit: u64,
    /// Size of the previous packet, and its transmission time: whole nanoseconds, and the remainder
    /// in 1/rate nanoseconds. Most packets of a link have the same size and need no division.
    bytes: u32,
    whole_nanos: u64,
    remainder: u64,
}

impl TransmitterCheck {
    /// A check of the largest rate of a direction. Packets take no time at a delivery opportunity,
    /// which another check examines.
    pub(super) fn of(direction: &Direction, trace: Option<&LinkTraceContent>) -> Self {
        Self::new(match trace {
            None => RateSchedule::of(direction).rate_max(),
            Some(LinkTraceContent::Steps(steps)) => {
                RateSchedule::of_steps(Arc::clone(steps)).rate_max()
            }
            Some(LinkTraceContent::Deliveries(_)) => BitRate::from_bits_per_sec(u64::MAX),
        })
    }

    const fn new(rate: BitRate) -> Self {
        let rate = rate.as_bits_per_sec();
        Self { rate, free_at: Instant::ZERO, deficit: 0, bytes: 0, whole_nanos: 0, remainder: 0 }
    }

    /// Whether the transmission of `bytes` took at least its time in whole nanoseconds.
    #[inline]
    pub(super) fn is_long_enough(&mut self, bytes: u32, took: u64) -> bool {
        if bytes != self.bytes {
            self.compute_duration(bytes);
        }
        took >= self.whole_nanos
    }

    /// Transmission time, in whole nanoseconds, of the packet that was checked last.
    pub(super) const fn whole_nanos(&self) -> u64 {
        self.whole_nanos
    }

    /// Checks a packet that [`is_long_enough`](Self::is_long_enough) together with the packets
    /// before it.
    #[inline]
    pub(super) fn check_sequence(
        &mut self,
        started: Instant,
        sent: Instant,
        took: u64,
    ) -> Result<(), LinkRule> {
        if started > self.free_at {
            self.deficit = 0;
        } else if started < self.free_at {
            return Err(LinkRule::TransmissionsOverlap);
        }
        self.free_at = sent;
        let excess = (took - self.whole_nanos).saturating_mul(self.rate);
        self.deficit = (self.deficit + self.remainder).saturating_sub(excess);
        if self.deficit > self.rate {
            self.deficit = 0;
            return Err(LinkRule::FasterThanRate);
        }
        Ok(())
    }

    #[cold]
    fn compute_duration(&mut self, bytes: u32) {
        // 10^9 ns/s times 8 bit/byte.
        let needed = 8_000_000_000 * u128::from(bytes);
        let rate = u128::from(self.rate.max(1));
        self.bytes = bytes;
        self.whole_nanos = u64::try_from(needed / rate).unwrap_or(u64::MAX);
        self.remainder = (needed % rate) as u64;
    }
}
