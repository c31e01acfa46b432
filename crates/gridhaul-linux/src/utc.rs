//! Time of day, and the quality of the clock that states it.

use std::mem;

use crate::clock::system_time;

/// Whether a time service synchronises the system's clock (adjtimex(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockSynchronisation {
    /// The kernel does not state it: the call is forbidden, as by a filter of system calls.
    Unknown,
    /// No time service has set the clock, or its largest error has reached 16 s.
    Unsynchronised,
    /// A time service synchronises the clock.
    Synchronised {
        /// Largest error in microseconds (`maxerror`). The kernel increases it by 500 µs in each
        /// second until the time service sets it again.
        error_us: u64,
    },
}

/// Microseconds since the beginning of 1970, UTC.
#[must_use]
pub fn utc_us() -> u64 {
    u64::try_from(system_time().as_micros()).unwrap_or(u64::MAX)
}

/// The state of the system's clock now.
#[expect(unsafe_code, reason = "adjtimex, which no crate in use wraps")]
#[must_use]
pub fn clock_synchronisation() -> ClockSynchronisation {
    // SAFETY: zeros are a valid `timex`, which consists of integers; mode 0 only reads, and the
    // kernel writes within the structure.
    let (state, timex) = unsafe {
        let mut timex: libc::timex = mem::zeroed();
        (libc::adjtimex(&raw mut timex), timex)
    };
    if state < 0 {
        return ClockSynchronisation::Unknown;
    }
    if state == libc::TIME_ERROR || timex.status & libc::STA_UNSYNC != 0 {
        return ClockSynchronisation::Unsynchronised;
    }
    let error_us = u64::try_from(timex.maxerror).unwrap_or(0);
    ClockSynchronisation::Synchronised { error_us }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_states_time_and_synchronisation() {
        // 2020-01-01.
        assert!(utc_us() > 1_577_836_800_000_000);
        // The error of a synchronised clock is less than the limit of the kernel (NTP_PHASE_LIMIT:
        // 16 s).
        if let ClockSynchronisation::Synchronised { error_us } = clock_synchronisation() {
            assert!(error_us < 16_000_000, "{error_us}");
        }
    }
}
