//! Tests in units that can be checked by hand: the curve in segments and seconds.

use gridhaul_scenario::scenario::CongestionControlAlgorithm;
use proptest::prelude::*;

use super::super::samples;
use super::*;
use crate::coverage_mark::covers;
use crate::tcp::rules::AlgorithmRules;

const MSS: u32 = 1000;

fn cubic(cwnd_segments: f64) -> Cubic {
    by_rules(AlgorithmRules::Rfc, cwnd_segments)
}

fn by_rules(rules: AlgorithmRules, cwnd_segments: f64) -> Cubic {
    let stack = samples::stack(CongestionControlAlgorithm::Cubic);
    let mut params = StackParams { mss: MSS, ..StackParams::resolve(&stack) };
    params.policy.algorithms = rules;
    let mut cubic = Cubic::new(&params);
    cubic.window.set_cwnd(cwnd_segments * f64::from(MSS));
    cubic
}

/// CUBIC of Linux, with a measured minimum RTT.
fn linux(cwnd_segments: f64, min_rtt: Duration) -> Cubic {
    Cubic { min_rtt: Some(min_rtt), ..by_rules(AlgorithmRules::Linux, cwnd_segments) }
}

fn segments(cubic: &Cubic) -> f64 {
    cubic.window.cwnd_f64() / f64::from(MSS)
}

fn ack(now: Instant, srtt: Duration) -> Ack {
    Ack { now, rtt: Some(srtt), srtt, ..samples::ack(MSS) }
}

fn lose(cubic: &mut Cubic, now: Instant, f: fn(&mut Cubic, &Loss)) {
    let loss = Loss {
        now,
        window: cubic.window.cwnd(),
        in_flight: u64::from(cubic.window.cwnd()),
        una: 0,
        sent_at: now,
        transmits: 1,
        next: 0,
        timed_out_before: false,
        mss: MSS,
    };
    f(cubic, &loss);
}

/// Acknowledges a window in each round trip, evenly spaced, from `from` for `seconds`; returns the
/// window in segments at the end.
fn run(cubic: &mut Cubic, from: Instant, seconds: f64, rtt: Duration) -> f64 {
    let (end, mut now) = (from + Duration::from_secs_f64(seconds), from);
    while now < end {
        cubic.on_ack(&ack(now, rtt));
        now += rtt.mul_f64(1.0 / segments(cubic).max(1.0));
    }
    segments(cubic)
}

#[test]
fn the_curve_after_a_loss_at_100_segments() {
    covers!(cubic_curve_region);
    // W(t) = 0.4 (t - 4.217)^3 + 100: concave to 100 segments at K, then convex. Each line: time,
    // window, formula. The window deviates by up to 0.3 segments: its target is one round trip
    // ahead, in steps of (target - cwnd) / cwnd.
    let rtt = Duration::from_millis(200);
    let table: Vec<String> = (0..=8)
        .map(|seconds| {
            let mut cubic = cubic(100.0);
            lose(&mut cubic, Instant::ZERO, Cubic::on_loss);
            let seconds = f64::from(seconds);
            let window = run(&mut cubic, Instant::ZERO, seconds, rtt);
            let formula = 0.4 * (seconds - 4.217_163).powi(3) + 100.0;
            assert!((window - formula).abs() < 0.35, "{seconds} s: {window}, not {formula}");
            format!("{seconds} s {window:.1} ({formula:.1})")
        })
        .collect();
    let expected = [
        "0 s 70.0 (70.0)",
        "1 s 86.5 (86.7)",
        "2 s 95.5 (95.6)",
        "3 s 99.2 (99.3)",
        "4 s 100.0 (100.0)",
        "5 s 100.2 (100.2)",
        "6 s 102.4 (102.3)",
        "7 s 108.7 (108.6)",
        "8 s 121.9 (121.7)",
    ];
    assert_eq!(table, expected);
}

#[test]
fn the_curve_is_the_formula() {
    let epoch = Epoch::begin(Instant::ZERO, 70e3, 100e3, 1e3);
    assert!((epoch.k - 4.217).abs() < 1e-3);
    for (seconds, window) in [(0.0, 70.0), (4.217_163, 100.0), (8.434_326, 130.0)] {
        let elapsed = Duration::from_secs_f64(seconds);
        assert!((epoch.window_at(elapsed, 1e3) / 1e3 - window).abs() < 1e-3);
    }
}

#[test]
fn with_a_short_round_trip_the_window_grows_like_reno() {
    covers!(cubic_reno_friendly_region);
    // At 10 ms and 10 segments the Reno-friendly window is above the cubic curve: after the loss of
    // 3 segments it grows by α = 0.529 in each round trip, after 0.05 s to 7 + 5 * 0.529.
    let mut cubic = cubic(10.0);
    lose(&mut cubic, Instant::ZERO, Cubic::on_loss);
    let window = run(&mut cubic, Instant::ZERO, 0.05, Duration::from_millis(10));
    assert!((window - (7.0 + 5.0 * 0.529)).abs() < 0.15, "{window}");
    // Above the window before the loss α is 1: ten segments in ten round trips.
    let from = Instant::from_secs_f64(0.05);
    let at_prior = run(&mut cubic, from, 0.05, Duration::from_millis(10));
    let from = Instant::from_secs_f64(0.1);
    let later = run(&mut cubic, from, 0.1, Duration::from_millis(10));
    assert!((later - at_prior - 10.0).abs() < 0.3, "{at_prior} -> {later}");
}

/// RFC 9438, section 4.3: "segments_acked", which are two with delayed acknowledgements.
#[test]
fn the_friendly_window_does_not_depend_on_the_number_of_acknowledgements() {
    let rtt = Duration::from_millis(10);
    let grown = |segments: u32| {
        let mut cubic = cubic(10.0);
        lose(&mut cubic, Instant::ZERO, Cubic::on_loss);
        for number in (segments..=40).step_by(segments as usize) {
            let now = Instant::ZERO + rtt.mul_f64(f64::from(number) / 8.0);
            cubic.on_ack(&Ack { delivered: segments * MSS, ..ack(now, rtt) });
        }
        cubic.window.cwnd_f64() / f64::from(MSS)
    };
    assert!((grown(1) - grown(2)).abs() < 0.05, "{} {}", grown(1), grown(2));
    assert!(grown(2) > 9.3, "{}", grown(2));
}

#[test]
fn a_second_loss_below_the_plateau_lowers_the_plateau() {
    covers!(cubic_fast_convergence);
    let mut cubic = cubic(100.0);
    lose(&mut cubic, Instant::ZERO, Cubic::on_loss);
    assert_eq!(cubic.w_max, 100e3);
    lose(&mut cubic, Instant::ZERO, Cubic::on_loss);
    // A loss at 70, below 100: the plateau is 70 * 0.85, not 70; the window 49.
    assert!((cubic.w_max - 59.5e3).abs() < 1e-6 && cubic.window.cwnd() == 49_000);
    assert!((cubic.cwnd_prior - 70e3).abs() < 1e-6);
}

#[test]
fn after_a_timeout_slow_start_and_then_the_convex_part() {
    let mut cubic = cubic(100.0);
    lose(&mut cubic, Instant::ZERO, Cubic::on_timeout);
    assert_eq!((cubic.window.cwnd(), cubic.window.ssthresh()), (1_000, 70_000));
    for _ in 0..69 {
        cubic.on_ack(&ack(Instant::ZERO, Duration::from_millis(100)));
    }
    assert_eq!(cubic.window.cwnd(), 70_000);
    cubic.on_ack(&ack(Instant::ZERO, Duration::from_millis(100)));
    let epoch = cubic.epoch.expect("congestion avoidance has begun");
    assert_eq!((epoch.k, epoch.w_max), (0.0, 70e3));
}

#[test]
fn slow_start_stops_at_its_threshold() {
    let mut cubic = cubic(30.0);
    lose(&mut cubic, Instant::ZERO, Cubic::on_timeout);
    // The hole is filled, and one acknowledgement covers all segments.
    let many = Ack { slow_start_credit: 30 * MSS, ..ack(Instant::ZERO, Duration::from_millis(1)) };
    cubic.on_ack(&many);
    assert_eq!((cubic.window.cwnd(), cubic.window.ssthresh()), (21_000, 21_000));
}

#[test]
fn the_target_is_at_most_one_and_a_half_windows() {
    let mut cubic = cubic(10.0);
    lose(&mut cubic, Instant::ZERO, Cubic::on_loss);
    let rtt = Duration::from_millis(100);
    cubic.on_ack(&ack(Instant::ZERO, rtt));
    // An hour without acknowledgements and without application limit: at most half a segment.
    let before = segments(&cubic);
    cubic.on_ack(&ack(Instant::from_secs_f64(3600.0), rtt));
    assert!((segments(&cubic) - before - 0.5).abs() < 1e-9);
}

#[test]
fn application_limited_periods_do_not_count() {
    let rtt = Duration::from_millis(200);
    let mut busy = cubic(100.0);
    lose(&mut busy, Instant::ZERO, Cubic::on_loss);
    run(&mut busy, Instant::ZERO, 2.0, rtt);
    let mut paused = busy.clone();
    for tenth in 20..120 {
        let limited = Ack {
            window_limited: false,
            ..ack(Instant::from_secs_f64(f64::from(tenth) / 10.0), rtt)
        };
        paused.on_ack(&limited);
    }
    assert_eq!(segments(&paused), segments(&busy));
    let busy = run(&mut busy, Instant::from_secs_f64(2.0), 2.0, rtt);
    let paused = run(&mut paused, Instant::from_secs_f64(12.0), 2.0, rtt);
    assert!((busy - paused).abs() < 0.05, "{busy} {paused}");
}

#[test]
fn the_curve_of_linux_after_a_loss_at_100_segments() {
    // As the table above, but the target is a minimum RTT of 200 ms ahead of the formula, in whole
    // segments: 0.4 (t + 0.2 - 4.217)^3 is truncated, so that the window stays on the plateau for
    // half of the time.
    let rtt = Duration::from_millis(200);
    let table: Vec<String> = (0..=8)
        .map(|seconds| {
            let mut cubic = linux(100.0, rtt);
            lose(&mut cubic, Instant::ZERO, Cubic::on_loss);
            let seconds = f64::from(seconds);
            let window = run(&mut cubic, Instant::ZERO, seconds, rtt);
            let target = 100.0 + (0.4 * (seconds + 0.2 - 4.217_163).powi(3)).trunc();
            format!("{seconds} s {window:.1} ({target:.0})")
        })
        .collect();
    let expected = [
        "0 s 70.0 (75)",
        "1 s 87.0 (90)",
        "2 s 96.0 (97)",
        "3 s 100.0 (100)",
        "4 s 100.0 (100)",
        "5 s 100.0 (100)",
        "6 s 103.0 (103)",
        "7 s 109.0 (110)",
        "8 s 122.0 (125)",
    ];
    assert_eq!(table, expected);
}

#[test]
fn the_friendly_window_of_linux_keeps_its_slope() {
    // At 10 ms and 10 segments growth equals that of the RFC up to the window before the loss;
    // beyond it the RFC grows by one segment in each round trip, Linux by 0.53.
    let rtt = Duration::from_millis(10);
    let mut cubic = linux(10.0, rtt);
    lose(&mut cubic, Instant::ZERO, Cubic::on_loss);
    let first = run(&mut cubic, Instant::ZERO, 0.1, rtt);
    let later = run(&mut cubic, Instant::from_secs_f64(0.1), 0.2, rtt);
    assert!((first - (7.0 + 10.0 * 0.529)).abs() < 1.0, "{first}");
    assert!((later - first - 20.0 * 0.529).abs() < 1.5, "{first} -> {later}");
}

#[test]
fn without_a_loss_linux_grows_by_a_twentieth() {
    // HyStart has ended slow start at 40 segments: it grows by two in each round trip of 40, far
    // more than the curve in its first second.
    let rtt = Duration::from_millis(100);
    let mut cubic = linux(40.0, rtt);
    cubic.window.set_ssthresh(40e3);
    for _ in 0..40 {
        cubic.on_ack(&ack(Instant::ZERO, rtt));
    }
    assert!((segments(&cubic) - 42.0).abs() < 0.01, "{}", segments(&cubic));
}

#[test]
fn linux_counts_whole_segments() {
    // A loss at 10.9 segments: W_max is 10, not 10.9; ssthresh is seven segments.
    let mut cubic = linux(10.9, Duration::from_millis(100));
    cubic.on_congestion_event();
    assert_eq!(cubic.w_max, 10e3);
    // A window four segments below its target grows by one for each quarter of the window.
    let epoch = Epoch { start: Instant::ZERO, k: 0.0, w_max: 24e3, w_est: 0.0 };
    assert_eq!(epoch.acks_per_segment(Duration::ZERO, 20.9e3, 1e3, false), 5.0);
    assert_eq!(epoch.acks_per_segment(Duration::ZERO, 24e3, 1e3, false), 2_400.0, "on its target");
    assert_eq!(
        epoch.acks_per_segment(Duration::ZERO, 2e3, 1e3, false),
        2.0,
        "at most an increase by half"
    );
    // The Reno-friendly window is two segments larger: one for each eight of 16.
    let epoch = Epoch { w_max: 16e3, w_est: 18.9e3, ..epoch };
    assert_eq!(epoch.acks_per_segment(Duration::ZERO, 16e3, 1e3, false), 8.0);
}

#[test]
fn a_second_timeout_keeps_the_threshold() {
    // RFC 5681, section 3.1: held constant for a segment that has timed out before.
    let mut cubic = cubic(100.0);
    lose(&mut cubic, Instant::ZERO, Cubic::on_timeout);
    cubic.on_timeout(&Loss { timed_out_before: true, ..samples::loss(MSS, 1) });
    assert_eq!((cubic.window.cwnd(), cubic.window.ssthresh()), (1_000, 70_000));
}

#[test]
fn the_friendly_region_does_not_shrink_a_window() {
    // At the start of the stage W_est is cwnd; an undone reduction has enlarged the window since.
    let mut cubic = cubic(50.0);
    cubic.window.set_ssthresh(10e3);
    cubic.cwnd_prior = 100e3;
    cubic.epoch = Some(Epoch { start: Instant::ZERO, k: 10.0, w_max: 100e3, w_est: 40e3 });
    // W_cubic(0) = 100 - 0.4 * 1000 segments, far below W_est.
    cubic.on_ack(&ack(Instant::ZERO, Duration::from_millis(10)));
    assert_eq!(segments(&cubic), 50.0);
}

#[test]
fn a_timeout_resets_the_minimum_rtt_and_hystart() {
    let mut cubic = linux(100.0, Duration::from_millis(100));
    cubic.hystart = Some(HyStart::default());
    // Slow start has ended by the increase of the round trip: 100 ms, then 200.
    let mut now = Instant::from_secs_f64(1.0);
    let mut grow = |cubic: &mut Cubic| {
        cubic.window.set_ssthresh(1e9);
        cubic.window.set_cwnd(20e3);
        for una in 2..30 {
            now += Duration::from_millis(3);
            let rtt = Duration::from_millis(200);
            cubic.on_delivered(&Ack { una, next: 1_000_000, ..ack(now, rtt) });
        }
        !cubic.window.in_slow_start()
    };
    assert!(grow(&mut cubic), "200 ms exceeds 100 by more than an eighth");
    assert!(!grow(&mut cubic), "only once");
    lose(&mut cubic, Instant::ZERO, Cubic::on_timeout);
    assert!(!grow(&mut cubic), "200 ms is the least after the timeout");
    cubic.min_rtt = Some(Duration::from_millis(100));
    lose(&mut cubic, Instant::ZERO, Cubic::on_timeout);
    cubic.min_rtt = Some(Duration::from_millis(100));
    assert!(grow(&mut cubic), "again after a timeout");
}

#[test]
fn round_trips_of_syn_and_shortly_after_a_loss_are_ignored() {
    // Linux, cubictcp_acked: not within a second of the beginning of a stage.
    let mut cubic = linux(10.0, Duration::from_millis(100));
    cubic.min_rtt = None;
    let short = Duration::from_millis(1);
    let at = |seconds| Instant::from_secs_f64(seconds);
    cubic.on_delivered(&Ack { una: 1, ..ack(at(5.0), short) });
    assert_eq!(cubic.min_rtt, None, "the round trip of SYN");
    cubic.epoch = Some(Epoch::begin(at(5.0), 10e3, 20e3, 1e3));
    cubic.on_delivered(&Ack { una: 2, ..ack(at(5.9), short) });
    assert_eq!(cubic.min_rtt, None, "0.9 s after a loss");
    cubic.on_delivered(&Ack { una: 2, ..ack(at(6.1), short) });
    assert_eq!(cubic.min_rtt, Some(short));
}

#[test]
fn a_slow_start_or_an_idle_time_ends_the_stage() {
    let rtt = Duration::from_millis(100);
    let mut cubic = cubic(100.0);
    lose(&mut cubic, Instant::ZERO, Cubic::on_loss);
    cubic.on_ack(&ack(Instant::ZERO, rtt));
    let mut idle = cubic.clone();
    assert!(cubic.epoch.is_some());
    // A spurious reduction: the window is below the threshold again.
    cubic.on_undo(100 * MSS, 200 * MSS);
    cubic.on_ack(&ack(Instant::ZERO, rtt));
    assert!(cubic.epoch.is_none());
    // RFC 5681, section 4.1: the window restarts, and so does the curve after slow start.
    idle.on_idle_restart(Instant::ZERO, 10 * MSS);
    assert!(idle.epoch.is_none());
}

#[test]
fn linux_counts_the_slow_start_remainder_of_an_acknowledgement_in_congestion_avoidance() {
    let grown = |mut cubic: Cubic| {
        cubic.window.set_ssthresh(10e3);
        let many =
            Ack { slow_start_credit: 9 * MSS, ..ack(Instant::ZERO, Duration::from_millis(1)) };
        cubic.on_ack(&many);
        (segments(&cubic), cubic.credit)
    };
    // One segment to the threshold; eight of nine remain. Without a plateau, the window of ten
    // segments grows by one for at most twenty of them.
    assert_eq!(grown(linux(9.0, Duration::from_millis(1))), (10.0, 8.0));
    assert_eq!(grown(cubic(9.0)), (10.0, 0.0));
    // Without a remainder no stage of congestion avoidance begins.
    let mut below = linux(9.0, Duration::from_millis(1));
    below.on_ack(&ack(Instant::ZERO, Duration::from_millis(1)));
    assert!(segments(&below) == 10.0 && below.epoch.is_none());
}

#[test]
fn linux_has_a_target_one_minimum_rtt_ahead_and_starts_without_credit() {
    let rtt = Duration::from_millis(200);
    let after = |srtt| {
        let mut cubic = linux(100.0, rtt);
        cubic.credit = 50.0;
        lose(&mut cubic, Instant::ZERO, Cubic::on_loss);
        assert_eq!(cubic.credit, 0.0, "credit of an earlier window");
        (0..140).for_each(|_| cubic.on_ack(&ack(Instant::ZERO, srtt)));
        segments(&cubic)
    };
    assert_eq!(after(rtt), after(rtt * 5));
}

proptest! {
    #[test]
    fn the_window_stays_valid_for_any_sequence_of_events(
        events in prop::collection::vec(
            (0_u8..9, 0_u64..10_000_000_000, 0_u32..2_000_000, any::<bool>()), 1..300)
    ) {
        let mut cubic = cubic(10.0);
        let mut now = Instant::ZERO;
        for (kind, nanos, size, flag) in events {
            now += Duration::from_nanos(nanos);
            match kind {
                0 => lose(&mut cubic, now, Cubic::on_loss),
                1 => lose(&mut cubic, now, Cubic::on_timeout),
                2 => cubic.on_recovered(now),
                3 => cubic.on_idle_restart(now, 10 * MSS),
                _ => cubic.on_ack(&Ack {
                    slow_start_credit: size,
                    avoidance_credit: size,
                    window_limited: flag,
                    ..ack(now, Duration::from_nanos(nanos))
                }),
            }
            let cwnd = cubic.window.cwnd_f64();
            prop_assert!(cwnd.is_finite() && cwnd >= f64::from(MSS), "{cwnd}");
            prop_assert!(cubic.w_max.is_finite() && cubic.cwnd_prior.is_finite());
        }
    }
}

/// Linux, `cubictcp_cwnd_event`: the time without outstanding data does not count.
#[test]
fn a_transmission_after_an_idle_time_moves_the_stage_of_linux() {
    let at = Instant::from_secs_f64;
    let mut cubic = linux(100.0, Duration::from_millis(100));
    cubic.epoch = Some(Epoch::begin(at(1.0), 10e3, 20e3, 1e3));
    let start = |cubic: &Cubic| cubic.epoch.expect("a stage").start;
    cubic.on_sent(at(2.0), 0, 50_000);
    cubic.on_sent(at(4.0), 0, 1_001);
    assert_eq!(start(&cubic), at(1.0), "more than the segment just sent is outstanding");
    cubic.on_sent(at(9.0), 0, 1_000);
    assert_eq!(start(&cubic), at(6.0), "5 s idle");
}
