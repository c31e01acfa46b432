//! The controller of a connection passes each event to its algorithm, and each question.

use gridhaul_scenario::scenario::{LossClassifier, Profile, Stack};

use super::samples::{ack, loss, stack};
use super::*;
use crate::link::LossCause;
use crate::tcp::event::{LinkEvent, RateSample};

const MSS: u32 = 1_000;
const ROUND_TRIP: Duration = Duration::from_millis(50);

/// A time after the acknowledgements of [`controllers`].
const LATER: Instant = Instant::from_nanos(9_000_000_000);

/// A controller of each algorithm, after some round trips on a path of 50 ms.
fn controllers() -> Vec<(CongestionControlAlgorithm, Controller)> {
    let prepare = |&algorithm: &CongestionControlAlgorithm| {
        // A classifier that learns from the reports of links.
        let medx_classifier = Some(LossClassifier::ExplicitNotification);
        let stack = Stack { medx_classifier, ..stack(algorithm) };
        let params = StackParams { mss: MSS, ..StackParams::resolve(&stack) };
        let mut controller = Controller::new(&params);
        for round in 1..9_u32 {
            let now = Instant::ZERO + ROUND_TRIP * u64::from(round);
            let (una, sent) = (u64::from(round * MSS), u64::from(10 * MSS));
            let rate = RateSample {
                delivered: sent,
                prior_delivered: una - u64::from(MSS),
                interval: ROUND_TRIP,
                app_limited: false,
            };
            controller.on_sent(now, una + sent, sent);
            controller.on_rtt_sample(ROUND_TRIP);
            let event = Ack {
                now,
                una,
                rtt: Some(ROUND_TRIP),
                srtt: ROUND_TRIP,
                next: una + sent,
                prior_in_flight: sent,
                in_flight: sent - u64::from(MSS),
                delivered_total: una,
                rate: Some(rate),
                ..ack(MSS)
            };
            controller.on_acknowledged(&event, true);
        }
        (algorithm, controller)
    };
    CongestionControlAlgorithm::ALL.iter().map(prepare).collect()
}

/// An event that a controller receives has the effect that the algorithm itself shows, and at least
/// one algorithm uses it.
fn assert_forwarded(
    event: &str,
    through_controller: impl Fn(&mut Controller),
    directly: impl Fn(&mut Controller),
) {
    let mut users = 0;
    for (algorithm, before) in controllers() {
        let (mut one, mut other) = (before.clone(), before.clone());
        through_controller(&mut one);
        directly(&mut other);
        let after = format!("{one:?}");
        assert_eq!(after, format!("{other:?}"), "{event} of {algorithm:?}");
        users += usize::from(after != format!("{before:?}"));
    }
    assert!(users > 0, "no algorithm uses {event}");
}

#[test]
fn each_event_reaches_the_algorithm() {
    macro_rules! forwarded {
        ($($event:ident($($argument:expr),*);)*) => {
            $(assert_forwarded(
                stringify!($event),
                |controller| controller.$event($($argument),*),
                |controller| dispatch!(controller, inner => inner.$event($($argument),*)),
            );)*
        };
    }
    let delay = DelayReport { now: LATER, one_way_us: 30_000, sent_at: Some(Instant::ZERO) };
    let event = LinkEvent::Lost(LossCause::Error);
    let link = LinkReport { first: 1, len: MSS, sent_at: Instant::ZERO, event };
    forwarded! {
        on_undo(90_000, 50_000);
        on_rtt_sample(Duration::from_millis(37));
        on_delay_report(&delay);
        on_link_report(&link);
        on_loss(&loss(MSS, 20));
        on_recovered(LATER);
        on_timeout(&loss(MSS, 20));
        on_idle_restart(LATER, 2 * MSS);
        on_cwnd_unused(3 * MSS);
        on_sent(LATER, 80_000, 0);
    }
}

#[test]
fn inflation_and_deflation_change_the_window_of_each_algorithm() {
    for (algorithm, mut controller) in controllers() {
        let before = controller.cwnd();
        controller.inflate(3 * MSS);
        assert_eq!(controller.cwnd(), before + 3 * MSS, "{algorithm:?}");
        controller.deflate(MSS);
        assert_eq!(controller.cwnd(), before + 2 * MSS, "{algorithm:?}");
    }
}

#[test]
fn only_bbr_paces_and_has_states_of_its_own() {
    for (algorithm, controller) in controllers() {
        let is_bbr = algorithm == CongestionControlAlgorithm::Bbr;
        // The path has delivered 10 segments in a round trip of 50 ms.
        let rate = controller.pacing_rate();
        assert_eq!(rate.is_some_and(|rate| rate > 200_000.0), is_bbr, "{algorithm:?}: {rate:?}");
        assert_eq!(rate.is_some(), is_bbr);
        assert_eq!(controller.burst(), 1, "{algorithm:?}");
        let states = ["startup", "drain", "probe_bw", "probe_rtt"];
        assert_eq!(controller.state().is_some_and(|state| states.contains(&state)), is_bbr);
        assert_eq!(controller.state().is_some(), is_bbr, "{:?}", controller.state());
    }
}

/// Segmentation offload: `bbr_tso_segs_goal` of Linux sends two segments at least.
#[test]
fn bbr_of_linux_sends_bursts() {
    let profile = Profile::Linux;
    let stack = Stack { profile, ..stack(CongestionControlAlgorithm::Bbr) };
    let controller = Controller::new(&StackParams::resolve(&stack));
    assert!(controller.burst() >= 2, "{}", controller.burst());
}

#[test]
fn algorithms_that_estimate_the_network_count_their_updates() {
    use CongestionControlAlgorithm::{Medx, Vegas, Veno, Westwood};
    for (algorithm, mut controller) in controllers() {
        controller.on_loss(&loss(MSS, 20));
        let counters = controller.estimator_counters();
        let estimates = matches!(algorithm, Medx | Vegas | Veno | Westwood);
        assert_eq!(counters.is_some(), estimates, "{algorithm:?}: {counters:?}");
        // Vegas compares once a round trip, of which no one has ended here.
        let evaluations = counters.map(|counters| counters.evaluations);
        let expected = if algorithm == Vegas { Some(0) } else { estimates.then_some(1) };
        assert_eq!(evaluations, expected, "{algorithm:?}");
    }
}

#[test]
fn only_vegas_takes_an_old_segment_for_lost() {
    for (algorithm, controller) in controllers() {
        let is_vegas = algorithm == CongestionControlAlgorithm::Vegas;
        assert_eq!(controller.expired(LATER, Instant::ZERO), is_vegas, "{algorithm:?}");
        assert!(!controller.expired(LATER, LATER), "{algorithm:?}: just sent");
    }
}
