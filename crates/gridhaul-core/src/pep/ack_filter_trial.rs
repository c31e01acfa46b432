//! `ack` under trial: the filter stops if it lowers the goodput of the connection, as it does where
//! a device on the path handles few acknowledgements badly.

use gridhaul_scenario::units::{Duration, Instant};

use super::{AckFilter, Outgoing, Proxy, Side};
use crate::tcp::{Flags, Segment};

/// An [`AckFilter`] that is off from time to time, to compare the goodput. Where the goodput is
/// higher without the filter than before and after, twice in a row, the filter stays off. A change
/// of the goodput for another reason outlasts the comparison, or returns no sooner.
#[derive(Debug, Clone)]
pub struct AckFilterTrial {
    filter: AckFilter,
    toward: Side,
    max_ack_delay: Duration,
    stage: Stage,
    period: Period,
    /// Goodput with the filter, and then without it, in bytes per second.
    filtered: Option<f64>,
    unfiltered: Option<f64>,
    /// Comparisons in a row in which the goodput was lower with the filter.
    lower: u8,
    is_harmful: bool,
}

/// Stages of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// With the filter.
    Before,
    /// Without the filter.
    Without,
    /// With the filter again.
    After,
    /// With the filter, until the next comparison.
    Pause,
}

/// The measurement of a stage.
#[derive(Debug, Clone, Copy, Default)]
struct Period {
    began_at: Option<Instant>,
    measurement: Option<Measurement>,
}

/// Acknowledged bytes of a time.
#[derive(Debug, Clone, Copy)]
struct Measurement {
    from: Instant,
    /// Highest acknowledgement number.
    acknowledged: u32,
    /// Counted for each acknowledgement, since the time may have more than 2³¹ bytes.
    bytes: u64,
    acknowledgements: u32,
}

/// Time until the sender has adapted to the stage, and time of the measurement after that.
const ADAPTATION: Duration = Duration::from_secs(2);
const MEASUREMENT: Duration = Duration::from_secs(2);

/// Time between two comparisons.
const PAUSE: Duration = Duration::from_secs(60);

/// Acknowledgements of a measurement that counts.
const ACKNOWLEDGEMENTS_MIN: u32 = 20;

/// Ratio of the goodput without and with the filter from which on the filter is harmful: more than
/// a congestion window varies between two measurements.
const RATIO: f64 = 1.25;

/// Comparisons in a row that decide.
const COMPARISONS: u8 = 2;

impl AckFilterTrial {
    /// Filters acknowledgements to the side `toward` like [`AckFilter::new`].
    #[must_use]
    pub fn new(toward: Side, max_ack_delay: Duration) -> Self {
        Self {
            filter: AckFilter::new(toward, max_ack_delay),
            toward,
            max_ack_delay,
            stage: Stage::Before,
            period: Period::default(),
            filtered: None,
            unfiltered: None,
            lower: 0,
            is_harmful: false,
        }
    }

    fn observe(&mut self, now: Instant, ack: u32) {
        let began_at = *self.period.began_at.get_or_insert(now);
        if self.stage == Stage::Pause {
            if now >= began_at + PAUSE {
                self.begin(now, Stage::Before);
            }
            return;
        }
        if now < began_at + ADAPTATION {
            return;
        }
        let measurement = self.period.measurement.get_or_insert(Measurement {
            from: now,
            acknowledged: ack,
            bytes: 0,
            acknowledgements: 0,
        });
        measurement.add(ack);
        if now >= measurement.from + MEASUREMENT {
            let goodput = measurement.goodput(now);
            self.end_stage(now, goodput);
        }
    }

    fn end_stage(&mut self, now: Instant, goodput: Option<f64>) {
        match self.stage {
            Stage::Before | Stage::Pause => {
                self.filtered = goodput;
                self.begin(now, Stage::Without);
            }
            Stage::Without => {
                self.unfiltered = goodput;
                self.begin(now, Stage::After);
            }
            Stage::After => self.compare(now, goodput),
        }
    }

    fn compare(&mut self, now: Instant, after: Option<f64>) {
        let is_lower = match (self.filtered, self.unfiltered, after) {
            (Some(before), Some(without), Some(after)) => without > RATIO * before.max(after),
            _ => false,
        };
        if !is_lower {
            self.lower = 0;
            self.begin(now, Stage::Pause);
            return;
        }
        self.lower += 1;
        if self.lower >= COMPARISONS {
            self.is_harmful = true;
            self.filter.set_max_ack_delay(now, Duration::ZERO);
        } else {
            self.filtered = after;
            self.begin(now, Stage::Without);
        }
    }

    fn begin(&mut self, now: Instant, stage: Stage) {
        self.stage = stage;
        self.period = Period { began_at: Some(now), ..Period::default() };
        let delay = if stage == Stage::Without { Duration::ZERO } else { self.max_ack_delay };
        self.filter.set_max_ack_delay(now, delay);
    }
}

impl Measurement {
    fn add(&mut self, ack: u32) {
        self.acknowledgements += 1;
        let advance = ack.wrapping_sub(self.acknowledged).cast_signed();
        if advance > 0 {
            self.bytes += u64::from(advance.cast_unsigned());
            self.acknowledged = ack;
        }
    }

    /// Bytes per second; `None` after too few acknowledgements.
    fn goodput(&self, now: Instant) -> Option<f64> {
        let is_valid = self.acknowledgements >= ACKNOWLEDGEMENTS_MIN;
        is_valid.then(|| self.bytes as f64 / now.since(self.from).as_secs_f64())
    }
}

impl Proxy for AckFilterTrial {
    fn boxed_clone(&self) -> Box<dyn Proxy> {
        Box::new(self.clone())
    }

    fn handle_segment(&mut self, now: Instant, from: Side, segment: &Segment) {
        self.filter.handle_segment(now, from, segment);
        let is_acknowledgement =
            segment.flags.has(Flags::ACK) && !segment.flags.has(Flags::SYN) && segment.len == 0;
        if from != self.toward && is_acknowledgement && !self.is_harmful {
            self.observe(now, segment.ack);
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing> {
        self.filter.poll_transmit(now)
    }

    fn next_deadline(&self) -> Instant {
        self.filter.next_deadline()
    }

    fn is_finished(&self) -> bool {
        self.filter.is_finished()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.filter.handle_timeout(now);
    }

    fn drain(&mut self, now: Instant) {
        self.filter.drain(now);
    }

    fn lowers_goodput(&self) -> bool {
        self.is_harmful
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a transfer for a time in seconds, with an acknowledgement each 10 ms. `bytes` returns
    /// the bytes that each one acknowledges, by the time and by whether the filter is on. Returns
    /// when the filter was found to be harmful.
    fn trial(seconds: u64, mut bytes: impl FnMut(f64, bool) -> f64) -> Option<f64> {
        let mut trial = AckFilterTrial::new(Side::Client, Duration::from_millis(50));
        // The numbers wrap around.
        let mut ack = u32::MAX - 1_000_000;
        for step in 0..seconds * 100 {
            let now = Instant::ZERO + Duration::from_millis(10 * step);
            trial.handle_timeout(now);
            ack = ack.wrapping_add(bytes(now.as_secs_f64(), trial.stage != Stage::Without) as u32);
            let flags = Flags::ACK;
            let segment = Segment { ack, window: 5_000, flags, ..Segment::default() };
            trial.handle_segment(now, Side::Server, &segment);
            while trial.poll_transmit(now).is_some() {}
            if trial.lowers_goodput() {
                return Some(now.as_secs_f64());
            }
        }
        None
    }

    #[test]
    fn an_acknowledgement_that_waits_is_sent_before_the_end() {
        let mut trial = AckFilterTrial::new(Side::Client, Duration::from_millis(50));
        for ack in [1_000, 2_000, 3_000] {
            let segment = Segment { ack, window: 5_000, flags: Flags::ACK, ..Segment::default() };
            trial.handle_segment(Instant::ZERO, Side::Server, &segment);
        }
        let sent = |trial: &mut AckFilterTrial| {
            std::iter::from_fn(|| trial.poll_transmit(Instant::ZERO))
                .map(|sent| sent.segment.ack)
                .last()
        };
        assert_ne!(sent(&mut trial), Some(3_000), "the newest one waits");
        assert!(!trial.is_finished());
        trial.drain(Instant::ZERO);
        assert_eq!(sent(&mut trial), Some(3_000));
        assert!(trial.is_finished());
    }

    /// 2.5 GB are acknowledged in the two seconds of a measurement.
    #[test]
    fn a_harmless_filter_stays_on_at_more_than_ten_gigabits_per_second() {
        let bytes = |_, is_on| if is_on { 12_500_000.0 } else { 10_500_000.0 };
        assert_eq!(trial(300, bytes), None);
    }

    #[test]
    fn a_filter_that_lowers_the_goodput_is_found_within_half_a_minute() {
        let at = trial(120, |_, is_on| if is_on { 700.0 } else { 1_000.0 });
        // Two comparisons of three stages of 4 s; the last stage of one is the first of the next.
        assert_eq!(at, Some(20.0));
        // From the second minute on, as after a change of the path.
        let later = |time, is_on| if is_on && time > 90.0 { 700.0 } else { 1_000.0 };
        let at = trial(300, later);
        // A comparison takes 12 s and a pause 60 s: the first after 90 s begins at 144 s.
        assert_eq!(at, Some(164.0));
    }

    #[test]
    fn a_filter_that_raises_or_keeps_the_goodput_stays() {
        assert_eq!(trial(600, |_, _| 1_000.0), None);
        assert_eq!(trial(600, |_, is_on| if is_on { 1_000.0 } else { 300.0 }), None);
    }

    #[test]
    fn a_goodput_that_changes_for_other_reasons_is_no_fault_of_the_filter() {
        // A step down at any time, a decline, and a sawtooth of a congestion window.
        for second in 1..40 {
            let step = |time, _| if time < f64::from(second) { 1_000.0 } else { 400.0 };
            assert_eq!(trial(120, step), None, "a step after {second} s");
        }
        assert_eq!(trial(600, |time, _| 2_000.0 / (1.0 + time / 60.0)), None);
        for period in 1..60 {
            let sawtooth =
                |time: f64, _| 1_000.0 * (0.7 + 0.3 * (time / f64::from(period)).fract());
            assert_eq!(trial(600, sawtooth), None, "a period of {period} s");
        }
    }
}
