//! Events at which many members send reports at once.

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::{Duration, Instant};

use super::Arrival;
use crate::random::{RandomStream, Threshold};

/// The reports of one member.
///
/// Each event affects the member with probability `share`. An affected member starts to report at a
/// uniformly distributed time within `spread` of the event: `count` messages, `gap` apart. The
/// random numbers of a member depend only on its own name.
#[derive(Debug, Clone)]
pub struct Burst {
    bytes: u64,
    spread: Duration,
    gap: Duration,
    /// Period of the events; zero for a single event.
    every: Duration,
    share: Threshold,
    /// The next event.
    event: Instant,
    /// The next report; [`Instant::NEVER`] after the last one.
    report: Instant,
    count: u32,
    left: u32,
    random: RandomStream,
}

impl Burst {
    /// Events with times relative to `start`.
    #[must_use]
    pub fn new(keys: &scenario::Burst, start: Instant, random: RandomStream) -> Self {
        let mut burst = Self {
            bytes: keys.size.get(),
            spread: keys.spread,
            gap: keys.gap,
            every: keys.every.unwrap_or(Duration::ZERO),
            share: keys.share.into(),
            event: start + keys.at,
            report: Instant::NEVER,
            count: keys.count,
            left: 0,
            random,
        };
        burst.advance_events();
        burst
    }

    /// When the next message arrives; [`Instant::NEVER`] after the last one.
    #[must_use]
    pub const fn next_time(&self) -> Instant {
        self.report
    }

    /// The next message; `None` after the last one.
    pub fn next_message(&mut self) -> Option<Arrival> {
        if self.left == 0 {
            return None;
        }
        let at = self.report;
        self.left -= 1;
        self.report += self.gap;
        self.advance_events();
        Some(Arrival { at, bytes: self.bytes })
    }

    /// Advances to the next event that affects this member, once all reports of the previous one
    /// are sent.
    fn advance_events(&mut self) {
        while self.left == 0 {
            if self.event == Instant::NEVER {
                self.report = Instant::NEVER;
                return;
            }
            self.advance_event();
        }
    }

    fn advance_event(&mut self) {
        // Both random numbers are always used: a changed share does not change the times.
        let affected = self.random.occurs(self.share);
        self.report = self.event + self.random.uniform(self.spread);
        self.left = if affected { self.count } else { 0 };
        self.event = if self.every.is_zero() { Instant::NEVER } else { self.event + self.every };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridhaul_scenario::units::{Bytes, Probability};

    fn keys() -> scenario::Burst {
        scenario::Burst {
            size: Bytes::new(120),
            at: Duration::from_secs(10),
            spread: Duration::ZERO,
            count: 1,
            gap: Duration::ZERO,
            every: None,
            share: Probability::ONE,
        }
    }

    fn times(keys: &scenario::Burst, member: u64, count: usize) -> Vec<u64> {
        let start = Instant::ZERO + Duration::from_secs(1);
        let mut burst = Burst::new(keys, start, RandomStream::named(1, 0, "gasp", member, "load"));
        let millis = |message: Arrival| message.at.as_nanos() / 1_000_000;
        std::iter::from_fn(|| burst.next_message()).map(millis).take(count).collect()
    }

    #[test]
    fn messages_follow_the_event_one_gap_apart() {
        assert_eq!(times(&keys(), 0, 9), [11_000]);
        let three = scenario::Burst { count: 3, gap: Duration::from_millis(250), ..keys() };
        assert_eq!(times(&three, 0, 9), [11_000, 11_250, 11_500]);
        let again = scenario::Burst { every: Some(Duration::from_secs(60)), ..three };
        assert_eq!(times(&again, 0, 4), [11_000, 11_250, 11_500, 71_000]);
    }

    #[test]
    fn members_report_evenly_within_the_spread() {
        let keys = scenario::Burst { spread: Duration::from_secs(5), ..keys() };
        let mut fifths = [0; 5];
        for member in 0..5_000 {
            let report = times(&keys, member, 1)[0];
            fifths[((report - 11_000) / 1_000).min(4) as usize] += 1;
        }
        // 1,000 expected in each, standard deviation 28.
        assert!(fifths.iter().all(|count| (880..1_120).contains(count)), "{fifths:?}");
    }

    #[test]
    fn the_affected_members_differ_between_events() {
        let keys = scenario::Burst {
            share: Probability::new(0.3).unwrap(),
            every: Some(Duration::from_secs(100)),
            ..keys()
        };
        let (mut both, mut first) = (0, 0);
        for member in 0..10_000 {
            let reports: Vec<u64> = times(&keys, member, 2);
            first += u32::from(reports[0] == 11_000);
            both += u32::from(reports == [11_000, 111_000]);
        }
        assert!((2_850..3_150).contains(&first), "{first}");
        assert!((800..1_000).contains(&both), "{both}");
    }

    #[test]
    fn with_a_share_of_zero_there_are_no_reports() {
        let none = scenario::Burst { share: Probability::ZERO, ..keys() };
        assert_eq!(times(&none, 0, 1), [0_u64; 0]);
    }
}
