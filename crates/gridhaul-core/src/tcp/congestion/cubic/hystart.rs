//! HyStart (Ha and Rhee, "Taming the elephants: New TCP slow start", Computer Networks 55(9),
//! 2011): slow start ends before the queue overflows, when a train of acknowledgements is as long
//! as the one-way delay, or when the round trip has increased. The constants are those of Linux.

use gridhaul_scenario::units::{Duration, Instant};

use crate::coverage_mark::mark;
use crate::tcp::event::Ack;

/// Linux, `hystart_low_window`: smaller windows are ignored. Segments.
const LOW_WINDOW: f64 = 16.0;
/// Linux, `hystart_ack_delta_us`: acknowledgements closer than this belong to one train.
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// Linux: number of round-trip samples for the minimum of a round.
const MIN_SAMPLES: u8 = 8;
/// Section 4.2 of the paper, η: an eighth of the minimum RTT, within these bounds (Linux).
const DELAY_THRESHOLD_BOUNDS: (Duration, Duration) =
    (Duration::from_millis(4), Duration::from_millis(16));
/// Linux: allowance for bursts of the sender in the length of the train: the time of four bursts of
/// 64 kB at twice the current rate, at most a millisecond.
const BURST_BYTES: f64 = 4.0 * 65_536.0;
const BURST_TIME_MAX: Duration = Duration::from_millis(1);

/// A round of slow start. Rounds are also counted at small windows: kernel 6.18 leaves slow start
/// where only rounds synchronised with its flights can.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HyStart {
    /// Position whose acknowledgement ends the round.
    end: u64,
    began: Instant,
    last_ack: Instant,
    /// Minimum of the first round trips of the round.
    round_min_rtt: Option<Duration>,
    samples: u8,
    /// HyStart has ended slow start; it is not used again before a timeout.
    found: bool,
}

impl HyStart {
    /// Whether slow start ends with this acknowledgement, which has measured `rtt`. `min_rtt` is
    /// the minimum of the connection, `window` is in bytes.
    pub(super) fn exits_slow_start(
        &mut self,
        ack: &Ack,
        rtt: Duration,
        min_rtt: Duration,
        window: f64,
    ) -> bool {
        if self.found {
            return false;
        }
        if ack.una > self.end {
            *self = Self { end: ack.next, began: ack.now, last_ack: ack.now, ..Self::default() };
        }
        if window < LOW_WINDOW * f64::from(ack.mss) {
            return false;
        }
        self.found = self.is_long_train(ack, min_rtt, window) || self.delay_increased(rtt, min_rtt);
        self.found
    }

    /// Paper, section 4.1: a train as long as the one-way delay fills the path.
    fn is_long_train(&mut self, ack: &Ack, min_rtt: Duration, window: f64) -> bool {
        if ack.now.since(self.last_ack) > TRAIN_GAP {
            return false;
        }
        self.last_ack = ack.now;
        let rate = 2.0 * window / ack.srtt.as_secs_f64().max(1e-6);
        let batches = Duration::from_secs_f64(BURST_BYTES / rate).min(BURST_TIME_MAX);
        let is_long = ack.now.since(self.began) * 2 > min_rtt + batches;
        mark!(hystart_long_train if is_long);
        is_long
    }

    /// Paper, section 4.2: the minimum RTT of the round exceeds that of the connection by a
    /// threshold.
    fn delay_increased(&mut self, rtt: Duration, min_rtt: Duration) -> bool {
        let round_min_rtt = self.round_min_rtt.map_or(rtt, |round_min_rtt| round_min_rtt.min(rtt));
        self.round_min_rtt = Some(round_min_rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        let eighth = Duration::from_nanos(min_rtt.as_nanos() / 8);
        let (lower, upper) = DELAY_THRESHOLD_BOUNDS;
        let has_increased = round_min_rtt > min_rtt + eighth.clamp(lower, upper);
        mark!(hystart_increased_delay if has_increased);
        has_increased
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::samples;
    use super::*;
    use crate::coverage_mark::covers;

    const MSS: u32 = 1_000;
    const MIN_RTT: Duration = Duration::from_millis(100);

    /// Acknowledgements of a round of `count` segments, `gap` apart, each after `rtt`: the number
    /// of the acknowledgement that ends slow start.
    fn round(window: f64, count: u64, gap: Duration, rtt: Duration) -> Option<u64> {
        let mut hystart = HyStart::default();
        let mut now = Instant::ZERO + Duration::from_secs(1);
        (1..=count).find(|&number| {
            let (una, next) = (number * u64::from(MSS), (2 * number + count) * u64::from(MSS));
            let ack = Ack { now, una, next, srtt: rtt, ..samples::ack(MSS) };
            now += gap;
            hystart.exits_slow_start(&ack, rtt, MIN_RTT, window)
        })
    }

    /// At intervals of 1 ms, the train exceeds half of 100 ms plus a millisecond with the 52nd
    /// acknowledgement.
    #[test]
    fn a_train_as_long_as_the_one_way_delay_ends_slow_start() {
        covers!(hystart_long_train);
        let gap = Duration::from_millis(1);
        assert_eq!(round(60e3, 60, gap, MIN_RTT), Some(52));
        assert_eq!(round(60e3, 50, gap, MIN_RTT), None, "too short");
        // At intervals of 2 ms with the 27th: 26 intervals are longer than 50.5 ms.
        assert_eq!(round(60e3, 60, gap * 2, MIN_RTT), Some(27));
        assert_eq!(round(60e3, 60, gap * 3, MIN_RTT), None, "not a train");
        assert_eq!(round(15e3, 60, gap, MIN_RTT), None, "a small window");
    }

    /// An increase by an eighth of 100 ms, in eight samples and then another one.
    #[test]
    fn an_increased_round_trip_ends_slow_start() {
        covers!(hystart_increased_delay);
        let gap = Duration::from_millis(3);
        assert_eq!(round(20e3, 20, gap, Duration::from_millis(113)), Some(9));
        assert_eq!(round(20e3, 20, gap, Duration::from_millis(112)), None);
    }

    #[test]
    fn the_delay_threshold_is_an_eighth_but_at_least_4_and_at_most_16_ms() {
        let ms = Duration::from_millis;
        let grown = |round_min_rtt, rtt| {
            let mut hystart = HyStart { samples: MIN_SAMPLES, ..HyStart::default() };
            hystart.delay_increased(ms(rtt), ms(round_min_rtt))
        };
        assert!(!grown(8, 12) && grown(8, 13), "4 ms, not 1");
        assert!(!grown(80, 90) && grown(80, 91), "an eighth");
        assert!(!grown(400, 416) && grown(400, 417), "16 ms, not 50");
    }

    #[test]
    fn the_train_length_allows_for_four_bursts_but_at_most_a_millisecond() {
        let is_long = |after_us, srtt| {
            let began = Instant::ZERO + Duration::from_secs(1);
            let now = began + Duration::from_micros(after_us);
            let mut hystart = HyStart { began, last_ack: now, ..HyStart::default() };
            let ack = Ack { now, srtt, ..samples::ack(MSS) };
            hystart.is_long_train(&ack, MIN_RTT, 1e6)
        };
        // 2 * 1 MB in 100 ms: 262 kB take 13 ms, which is limited to one: half of 101 ms.
        assert!(!is_long(50_500, MIN_RTT) && is_long(50_501, MIN_RTT));
        // In 1 ms: 131 us.
        let fast = Duration::from_millis(1);
        assert!(!is_long(50_065, fast) && is_long(50_066, fast));
    }

    #[test]
    fn hystart_ends_slow_start_once() {
        let mut hystart = HyStart { found: true, samples: MIN_SAMPLES, ..HyStart::default() };
        assert!(!hystart.exits_slow_start(&samples::ack(MSS), MIN_RTT * 2, MIN_RTT, 1e6));
    }

    #[test]
    fn a_round_ends_with_an_acknowledgement_beyond_the_data_sent_before_it() {
        let ends_slow_start = |una| {
            let mut hystart = HyStart { end: 5_000, samples: MIN_SAMPLES, ..HyStart::default() };
            let now = Instant::ZERO + Duration::from_secs(1);
            let ack = Ack { now, una, ..samples::ack(MSS) };
            hystart.exits_slow_start(&ack, MIN_RTT * 2, MIN_RTT, 20e3)
        };
        assert!(ends_slow_start(5_000));
        assert!(!ends_slow_start(5_001), "the first sample of a new round");
    }
}
