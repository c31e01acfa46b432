//! Latency over the time of a run, in memory that does not depend on the number of messages.

use gridhaul_scenario::units::{Duration, Instant};

use super::message::{Message, Phase};
use super::schedule::Schedule;

/// Number of intervals: about the number of pixels of a chart.
const INTERVALS: u64 = 400;

/// Latency of the messages of each interval of a run, the warm-up excluded.
#[derive(Debug, Clone)]
pub struct TimeProfile {
    start: Instant,
    interval: Duration,
    intervals: Vec<Interval>,
}

/// The messages of an interval.
#[derive(Debug, Clone, Copy, Default)]
struct Interval {
    arrived: u64,
    missing: u64,
    sum: f64,
    max: Duration,
}

/// A point of the profile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProfilePoint {
    /// Middle of the interval, from the start of the schedule.
    pub at: Instant,
    /// Mean latency from the send time; `None` if no message of the interval arrived.
    pub mean: Option<Duration>,
    /// Largest latency.
    pub max: Option<Duration>,
    /// Messages without an intact copy.
    pub missing: u64,
}

impl TimeProfile {
    /// An empty profile of a schedule.
    #[must_use]
    pub fn new(schedule: &Schedule) -> Self {
        let start = schedule.intended(schedule.warm_up_messages());
        let measured = (schedule.total() - schedule.warm_up_messages()).max(1);
        let length = schedule.interval().mul_f64(measured as f64);
        let count = measured.min(INTERVALS);
        let interval = length.mul_f64(1.0 / count as f64).max(Duration::from_nanos(1));
        Self { start, interval, intervals: vec![Interval::default(); count as usize] }
    }

    /// Adds a closed message.
    pub fn add(&mut self, message: &Message) {
        if message.phase == Phase::WarmUp {
            return;
        }
        let since = message.intended.since(self.start).as_nanos();
        let place = (since / self.interval.as_nanos()) as usize;
        let last = self.intervals.len() - 1;
        let interval = &mut self.intervals[place.min(last)];
        match message.latency_from_send() {
            Some(latency) => {
                interval.arrived += 1;
                interval.sum += latency.as_secs_f64();
                interval.max = interval.max.max(latency);
            }
            None => interval.missing += 1,
        }
    }

    /// The points, in the order of time.
    pub fn points(&self) -> impl Iterator<Item = ProfilePoint> + '_ {
        self.intervals.iter().enumerate().map(|(place, messages)| {
            let has_arrived = messages.arrived > 0;
            ProfilePoint {
                at: self.start + self.interval.mul_f64(place as f64 + 0.5),
                mean: has_arrived
                    .then(|| Duration::from_secs_f64(messages.sum / messages.arrived as f64)),
                max: has_arrived.then_some(messages.max),
                missing: messages.missing,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_in_the_interval_of_its_time() {
        let schedule = Schedule::new(1_000.0, 800);
        let mut profile = TimeProfile::new(&schedule);
        for sequence in 0..schedule.total() {
            let intended = schedule.intended(sequence);
            let latency = Duration::from_millis(if sequence == 1_007 { 9 } else { 1 });
            profile.add(&Message {
                sequence,
                intended,
                sent: Some(intended),
                received: (sequence != 1_001).then_some(intended + latency),
                copies: 1,
                corrupt_copies: 0,
                reordered: false,
                phase: if sequence < 1_000 { Phase::WarmUp } else { Phase::Measured },
                ..Message::default()
            });
        }
        let points: Vec<_> = profile.points().collect();
        assert_eq!(points.len(), 400);
        assert_eq!((points[0].missing, points[0].max), (1, Some(Duration::from_millis(1))));
        assert_eq!(points[3].max, Some(Duration::from_millis(9)));
        assert_eq!(points[3].mean, Some(Duration::from_millis(5)));
        assert!(points.iter().map(|point| point.missing).sum::<u64>() == 1);
    }
}
