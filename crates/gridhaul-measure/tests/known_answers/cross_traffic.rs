//! Cross traffic on a link of 4 Mbit/s: the wait in its queue, the losses of a full queue, and
//! frames.

use gridhaul_measure::method::Summary;
use gridhaul_measure::place::{Carrier, Sites};
use gridhaul_measure::protocol::{
    CrossTraffic, DataSet, Direction, FrameIdentity, Protocol, SampledValueStream, Udp,
};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::{BitRate, Duration};

use crate::{ATTEMPTS, millis, on_links, on_network, plan, run, turn, undisturbed};

/// Bytes of a packet of the cross traffic: 2.4 ms of the link.
const PACKET: usize = 1_200;

fn link(queue: &str) -> Scenario {
    let text = format!(
        "title = \"one link\"\nduration = \"60 s\"\n[node]\na = {{}}\nb = {{}}\n[link.wan]\nfrom \
         = \"a\"\nto = \"b\"\n\
         both = {{ rate = \"4 Mbit/s\", delay = \"1 ms\", queue = \"{queue}\" }}\n\
         [flow.test]\nfrom = \"a\"\nto = \"b\"\nload = \"bulk\"\n"
    );
    Scenario::from_toml(&text, "one-link.toml").unwrap()
}

fn load(direction: Direction, megabits: u64) -> CrossTraffic {
    let rate = BitRate::from_bits_per_sec(megabits * 1_000_000 / 10);
    CrossTraffic { direction, rate, packet: PACKET }
}

/// Mean latency in milliseconds.
fn mean(summary: &Summary) -> f64 {
    summary.from_send.mean().map_or(f64::NAN, millis)
}

/// A queue with Poisson arrivals and a constant service time S: the mean wait is ρ S / (2 (1 - ρ))
/// (Kleinrock, Queueing Systems, volume 1, section 5.7). With a load of 3.2 of 4 Mbit/s it is 4.8
/// ms; the messages add 3 % to the load.
#[test]
fn messages_wait_in_the_queue_as_queueing_theory_says() {
    let Some(_turn) = turn(&[]) else { return };
    let measured_with =
        |direction: Direction, messages: u64, expected: &dyn Fn(&Summary) -> bool| {
            let loads = [load(direction, 32)];
            let measured = |sites: &Sites<'_>| {
                let work = || run(&plan(100.0, messages), &Udp, sites);
                CrossTraffic::run_during(&loads, sites, work).unwrap().0
            };
            let run = || on_network(&link("1000 packets"), "test", measured).unwrap();
            undisturbed(expected, run).0.summary
        };
    // 1 ms of delay, and 0.3 ms of the message itself.
    let waits = |summary: &Summary| (3.5..12.0).contains(&mean(summary));
    let forward = measured_with(Direction::Forward, 300, &waits);
    assert!(waits(&forward), "{} ms", mean(&forward));
    assert_eq!(forward.counts.lost, 0);
    let passes = |summary: &Summary| (1.3..2.5).contains(&mean(summary));
    let reverse = measured_with(Direction::Reverse, 100, &passes);
    assert!(passes(&reverse), "the other direction is not loaded: {} ms", mean(&reverse));
}

#[test]
fn a_full_queue_loses_messages_and_cross_traffic_alike() {
    let Some(_turn) = turn(&[]) else { return };
    let loads = [load(Direction::Forward, 80)];
    let measured = |sites: &Sites<'_>| {
        let work = || run(&plan(100.0, 200), &Udp, sites);
        CrossTraffic::run_during(&loads, sites, work).unwrap()
    };
    let mut found = Vec::new();
    // A busy machine sends less than the intended rate, or in clumps, of which more are lost than
    // of single packets.
    for _ in 0..ATTEMPTS {
        let ((run, counts), links) =
            on_links(&link("20 packets"), "test", Carrier::Packets, measured).unwrap();
        let missing = run.1.iter().filter(|message| message.received.is_none()).count() as u64;
        let missing = missing + counts[0].sent - counts[0].delivered;
        let dropped = links[0].1.dropped_queue;
        assert!(dropped > 0 && dropped <= missing, "{dropped} dropped, {missing} missing");
        let lost = run.0.summary.loss().share().unwrap();
        let passed = counts[0].delivered as f64 / counts[0].sent as f64;
        // Half of the load finds a free place in the queue.
        let is_expected = (7e6..9e6).contains(&counts[0].offered())
            && (0.42..0.58).contains(&passed)
            && (0.3..0.7).contains(&lost);
        if is_expected && dropped == missing {
            return;
        }
        found.push((counts[0], lost, dropped, missing));
    }
    panic!("{found:?}");
}

#[test]
fn frames_of_cross_traffic_pass_together_with_sampled_values() {
    let Some(_turn) = turn(&[]) else { return };
    let loads = [load(Direction::Forward, 10), load(Direction::Reverse, 20)];
    let identity = FrameIdentity { vlan: None, application: 0x4000 };
    let protocol: &dyn Protocol =
        &SampledValueStream { identity, id: "test".into(), data_set: DataSet::Raw };
    let measured = |sites: &Sites<'_>| {
        let work = || run(&plan(100.0, 100), protocol, sites);
        CrossTraffic::run_during(&loads, sites, work).unwrap()
    };
    let ((run, counts), _) =
        on_links(&link("1000 packets"), "test", Carrier::Frames, measured).unwrap();
    let found = run.0.summary.counts;
    assert_eq!((found.messages, found.lost, found.corrupt), (100, 0, 0), "{found:?}");
    assert_eq!(run.0.arrivals.unidentified, 0);
    for (counts, least) in counts.iter().zip([100, 200]) {
        assert!(counts.sent == counts.delivered && counts.sent > least, "{counts:?}");
        assert!(counts.time > Duration::from_secs(2), "{counts:?}");
    }
}
