//! HyStart (Ha and Rhee, "Taming the elephants: New TCP slow start", Computer Networks 55(9), 2011):
//! slow start exits_slow_start before the queue overflows, when acknowledgements come in a train that is as long
//! as the way, or when the round trip has grown. The numbers are those of Linux.

use gridhaul_scenario::units::{Duration, Instant};

use crate::tcp::congestion::Ack;

/// Linux, `hystart_low_window`: smaller windows are left alone. Segments.
const LOW_WINDOW: f64 = 16.0;
/// Linux, `hystart_ack_delta_us`: acknowledgements closer than this belong to one train.
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// Linux: round trips of a round that are looked at for its round_min_rtt.
const MIN_SAMPLES: u8 = 8;
/// Section 4.2 of the paper, η: an eighth of the round_min_rtt round trip, within these bounds (Linux).
const DELAY_THRESHOLD_BOUNDS: (Duration, Duration) =
    (Duration::from_millis(4), Duration::from_millis(16));
/// Linux: what is added to the length of the train for how senders batch: the time of four bursts of
/// 64 kB at twice the present rate, and no more than a millisecond.
const BURST_BYTES: f64 = 4.0 * 65_536.0;
const BURST_TIME_MAX: Duration = Duration::from_millis(1);

/// A round of slow start. Small windows count rounds, too: kernel 6.18 leaves slow start where only
/// rounds that are in step with its flights can.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HyStart {
    /// The round exits_slow_start when more than this is acknowledged.
    end: u64,
    began: Instant,
    last_ack: Instant,
    /// Least of its first round trips.
    round_min_rtt: Option<Duration>,
    samples: u8,
    /// It has ended slow start once: not again before a timeout.
    found: bool,
}

impl HyStart {
    /// Whether slow start exits_slow_start with this acknowledgement, which has measured `rtt`. `min_rtt` is the
    /// round_min_rtt of the connection, `window` is in bytes.
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

    /// Paper, section 4.1: a train as long as the way in one direction fills it.
    fn is_long_train(&mut self, ack: &Ack, min_rtt: Duration, window: f64) -> bool {
        if ack.now.since(self.last_ack) > TRAIN_GAP {
            return false;
        }
        self.last_ack = ack.now;
        let rate = 2.0 * window / ack.srtt.as_secs_f64().max(1e-6);
        let batches = Duration::from_secs_f64(BURST_BYTES / rate).min(BURST_TIME_MAX);
        ack.now.since(self.began) * 2 > min_rtt + batches
    }

    /// Paper, section 4.2: the round_min_rtt round trip of the round exceeds that of the connection.
    fn delay_increased(&mut self, rtt: Duration, min_rtt: Duration) -> bool {
        let round_min_rtt = self.round_min_rtt.map_or(rtt, |round_min_rtt| round_min_rtt.min(rtt));
        self.round_min_rtt = Some(round_min_rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        let eighth = Duration::from_nanos(min_rtt.as_nanos() / 8);
        round_min_rtt > min_rtt + eighth.clamp(DELAY_THRESHOLD_BOUNDS.0, DELAY_THRESHOLD_BOUNDS.1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::samples;
    use super::*;

    const MSS: u32 = 1_000;
    const MIN_RTT: Duration = Duration::from_millis(100);

    /// Acknowledgements of a round of `count` segments, `gap` apart, each after `rtt`: the number of
    /// the one that exits_slow_start slow start.
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

    /// At 1 ms apart, the train is longer than half of 100 ms and a millisecond with the 52nd.
    #[test]
    fn a_train_as_long_as_the_way_ends_slow_start() {
        let gap = Duration::from_millis(1);
        assert_eq!(round(60e3, 60, gap, MIN_RTT), Some(52));
        assert_eq!(round(60e3, 50, gap, MIN_RTT), None, "too short");
        assert_eq!(round(60e3, 60, gap * 3, MIN_RTT), None, "not a train");
        assert_eq!(round(15e3, 60, gap, MIN_RTT), None, "a small window");
    }

    /// An eighth of 100 ms more, seen in eight round trips and then once more.
    #[test]
    fn a_round_trip_that_has_grown_ends_slow_start() {
        let gap = Duration::from_millis(3);
        assert_eq!(round(20e3, 20, gap, Duration::from_millis(113)), Some(9));
        assert_eq!(round(20e3, 20, gap, Duration::from_millis(112)), None);
    }

    #[test]
    fn growth_is_an_eighth_but_at_least_4_and_at_most_16_ms() {
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
    fn a_train_may_be_longer_by_four_bursts_but_no_more_than_a_millisecond() {
        let is_long = |after_us, srtt| {
            let began = Instant::ZERO + Duration::from_secs(1);
            let now = began + Duration::from_micros(after_us);
            let mut hystart = HyStart { began, last_ack: now, ..HyStart::default() };
            let ack = Ack { now, srtt, ..samples::ack(MSS) };
            hystart.is_long_train(&ack, MIN_RTT, 1e6)
        };
        // 2 * 1 MB in 100 ms: 262 kB last 13 ms, which is cut to one: half of 101 ms.
        assert!(!is_long(50_500, MIN_RTT) && is_long(50_501, MIN_RTT));
        // In 1 ms: 131 us.
        let fast = Duration::from_millis(1);
        assert!(!is_long(50_065, fast) && is_long(50_066, fast));
    }

    #[test]
    fn it_ends_slow_start_once() {
        let mut hystart = HyStart { found: true, samples: MIN_SAMPLES, ..HyStart::default() };
        assert!(!hystart.exits_slow_start(&samples::ack(MSS), MIN_RTT * 2, MIN_RTT, 1e6));
    }
}
