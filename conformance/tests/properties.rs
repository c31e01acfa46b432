//! What holds for every variant and profile, whatever the path loses, delays and repeats.

use gridhaul_conformance::arm::{Limits, SimArm};
use gridhaul_conformance::case::{Case, End};
use gridhaul_conformance::observe::{Observation, Value};
use gridhaul_scenario::scenario::CongestionControlAlgorithm;
use proptest::prelude::*;

const PROFILES: [&str; 3] = ["rfc", "linux", "ns2"];
const SEGMENTS: u64 = 60;
const MSS: u64 = 1000;

/// A path and what it does to packets; after `end` of them it does no more, so that all arrives.
#[derive(Debug, Clone)]
struct Schedule {
    rate_kbit: u32,
    delay_ms: u32,
    queue: u32,
    window: u64,
    fate: String,
}

fn fate_line() -> impl Strategy<Value = String> {
    let who = prop_oneof![3 => Just("client any"), 1 => Just("server any")];
    let what = prop_oneof![
        4 => Just("lost".to_owned()),
        1 => Just("twice".to_owned()),
        2 => (1..300_u32).prop_map(|ms| format!("late {ms} ms")),
    ];
    (who, 1..90_u32, 0..4_u32, what)
        .prop_map(|(who, first, more, what)| format!("{who} {first}-{} {what}", first + more))
}

fn schedule() -> impl Strategy<Value = Schedule> {
    let path = (50..5000_u32, 1..300_u32, 3..100_u32, 1..64_u64);
    (path, prop::collection::vec(fate_line(), 0..10)).prop_map(|(path, fates)| {
        let (rate_kbit, delay_ms, queue, window) = path;
        Schedule { rate_kbit, delay_ms, queue, window, fate: fates.join("\n") }
    })
}

fn run(
    profile: &str,
    congestion_control: CongestionControlAlgorithm,
    schedule: &Schedule,
) -> Observation {
    let Schedule { rate_kbit, delay_ms, queue, window, fate } = schedule;
    let text = format!(
        r#"
title = "any"
source = "any"
says = "any"
arms = ["sim"]
not_kernel = "many random runs"
until = "20000 s"
input = """
0 write {SEGMENTS} segments
0 close
0 server close
"""
fate = """
{fate}
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
    let limits = Limits { stop_when_closed: true, ..Limits::default() };
    SimArm.run_within(&case, limits).unwrap_or_else(|error| panic!("{error}"))
}

fn number(seen: &Observation, name: &str) -> u64 {
    match seen.totals.get(name) {
        Some(Value::Number(number)) => *number as u64,
        other => panic!("{name}: {other:?}"),
    }
}

fn is_over(seen: &Observation, end: &str) -> bool {
    matches!(seen.totals.get(end), Some(Value::Word(word)) if word == "Closed" || word == "TimeWait")
}

fn profile_and_variant() -> impl Strategy<Value = (&'static str, CongestionControlAlgorithm)> {
    (prop::sample::select(&PROFILES[..]), prop::sample::select(CongestionControlAlgorithm::ALL))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_stream_arrives_and_both_ends_close(
        (profile, congestion_control) in profile_and_variant(),
        schedule in schedule(),
    ) {
        let seen = run(profile, congestion_control, &schedule);
        prop_assert_eq!(&seen.violations, &Vec::<String>::new());
        prop_assert_eq!(number(&seen, "bytes_from_client"), SEGMENTS * MSS);
        prop_assert!(is_over(&seen, "client_state"), "{:?}", seen.totals);
        prop_assert!(is_over(&seen, "server_state"), "{:?}", seen.totals);
    }

    #[test]
    fn acknowledgements_never_go_back_and_windows_are_kept(
        (profile, congestion_control) in profile_and_variant(),
        schedule in schedule(),
    ) {
        let seen = run(profile, congestion_control, &schedule);
        let (mut acked, mut edge) = (0, 1);
        for packet in &seen.packets {
            match (packet.seen_at, packet.from) {
                (End::Server, End::Server) => {
                    let ack = packet.ack.unwrap_or(acked);
                    prop_assert!(ack >= acked, "acknowledges {ack} after {acked}");
                    acked = ack;
                }
                (End::Client, End::Server) => {
                    let right = packet.ack.unwrap_or(0) + u64::from(packet.window);
                    edge = edge.max(right);
                }
                (End::Client, End::Client) => {
                    let end = packet.seq + packet.len;
                    // FIN needs no room; a probe is one byte into a closed window.
                    prop_assert!(end <= edge + 1, "sends up to {end} beyond {edge}");
                }
                (End::Server, End::Client) => {}
            }
        }
    }

    #[test]
    fn nothing_is_repeated_where_nothing_is_lost(
        (profile, congestion_control) in profile_and_variant(),
        rate_kbit in 50..5000_u32,
        delay_ms in 1..80_u32,
    ) {
        // A queue that holds all, and a path on which even slow packets come within every timeout.
        let rate_kbit = rate_kbit.max(3000);
        let schedule =
            Schedule { rate_kbit, delay_ms, queue: 1000, window: 64, fate: String::new() };
        let seen = run(profile, congestion_control, &schedule);
        prop_assert_eq!(number(&seen, "client_retransmissions"), 0);
        prop_assert_eq!(number(&seen, "client_timeouts"), 0);
    }

    #[test]
    fn repeats_are_bounded_by_losses_and_timeouts(
        (profile, congestion_control) in profile_and_variant(),
        schedule in schedule(),
    ) {
        let seen = run(profile, congestion_control, &schedule);
        let at = |end: End| {
            let from_client = seen.packets.iter().filter(|packet| packet.from == End::Client);
            from_client.filter(|packet| packet.seen_at == end && packet.len > 0).count() as u64
        };
        let (sent, arrived) = (at(End::Client), at(End::Server));
        let lost = sent.saturating_sub(arrived);
        // Each timeout, and each go-back of Tahoe, may repeat a window that had arrived.
        let starts = number(&seen, "client_timeouts") + number(&seen, "client_fast_retransmits");
        // RFC 8985, section 7.3: the end of each flight may be probed once.
        let probes = if profile == "linux" { SEGMENTS.div_ceil(schedule.window) } else { 0 };
        let allowed = SEGMENTS + lost + probes + (starts + 1) * schedule.window.min(SEGMENTS);
        prop_assert!(sent <= allowed, "{sent} sent, {lost} lost, {starts} starts");
    }
}
