//! Tests in units that can be checked by hand: a single flow over 3 Mbit/s and 100 ms, with an
//! unlimited buffer.

mod cwnd;
mod linux;
mod path;

use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Profile, Stack};
use gridhaul_scenario::units::Duration;
use proptest::prelude::*;

use self::path::Path;
use super::super::samples;
use super::*;
use crate::coverage_mark::covers;
use crate::tcp::event::RateSample;
use crate::tcp::rate::RateAccount;
use crate::tcp::retransmission_queue::OutstandingSegment;

const MSS: u32 = 1460;
/// 3 Mbit/s as payload bytes per second.
const RATE: f64 = 375_000.0;
const RTT: f64 = 0.1;
/// Bandwidth-delay product in segments: 25.7.
const PRODUCT: f64 = RATE * RTT / MSS as f64;

fn bbr() -> Bbr {
    let stack = samples::stack(CongestionControlAlgorithm::Bbr);
    Bbr::new(&StackParams { header: 0, ..StackParams::resolve(&stack) })
}

fn segments(bytes: f64) -> f64 {
    bytes / f64::from(MSS)
}

fn ack(now: Instant, delivered: u32, prior: u64, in_flight: u64, una: u64) -> Ack {
    Ack {
        now,
        delivered,
        slow_start_credit: delivered,
        avoidance_credit: delivered,
        prior_in_flight: prior,
        in_flight,
        una,
        next: una + in_flight,
        delivered_total: una,
        ..samples::ack(MSS)
    }
}

fn loss(now: Instant, in_flight: u64, next: u64) -> Loss {
    Loss {
        now,
        window: 0,
        in_flight,
        una: 0,
        sent_at: now,
        transmits: 1,
        next,
        timed_out_before: false,
        mss: MSS,
    }
}

#[test]
fn startup_is_followed_by_drain_and_the_gain_cycle() {
    covers!(bbr_drain, bbr_probe_bw);
    let mut path = Path::new();
    path.run_until(9.0);
    let names: Vec<&str> = path.log.iter().map(|entry| entry.1).collect();
    assert_eq!(names[..2], ["startup", "drain"]);
    // The pipe of 26 segments is full after two doublings of ten, at 0.3 s; three rounds without
    // growth follow, each longer than the last by the queue, which grows to two bandwidth-delay
    // products.
    let (startup, drain) = (path.log[1].0, path.log[2].0 - path.log[1].0);
    assert!((1.0..1.5).contains(&startup), "start-up lasts {startup} s");
    assert!(drain < 0.5, "drain lasts {drain} s");
    // From the first probe on: up, down, cruise and so on. A cycle takes about eight round trips.
    let first = path.log.iter().position(|entry| entry.1 == "up").expect("a bandwidth probe");
    for (index, entry) in path.log[first..].iter().enumerate() {
        assert_eq!(entry.1, ["up", "down", "cruise"][index % 3]);
    }
    let ups: Vec<f64> =
        path.log.iter().filter(|entry| entry.1 == "up").map(|entry| entry.0).collect();
    assert!(ups.len() >= 8, "{ups:?}");
    for pair in ups.windows(2) {
        assert!((0.7..1.2).contains(&(pair[1] - pair[0])), "{ups:?}");
    }
}

#[test]
fn the_model_matches_the_path() {
    let mut path = Path::new();
    path.run_until(9.0);
    let bandwidth = path.bbr.bandwidth.max();
    assert!((bandwidth / RATE - 1.0).abs() < 0.01, "{bandwidth} B/s");
    let rtt = path.bbr.min_rtt.get().expect("measured").as_secs_f64();
    assert!((rtt - RTT).abs() < 1e-6, "{rtt} s");
    // Two bandwidth-delay products and three quanta of two segments.
    let window = segments(path.bbr.window.cwnd_f64());
    assert!((window - (2.0 * PRODUCT + 6.0)).abs() < 1.0, "{window} segments");
    // Nearly all of the bandwidth is used.
    let used = path.account.delivered() as f64 / 9.0 / RATE;
    assert!(used > 0.95, "{used}");
}

#[test]
fn the_queue_is_two_bdp_in_startup_and_half_a_bdp_in_a_probe() {
    let mut path = Path::new();
    path.run_until(2.5);
    // The window is 2.885 bandwidth-delay products and three quanta of two segments; one product is
    // in transit.
    assert!((30.0..58.0).contains(&path.longest_queue), "{}", path.longest_queue);
    path.longest_queue = 0.0;
    path.run_until(9.9);
    // A probe ends with a quarter of the bandwidth-delay product and the three quanta in the queue.
    assert!((11.0..15.0).contains(&path.longest_queue), "{}", path.longest_queue);
}

#[test]
fn the_round_trip_is_probed_every_ten_seconds() {
    covers!(bbr_probe_rtt, bbr_probe_rtt_ends);
    let mut path = Path::new();
    path.run_until(45.0);
    let probes: Vec<(f64, f64)> = path
        .log
        .windows(2)
        .filter(|pair| pair[0].1 == "probe rtt")
        .map(|pair| (pair[0].0, pair[1].0 - pair[0].0))
        .collect();
    // The drain phases leave three quanta in the queue, so only the probes see the minimum RTT:
    // each ten seconds after the last one has ended.
    assert_eq!(probes.len(), 4, "{probes:?}");
    let mut last_end = 0.0;
    for (begins, lasts) in probes.iter().copied() {
        assert!((10.0..11.0).contains(&(begins - last_end)), "{probes:?}");
        // 200 ms, after a round to empty the pipe, and up to the next acknowledgement.
        assert!((0.2..0.4).contains(&lasts), "{probes:?}");
        last_end = begins + lasts;
    }
    assert!((path.bbr.min_rtt.get().expect("measured").as_secs_f64() - RTT).abs() < 1e-6);
    assert!((path.bbr.bandwidth.max() / RATE - 1.0).abs() < 0.01);
}

#[test]
fn probing_the_round_trip_keeps_four_segments_in_flight_and_restores_the_window() {
    let mut path = Path::new();
    path.run_until(9.0);
    let before = path.bbr.window.cwnd();
    let mut minimum = before;
    while path.now.as_secs_f64() < 12.0 {
        path.run_until(path.now.as_secs_f64() + 0.001);
        minimum = minimum.min(path.bbr.window.cwnd());
    }
    assert_eq!(minimum, 4 * MSS);
    assert!(path.bbr.window.cwnd() >= before);
}

#[test]
fn the_initial_rate_is_the_initial_window_in_a_millisecond_and_then_in_a_round_trip() {
    let mut bbr = bbr();
    let initial = f64::from(10 * MSS);
    assert!((bbr.pacing_rate / (2.885 * initial * 1000.0) - 1.0).abs() < 1e-3);
    let rtt = Duration::from_millis(100);
    let now = Instant::from_secs_f64(0.1);
    bbr.on_delivered(&Ack { rtt: Some(rtt), srtt: rtt, ..ack(now, 1, 1, 0, 1) });
    assert!((bbr.pacing_rate / (2.885 * initial * 10.0) - 1.0).abs() < 1e-3);
}

#[test]
fn the_first_round_of_recovery_conserves_packets() {
    let mut path = Path::new();
    path.run_until(5.0);
    let before = path.bbr.window.cwnd_f64();
    let in_flight = path.in_flight();
    path.bbr.on_loss(&loss(path.now, in_flight, 0));
    assert!(path.bbr.window.cwnd_f64() <= in_flight as f64);
    // Ten segments are lost and one arrives.
    let left = in_flight - 11 * u64::from(MSS);
    let lost = 10 * u64::from(MSS);
    let delivered = path.account.delivered();
    let first = Ack { lost, ..ack(path.now, MSS, in_flight, left, delivered) };
    path.bbr.on_delivered(&first);
    assert_eq!(path.bbr.window.cwnd_f64(), (left + u64::from(MSS)) as f64);
    path.bbr.on_delivered(&ack(path.now, MSS, left + u64::from(MSS), left, delivered));
    assert_eq!(path.bbr.window.cwnd_f64(), (left + u64::from(MSS)) as f64);
    path.bbr.on_recovered(path.now);
    assert_eq!(path.bbr.window.cwnd_f64(), before);
}

#[test]
fn a_timeout_restarts_from_one_segment_and_the_window_is_restored() {
    let mut path = Path::new();
    path.run_until(5.0);
    let before = path.bbr.window.cwnd_f64();
    let all = path.una + path.in_flight();
    path.bbr.on_timeout(&loss(path.now, path.in_flight(), all));
    assert_eq!(path.bbr.window.cwnd(), MSS);
    path.bbr.on_delivered(&ack(path.now, MSS, 0, 0, all - 1));
    assert!(path.bbr.window.cwnd_f64() < before);
    path.bbr.on_delivered(&ack(path.now, 1, 0, 0, all));
    assert_eq!(path.bbr.window.cwnd_f64(), before);
}

#[test]
fn application_limited_samples_do_not_lower_the_bandwidth() {
    let mut path = Path::new();
    path.run_until(5.0);
    let before = path.bbr.bandwidth.max();
    for round in 0..100_u64 {
        let prior = 10_000_000 + round * u64::from(MSS);
        let rate = RateSample {
            delivered: u64::from(MSS),
            prior_delivered: prior,
            interval: Duration::from_millis(100),
            app_limited: true,
        };
        path.now += Duration::from_millis(50);
        let una = prior + u64::from(MSS);
        path.bbr.on_delivered(&Ack { rate: Some(rate), ..ack(path.now, MSS, 0, 0, una) });
    }
    assert_eq!(path.bbr.bandwidth.max(), before);
}

#[test]
fn in_start_up_the_pacing_rate_does_not_decrease() {
    let mut path = Path::new();
    path.run_until(0.15);
    let before = path.bbr.pacing_rate;
    path.bbr.set_rate(0.01);
    assert_eq!(path.bbr.pacing_rate, before);
    path.run_until(5.0);
    path.bbr.set_rate(0.5);
    assert!((path.bbr.pacing_rate / (0.5 * RATE) - 1.0).abs() < 0.01);
}

#[test]
fn after_an_idle_period_the_rate_has_no_gain_and_the_round_trip_is_not_probed() {
    let mut path = Path::new();
    path.run_until(5.0);
    path.bbr.state = State::ProbeBw(ProbeBw::at_phase(0));
    path.bbr.set_rate(1.25);
    // Section 4.3.4.4: only the segment just sent is in flight.
    let later = Instant::from_secs_f64(60.0);
    path.bbr.on_sent(later, 0, u64::from(MSS));
    assert!((path.bbr.pacing_rate / RATE - 1.0).abs() < 0.01);
    // Section 4.3.5: the minimum RTT has expired, but the idle period has just emptied the queue.
    let una = path.una + u64::from(MSS);
    path.bbr.on_delivered(&ack(later, MSS, u64::from(MSS), 0, una));
    assert!(!path.bbr.probing_rtt());
    path.bbr.on_delivered(&ack(later, MSS, u64::from(MSS), 0, una + u64::from(MSS)));
    assert!(path.bbr.probing_rtt());
}

#[test]
fn a_small_window_does_not_replace_the_saved_window() {
    // `BBRSaveCwnd`: in recovery and while the round trip is probed, the larger window is kept.
    let mut recovery = Recovery::new();
    recovery.enter(50.0, false);
    recovery.enter_after_timeout(4.0, false, 1);
    assert_eq!(recovery.prior_cwnd(), 50.0);
    recovery.leave();
    recovery.enter(4.0, true);
    assert_eq!(recovery.prior_cwnd(), 50.0);
    recovery.leave();
    recovery.enter(20.0, false);
    assert_eq!(recovery.prior_cwnd(), 20.0);
}

#[test]
fn packet_conservation_lasts_one_round() {
    covers!(bbr_packet_conservation);
    // Section 4.2.3.4, `BBRModulateCwndForRecovery`: then the window grows again by the delivered
    // data.
    let mut path = Path::new();
    path.run_until(5.0);
    let in_flight = path.in_flight();
    path.bbr.on_loss(&loss(path.now, in_flight, 0));
    let left = in_flight - 11 * u64::from(MSS);
    path.bbr
        .on_delivered(&Ack { lost: 10 * u64::from(MSS), ..ack(path.now, MSS, 0, left, path.una) });
    let cwnd_in_conservation = path.bbr.window.cwnd_f64();
    // Acknowledgements of data sent before the loss do not end the round.
    path.run_until(path.now.as_secs_f64() + 0.02);
    assert!(path.bbr.recovery.conserves());
    path.run_until(path.now.as_secs_f64() + 0.3);
    assert!(!path.bbr.recovery.conserves());
    assert!(path.bbr.window.cwnd_f64() > cwnd_in_conservation + f64::from(MSS));
}

proptest! {
    #[test]
    fn the_window_stays_valid_for_any_sequence_of_events(
        events in prop::collection::vec(
            (0_u8..10, 0_u64..5_000_000_000, any::<u32>(), any::<u32>(), any::<bool>()), 1..300)
    ) {
        let mut bbr = bbr();
        let (mut now, mut una) = (Instant::ZERO, 1_u64);
        for (kind, nanos, size, other, flag) in events {
            now += Duration::from_nanos(nanos);
            let in_flight = u64::from(other);
            match kind {
                0 => bbr.on_loss(&loss(now, in_flight, una + in_flight)),
                1 => bbr.on_timeout(&loss(now, in_flight, una + in_flight)),
                2 => bbr.on_recovered(now),
                3 => bbr.on_sent(now, una, in_flight),
                _ => {
                    una += u64::from(size);
                    let rtt = flag.then(|| Duration::from_nanos(nanos));
                    let rate = RateSample {
                        delivered: u64::from(size),
                        prior_delivered: una.saturating_sub(in_flight),
                        interval: Duration::from_nanos(nanos % 1000),
                        app_limited: !flag,
                    };
                    bbr.on_delivered(&Ack {
                        rtt,
                        srtt: rtt.unwrap_or_default(),
                        rate: Some(rate),
                        lost: if flag { in_flight } else { 0 },
                        ..ack(now, size, in_flight + u64::from(size), in_flight, una)
                    });
                    let minimum = if bbr.recovery.conserves() { 1.0 } else { 4.0 };
                    prop_assert!(segments(bbr.window.cwnd_f64()) >= minimum);
                }
            }
            prop_assert!(bbr.window.cwnd_f64().is_finite() && bbr.window.cwnd() >= MSS);
            let rate = bbr.pacing_rate().expect("BBR paces");
            prop_assert!(rate.is_finite() && rate > 0.0, "{rate}");
        }
    }
}
