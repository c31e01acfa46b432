//! No wire is faster than its rate.

use gridhaul_scenario::units::{BitRate, Instant};

use super::LinkRule;

/// Checks that a wire carries one packet at a time, none faster than its rate, and a row of
/// packets without a pause not faster either, to the nanosecond.
#[derive(Debug)]
pub(super) struct TransmitterCheck {
    rate: u64,
    free_at: Instant,
    /// What the packets of a busy time have had too little so far, in 1/rate nanoseconds. The
    /// times are whole nanoseconds, so it may come to one of them and no more. Time that the wire
    /// lost is not made up for: the debt is never below zero.
    debt: u64,
    /// Size of the packet before, and what it takes: whole nanoseconds, and the rest in 1/rate
    /// nanoseconds. Most packets of a wire are of one size and need no division.
    bytes: u32,
    least: u64,
    rest: u64,
}

impl TransmitterCheck {
    pub(super) const fn new(rate: BitRate) -> Self {
        let rate = rate.as_bits_per_sec();
        Self { rate, free_at: Instant::ZERO, debt: 0, bytes: 0, least: 0, rest: 0 }
    }

    /// Whether a packet of `bytes` was on the wire for its time in whole nanoseconds.
    #[inline]
    pub(super) fn is_long_enough(&mut self, bytes: u32, took: u64) -> bool {
        if bytes != self.bytes {
            self.work_out(bytes);
        }
        took >= self.least
    }

    /// Whether the packet that [`is_long_enough`](Self::is_long_enough) goes well with those
    /// before it.
    #[inline]
    pub(super) fn carry(
        &mut self,
        started: Instant,
        sent: Instant,
        took: u64,
    ) -> Result<(), LinkRule> {
        if started > self.free_at {
            self.debt = 0;
        } else if started < self.free_at {
            return Err(LinkRule::TransmissionsOverlap);
        }
        self.free_at = sent;
        let paid = (took - self.least).saturating_mul(self.rate);
        self.debt = (self.debt + self.rest).saturating_sub(paid);
        if self.debt > self.rate {
            self.debt = 0;
            return Err(LinkRule::FasterThanRate);
        }
        Ok(())
    }

    #[cold]
    fn work_out(&mut self, bytes: u32) {
        // 10^9 nanoseconds to the second times 8 bits to the byte.
        let needed = 8_000_000_000 * u128::from(bytes);
        let rate = u128::from(self.rate.max(1));
        self.bytes = bytes;
        self.least = u64::try_from(needed / rate).unwrap_or(u64::MAX);
        self.rest = (needed % rate) as u64;
    }
}
