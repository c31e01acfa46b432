//! An on-off source with a fixed rate during on periods.

use std::sync::Arc;

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::{BitRate, Duration, Instant};

use super::on_off_periods::length;
use super::{Arrival, OnOffPeriods};
use crate::random::RandomStream;

/// An on-off source.
///
/// During on periods, payload is generated at `rate`; when `size` bytes are complete, they are sent
/// as a message. So messages of an on period are `size / rate` apart, and an incomplete message at
/// its end is continued in the next on period: neither rounded up nor lost, also where most on
/// periods are shorter than one message. Over long runs the offered load is therefore exactly `rate
/// × on / (on + off)`. (The simulators differ here: ns-2's `Exponential` rounds each on period to
/// whole messages, at least one, and so offers more than the formula where on periods are short;
/// ns-3's `OnOffApplication` keeps the residual bits, as here.)
///
/// The source starts in its stationary state: in an on period with probability `on / (on + off)`,
/// at a uniformly distributed position, and with a random part of a message complete.
///
/// The members of a row share the keys, and the time of the next message is computed in advance, so
/// that the state of a member is two times, the carried fraction and the random stream.
#[derive(Debug, Clone)]
pub struct OnOff {
    keys: Arc<scenario::OnOff>,
    /// When the next message arrives, within the on period that ends at `until`. [`Instant::NEVER`]
    /// without on periods or without rate.
    due: Instant,
    until: Instant,
    /// Carried fraction of a nanosecond, as a numerator over the rate.
    carry: u64,
    random: RandomStream,
}

impl OnOff {
    /// A source from `start` on, in its stationary state. Without a rate it never has a message;
    /// see [`Demand::Greedy`](super::Demand::Greedy).
    #[must_use]
    pub fn new(keys: Arc<scenario::OnOff>, start: Instant, mut random: RandomStream) -> Self {
        let (mut carry, mut needed) = (0, Duration::ZERO);
        let never = bits_per_sec(&keys) == 0 || keys.on.is_zero();
        if !never {
            needed = random.uniform(spacing(&keys, &mut carry));
        }
        let periods = OnOffPeriods::new(&keys, start, random);
        let (active, until) = (periods.active(), periods.until());
        let random = periods.into_random();
        if never {
            return Self { keys, due: Instant::NEVER, until, carry, random };
        }
        let begins = if active { start } else { until };
        let mut source = Self { keys, due: begins + needed, until, carry, random };
        if !active {
            source.start_on_period();
        }
        source.skip_off_periods();
        source
    }

    /// When the next message arrives; [`Instant::NEVER`] without on periods or without rate.
    #[must_use]
    pub const fn next_time(&self) -> Instant {
        self.due
    }

    /// The next message; `None` for a source without on periods or without rate.
    pub fn next_message(&mut self) -> Option<Arrival> {
        if self.due == Instant::NEVER {
            return None;
        }
        let at = self.due;
        self.due += spacing(&self.keys, &mut self.carry);
        self.skip_off_periods();
        Some(Arrival { at, bytes: self.keys.size.get() })
    }

    /// Skips off periods until an on period is long enough to complete the next message.
    fn skip_off_periods(&mut self) {
        while self.due > self.until && self.due < Instant::NEVER {
            let off = length(self.keys.spread, self.keys.off, &mut self.random);
            self.until += off;
            self.due += off;
            self.start_on_period();
        }
    }

    fn start_on_period(&mut self) {
        self.until += length(self.keys.spread, self.keys.on, &mut self.random);
    }
}

fn bits_per_sec(keys: &scenario::OnOff) -> u64 {
    keys.rate.map_or(0, BitRate::as_bits_per_sec)
}

/// Generation time of a message; at least a nanosecond, so that time advances.
fn spacing(keys: &scenario::OnOff, carry: &mut u64) -> Duration {
    let rate = bits_per_sec(keys);
    let work = u128::from(keys.size.get()) * 8_000_000_000 + u128::from(*carry);
    // A division of 64 bits takes a tenth of the time.
    let nanos = if let Ok(work) = u64::try_from(work) {
        *carry = work % rate;
        work / rate
    } else {
        let rate = u128::from(rate);
        *carry = (work % rate) as u64;
        u64::try_from(work / rate).unwrap_or(u64::MAX >> 1)
    };
    Duration::from_nanos(nanos.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridhaul_scenario::scenario::PeriodDistribution;
    use gridhaul_scenario::units::Bytes;

    fn keys(on_ms: u64, off_ms: u64, spread: PeriodDistribution) -> scenario::OnOff {
        scenario::OnOff {
            on: Duration::from_millis(on_ms),
            off: Duration::from_millis(off_ms),
            rate: Some(BitRate::from_bits_per_sec(64_000)),
            size: Bytes::new(210),
            spread,
            synchronised: false,
        }
    }

    fn source(keys: &scenario::OnOff, member: u64) -> OnOff {
        OnOff::new(
            Arc::new(*keys),
            Instant::ZERO,
            RandomStream::named(5, 0, "voice", member, "load"),
        )
    }

    fn messages_before(source: &mut OnOff, end: Instant) -> u64 {
        (0..).take_while(|_| source.next_message().is_some_and(|m| m.at <= end)).count() as u64
    }

    #[test]
    fn the_long_run_offered_load_matches_the_formula() {
        // A message takes 26.25 ms: on periods of many messages, of one, of a tenth.
        for (on, off) in [(500, 500), (26, 100), (3, 30), (1_000, 0)] {
            for (spread, tolerance) in
                [(PeriodDistribution::Fixed, 0.0005), (PeriodDistribution::Exponential, 0.02)]
            {
                let keys = keys(on, off, spread);
                let mut source = source(&keys, 0);
                let seconds = 20_000;
                let end = Instant::ZERO + Duration::from_secs(seconds);
                let bits = messages_before(&mut source, end) * 210 * 8;
                let expected = 64_000.0 * on as f64 / (on + off) as f64;
                let ratio = bits as f64 / seconds as f64 / expected;
                assert!((ratio - 1.0).abs() < tolerance, "{on}/{off} {spread:?}: {ratio}");
            }
        }
    }

    #[test]
    fn the_start_is_stationary() {
        // Many members over the first 100 ms: the mean load is that of any other interval.
        for spread in [PeriodDistribution::Fixed, PeriodDistribution::Exponential] {
            let keys = keys(400, 1_200, spread);
            let members = 20_000;
            let end = Instant::ZERO + Duration::from_millis(100);
            let messages: u64 =
                (0..members).map(|member| messages_before(&mut source(&keys, member), end)).sum();
            let expected = members as f64 * 0.1 * 64_000.0 / (210.0 * 8.0) * 0.25;
            let ratio = messages as f64 / expected;
            assert!((ratio - 1.0).abs() < 0.04, "{spread:?}: {ratio}");
        }
    }

    #[test]
    fn messages_are_evenly_spaced_and_incomplete_ones_are_continued() {
        let keys = keys(100, 1_000, PeriodDistribution::Fixed);
        let mut source = source(&keys, 0);
        let times: Vec<u64> =
            (0..200).map(|_| source.next_message().unwrap().at.as_nanos()).collect();
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // Either the spacing within an on period, or that plus exactly one off period.
        assert!(gaps.iter().all(|gap| *gap == 26_250_000 || *gap == 1_026_250_000), "{gaps:?}");
        // 100 ms contain 3.81 messages: of 200 gaps every 3.81th crosses an off period.
        let silences = gaps.iter().filter(|gap| **gap > 1_000_000_000).count();
        assert!((51..=53).contains(&silences), "{silences}");
    }

    #[test]
    fn without_on_periods_or_rate_there_are_no_messages() {
        let mut dead = keys(0, 10, PeriodDistribution::Fixed);
        assert!(source(&dead, 0).next_message().is_none());
        dead = scenario::OnOff { rate: None, ..keys(10, 10, PeriodDistribution::Fixed) };
        assert!(source(&dead, 0).next_message().is_none());
    }
}
