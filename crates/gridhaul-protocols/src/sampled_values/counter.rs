//! Sample numbers beyond 16 bits.

/// Extends `smpCnt` to 64 bits: a sequence number that increases by one for each sample, without
/// wrapping.
///
/// The counter wraps after 65,536 samples, or each second at a fixed number of samples (9-2LE). A
/// number is assigned to the period in which it is nearest to the greatest number so far; losses
/// and reordering of less than half a period are therefore resolved correctly, and longer gaps are
/// shortened by whole periods.
#[derive(Debug, Clone)]
pub struct SampleCounter {
    period: u64,
    greatest: Option<u64>,
}

impl SampleCounter {
    /// A counter that wraps after 65,536 samples.
    #[must_use]
    pub const fn new() -> Self {
        Self { period: 1 << 16, greatest: None }
    }

    /// A counter that wraps at the second, such as that of 9-2LE with 4,000 or 4,800 samples per
    /// second. A rate of zero counts as one.
    #[must_use]
    pub fn per_second(samples: u16) -> Self {
        Self { period: u64::from(samples.max(1)), greatest: None }
    }

    /// Sequence number of a received sample. `None` for a number that a counter of this period does
    /// not have.
    pub fn extend(&mut self, count: u16) -> Option<u64> {
        let count = u64::from(count);
        if count >= self.period {
            return None;
        }
        let Some(greatest) = self.greatest else {
            self.greatest = Some(count);
            return Some(count);
        };
        let ahead = (count + self.period - greatest % self.period) % self.period;
        let is_behind = ahead > self.period / 2 && greatest + ahead >= self.period;
        let number = greatest + ahead - if is_behind { self.period } else { 0 };
        self.greatest = Some(greatest.max(number));
        Some(number)
    }
}

impl Default for SampleCounter {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_increase_over_the_wrap() {
        let mut counter = SampleCounter::new();
        for number in 0..200_000_u64 {
            assert_eq!(counter.extend(number as u16), Some(number));
        }
    }

    #[test]
    fn reordered_samples_keep_their_numbers() {
        let mut counter = SampleCounter::per_second(4_000);
        let numbers = [0, 3_998, 3_999, 0, 3_997, 2, 1].map(|count| counter.extend(count));
        assert_eq!(numbers, [0, 3_998, 3_999, 4_000, 3_997, 4_002, 4_001].map(Some));
        assert_eq!(counter.extend(4_000), None);
    }
}
