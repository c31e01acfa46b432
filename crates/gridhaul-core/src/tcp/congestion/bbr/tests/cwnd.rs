//! The send quantum, the window and the model by example.

use super::linux::linux;
use super::*;

/// Section 4.2.2: one segment below 1.2 Mbit/s, two below 24 Mbit/s, then a millisecond, up to 64
/// kB.
#[test]
fn the_send_quantum_grows_with_the_pacing_rate() {
    let quantum = |pacing_rate| Bbr { pacing_rate, ..bbr() }.send_quantum();
    assert_eq!([149_999.0, 150_000.0, 2_999_999.0].map(quantum), [1_460.0, 2_920.0, 2_920.0]);
    assert_eq!([3e6, 10e6, 100e6].map(quantum), [3_000.0, 10_000.0, 65_536.0]);
}

/// Linux, `bbr_min_tso_segs` and `bbr_tso_segs_goal`: whole segments of 1/1024 of a second.
#[test]
fn the_send_quantum_of_linux_is_a_number_of_segments() {
    let segments = |pacing_rate| Bbr { pacing_rate, ..linux() }.quantum_segments();
    assert_eq!([149_999.0, 150_000.0, 15e6, 1e9].map(segments), [1.0, 2.0, 10.0, 44.0]);
}

#[test]
fn data_delivered_in_a_time_is_counted_in_whole_segments() {
    // 10,000 bytes are 6.8 segments.
    let bytes = whole_segments(100_000.0, Duration::from_millis(100), 1_460.0);
    assert_eq!(bytes, 6.0 * 1_460.0);
}

/// Linux, `bbr_packets_in_net_at_edt`: ten segments arrive until the next departure in 100 ms,
/// which adds one while the rate probes upwards.
#[test]
fn linux_predicts_the_data_in_flight_at_the_next_departure() {
    let now = Instant::from_secs_f64(1.0);
    let ack = Ack { paced_until: now + Duration::from_millis(100), ..ack(now, MSS, 0, 0, 1) };
    let predicted = |bbr: &Bbr, in_flight: u64, gain| {
        segments(bbr.in_flight_at_next_departure(&ack, in_flight * u64::from(MSS), gain))
    };
    assert_eq!(predicted(&linux(), 20, 1.0), 10.0);
    assert_eq!(predicted(&linux(), 20, 1.25), 11.0);
    assert_eq!(predicted(&linux(), 5, 1.0), 0.0);
    assert_eq!(predicted(&bbr(), 20, 1.25), 20.0);
}

/// Section 4.2.1: 2.885 initial windows in the first round trip; in Linux 1 % less.
#[test]
fn the_first_round_trip_sets_the_pacing_rate() {
    let rtt = Duration::from_millis(100);
    let rate = |mut bbr: Bbr| {
        let initial = bbr.initial_window / 0.1;
        let now = Instant::from_secs_f64(0.1);
        bbr.on_delivered(&Ack { rtt: Some(rtt), srtt: rtt, ..ack(now, 1, 1, 0, 1) });
        bbr.pacing_rate / initial
    };
    assert!((rate(bbr()) - 2.885).abs() < 1e-3);
    let stack =
        Stack { profile: Profile::Linux, ..samples::stack(CongestionControlAlgorithm::Bbr) };
    assert!((rate(Bbr::new(&StackParams::resolve(&stack))) - 2.885 * 0.99).abs() < 1e-3);
}

/// Section 4.2.3.4: in start-up the window grows until it is at the target and the initial window
/// is delivered.
#[test]
fn without_a_round_trip_the_window_grows_until_the_initial_window_is_delivered() {
    let mss = u64::from(MSS);
    let grown = |delivered_segments: u64| {
        let mut bbr = bbr();
        let now = Instant::from_secs_f64(0.1);
        bbr.set_window(&ack(now, MSS, 0, 0, delivered_segments * mss));
        segments(bbr.window.cwnd_f64())
    };
    assert_eq!([9, 10, 11].map(grown), [11.0, 10.0, 10.0]);
}

/// Ten segments in a round trip, twice, and three quanta of one: 23, made even; with an excess of
/// five segments of aggregated acknowledgements 28.
#[test]
fn linux_adds_the_excess_of_aggregated_acknowledgements_to_the_window() {
    let mut bbr = linux();
    assert_eq!(segments(bbr.target_cwnd()), 24.0);
    bbr.aggregation.on_ack(Instant::ZERO, f64::from(5 * MSS), false, 1e9, |_| 0.0);
    assert_eq!(segments(bbr.target_cwnd()), 28.0);
    bbr.full_pipe = FullPipe::new();
    assert_eq!(segments(bbr.target_cwnd()), 24.0, "not before the pipe is full");
}

/// Delivers `segments` in a round trip of 100 ms, the `number`th of the connection.
fn round(bbr: &mut Bbr, number: u64, segments: u64, app_limited: bool) {
    let una = number * 100 * u64::from(MSS);
    let rate = RateSample {
        delivered: segments * u64::from(MSS),
        prior_delivered: una - 100 * u64::from(MSS),
        interval: Duration::from_millis(100),
        app_limited,
    };
    let now = Instant::from_secs_f64(0.1 * number as f64);
    bbr.update_bandwidth(&Ack { rate: Some(rate), ..ack(now, MSS, 0, 0, una) });
}

/// Section 4.1.1.2: the maximum of ten rounds.
#[test]
fn a_bandwidth_is_forgotten_after_ten_rounds() {
    let mut bbr = bbr();
    round(&mut bbr, 1, 20, false);
    (2..=10).for_each(|number| round(&mut bbr, number, 10, false));
    assert_eq!(segments(bbr.bandwidth.max()), 200.0);
    round(&mut bbr, 11, 10, false);
    assert_eq!(segments(bbr.bandwidth.max()), 100.0);
}

/// Section 4.1.1.5.
#[test]
fn an_application_limited_sample_can_raise_the_bandwidth() {
    let mut bbr = bbr();
    round(&mut bbr, 1, 10, false);
    round(&mut bbr, 2, 20, true);
    assert_eq!(segments(bbr.bandwidth.max()), 200.0);
}

#[test]
fn the_bandwidth_is_probed_in_the_gain_cycle_only() {
    assert!(linux().is_probing() && !bbr().is_probing());
}

/// Section 4.3.4.3: the phase of the higher rate ends with a loss.
#[test]
fn a_loss_ends_the_probe_for_more_bandwidth() {
    let gain_after = |lost| {
        let mut bbr = linux();
        bbr.state = State::ProbeBw(ProbeBw::at_phase(0));
        bbr.check_cycle(&Ack { lost, ..ack(Instant::from_secs_f64(0.2), MSS, 0, 0, 1) });
        bbr.pacing_gain()
    };
    assert_eq!([gain_after(0), gain_after(u64::from(MSS))], [1.25, 0.75]);
}
