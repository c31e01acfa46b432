//! Reading bulk data in large pieces: a wake-up for each segment would cost more than moving its bytes.
//!
//! While data arrives fast, the kernel reports the source as readable only from [`LOW_WATER`] bytes on (`SO_RCVLOWAT`), when FIN has
//! arrived, or when the receive window is exhausted. A source that needs more than a millisecond for that many bytes is reported
//! with every byte again, so that data waits once for this time when a transfer becomes slow or pauses.

use gridhaul_scenario::units::{Duration, Instant};

/// Bytes from which on the kernel reports a fast source.
pub const LOW_WATER: u32 = 256 << 10;

/// Longest time for which fewer bytes stay in the receive buffer.
const WAIT: Duration = Duration::from_millis(1);

/// Size of a read that counts as fast.
const FAST: u32 = 32 << 10;

/// Fast reads in sequence after which the low-water mark is set.
const FAST_READS: u8 = 4;

/// State of one source of bulk data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batching {
    fast_reads: u8,
    is_active: bool,
    /// When the source is read although the kernel has not reported it.
    check_at: Instant,
}

impl Batching {
    /// A source that is reported with every byte.
    #[must_use]
    pub const fn new() -> Self {
        Self { fast_reads: 0, is_active: false, check_at: Instant::NEVER }
    }

    /// When the source is read although the kernel has not reported it.
    #[must_use]
    pub const fn check_at(&self) -> Instant {
        self.check_at
    }

    /// One read has returned `length` bytes. True if the caller must set the low-water mark of the socket now.
    #[must_use]
    pub const fn handle_read(&mut self, length: u32) -> bool {
        self.fast_reads = if length < FAST { 0 } else { self.fast_reads.saturating_add(1) };
        self.check_at = Instant::NEVER;
        let begins = !self.is_active && self.fast_reads >= FAST_READS;
        self.is_active |= begins;
        begins
    }

    /// Whether the receive buffer is left alone after a read of `length` bytes: the next segment alone is not worth a read.
    #[must_use]
    pub const fn waits_after(&self, length: u32) -> bool {
        self.is_active && length < LOW_WATER
    }

    /// The session of the source was served: either the source waits until the kernel reports it, or something else must happen
    /// first. Returns the time of a new check. A time that is set already stays, because the other direction may be served often.
    #[must_use]
    pub fn handle_served(&mut self, now: Instant, is_waiting: bool) -> Option<Instant> {
        if !self.is_active || !is_waiting {
            self.check_at = Instant::NEVER;
            return None;
        }
        let is_new = self.check_at == Instant::NEVER;
        if is_new {
            self.check_at = now + WAIT;
        }
        is_new.then_some(self.check_at)
    }

    /// The source is slow, or ends to be a source of bulk data. True if the caller must remove the low-water mark of the socket.
    #[must_use]
    pub const fn stop(&mut self) -> bool {
        let was_active = self.is_active;
        *self = Self::new();
        was_active
    }
}

impl Default for Batching {
    fn default() -> Self {
        Self::new()
    }
}
