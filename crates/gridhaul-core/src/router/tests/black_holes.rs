//! Links that swallow packets in one direction, or in both.

use super::world::{CENTRE, Delay, OTHER, PREFERRED, Path, TERMINAL, World};
use crate::router::{Event, Failure, LinkState};

/// Round-trip times in seconds.
const ROUND_TRIPS: [f64; 4] = [0.002, 0.02, 0.1, 0.5];

/// Deaths for each round-trip time.
const DEATHS: u64 = 50;

/// Times from the death of the preferred link to the switch of the terminal. `directions`: routers
/// whose packets are lost.
fn detection_times(round_trip: f64, directions: &[usize]) -> Vec<f64> {
    let times = (0..DEATHS).map(|seed| {
        let mut world = World::new(Delay::Constant(round_trip / 2.0), 0.05, seed);
        let death = 20.0 + 0.013 * seed as f64;
        for router in directions {
            world.kill(*router, PREFERRED, death, f64::MAX);
        }
        world.run(death + 10.0);
        let switches = world.switches(TERMINAL, death);
        assert_eq!(switches.len(), 1, "{switches:?}");
        assert_eq!(switches[0].1, OTHER);
        assert_eq!(world.switches(TERMINAL, 0.0).len(), 1, "no switch before");
        let others = world.switches(CENTRE, 0.0).len();
        assert_eq!(others, usize::from(directions.contains(&CENTRE)), "switches of the centre");
        switches[0].0 - death
    });
    let mut times: Vec<_> = times.collect();
    times.sort_by(f64::total_cmp);
    times
}

#[test]
fn a_link_that_swallows_packets_in_one_direction_is_left_within_2_s() {
    for round_trip in ROUND_TRIPS {
        let times = detection_times(round_trip, &[TERMINAL]);
        let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
        println!("round trip {round_trip} s: median {median:.2} s, longest {longest:.2} s");
        assert!(longest <= 2.0, "{longest} s at {round_trip} s");
        assert!(round_trip > 0.1 || median <= 0.6, "{median} s at {round_trip} s");
    }
}

#[test]
fn a_link_that_swallows_packets_in_both_directions_is_left_within_3_s() {
    for round_trip in ROUND_TRIPS {
        let times = detection_times(round_trip, &[TERMINAL, CENTRE]);
        assert!(times[times.len() - 1] <= 3.0, "{times:?} at {round_trip} s");
    }
}

#[test]
fn the_direction_to_a_receiver_that_cannot_answer_over_the_link_is_watched() {
    // DVB-T carries packets to the terminal only, GPRS in both directions with 0.7 s.
    let gprs = || Path::new(Delay::Constant(0.35), 0.02);
    let dvbt = Path::new(Delay::Constant(0.05), 0.0);
    let mut no_uplink = dvbt.clone();
    no_uplink.dead.push((0.0, f64::MAX));
    let mut world = World::with_paths([[no_uplink, gprs()], [dvbt, gprs()]], 1);
    world.run(300.0);
    assert_eq!(world.switches(CENTRE, 0.0), [], "packets to the terminal use DVB-T");
    let switches = world.switches(TERMINAL, 0.0);
    assert!(switches.len() == 1 && switches[0].1 == OTHER, "GPRS is the uplink: {switches:?}");
    world.kill(CENTRE, PREFERRED, 300.0, f64::MAX);
    world.run(310.0);
    let switches = world.switches(CENTRE, 300.0);
    assert!(switches.len() == 1 && switches[0].0 < 303.0, "{switches:?}");
}

#[test]
fn a_link_is_suspected_only_while_another_one_answers() {
    let mut world = World::new(Delay::Constant(0.05), 0.0, 1);
    world.kill(TERMINAL, PREFERRED, 20.0, 20.6);
    world.kill(TERMINAL, OTHER, 20.0, 20.6);
    world.run(40.0);
    assert_eq!(world.log, [], "an outage of both links, shorter than the detection time");
    assert_eq!(world.machines[TERMINAL].counters().suspicions, 0);
}

#[test]
fn a_suspected_link_that_answers_again_is_used_after_the_hold_time() {
    let mut world = World::new(Delay::Constant(0.005), 0.0, 1);
    world.kill(TERMINAL, PREFERRED, 20.0, 20.5);
    world.run(20.49);
    assert_eq!(world.machines[TERMINAL].state(PREFERRED), LinkState::Suspected);
    world.run(40.0);
    let switches = world.switches(TERMINAL, 0.0);
    assert_eq!(switches.iter().map(|switch| switch.1).collect::<Vec<_>>(), [OTHER, PREFERRED]);
    assert!((26.5..27.3).contains(&switches[1].0), "{switches:?}");
    let counters = world.machines[TERMINAL].counters();
    assert_eq!((counters.suspicions, counters.refuted_suspicions), (1, 1));
    let is_failure =
        |event: Event| matches!(event, Event::State { state: LinkState::Failed(_), .. });
    assert!(!world.log.iter().any(|entry| is_failure(entry.event)), "{:?}", world.log);
}

#[test]
fn both_routers_leave_a_link_at_once_whose_carrier_one_of_them_has_lost() {
    let mut world = World::new(Delay::Constant(0.1), 0.0, 1);
    world.carrier.push((20.05, CENTRE, PREFERRED, false));
    world.run(30.0);
    let at_centre = world.switches(CENTRE, 0.0);
    assert_eq!(at_centre, [(20.05, OTHER)]);
    let at_terminal = world.switches(TERMINAL, 0.0);
    assert!(at_terminal.len() == 1 && at_terminal[0].0 < 20.16, "{at_terminal:?}");
    let state = LinkState::Failed(Failure::PeerWithoutCarrier);
    assert_eq!(world.machines[TERMINAL].state(PREFERRED), state);
}

#[test]
fn links_stay_as_they_are_when_the_peer_is_not_running() {
    let mut world = World::new(Delay::Constant(0.1), 0.0, 1);
    for (router, link) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        world.kill(router, link, 20.0, f64::MAX);
    }
    world.run(100.0);
    assert_eq!(world.log, [], "nothing is known about links without reports");
}

#[test]
fn carrier_alone_decides_without_a_peer() {
    let mut world = World::new(Delay::Constant(0.1), 1.0, 1);
    world.carrier.extend([(10.0, TERMINAL, PREFERRED, false), (20.0, TERMINAL, PREFERRED, true)]);
    world.run(60.0);
    let switches = world.switches(TERMINAL, 0.0);
    assert_eq!(switches.iter().map(|switch| switch.1).collect::<Vec<_>>(), [OTHER, PREFERRED]);
    assert!((26.0..26.5).contains(&switches[1].0), "after hold_time: {switches:?}");
}

#[test]
fn the_failed_link_carries_packets_again_if_the_other_one_fails() {
    let mut world = World::new(Delay::Constant(0.1), 0.0, 1);
    world.kill(TERMINAL, PREFERRED, 20.0, 30.0);
    world.run(31.0);
    assert!(matches!(world.machines[TERMINAL].state(PREFERRED), LinkState::Holding(_)));
    world.carrier.push((31.5, TERMINAL, OTHER, false));
    world.run(32.0);
    let last = world.switches(TERMINAL, 31.0);
    assert_eq!(last, [(31.5, PREFERRED)], "a link that is held is better than one without carrier");
    let failed = Event::State { link: OTHER, state: LinkState::Failed(Failure::NoCarrier) };
    assert!(world.log.iter().any(|entry| entry.event == failed));
}
