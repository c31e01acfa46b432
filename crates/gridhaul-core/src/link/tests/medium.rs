//! Shared media: times that can be verified by hand, and contention compared with theory.

use gridhaul_scenario::scenario::{ContentionStage, Directions, Scenario};
use proptest::prelude::*;

use super::super::{DropReason, LinkSet, TimedLinks, TransitOutcome};
use super::*;

type Medium = TimedLinks<u32>;

/// Links of 8 Mbit/s, a byte in a microsecond, on one medium.
fn links(nodes: &str, medium: &str, links: &str) -> Medium {
    let text = format!(
        "title = 'street'\nduration = '1 s'\n[node]\n{nodes}\n[medium.street]\n{medium}\n{links}\n\
         [flow.up]\nfrom = 'meter'\nto = 'head'\ntransport = 'datagram'\n\
         load.periodic = {{ size = '100 B', every = '1 s' }}\n"
    );
    let scenario = Scenario::from_toml(&text, "street.toml").expect("a scenario");
    let directions = Directions::new(&scenario);
    TimedLinks::new(LinkSet::of_scenario(&scenario, &directions, 0, |_, _, _| ()).unwrap())
}

/// A meter and a head: direction 0 leads to the head, direction 1 back.
fn pair(medium: &str) -> Medium {
    let link = "[link.line]\nfrom = 'meter'\nto = 'head'\nmedium = 'street'\n\
                both = { rate = '8 Mbit/s', delay = '5 us' }";
    links("meter = {}\nhead = {}", medium, link)
}

/// Meters that each have a direction to the head, numbered from 0.
fn meters(count: u32, medium: &str) -> Medium {
    let link = "[link.line]\nfrom = 'meter'\nto = 'head'\nmedium = 'street'\n\
                forward = { rate = '8 Mbit/s', queue = 'unlimited' }";
    links(&format!("meter = {{ count = {count} }}\nhead = {{}}"), medium, link)
}

/// All departing packets, with their directions.
fn departures(links: &mut Medium) -> Vec<(u32, PacketTransit<u32>)> {
    let mut left = Vec::new();
    while links.next_deadline() != Instant::NEVER {
        let now = links.next_deadline();
        left.extend(std::iter::from_fn(|| links.poll(now)));
    }
    left
}

/// Direction, start and end of the transmission, and departure, in µs.
fn times(links: &mut Medium) -> Vec<[u64; 4]> {
    let micros = |at: Instant| at.as_nanos() / 1_000;
    let row = |(link, transit): (u32, PacketTransit<u32>)| {
        let PacketTransit { started, sent, left, .. } = transit;
        [u64::from(link), micros(started), micros(sent), micros(left)]
    };
    departures(links).into_iter().map(row).collect()
}

/// One slot for all, so that nothing is random.
const CERTAIN: &str = "csma_ca = { slot = '10 us', interframe = '100 us', preamble = '50 us', \
                       priority_resolution = '20 us', response = '30 us', windows = [1], \
                       deferral = [0], attempts = 3 }";

#[test]
fn a_transmission_occupies_the_medium_for_both_directions() {
    let mut links = pair(CERTAIN);
    links.offer(at(0), 0, 100, 1).unwrap();
    links.offer(at(200), 1, 200, 2).unwrap();
    assert_eq!(links.links.entry_mut(1).direction.queue_packets(at(200)), 1);
    let mut left = times(&mut links);
    links.offer(at(1_000), 0, 100, 3).unwrap();
    left.extend(times(&mut links));
    // The first packet begins after 20 µs of priority resolution and takes 50 + 100 µs. The medium
    // is occupied until 170 + 30 + 100 = 300 µs; the second packet begins at 320 µs.
    assert_eq!(left, [[0, 20, 170, 175], [1, 320, 570, 575], [0, 1_020, 1_170, 1_175]]);
    let collisions: u32 = links.links.iter().map(|entry| entry.account.collisions).sum();
    assert_eq!(collisions, 0);
}

#[test]
fn packets_that_begin_in_the_same_slot_collide_until_they_are_lost() {
    let mut links = pair(CERTAIN);
    links.offer(at(0), 0, 100, 1).unwrap();
    links.offer(at(0), 1, 200, 2).unwrap();
    // The longer packet ends at 20 + 50 + 200 = 270 µs, the next contention begins at 400 µs, so
    // that the third and last attempt begins at 20 + 2 · 400 µs.
    let left = departures(&mut links);
    let lost = TransitOutcome::Lost(DropReason::Collision);
    assert!(left.iter().all(|(_, transit)| transit.outcome == lost));
    let ends: Vec<_> = left.iter().map(|(link, transit)| (*link, transit.sent)).collect();
    assert_eq!(ends, [(0, at(970)), (1, at(1_070))]);
    let accounts = links.links.iter().map(|entry| entry.account);
    let counts: Vec<_> =
        accounts.map(|account| (account.collisions, account.dropped_loss)).collect();
    assert_eq!(counts, [(3, 1), (3, 1)]);
}

#[test]
fn a_packet_joins_a_contention_with_the_next_slot() {
    // All times are multiples of a slot of 10 µs, so that every transmission starts at one.
    let contention = CERTAIN.replace("windows = [1]", "windows = [4]");
    for offered in [0, 5, 20, 23, 41, 50] {
        let mut links = pair(&contention);
        links.offer(at(0), 0, 100, 1).unwrap();
        links.offer(at(offered), 1, 100, 2).unwrap();
        let left = times(&mut links);
        assert!(left.iter().all(|[_, started, ..]| started % 10 == 0), "{offered}: {left:?}");
        let second = left.iter().find(|[link, ..]| *link == 1).expect("it is transmitted");
        assert!(second[1] >= offered.max(20), "{offered}: {left:?}");
    }
}

#[test]
fn directions_of_one_node_do_not_collide() {
    let lines = "[link.one]\nfrom = 'meter'\nto = 'head'\nmedium = 'street'\n\
                 reverse.rate = '8 Mbit/s'\nforward.rate = '8 Mbit/s'\n\
                 [link.two]\nfrom = 'lamp'\nto = 'head'\nmedium = 'street'\n\
                 reverse.rate = '8 Mbit/s'";
    let mut links = links("meter = {}\nlamp = {}\nhead = {}", CERTAIN, lines);
    // Directions 1 and 2 both begin at the head: its packets leave in the order of arrival.
    for (link, packet) in [(2, 1), (1, 2), (2, 3)] {
        links.offer(at(0), link, 100, packet).unwrap();
    }
    assert_eq!(times(&mut links), [[2, 20, 170, 170], [1, 320, 470, 470], [2, 620, 770, 770]]);
}

#[test]
fn time_slots_alternate_between_the_directions() {
    let mut links = pair("tdma = { slot = '100 us', guard = '20 us' }");
    for packet in 0..3 {
        links.offer(at(0), 0, 60, packet).unwrap();
        links.offer(at(0), 1, 60, packet).unwrap();
    }
    // Slots of 80 µs every 200 µs, from 0 and from 100 µs on: the second packet has 20 B in the
    // first slot and 40 B in the next one, where the third begins with 40 B.
    let forward = [[0, 0, 60, 65], [0, 60, 240, 245], [0, 240, 420, 425]];
    let reverse = forward.map(|[_, start, end, left]| {
        // The first slot of this direction begins at 100 µs.
        [1, start + 100, end + 100, left + 100]
    });
    let left = times(&mut links);
    let on_direction =
        |link| Vec::from_iter(left.iter().copied().filter(move |times| times[0] == link));
    assert_eq!((on_direction(0), on_direction(1)), (forward.to_vec(), reverse.to_vec()));
}

/// Share of the transmissions of saturated stations that collide.
fn simulated_collision_share(stations: u32, stages: &[ContentionStage], packets: u32) -> f64 {
    let list = |value_of: fn(&ContentionStage) -> u32| {
        stages.iter().map(|stage| value_of(stage).to_string()).collect::<Vec<_>>().join(", ")
    };
    let (windows, deferral) = (list(|stage| stage.window), list(|stage| stage.deferral));
    let medium = format!("csma_ca = {{ windows = [{windows}], deferral = [{deferral}] }}");
    let mut links = meters(stations, &medium);
    for packet in 0..packets {
        for station in 0..stations {
            links.offer(at(0), station, 100, packet).unwrap();
        }
    }
    // Until the first station has no more packets.
    let mut left = 0;
    while links.links.iter().all(|entry| entry.account.arrived < u64::from(packets)) {
        let now = links.next_deadline();
        left += std::iter::from_fn(|| links.poll(now)).count();
    }
    let collided: u32 = links.links.iter().map(|entry| entry.account.collisions).sum();
    f64::from(collided) / (f64::from(collided) + left as f64)
}

fn stages(list: &[(u32, u32)]) -> Vec<ContentionStage> {
    list.iter().map(|&(window, deferral)| ContentionStage { window, deferral }).collect()
}

/// The contention of a station: stage, remaining slots and deferral counter.
type StationState = (usize, u32, u32);

/// The states after the entry of a stage, each with the same probability.
fn entered(stage: usize, stages: &[ContentionStage]) -> Vec<StationState> {
    let stage = stage.min(stages.len() - 1);
    let ContentionStage { window, deferral } = stages[stage];
    (0..window).map(|slots| (stage, slots, deferral)).collect()
}

/// Share of the transmissions of two saturated stations that collide, from the stationary
/// distribution of the Markov chain of both stations, without any approximation.
fn exact_collision_share(stages: &[ContentionStage]) -> f64 {
    use std::collections::BTreeMap;
    let after = |own: StationState, other: StationState| -> Vec<StationState> {
        let (stage, slots, deferral) = own;
        match slots.cmp(&other.1) {
            std::cmp::Ordering::Less => entered(0, stages),
            std::cmp::Ordering::Equal => entered(stage + 1, stages),
            std::cmp::Ordering::Greater if deferral == 0 => entered(stage + 1, stages),
            std::cmp::Ordering::Greater => vec![(stage, slots - other.1 - 1, deferral - 1)],
        }
    };
    let first = entered(0, stages);
    let mut states: BTreeMap<[StationState; 2], f64> = BTreeMap::new();
    for (&one, &two) in first.iter().flat_map(|one| first.iter().map(move |two| (one, two))) {
        states.insert([one, two], 1.0 / (first.len() * first.len()) as f64);
    }
    for _ in 0..200 {
        let mut next = BTreeMap::new();
        for ([one, two], probability) in &states {
            let (ones, twos) = (after(*one, *two), after(*two, *one));
            let share = probability / (ones.len() * twos.len()) as f64;
            for one in &ones {
                for two in &twos {
                    *next.entry([*one, *two]).or_insert(0.0) += share;
                }
            }
        }
        states = next;
    }
    let equal = states.iter().filter(|([one, two], _)| one.1 == two.1);
    let collided: f64 = equal.map(|(_, probability)| probability).sum();
    2.0 * collided / (1.0 + collided)
}

#[test]
fn two_saturated_stations_collide_as_their_markov_chain_says() {
    for list in [&[(4, 0)][..], &[(2, 0), (4, 1)], &[(3, 2), (5, 0), (8, 1)]] {
        let stages = stages(list);
        let (exact, simulated) =
            (exact_collision_share(&stages), simulated_collision_share(2, &stages, 20_000));
        // About 40,000 transmissions: a standard deviation below 0.25 %.
        assert!((simulated - exact).abs() < 0.01, "{list:?}: {simulated:.4}, exactly {exact:.4}");
    }
    // By hand, with one stage of four slots and no deferral: both redraw after every transmission,
    // so they collide with probability 1/4, and 2 · 1/4 of 5/4 transmissions collide.
    assert!((exact_collision_share(&stages(&[(4, 0)])) - 0.4).abs() < 1e-9);
}

/// Probability that a transmission collides, by the fixed point of Vlachou et al. 2014,
/// "Performance analysis of MAC for power-line communications": the other stations begin in each
/// slot with the same probability, independently (the decoupling assumption of Bianchi 2000).
fn fixed_point(stations: u32, stages: &[ContentionStage]) -> f64 {
    let others = f64::from(stations - 1);
    // Bisection of a decreasing function of the collision probability.
    let (mut low, mut high) = (0.0_f64, 1.0);
    for _ in 0..60 {
        let busy = (low + high) / 2.0;
        let implied = 1.0 - (1.0 - transmission_probability(busy, stages)).powf(others);
        if implied > busy { low = busy } else { high = busy }
    }
    low
}

/// Probability that a station begins in a slot, if each slot is occupied by others with
/// probability `busy`.
fn transmission_probability(busy: f64, stages: &[ContentionStage]) -> f64 {
    let (mut visits, mut attempts, mut slots) = (1.0, 0.0, 0.0);
    for (index, stage) in stages.iter().enumerate() {
        let (reached, spent) = stage_outcome(busy, *stage);
        let leaves_upwards = (1.0 - reached) + reached * busy;
        if index + 1 == stages.len() {
            visits /= 1.0 - leaves_upwards;
        }
        attempts += visits * reached;
        slots += visits * spent;
        visits *= leaves_upwards;
    }
    attempts / slots
}

/// Probability that a station transmits in this stage instead of deferring to the next one, and
/// mean number of slots in the stage.
fn stage_outcome(busy: f64, stage: ContentionStage) -> (f64, f64) {
    let window = stage.window as usize;
    // alive[k]: probability that the station is in the stage and k slots were occupied.
    let mut alive = vec![0.0; stage.deferral.min(stage.window) as usize + 1];
    alive[0] = 1.0;
    let (mut reached, mut spent) = (0.0, 0.0);
    for drawn in 0..window {
        let in_stage: f64 = alive.iter().sum();
        // One of `window` numbers ends the countdown in this slot.
        reached += in_stage / window as f64;
        spent += in_stage * (window - drawn) as f64 / window as f64;
        let before = alive.clone();
        for (occupied, alive) in alive.iter_mut().enumerate() {
            let from_idle = before[occupied] * (1.0 - busy);
            let from_busy = occupied.checked_sub(1).map_or(0.0, |less| before[less] * busy);
            *alive = from_idle + from_busy;
        }
    }
    (reached, spent)
}

#[test]
fn saturated_stations_collide_as_the_fixed_point_says() {
    // Without deferral the fixed point is that of Bianchi 2000. The deferral counters of IEEE 1901
    // couple the stations, so that the assumption of independence is worse for a few of them.
    let bianchi = stages(&[(16, u32::MAX), (32, u32::MAX), (64, u32::MAX), (128, u32::MAX)]);
    let ieee_1901 = stages(&[(8, 0), (16, 1), (32, 3), (64, 15)]);
    for (name, stages, stations, tolerance) in [
        ("Bianchi", &bianchi, 3, 0.05),
        ("Bianchi", &bianchi, 10, 0.05),
        ("IEEE 1901", &ieee_1901, 5, 0.1),
        ("IEEE 1901", &ieee_1901, 10, 0.05),
        ("IEEE 1901", &ieee_1901, 20, 0.05),
    ] {
        let expected = fixed_point(stations, stages);
        let simulated = simulated_collision_share(stations, stages, 30_000 / stations);
        let deviation = simulated / expected - 1.0;
        let values = format!("{simulated:.4}, fixed point {expected:.4}");
        assert!(deviation.abs() < tolerance, "{name}, {stations} stations: {values}");
    }
}

proptest! {
    /// Packets of all directions leave exactly once, one transmission at a time.
    #[test]
    fn one_transmission_at_a_time_and_no_packet_is_lost_without_collisions(
        steps in prop::collection::vec((0_u32..4, 0_u64..2_000, 1_u32..1_500), 1..100),
    ) {
        let lines = "[link.one]\nfrom = 'meter'\nto = 'head'\nmedium = 'street'\n\
                     both = { rate = '8 Mbit/s', queue = '3 packets' }\n\
                     [link.two]\nfrom = 'lamp'\nto = 'head'\nmedium = 'street'\n\
                     both = { rate = '4 Mbit/s', delay = '1 ms' }";
        let mut links = links("meter = {}\nlamp = {}\nhead = {}", "csma_ca = {}", lines);
        let (mut now, mut accepted) = (0, 0);
        let mut left = Vec::new();
        for (packet, (link, gap, bytes)) in (0..).zip(steps) {
            now += gap;
            accepted += usize::from(links.offer(at(now), link, bytes, packet).is_ok());
            left.extend(std::iter::from_fn(|| links.poll(at(now))));
            let inside: usize = links.links.iter().map(|entry| entry.direction.inside()).sum();
            prop_assert_eq!(accepted, left.len() + inside);
        }
        left.extend(departures(&mut links));
        prop_assert_eq!(accepted, left.len());
        let mut sent: Vec<_> = left.iter().map(|(_, transit)| *transit).collect();
        sent.sort_by_key(|transit| transit.started);
        prop_assert!(sent.windows(2).all(|pair| pair[0].sent < pair[1].started));
        prop_assert!(sent.iter().all(|transit| transit.outcome == TransitOutcome::Arrived));
    }
}
