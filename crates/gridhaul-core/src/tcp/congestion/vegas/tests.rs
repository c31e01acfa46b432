//! Tests in units that can be checked by hand: windows in segments, per round trip.

use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Profile, Stack};
use proptest::prelude::*;

use super::super::samples;
use super::*;
use crate::tcp::rules::AlgorithmRules;

const MSS: u32 = 1000;

fn params(initial_ssthresh: u32) -> StackParams {
    // The connection is open; a separate test covers ns-2's start.
    let (congestion_control, handshake) = (Some(CongestionControlAlgorithm::Vegas), Some(true));
    let stack = Stack { profile: Profile::Ns2, congestion_control, handshake, ..Stack::default() };
    StackParams {
        mss: MSS,
        initial_window: 2 * MSS,
        initial_ssthresh: initial_ssthresh * MSS,
        ..StackParams::resolve(&stack)
    }
}

fn ack(now: Instant, una: u64, in_flight: u64, rtt: Option<Duration>) -> Ack {
    Ack {
        now,
        rtt,
        srtt: rtt.unwrap_or_default(),
        prior_in_flight: in_flight + u64::from(MSS),
        in_flight,
        una,
        next: una + in_flight,
        delivered_total: una,
        ..samples::ack(MSS)
    }
}

fn loss(at_ms: u64, sent_ms: u64, window_segments: u32, transmits: u8) -> Loss {
    let lost = samples::loss(MSS, window_segments);
    Loss { now: ms(at_ms), sent_at: ms(sent_ms), transmits, ..lost }
}

fn ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// A path that acknowledges a whole window after each round trip of `rtt(window)`.
struct Path {
    vegas: Vegas,
    now: Instant,
    una: u64,
    next: u64,
}

impl Path {
    fn new(initial_ssthresh: u32) -> Self {
        let mut path =
            Self { vegas: Vegas::new(&params(initial_ssthresh)), now: ms(5), una: 1, next: 1 };
        path.send();
        path
    }
    fn set_thresholds(&mut self, alpha: f64, beta: f64, gamma: f64) {
        let params = *self.vegas.params;
        self.vegas.params = Arc::new(VegasParams { alpha, beta, gamma, ..params });
    }
    fn send(&mut self) {
        while self.next - self.una + u64::from(MSS) <= u64::from(self.vegas.window.cwnd()) {
            self.next += u64::from(MSS);
            self.vegas.on_sent(self.now, self.next, self.next - self.una);
        }
    }
    /// Congestion avoidance at a window of `segments`, on a path whose base round trip is known.
    fn settled(segments: u32) -> Self {
        let mut path = Self::new(2);
        path.round(ten_segments);
        // Twice: the first result at the new window still evaluates the previous one.
        for _ in 0..2 {
            path.vegas.window.set_cwnd(f64::from(segments * MSS));
            path.send();
            path.round(ten_segments);
        }
        path.vegas.window.set_cwnd(f64::from(segments * MSS));
        path.vegas.growth = 0.0;
        path
    }
    /// One round trip; returns the window in segments after it.
    fn round(&mut self, rtt: impl Fn(f64) -> Duration) -> f64 {
        let segments = (self.next - self.una) / u64::from(MSS);
        let rtt = rtt(segments as f64);
        self.now += rtt;
        for _ in 0..segments {
            self.una += u64::from(MSS);
            self.vegas.on_ack(&ack(self.now, self.una, self.next - self.una, Some(rtt)));
            self.send();
        }
        self.vegas.window.cwnd_f64() / f64::from(MSS)
    }
}

/// 100 ms and a bottleneck that holds ten segments in that time: `w - 10` segments queue.
fn ten_segments(window: f64) -> Duration {
    Duration::from_millis(100).mul_f64((window / 10.0).max(1.0))
}

fn never_queues(_window: f64) -> Duration {
    Duration::from_millis(100)
}

#[test]
fn slow_start_doubles_every_other_round_trip() {
    let mut path = Path::new(10_000);
    let windows: Vec<f64> = (0..8).map(|_| path.round(never_queues)).collect();
    assert_eq!(windows, [2.0, 4.0, 4.0, 8.0, 8.0, 16.0, 16.0, 32.0]);
}

#[test]
fn slow_start_ends_with_a_backlog_above_gamma() {
    let mut path = Path::new(10_000);
    for _ in 0..12 {
        path.round(ten_segments);
    }
    // The window doubles from 8 to 16, of which 6 segments queue: more than γ = 1.
    assert_eq!(path.vegas.window.ssthresh(), 2 * MSS);
    let settled: Vec<f64> = (0..30).map(|_| path.round(ten_segments)).collect();
    assert!(settled[20..].iter().all(|&window| (11.0..14.0).contains(&window)), "{settled:?}");
}

#[test]
fn between_alpha_and_beta_the_window_is_constant() {
    for waiting in 1..=3 {
        let mut path = Path::settled(10 + waiting);
        for _ in 0..20 {
            assert_eq!(path.round(ten_segments), f64::from(10 + waiting));
        }
    }
}

#[test]
fn above_beta_the_window_decreases_by_one_segment_each_round_trip() {
    let mut path = Path::settled(18);
    let windows: Vec<f64> = (0..7).map(|_| path.round(ten_segments)).collect();
    // At 13 three segments queue, which is β; but the result for 13 still has the round trips of
    // 14.
    assert_eq!(windows, [17.0, 16.0, 15.0, 14.0, 13.0, 12.0, 12.0]);
}

#[test]
fn below_alpha_the_window_increases_by_one_segment_each_round_trip() {
    let mut path = Path::new(2);
    path.vegas.window.set_cwnd(f64::from(5 * MSS));
    path.send();
    let mut before = 5.0;
    for _ in 0..10 {
        let after = path.round(never_queues);
        assert!((0.8..=1.2).contains(&(after - before)), "{before} -> {after}");
        before = after;
    }
}

#[test]
fn an_unused_window_does_not_grow() {
    let mut vegas = Vegas::new(&params(2));
    vegas.window.set_cwnd(f64::from(20 * MSS));
    for round in 1..20_u64 {
        let una = 1 + round * u64::from(MSS);
        vegas.on_ack(&ack(ms(100 * round), una, 0, Some(Duration::from_millis(100))));
    }
    assert_eq!(vegas.window.cwnd(), 20 * MSS);
}

#[test]
fn a_loss_reduces_by_a_quarter_and_a_lost_retransmission_by_half() {
    for (window, transmits, left) in
        [(20, 1, 15), (19, 1, 15), (20, 2, 10), (4, 1, 3), (3, 1, 2), (3, 2, 2), (1, 1, 2)]
    {
        let mut vegas = Vegas::new(&params(2));
        vegas.on_loss(&loss(500, 300, window, transmits));
        assert_eq!(vegas.window.cwnd(), left * MSS, "{window} segments, sent {transmits} timing");
    }
}

#[test]
fn losses_in_one_window_reduce_it_once() {
    let mut vegas = Vegas::new(&params(2));
    vegas.on_loss(&loss(500, 300, 20, 1));
    vegas.on_loss(&loss(510, 320, 15, 1));
    assert_eq!(vegas.window.cwnd(), 15 * MSS);
    // This segment was sent after the reduction.
    vegas.on_loss(&loss(700, 501, 15, 1));
    assert_eq!(vegas.window.cwnd(), 12 * MSS);
}

#[test]
fn a_timeout_starts_slow_start_from_two_segments_to_half_the_window() {
    let mut vegas = Vegas::new(&params(2));
    vegas.on_timeout(&loss(500, 300, 21, 1));
    assert_eq!((vegas.window.cwnd(), vegas.window.ssthresh()), (2 * MSS, 10 * MSS));
}

/// Linux (`gh_vegas`): a timeout begins a round trip in which slow start grows.
#[test]
fn slow_start_after_a_timeout_grows_at_once_in_linux_only() {
    let grown = |rules| {
        let mut params = params(50);
        params.policy.algorithms = rules;
        let mut vegas = Vegas::new(&params);
        vegas.round.progress.set_grows(false);
        vegas.on_timeout(&loss(500, 300, 20, 1));
        vegas.on_ack(&ack(ms(600), 1_001, 0, None));
        (vegas.window.cwnd() / MSS, vegas.round.progress.grows())
    };
    assert_eq!(grown(AlgorithmRules::Linux), (3, true));
    assert_eq!(grown(AlgorithmRules::Rfc), (2, false));
}

#[test]
fn the_fine_timeout_follows_the_round_trip() {
    let mut vegas = Vegas::new(&params(2));
    assert!(!vegas.expired(ms(1_000_000), ms(0)), "no measurement yet");
    for _ in 0..200 {
        vegas.on_rtt_sample(Duration::from_millis(100));
    }
    // Without variation: 100 ms and a sixteenth.
    assert!(!vegas.expired(ms(106), ms(0)));
    assert!(vegas.expired(ms(107), ms(0)));
    // After a retransmission an eighth more, 119.5 ms; after another one of the same segment twice,
    // 239 ms.
    vegas.on_loss(&loss(107, 0, 10, 1));
    assert!(!vegas.expired(ms(119), ms(0)) && vegas.expired(ms(120), ms(0)));
    vegas.on_loss(&loss(240, 0, 10, 2));
    assert!(!vegas.expired(ms(239), ms(0)) && vegas.expired(ms(240), ms(0)));
}

#[test]
fn the_first_measurement_gives_one_and_a_half_round_trips() {
    let mut vegas = Vegas::new(&params(2));
    vegas.on_rtt_sample(Duration::from_millis(160));
    // Mean 160, deviation 40 less a quarter of it: (160 + 60) * 17 / 16 = 233.75.
    assert!(!vegas.expired(ms(233), ms(0)) && vegas.expired(ms(234), ms(0)));
    // 80 ms more: mean 160 + 10, deviation 30 + 50 / 4: (170 + 85) * 17 / 16 = 270.9.
    vegas.on_rtt_sample(Duration::from_millis(240));
    assert!(!vegas.expired(ms(270), ms(0)) && vegas.expired(ms(271), ms(0)));
}

#[test]
fn all_segments_of_a_delayed_acknowledgement_count_as_outstanding() {
    let result = |credit| {
        let mut round = Round::new(Ns2Startup::Done);
        round.measure(Duration::from_millis(100));
        let ended = ack(Instant::from_secs_f64(1.0), 10_000, 8_000, None);
        round.restart(&ended);
        round.measure(Duration::from_millis(100));
        let later = ack(Instant::from_secs_f64(2.0), 20_000, 8_000, None);
        round
            .on_ack(&Ack { avoidance_credit: credit, ..later })
            .map(|round| round.queued_segments(1e3))
    };
    // Ten segments were sent in a round trip without a queue; eight are still outstanding. With the
    // two acknowledged segments the window is ten: no backlog. If they count as one, the window is
    // smaller than the data sent.
    assert_eq!((result(2 * MSS), result(MSS)), (Some(0.0), Some(-1.0)));
}

#[test]
fn a_backlog_of_gamma_does_not_end_slow_start_and_more_reduces_by_an_eighth() {
    let mut path = Path::new(10_000);
    path.set_thresholds(1.0, 3.0, 6.0);
    let mut window = 0.0;
    while path.vegas.window.ssthresh() > 2 * MSS {
        window = path.round(ten_segments);
    }
    // At 16 six segments queue, which is γ; at 32 twenty-two: the window becomes 28, and the result
    // of that round trip deducts one more.
    assert!((27.0..=28.0).contains(&window), "{window}");
}

#[test]
fn the_window_never_decreases_below_two_segments() {
    let mut path = Path::new(2);
    path.set_thresholds(0.0, 0.5, 1.0);
    path.vegas.round.measure(Duration::from_millis(100));
    // A segment in 100 ms: one of two queues, more than β.
    let one_segment = |window: f64| Duration::from_millis(100).mul_f64(window);
    for _ in 0..5 {
        assert_eq!(path.round(one_segment), 2.0);
    }
}

/// ns-2: an eighth less at the end of slow start, but 7/8 of two segments are too few.
#[test]
fn the_end_of_slow_start_leaves_two_segments() {
    let mut path = Path::new(50);
    path.set_thresholds(0.0, 0.5, 0.5);
    path.vegas.round.measure(Duration::from_millis(100));
    let one_segment = |window: f64| Duration::from_millis(100).mul_f64(window);
    let smallest = (0..3).map(|_| path.round(one_segment)).fold(f64::MAX, f64::min);
    assert!(!path.vegas.window.in_slow_start());
    assert_eq!(smallest, 2.0);
}

#[test]
fn recovery_ends_slow_start_and_a_timeout_counts_as_a_reduction() {
    let mut vegas = Vegas::new(&params(50));
    vegas.on_recovered(ms(100));
    assert_eq!(vegas.window.ssthresh(), 2 * MSS);
    vegas.on_timeout(&loss(500, 300, 20, 1));
    // Section 3.1: the segment was sent before the last decrease.
    vegas.on_loss(&loss(600, 400, 20, 1));
    assert_eq!(vegas.window.cwnd(), 2 * MSS);
    vegas.on_loss(&loss(800, 501, 20, 1));
    assert_eq!(vegas.window.cwnd(), 15 * MSS);
}

#[test]
fn slow_start_that_passes_its_threshold_stops_within_the_round_trip() {
    let mut vegas = Vegas::new(&params(5));
    vegas.window.set_cwnd(f64::from(4 * MSS));
    vegas.growth = 1.0;
    // The end of the round trip is far ahead.
    vegas.round.restart(&ack(ms(100), 1, 100_000, None));
    (2..8).for_each(|una| vegas.on_ack(&ack(ms(110), una, 8_000, None)));
    assert_eq!(vegas.window.cwnd(), 5 * MSS);
}

#[test]
fn the_window_is_not_adjusted_in_recovery() {
    let evaluations = |in_recovery| {
        let mut path = Path::settled(12);
        let una = path.next + 1;
        let ended = ack(path.now + Duration::from_millis(100), una, 5_000, None);
        let before = path.vegas.round.progress.rounds();
        let ended = Ack { in_recovery, ..ended };
        path.vegas.on_delivered(&ended);
        path.vegas.on_ack(&ended);
        path.vegas.round.progress.rounds() - before
    };
    assert_eq!((evaluations(false), evaluations(true)), (1, 0));
}

#[test]
fn with_a_single_outstanding_segment_a_longer_round_trip_is_the_new_base() {
    let queued = |sent: u64| {
        let mut round = Round::new(Ns2Startup::Done);
        round.measure(Duration::from_millis(100));
        round.restart(&ack(ms(1_000), 10_000, sent - 1_000, None));
        round.measure(Duration::from_millis(200));
        let ended = ack(ms(2_000), 10_000 + sent - 1, sent - 1_000, None);
        round.on_ack(&ended).map(|result| result.queued_segments(1e3))
    };
    // Two segments that apparently spend half the time in a queue; a single segment cannot.
    assert_eq!((queued(1_000), queued(2_000)), (Some(0.0), Some(1.0)));
}

#[test]
fn a_round_trip_without_measurement_is_below_the_base_only_if_its_segment_was_sent_within() {
    let result = |after_ms: u64, rtt_ms: Option<u64>| {
        let mut round = Round::new(Ns2Startup::Done);
        round.measure(Duration::from_millis(100));
        round.restart(&ack(ms(1_000), 10_000, 5_000, None));
        let rtt = rtt_ms.map(Duration::from_millis);
        round.on_ack(&ack(ms(1_000 + after_ms), 20_000, 5_000, rtt)).is_some()
    };
    // An earlier acknowledgement is that of the original after a spurious timeout: of a
    // retransmitted segment, or of one sent before the round trip.
    assert_eq!((result(99, None), result(99, Some(150))), (false, false));
    // The base was measured over a longer queue.
    assert!(result(99, Some(99)) && result(100, None));
}

proptest! {
    #[test]
    fn the_window_stays_valid_for_any_sequence_of_events(
        events in prop::collection::vec(
            (0_u8..8, 0_u64..3_000_000_000, any::<u32>(), 0_u8..4, any::<bool>()), 1..300)
    ) {
        let mut vegas = Vegas::new(&params(50));
        let (mut now, mut una) = (Instant::ZERO, 1_u64);
        for (kind, nanos, size, transmits, flag) in events {
            now += Duration::from_nanos(nanos);
            let lost = Loss {
                now, window: size, in_flight: u64::from(size), una: 0,
                sent_at: Instant::ZERO + Duration::from_nanos(nanos),
                transmits, next: una, timed_out_before: false, mss: MSS,
            };
            match kind {
                0 => vegas.on_loss(&lost),
                1 => vegas.on_timeout(&lost),
                2 => vegas.on_recovered(now),
                3 => vegas.on_idle_restart(now, 2 * MSS),
                _ => {
                    una += u64::from(size % 5000);
                    let rtt = flag.then(|| Duration::from_nanos(nanos));
                    if let Some(rtt) = rtt {
                        vegas.on_rtt_sample(rtt);
                    }
                    vegas.on_delivered(&ack(now, una, u64::from(size), rtt));
                    vegas.on_ack(&ack(now, una, u64::from(size), rtt));
                }
            }
            let cwnd = vegas.window.cwnd_f64();
            prop_assert!(cwnd.is_finite() && cwnd >= f64::from(MSS), "{cwnd}");
            prop_assert!(vegas.growth.is_finite() && (0.0..=1.0).contains(&vegas.growth));
        }
    }
}
