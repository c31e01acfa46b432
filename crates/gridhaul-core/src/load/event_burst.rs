//! An event that makes many members report at once.

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::{Duration, Instant};

use super::Arrival;
use crate::random::{RandomStream, Threshold};

/// The reports of one member.
///
/// At each event the member is hit with probability `share`. If it is, it reports at an evenly
/// distributed random time within `spread` of the event: `count` messages, `gap` apart. What a
/// member draws depends on nothing but its own name.
#[derive(Debug, Clone)]
pub struct Burst {
    bytes: u64,
    spread: Duration,
    gap: Duration,
    /// Time between two events; zero where it comes once.
    every: Duration,
    share: Threshold,
    /// The event that comes next.
    event: Instant,
    /// The report that comes next; [`Instant::NEVER`] once none will any more.
    report: Instant,
    count: u32,
    left: u32,
    random: RandomStream,
}

impl Burst {
    /// Events that are counted from `start` on.
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
        burst.meet_events();
        burst
    }

    /// When the next message comes; [`Instant::NEVER`] once none will any more.
    #[must_use]
    pub const fn next_time(&self) -> Instant {
        self.report
    }

    /// The next message; `None` once none will come any more.
    pub fn next_message(&mut self) -> Option<Arrival> {
        if self.left == 0 {
            return None;
        }
        let at = self.report;
        self.left -= 1;
        self.report += self.gap;
        self.meet_events();
        Some(Arrival { at, bytes: self.bytes })
    }

    /// Goes on to the next event that hits this member, once all reports of the last are made.
    fn meet_events(&mut self) {
        while self.left == 0 {
            if self.event == Instant::NEVER {
                self.report = Instant::NEVER;
                return;
            }
            self.meet_event();
        }
    }

    fn meet_event(&mut self) {
        // Both draws are taken in any case: another share does not shift the times.
        let hit = self.random.occurs(self.share);
        self.report = self.event + self.random.uniform(self.spread);
        self.left = if hit { self.count } else { 0 };
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
    fn the_share_that_is_hit_is_drawn_anew_for_each_event() {
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
    fn a_share_of_nothing_ends() {
        let none = scenario::Burst { share: Probability::ZERO, ..keys() };
        assert_eq!(times(&none, 0, 1), [0_u64; 0]);
    }
}
