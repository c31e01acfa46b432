//! Time at which a collector has received a record, and the quality of its clock.

use super::codec::{DecodeError, Decoder, put_varint};

/// Time of the reception of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reception {
    /// Microseconds since the beginning of 1970, UTC, by the clock of the collector.
    pub utc_us: u64,
    /// Quality of this clock.
    pub clock: ClockState,
}

/// Quality of a clock, as the kernel states it (adjtimex(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClockState {
    /// The kernel does not state it.
    Unknown,
    /// No time service synchronises the clock, or its error exceeds 16 s.
    Unsynchronised,
    /// A time service synchronises the clock.
    Synchronised {
        /// Largest error in microseconds that the kernel assumes.
        error_us: u64,
    },
}

impl ClockState {
    /// Whether the clock is synchronised; `None` if it is unknown.
    #[must_use]
    pub const fn is_synchronised(self) -> Option<bool> {
        match self {
            Self::Unknown => None,
            Self::Unsynchronised => Some(false),
            Self::Synchronised { .. } => Some(true),
        }
    }

    /// Largest error in seconds, of a synchronised clock.
    #[must_use]
    pub fn error_s(self) -> Option<f64> {
        match self {
            Self::Synchronised { error_us } => Some(error_us as f64 / 1e6),
            _ => None,
        }
    }

    pub(crate) fn write(self, bytes: &mut Vec<u8>) {
        put_varint(
            bytes,
            match self {
                Self::Unknown => 0,
                Self::Unsynchronised => 1,
                Self::Synchronised { error_us } => error_us.saturating_add(2),
            },
        );
    }

    pub(crate) fn read(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(match decoder.varint()? {
            0 => Self::Unknown,
            1 => Self::Unsynchronised,
            error => Self::Synchronised { error_us: error - 2 },
        })
    }
}

impl Reception {
    /// The time as in RFC 3339, with microseconds.
    #[must_use]
    pub fn text(&self) -> String {
        let (seconds, us) = (self.utc_us / 1_000_000, self.utc_us % 1_000_000);
        let (days, rest) = (seconds / 86_400, seconds % 86_400);
        let (year, month, day) = date(days);
        let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{us:06}Z")
    }

    pub(crate) fn write(self, bytes: &mut Vec<u8>) {
        self.clock.write(bytes);
        put_varint(bytes, self.utc_us);
    }

    pub(crate) fn read(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self { clock: ClockState::read(decoder)?, utc_us: decoder.varint()? })
    }
}

/// Year, month and day of a number of days since 1970-01-01 in the Gregorian calendar. Years begin
/// in March, so that a leap day is the last one; 400 years have 146,097 days.
const fn date(days: u64) -> (u64, u64, u64) {
    // Days since 0000-03-01.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Months from March on have 153 days in five.
    let month = (5 * day + 2) / 153;
    let in_month = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..=9 => (era * 400 + year, month + 3),
        _ => (era * 400 + year + 1, month - 9),
    };
    (year, month, in_month)
}

/// Difference of two times as an unsigned number: small for small differences of both signs.
pub(super) const fn zigzag(from: u64, to: u64) -> u64 {
    let difference = to.wrapping_sub(from) as i64;
    ((difference << 1) ^ (difference >> 63)) as u64
}

/// The second time of [`zigzag`].
pub(super) const fn after(from: u64, difference: u64) -> u64 {
    from.wrapping_add((difference >> 1) ^ (difference & 1).wrapping_neg())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_form_of_rfc_3339() {
        let text = |utc_us| Reception { utc_us, clock: ClockState::Unknown }.text();
        assert_eq!(text(0), "1970-01-01T00:00:00.000000Z");
        // date -u -d @951868799: the leap day of 2000; and the day after that of 2024.
        assert_eq!(text(951_868_799_000_001), "2000-02-29T23:59:59.000001Z");
        assert_eq!(text(1_709_251_200_500_000), "2024-03-01T00:00:00.500000Z");
        assert_eq!(text(4_107_542_400_000_000), "2100-03-01T00:00:00.000000Z");
        assert_eq!(text(1_798_761_599_999_999), "2026-12-31T23:59:59.999999Z");
    }

    #[test]
    fn differences_of_both_signs_are_restored() {
        for (from, to) in [(5, 5), (5, 6), (6, 5), (0, u64::MAX), (u64::MAX, 0), (1 << 63, 0)] {
            assert_eq!(after(from, zigzag(from, to)), to);
        }
        assert_eq!((zigzag(5, 6), zigzag(6, 5)), (2, 1));
    }
}
