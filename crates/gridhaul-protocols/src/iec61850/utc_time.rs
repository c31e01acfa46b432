//! Time stamps with quality (IEC 61850-8-1, type UtcTime).

/// A point in time, with its quality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UtcTime {
    /// Seconds since 1970-01-01 00:00:00 UTC, without leap seconds.
    pub seconds: u32,
    /// Fraction of a second in units of 2^-24 s (60 ns), 24 bits.
    pub fraction: u32,
    /// Leap second known (0x80), clock failure (0x40), clock not synchronised (0x20), and the
    /// number of significant bits of the fraction (0x1f; 0x1f is unspecified).
    pub quality: u8,
}

impl UtcTime {
    /// The clock is not synchronised, and its accuracy is not specified.
    pub const UNSYNCHRONISED: u8 = 0x3f;

    /// Time from nanoseconds since 1970, rounded down to 2^-24 s. Years after 2106 wrap, as in the
    /// format.
    #[must_use]
    pub const fn from_unix_nanos(nanos: u64, quality: u8) -> Self {
        let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        let fraction = ((rest << 24) / 1_000_000_000) as u32;
        Self { seconds: seconds as u32, fraction, quality }
    }

    /// Nanoseconds since 1970, rounded to the nearest; at most 30 ns above the stored time.
    #[must_use]
    pub const fn unix_nanos(self) -> u64 {
        let fraction = (self.fraction & 0x00ff_ffff) as u64;
        self.seconds as u64 * 1_000_000_000 + ((fraction * 1_000_000_000 + (1 << 23)) >> 24)
    }

    pub(crate) const fn to_bytes(self) -> [u8; 8] {
        let [s0, s1, s2, s3] = self.seconds.to_be_bytes();
        let [_, f0, f1, f2] = self.fraction.to_be_bytes();
        [s0, s1, s2, s3, f0, f1, f2, self.quality]
    }

    pub(crate) const fn from_bytes(bytes: [u8; 8]) -> Self {
        let [s0, s1, s2, s3, f0, f1, f2, quality] = bytes;
        Self {
            seconds: u32::from_be_bytes([s0, s1, s2, s3]),
            fraction: u32::from_be_bytes([0, f0, f1, f2]),
            quality,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_are_kept_to_the_resolution_of_the_format() {
        for nanos in [0, 1, 999_999_999, 1_534_000_000_123_456_789] {
            let time = UtcTime::from_unix_nanos(nanos, UtcTime::UNSYNCHRONISED);
            assert!(time.unix_nanos().abs_diff(nanos) <= 60, "{nanos}");
            assert_eq!(UtcTime::from_bytes(time.to_bytes()), time);
        }
    }
}
