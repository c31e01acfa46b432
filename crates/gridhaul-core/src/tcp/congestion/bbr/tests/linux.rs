//! BBR of Linux.

use super::*;

/// BBR of Linux in the gain cycle, with a bandwidth of 100 segments a second and a round trip of
/// 100 ms: ten segments.
pub(super) fn linux() -> Bbr {
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

/// A round of 100 ms at half of that bandwidth with `lost` lost segments.
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
    // Two intervals of four rounds lose 40 %: a rate of fifty segments a second is used, and the
    // pacing rate is 1 % less.
    let policed = 50.0 * f64::from(MSS);
    assert_eq!(bbr.long_term_bandwidth.rate(), Some(policed));
    assert_eq!(bbr.bandwidth.max(), 2.0 * policed);
    for phase in 0..8 {
        bbr.state = State::ProbeBw(ProbeBw::at_phase(phase));
        bbr.set_rate(bbr.pacing_gain());
        assert!((bbr.pacing_rate / policed - 0.99).abs() < 1e-9, "phase {phase}");
    }
    // Linux, bbr_undo_cwnd: the losses were spurious.
    bbr.on_undo(0, 0);
    assert_eq!(bbr.long_term_bandwidth.rate(), None);
}

#[test]
fn linux_resets_the_full_pipe_estimate_after_a_timeout_and_a_spurious_recovery() {
    let full = |event: fn(&mut Bbr)| {
        let mut bbr = linux();
        bbr.full_pipe = FullPipe::new();
        [100.0, 100.0, 100.0].into_iter().for_each(|bandwidth| bbr.full_pipe.on_round(bandwidth));
        event(&mut bbr);
        bbr.full_pipe.on_round(100.0);
        bbr.full_pipe.is_full()
    };
    // One round of growth and two without: the next round decides.
    assert!(full(|_| {}));
    // Linux, bbr_set_state (TCP_CA_Loss) and bbr_undo_cwnd: full_bw is 0, so the next round counts
    // as growth.
    assert!(!full(|bbr| bbr.on_timeout(&loss(Instant::ZERO, 0, 0))));
    assert!(!full(|bbr| bbr.on_undo(0, 0)));
    // A full pipe remains full.
    let mut bbr = linux();
    bbr.on_undo(0, 0);
    assert!(bbr.full_pipe.is_full());
}

#[test]
fn a_bandwidth_probe_lasts_a_round_trip_and_until_the_pipe_is_filled_or_losses_occur() {
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
    // Section 4.3.4.3: up, until the data in flight reaches the target of the gain, or losses
    // occur.
    assert_eq!(next(0, conditions(101, 1.25, false, 124.0)), 1.25);
    assert_eq!(next(0, conditions(101, 1.25, false, 125.0)), 0.75);
    assert_eq!(next(0, conditions(101, 1.25, true, 0.0)), 0.75);
    assert_eq!(next(0, conditions(100, 1.25, true, 125.0)), 1.25, "not yet a round trip");
    // Down, until the queue is empty, and no longer than a round trip.
    assert_eq!(next(1, conditions(50, 0.75, false, 101.0)), 0.75);
    assert_eq!(next(1, conditions(50, 0.75, false, 100.0)), 1.0);
    assert_eq!(next(1, conditions(101, 0.75, false, 101.0)), 1.0);
    // Cruise, for a round trip.
    assert_eq!(next(7, conditions(100, 1.0, true, 0.0)), 1.0);
    assert_eq!(next(7, conditions(101, 1.0, false, 101.0)), 1.25);
}

#[test]
fn linux_uses_windows_of_an_even_number_of_segments_and_two_more_while_probing() {
    // Linux, bbr_quantization_budget. Ten segments and three quanta of one: 13, rounded up to 14.
    let mut bbr = linux();
    assert_eq!(segments(bbr.inflight(1.0)), 14.0);
    bbr.state = State::ProbeBw(ProbeBw::at_phase(0));
    assert_eq!(segments(bbr.inflight(1.0)), 16.0);
}

#[test]
fn linux_rejects_rate_samples_over_less_than_the_minimum_rtt() {
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
