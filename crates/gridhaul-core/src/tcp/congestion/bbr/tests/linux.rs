//! BBR as Linux has it.

use super::*;

/// As Linux has it, in the cycle, with a bandwidth of 100 segments a second and a round trip of 100 ms:
/// ten segments.
fn linux() -> Bbr {
    let stack = Stack {
        profile: Profile::Linux,
        congestion_control: Some(CongestionControlAlgorithm::Bbr),
        ..Stack::default()
    };
    let mut bbr = Bbr::new(&StackParams { header: 0, ..StackParams::resolve(&stack) });
    bbr.bandwidth.update(0, 100.0 * f64::from(MSS));
    bbr.min_rtt.update(Instant::ZERO, Some(Duration::from_millis(100)));
    [1.0; 4].into_iter().for_each(|bandwidth| bbr.full_pipe.on_round(bandwidth));
    (bbr.rtt_seen, bbr.pacing_rate) = (true, 1e5);
    bbr.state = State::ProbeBw(ProbeBw::at_phase(2));
    bbr
}

/// A round of 100 ms at half of that bandwidth, of which so many segments are lost.
fn policed_round(bbr: &mut Bbr, round: u64, lost: u64) {
    let (mss, now) = (u64::from(MSS), Instant::from_nanos(round * 100_000_000));
    let una = 5 * mss * round;
    let rate = RateSample {
        delivered: 5 * mss,
        prior_delivered: una.saturating_sub(5 * mss),
        interval: Duration::from_millis(100),
        app_limited: false,
    };
    let lost_total = 2 * mss * round;
    let (rate, lost) = (Some(rate), lost * mss);
    bbr.on_delivered(&Ack { rate, lost, lost_total, ..ack(now, 5 * MSS, 10 * mss, 5 * mss, una) });
}

#[test]
fn linux_sends_at_the_rate_of_a_policer_without_probing() {
    let mut bbr = linux();
    (1..=9).for_each(|round| policed_round(&mut bbr, round, 2));
    // Two stretches of four rounds lose 40 %: fifty segments a second are believed, and 1 % less is sent.
    let policed = 50.0 * f64::from(MSS);
    assert_eq!(bbr.long_term_bandwidth.rate(), Some(policed));
    assert_eq!(bbr.bandwidth.max(), 2.0 * policed);
    for phase in 0..8 {
        bbr.state = State::ProbeBw(ProbeBw::at_phase(phase));
        bbr.set_rate(bbr.pacing_gain());
        assert!((bbr.pacing_rate / policed - 0.99).abs() < 1e-9, "phase {phase}");
    }
    // Linux, bbr_undo_cwnd: the losses were none.
    bbr.on_undo(0, 0);
    assert_eq!(bbr.long_term_bandwidth.rate(), None);
}

#[test]
fn linux_forgets_what_filled_the_pipe_at_a_timeout_and_at_a_needless_recovery() {
    let full = |event: fn(&mut Bbr)| {
        let mut bbr = linux();
        bbr.full_pipe = FullPipe::new();
        [100.0, 100.0, 100.0].into_iter().for_each(|bandwidth| bbr.full_pipe.on_round(bandwidth));
        event(&mut bbr);
        bbr.full_pipe.on_round(100.0);
        bbr.full_pipe.is_full()
    };
    // One round of growth and two flat ones: the next one decides.
    assert!(full(|_| {}));
    // Linux, bbr_set_state (TCP_CA_Loss) and bbr_undo_cwnd: full_bw is 0, so that it counts as growth.
    assert!(!full(|bbr| bbr.on_timeout(&loss(Instant::ZERO, 0, 0))));
    assert!(!full(|bbr| bbr.on_undo(0, 0)));
    // But a pipe that is full stays so.
    let mut bbr = linux();
    bbr.on_undo(0, 0);
    assert!(bbr.full_pipe.is_full());
}

#[test]
fn a_probe_of_bandwidth_lasts_a_round_trip_and_until_the_pipe_holds_it_or_loses() {
    let ms = |ms: u64| Instant::from_nanos(ms * 1_000_000);
    let conditions = |at, gain, lost, prior_in_flight| probe_bw::CycleConditions {
        now: ms(at),
        gain,
        min_rtt: Duration::from_millis(100),
        lost,
        prior_in_flight,
        at_gain: 125.0,
        at_one: 100.0,
    };
    let next = |phase, conditions: probe_bw::CycleConditions| {
        ProbeBw::at_phase(phase).next(&conditions).gain()
    };
    // Section 4.3.4.3: up, until there is as much in flight as the gain asks for, or something is lost.
    assert_eq!(next(0, conditions(101, 1.25, false, 124.0)), 1.25);
    assert_eq!(next(0, conditions(101, 1.25, false, 125.0)), 0.75);
    assert_eq!(next(0, conditions(101, 1.25, true, 0.0)), 0.75);
    assert_eq!(next(0, conditions(100, 1.25, true, 125.0)), 1.25, "not yet a round trip");
    // Down, until the queue is empty, and no longer than a round trip.
    assert_eq!(next(1, conditions(50, 0.75, false, 101.0)), 0.75);
    assert_eq!(next(1, conditions(50, 0.75, false, 100.0)), 1.0);
    assert_eq!(next(1, conditions(101, 0.75, false, 101.0)), 1.0);
}

#[test]
fn linux_takes_whole_even_windows_and_two_segments_more_while_it_probes() {
    // Linux, bbr_quantization_budget. Ten segments, three quanta of one: 13, and so 14.
    let mut bbr = linux();
    assert_eq!(segments(bbr.inflight(1.0)), 14.0);
    bbr.state = State::ProbeBw(ProbeBw::at_phase(0));
    assert_eq!(segments(bbr.inflight(1.0)), 16.0);
}

#[test]
fn linux_takes_no_rate_over_less_than_the_least_round_trip() {
    let sampled = |interval_ms| {
        let rate = Some(RateSample {
            delivered: 1000 * u64::from(MSS),
            prior_delivered: 0,
            interval: Duration::from_millis(interval_ms),
            app_limited: false,
        });
        let now = Instant::from_secs_f64(1.0);
        linux().sample(&Ack { rate, ..ack(now, MSS, 0, 0, 1) }).is_some()
    };
    assert!(sampled(100));
    assert!(!sampled(99));
}
