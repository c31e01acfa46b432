//! The range of round-trip times of a link in the last minutes.

use gridhaul_scenario::units::{Duration, Instant};

/// Minimum and maximum round-trip time of the present and of the previous period.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoundTrips {
    began_at: Instant,
    present: Option<Range>,
    previous: Option<Range>,
    count: u32,
    latest: Option<Duration>,
}

#[derive(Debug, Clone, Copy)]
struct Range {
    min: Duration,
    max: Duration,
}

impl Range {
    const fn variation(&self) -> Duration {
        self.max.saturating_sub(self.min)
    }
}

/// Length of a period.
const PERIOD: Duration = Duration::from_secs(300);

/// Round-trip time before the first measurement: that of GPRS with traffic in both directions
/// (paper `hybrid`, Figure 2).
const INITIAL: Duration = Duration::from_secs(1);

/// Measurements after which their range is that of the link: it covers 94 % of equally likely
/// times.
const MEASUREMENTS_MIN: u32 = 30;

/// Largest measurement that is used: packets that a modem has held back while its radio was silent
/// must not delay the next detection for minutes. The value is the latency of GPRS as a return
/// channel (paper `hybrid`, Table 1).
const MEASURED_MAX: Duration = Duration::from_secs(4);

impl RoundTrips {
    pub(super) const fn new(now: Instant) -> Self {
        Self { began_at: now, present: None, previous: None, count: 0, latest: None }
    }

    /// Adds a measurement.
    pub(super) fn add(&mut self, now: Instant, time: Duration) {
        if now.since(self.began_at) >= PERIOD {
            self.previous = self.present.take();
            self.began_at = now;
        }
        let time = time.min(MEASURED_MAX);
        self.latest = Some(time);
        self.count = self.count.saturating_add(1);
        let range = self.present.get_or_insert(Range { min: time, max: time });
        range.min = range.min.min(time);
        range.max = range.max.max(time);
    }

    pub(super) const fn latest(&self) -> Option<Duration> {
        self.latest
    }

    /// Half of the largest round-trip time, and the largest variation: by this, a probe may be late
    /// although the link works.
    pub(super) fn margin(&self) -> Duration {
        self.range().map_or(INITIAL / 2, |range| range.max / 2 + range.variation())
    }

    /// Whether there are enough measurements for the variation to be known.
    pub(super) const fn is_known(&self) -> bool {
        self.count >= MEASUREMENTS_MIN
    }

    /// Difference of the largest and the smallest round-trip time.
    pub(super) fn variation(&self) -> Duration {
        self.range().map_or(INITIAL, |range| range.variation())
    }

    fn range(&self) -> Option<Range> {
        let ranges = [self.present, self.previous].into_iter().flatten();
        ranges
            .reduce(|one, other| Range { min: one.min.min(other.min), max: one.max.max(other.max) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_covers_the_variation_of_ten_minutes() {
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        let millis = Duration::from_millis;
        let mut times = RoundTrips::new(at(0));
        assert_eq!(times.margin(), millis(500), "before the first measurement");
        times.add(at(1), millis(100));
        assert_eq!(times.margin(), millis(50));
        times.add(at(2), millis(1_100));
        assert_eq!(times.margin(), millis(1_550));
        assert_eq!(times.variation(), millis(1_000));
        times.add(at(400), millis(100));
        assert_eq!(times.margin(), millis(1_550), "the previous period");
        times.add(at(800), millis(100));
        assert_eq!(times.margin(), millis(50));
        times.add(at(801), Duration::from_secs(60));
        assert_eq!(times.margin(), millis(5_900), "4 s at most");
    }
}
