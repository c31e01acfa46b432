//! Properties of each congestion control algorithm and profile, for any losses, delays and
//! duplicates of the path.

use gridhaul_conformance::backend::{RunOptions, SimBackend};
use gridhaul_conformance::case::{Case, Endpoint};
use gridhaul_conformance::observation::{Observation, Value};
use gridhaul_scenario::scenario::CongestionControlAlgorithm;
use proptest::prelude::*;

const PROFILES: [&str; 3] = ["rfc", "linux", "ns2"];
const SEGMENTS: u64 = 60;
const MSS: u64 = 1000;

/// A path and its impairments of the first packets; all later packets arrive.
#[derive(Debug, Clone)]
struct Schedule {
    rate_kbit: u32,
    delay_ms: u32,
    queue: u32,
    window: u64,
    impairments: String,
}

fn impairment_line() -> impl Strategy<Value = String> {
    let direction = prop_oneof![3 => Just("client any"), 1 => Just("server any")];
    let impairment = prop_oneof![
        4 => Just("lost".to_owned()),
        1 => Just("duplicated".to_owned()),
        2 => (1..300_u32).prop_map(|ms| format!("delayed {ms} ms")),
    ];
    (direction, 1..90_u32, 0..4_u32, impairment).prop_map(|(direction, first, more, impairment)| {
        format!("{direction} {first}-{} {impairment}", first + more)
    })
}

fn schedule() -> impl Strategy<Value = Schedule> {
    let path = (50..5000_u32, 1..300_u32, 3..100_u32, 1..64_u64);
    (path, prop::collection::vec(impairment_line(), 0..10)).prop_map(|(path, impairments)| {
        let (rate_kbit, delay_ms, queue, window) = path;
        Schedule { rate_kbit, delay_ms, queue, window, impairments: impairments.join("\n") }
    })
}

fn run(
    profile: &str,
    congestion_control: CongestionControlAlgorithm,
    schedule: &Schedule,
) -> Observation {
    let Schedule { rate_kbit, delay_ms, queue, window, impairments } = schedule;
    let text = format!(
        r#"
title = "any"
source = "any"
requirement = "any"
backends = ["sim"]
not_kernel = "many random runs"
until = "20000 s"
input = """
0 write {SEGMENTS} segments
0 close
0 server close
"""
impairments = """
{impairments}
"""
[stack]
profile = "{profile}"
congestion_control = "{congestion_control}"
mss = "{MSS} B"
receive_window = "{window} segments"
[path]
forward = [{{ rate = "{rate_kbit} kbit/s", delay = "{delay_ms} ms", queue = "{queue} packets" }}]
[expect.totals]
client_state = "TimeWait"
"#,
        congestion_control = congestion_control.name()
    );
    let case = Case::parse("any", &text).unwrap_or_else(|error| panic!("{error}"));
    let limits = RunOptions { stop_when_closed: true, ..RunOptions::default() };
    SimBackend.run_within(&case, limits).unwrap_or_else(|error| panic!("{error}"))
}

fn number(observation: &Observation, name: &str) -> u64 {
    match observation.totals.get(name) {
        Some(Value::Number(number)) => *number as u64,
        other => panic!("{name}: {other:?}"),
    }
}

fn is_over(observation: &Observation, end: &str) -> bool {
    matches!(observation.totals.get(end), Some(Value::Word(word)) if word == "Closed" || word ==
        "TimeWait")
}

fn profile_and_algorithm() -> impl Strategy<Value = (&'static str, CongestionControlAlgorithm)> {
    (prop::sample::select(&PROFILES[..]), prop::sample::select(CongestionControlAlgorithm::ALL))
}

/// Late acknowledgements after a timeout sack segments that ns-2 retransmits regardless: they are
/// sacked and lost at once.
#[test]
fn segments_that_are_sacked_and_lost_at_once_are_not_counted_twice() {
    let impairments = "server any 7-10 delayed 160 ms\nserver any 25-26 delayed 226 ms\n\
        server any 29-30 delayed 174 ms";
    let schedule = Schedule {
        rate_kbit: 208,
        delay_ms: 1,
        queue: 7,
        window: 14,
        impairments: impairments.to_owned(),
    };
    let observation = run("ns2", CongestionControlAlgorithm::Sack, &schedule);
    assert_eq!(observation.violations, Vec::<String>::new());
    assert_eq!(number(&observation, "bytes_from_client"), SEGMENTS * MSS);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None,
        ..ProptestConfig::default() })]

    #[test]
    fn the_stream_arrives_and_both_ends_close(
        (profile, congestion_control) in profile_and_algorithm(),
        schedule in schedule(),
    ) {
        let observation = run(profile, congestion_control, &schedule);
        prop_assert_eq!(&observation.violations, &Vec::<String>::new());
        prop_assert_eq!(number(&observation, "bytes_from_client"), SEGMENTS * MSS);
        prop_assert!(is_over(&observation, "client_state"), "{:?}", observation.totals);
        prop_assert!(is_over(&observation, "server_state"), "{:?}", observation.totals);
    }

    #[test]
    fn acknowledgements_never_decrease_and_windows_are_respected(
        (profile, congestion_control) in profile_and_algorithm(),
        schedule in schedule(),
    ) {
        let observation = run(profile, congestion_control, &schedule);
        let (mut acked, mut edge) = (0, 1);
        for packet in &observation.packets {
            match (packet.captured_at, packet.from) {
                (Endpoint::Server, Endpoint::Server) => {
                    let ack = packet.ack.unwrap_or(acked);
                    prop_assert!(ack >= acked, "acknowledges {ack} after {acked}");
                    acked = ack;
                }
                (Endpoint::Client, Endpoint::Server) => {
                    let right = packet.ack.unwrap_or(0) + u64::from(packet.window);
                    edge = edge.max(right);
                }
                (Endpoint::Client, Endpoint::Client) => {
                    let end = packet.seq + packet.len;
                    // FIN uses no buffer space; a zero-window probe is one byte into a closed
                    // window.
                    prop_assert!(end <= edge + 1, "sends up to {end} beyond {edge}");
                }
                (Endpoint::Server, Endpoint::Client) => {}
            }
        }
    }

    #[test]
    fn nothing_is_retransmitted_without_loss(
        (profile, congestion_control) in profile_and_algorithm(),
        rate_kbit in 50..5000_u32,
        delay_ms in 1..80_u32,
    ) {
        // The queue holds all packets, and no packet is delayed beyond a timeout.
        let rate_kbit = rate_kbit.max(3000);
        let schedule =
            Schedule { rate_kbit, delay_ms, queue: 1000, window: 64, impairments: String::new() };
        let observation = run(profile, congestion_control, &schedule);
        prop_assert_eq!(number(&observation, "client_retransmissions"), 0);
        prop_assert_eq!(number(&observation, "client_timeouts"), 0);
    }

    #[test]
    fn retransmissions_are_bounded_by_losses_and_timeouts(
        (profile, congestion_control) in profile_and_algorithm(),
        schedule in schedule(),
    ) {
        let observation = run(profile, congestion_control, &schedule);
        let at = |end: Endpoint| {
            let from_client = observation.packets.iter().filter(|packet| packet.from ==
                Endpoint::Client);
            from_client.filter(|packet| packet.captured_at == end && packet.len > 0).count() as u64
        };
        let (sent, arrived) = (at(Endpoint::Client), at(Endpoint::Server));
        let lost = sent.saturating_sub(arrived);
        // Each timeout, and each go-back-N of Tahoe, may retransmit a window that has arrived.
        let starts = number(&observation, "client_timeouts") + number(&observation,
            "client_fast_retransmits");
        // RFC 8985, section 7.3: one tail loss probe for each flight.
        let probes = if profile == "linux" { SEGMENTS.div_ceil(schedule.window) } else { 0 };
        let allowed = SEGMENTS + lost + probes + (starts + 1) * schedule.window.min(SEGMENTS);
        prop_assert!(sent <= allowed, "{sent} sent, {lost} lost, {starts} starts");
    }
}

#[test]
fn a_server_that_has_closed_early_waits_for_the_lost_syn_ack() {
    // Its FIN waits for the handshake, and must not make a paced sender due at once for ever.
    let impairments = "server any 1-1 lost".to_owned();
    let schedule = Schedule { rate_kbit: 50, delay_ms: 1, queue: 3, window: 1, impairments };
    for profile in PROFILES {
        for &congestion_control in CongestionControlAlgorithm::ALL {
            let observation = run(profile, congestion_control, &schedule);
            assert!(observation.violations.is_empty(), "{:?}", observation.violations);
        }
    }
}
