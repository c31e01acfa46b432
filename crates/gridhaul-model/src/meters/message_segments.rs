//! The segments of a message, and the rounds in which its sender transmits them.

use gridhaul_core::tcp::StackParams;

use super::parameters::packet_bits;
use crate::ack_delay::AckDelay;
use crate::chain::meter::{MeterTcp, Restart};

/// The segments of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MessageSegments {
    pub(super) count: u32,
    /// Size of the message, and of its last segment.
    bytes: u64,
    last_bytes: u64,
    /// Size of a full segment with headers, in bits.
    full: f64,
    /// Size of the last segment with headers, in bits.
    last: f64,
    /// Whether Nagle's algorithm keeps the last segment back until all others are acknowledged
    /// (RFC 9293, section 3.7.4).
    last_waits: bool,
    /// Whether Nagle's algorithm delays the last segment while an earlier message is outstanding.
    waits_for_earlier: bool,
    ack_delay: AckDelay,
}

/// The rounds of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rounds {
    pub(super) count: u32,
    /// Time from the first transmission to that of the last round, in seconds.
    pub(super) before_last_s: f64,
    /// Segments of the last round.
    last: u32,
}

impl MessageSegments {
    pub(super) fn new(bytes: u64, tcp: &StackParams) -> Self {
        let mss = u64::from(tcp.mss.max(1));
        let count = bytes.div_ceil(mss).max(1);
        let last = bytes - (count - 1) * mss;
        let is_small = tcp.nagle && last < mss;
        // In Linux, only an earlier small segment delays a small one.
        Self {
            count: u32::try_from(count).unwrap_or(u32::MAX),
            bytes,
            last_bytes: last,
            full: packet_bits(tcp, mss.min(bytes)),
            last: packet_bits(tcp, last),
            last_waits: count > 1 && is_small && !tcp.policy.nagle_by_minshall,
            waits_for_earlier: is_small,
            ack_delay: AckDelay::new(tcp),
        }
    }

    /// Whether the window does not contain a message and the part of it that the receiver withholds
    /// after a short segment.
    pub(super) fn leaves_part_of_window(&self, tcp: &StackParams) -> bool {
        // Packets of ns-2 contain no window.
        let has_window = !tcp.policy.one_way_open;
        let withheld = if self.last < self.full { self.last_bytes } else { 0 };
        has_window
            && self.count > 1
            && withheld > 0
            && self.bytes + withheld > u64::from(tcp.receive_window)
    }

    /// The rounds at a round-trip time of `rtt_s` for a segment of the mean size `mean`, in bits,
    /// over links of these rates. On a slow link, the window waits for its own transmission.
    pub(super) fn rounds(&self, tcp: &MeterTcp, rtt_s: f64, mean: f64, rates: &[f64]) -> Rounds {
        let window = tcp.window.max(1);
        let together = self.count - u32::from(self.last_waits);
        let first = match tcp.restart {
            Restart::OneSegment { .. } => 1,
            _ => window.min(together),
        };
        let later = (together - first).div_ceil(window);
        let last = if later > 0 { together - first - (later - 1) * window } else { first };
        let mut rounds = Rounds { count: 1 + later, before_last_s: 0.0, last };
        let slowest_s = rates.iter().map(|rate| self.full / rate).fold(0.0, f64::max);
        let full_rtt_s = rtt_s + rates.iter().map(|rate| (self.full - mean) / rate).sum::<f64>();
        let round_s = |segments: u32| {
            let acknowledged_s = full_rtt_s + self.ack_delay.of_first_s(segments, slowest_s);
            acknowledged_s.max(f64::from(segments) * slowest_s)
        };
        if later > 0 {
            rounds.before_last_s = round_s(first) + f64::from(later - 1) * round_s(window);
        }
        if self.last_waits {
            let queued_s = f64::from(last - 1) * slowest_s;
            let delayed_s = self.ack_delay.of_last_s(last, slowest_s);
            rounds.before_last_s += full_rtt_s + queued_s + delayed_s;
            rounds.count += 1;
            rounds.last = 1;
        }
        rounds
    }

    /// Time that the segments of the last round need to cross links of these rates, in seconds:
    /// each link transmits them one after another, and the last one may be shorter.
    pub(super) fn crossing_s(&self, rounds: &Rounds, rates: &[f64]) -> f64 {
        let last: f64 = rates.iter().map(|rate| self.last / rate).sum();
        let Some(between) = rounds.last.checked_sub(2) else { return last };
        // The last segment catches up with the full ones at one of the links.
        let (mut before, mut slowest, mut after, mut longest) = (0.0, 0.0_f64, last, 0.0_f64);
        for rate in rates {
            before += self.full / rate;
            slowest = slowest.max(self.full / rate);
            longest = longest.max(before + f64::from(between) * slowest + after);
            after -= self.last / rate;
        }
        longest
    }

    /// Time for which Nagle's algorithm delays the segment of a message that follows another one
    /// within this time, in seconds, at a round-trip time of `rtt_s`; zero if it never does.
    pub(super) fn nagle_s(&self, rtt_s: f64) -> f64 {
        if self.waits_for_earlier { rtt_s + self.ack_delay.of_one_s() } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::{Profile, Stack};
    use gridhaul_scenario::units::{Bytes, Duration};

    use super::*;
    use crate::chain::meter::Timer;

    const TIMER: Timer = Timer { min: 1.0, max: 60.0, floor_on_variance: false, timestamps: true };

    fn meter(window: u32) -> MeterTcp {
        MeterTcp { vegas: false, window, timer: TIMER, restart: Restart::Never }
    }

    /// Segments of 1,000 B and headers of 40 B without timestamps, and immediate acknowledgements.
    fn message(bytes: u64) -> MessageSegments {
        let stack = Stack {
            profile: Profile::Rfc,
            mss: Some(Bytes::new(1_000)),
            timestamps: Some(false),
            nagle: Some(false),
            delayed_ack: Some(Duration::ZERO),
            ..Stack::default()
        };
        MessageSegments::new(bytes, &StackParams::resolve(&stack))
    }

    #[test]
    fn a_slow_link_transmits_the_segments_one_after_another() {
        // 8,320 bit at 8,320 bit/s: 1 s each. The round trip of 1.1 s is shorter than a window.
        let rates = [8_320.0];
        let message = message(4_000);
        let rounds = message.rounds(&meter(2), 1.1, 8_320.0, &rates);
        assert_eq!((rounds.count, rounds.last), (2, 2));
        assert_eq!(rounds.before_last_s + message.crossing_s(&rounds, &rates), 4.0);
        // With a window of one segment, each waits for its acknowledgement.
        let rounds = message.rounds(&meter(1), 1.1, 8_320.0, &rates);
        let all_s = rounds.before_last_s + message.crossing_s(&rounds, &rates);
        assert!((all_s - 4.3).abs() < 1e-9, "{all_s}");
    }

    /// A segment of 1,000 B and one of 480 B: 1 s and 0.5 s on the slow link, a tenth on the fast.
    #[test]
    fn a_short_last_segment_waits_behind_a_full_one() {
        let message = message(1_480);
        let at = |rates: &[f64]| {
            let rounds = message.rounds(&meter(2), 3.0, 6_240.0, rates);
            assert_eq!((rounds.count, rounds.before_last_s), (1, 0.0));
            message.crossing_s(&rounds, rates)
        };
        // The fast link first: 0.1 + 1 + 0.5; the slow link first: 1 + 0.5 + 0.05.
        assert!((at(&[83_200.0, 8_320.0]) - 1.6).abs() < 1e-9);
        assert!((at(&[8_320.0, 83_200.0]) - 1.55).abs() < 1e-9);
    }
}
