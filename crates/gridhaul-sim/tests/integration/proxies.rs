//! Proxies in simulations.

use gridhaul_core::random::RandomStream;
use gridhaul_scenario::answer::{Answer, Metric, Warning};
use gridhaul_scenario::backend::{Backend, NoProgress, RunError};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_sim::Sim;
use gridhaul_testing::ProxyChain;

/// A file of 2 MB over four hops of 5 Mbit/s and 25 ms (round trip), with three proxies between
/// them.
fn chain(mode: &str, loss: [f64; 4], replace: &[(&str, &str)]) -> Scenario {
    let mut text = r#"
title = "chain"
duration = "300 s"
replications = 3
[stack.plain]
profile = "rfc"
congestion_control = "sack"
receive_window = "1000 segments"
[flow.file]
from = "source"
to = "sink"
stack = "plain"
load.transfer.size = "2 MB"
"#
    .to_owned();
    let (buffer, rate, queue) = ("64 KiB", "5 Mbit/s", "100 packets");
    text += &ProxyChain { mode, buffer, rate, queue, loss }.to_toml();
    for (old, new) in replace {
        assert!(text.contains(old), "{old}");
        text = text.replace(old, new);
    }
    Scenario::from_toml(&text, "chain.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario) -> Answer {
    Sim::default().run(scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"))
}

fn value(answer: &Answer, metric: Metric) -> f64 {
    let flow = &answer.points[0].flows[0];
    flow.mean(metric).unwrap_or_else(|| panic!("{metric} of {flow:?}"))
}

const HANDSHAKES: [(&str, &str); 2] =
    [("profile = \"rfc\"", "profile = \"rfc\""), ("profile = \"rfc\"", "profile = \"ns2\"")];

#[test]
fn a_proxy_that_does_nothing_changes_nothing() {
    let plain = run(&chain("none", [0.2; 4], &[]));
    let nowhere = run(&chain("reflect", [0.2; 4], &[("buffer =", "flows = []\nbuffer =")]));
    assert_eq!(plain.points[0].flows, nowhere.points[0].flows);
    assert_eq!(plain.points[0].links, nowhere.points[0].links);
    let late = "crash = [{ at = \"299 s\" }]\nbuffer =";
    let idle = run(&chain("none", [0.2; 4], &[("buffer =", late)]));
    assert_eq!(plain.points[0].links, idle.points[0].links);
}

#[test]
fn retransmissions_over_one_hop_are_faster_than_over_four() {
    for handshake in HANDSHAKES {
        let time =
            |mode: &str| value(&run(&chain(mode, [1.0; 4], &[handshake])), Metric::CompletionTime);
        let (none, split, reflect) = (time("none"), time("split"), time("reflect"));
        // Without proxies: p = 4 % over 100 ms, 12,000 / (0.1 s · √(0.08 / 3)) = 0.73 Mbit/s at
        // most; with 1 % over 25 ms 5.9 Mbit/s, above the rate of the link.
        assert!(none > 20.0, "{none}");
        assert!(split < none / 3.0 && reflect < none / 3.0, "{handshake:?} {split} {reflect}");
    }
}

#[test]
fn a_chain_without_loss_runs_at_the_rate_of_its_slowest_hop() {
    for mode in ["split", "reflect"] {
        let answer = run(&chain(mode, [0.0; 4], &[("2 MB", "10 MB")]));
        let rate = value(&answer, Metric::TransferRate);
        // 1460 of 1500 bytes are payload.
        assert!(rate > 0.9 * 5e6 * 1460.0 / 1500.0, "{mode}: {rate}");
        assert_eq!(value(&answer, Metric::LostInCrashes), 0.0);
        assert_eq!(value(&answer, Metric::ProxyRetransmissions), 0.0);
        // Only one of two directions is used, so the maximum is the configured buffer.
        let maximum = value(&answer, Metric::BytesAtRiskMax);
        assert!(maximum > 1_460.0 && maximum <= 65_536.0, "{mode}: {maximum}");
    }
}

#[test]
fn the_offered_load_counts_the_packets_of_the_sender_once() {
    for mode in ["none", "split", "reflect", "spoof"] {
        // A window of 60 segments overflows no queue.
        let window = ("1000 segments", "60 segments");
        let answer = run(&chain(mode, [0.0; 4], &[window]));
        // 2 MB are 1369 full segments of 1500 B and one of 1260 B + 40 B, in 300 s; 12 B of
        // timestamps in each where the proxy does not remove them.
        let (load, bits) = (value(&answer, Metric::OfferedLoad) * 300.0, 1370.0 * 12.0 * 8.0);
        let by_hand = (1369.0 * 1500.0 + 1300.0) * 8.0;
        assert!((by_hand..=by_hand + bits).contains(&load), "{mode}: {load} {by_hand}");
    }
}

#[test]
fn snoop_hides_the_losses_of_the_last_hop_from_the_sender() {
    let last = [0.0, 0.0, 0.0, 5.0];
    let only = ("[node.u3.proxy]", "[node.u3.proxy]\nflows = [\"file\"]");
    // A window of 60 segments fills the path and overflows no queue.
    let window = ("1000 segments", "60 segments");
    let none = run(&chain("none", last, &[window]));
    let snoop = run(&chain("snoop", last, &[only, window]));
    assert!(value(&none, Metric::FastRetransmits) > 5.0);
    assert_eq!(value(&snoop, Metric::FastRetransmits) + value(&snoop, Metric::Timeouts), 0.0);
    assert!(value(&snoop, Metric::ProxyRetransmissions) > 30.0);
    let [none, snoop] = [none, snoop].map(|answer| value(&answer, Metric::TransferRate));
    assert!(snoop > 3.0 * none, "{snoop} against {none}");
    // Snoop acknowledges nothing itself, so a crash loses nothing.
    let crash = ("buffer =", "crash = [{ at = \"1 s\" }]\nbuffer =");
    let answer = run(&chain("snoop", last, &[crash]));
    assert_eq!(value(&answer, Metric::LostInCrashes), 0.0);
    assert!(value(&answer, Metric::CompletionTime) < 299.0);
}

#[test]
fn fewer_acknowledgements_relieve_a_low_rate_reverse_path() {
    // 12 kbit/s carry 37 acknowledgements a second, for the 427 segments of 5 Mbit/s.
    let narrow = "[link.l0.reverse]\nrate = \"12 kbit/s\"";
    let reverse = ("[link.l0.reverse]\nrate = \"5 Mbit/s\"", narrow);
    let every = ("receive_window", "delayed_ack = \"0 s\"\nreceive_window");
    let none = run(&chain("none", [0.0; 4], &[reverse, every]));
    let max_ack_delay = ("buffer =", "max_ack_delay = \"100 ms\"\nbuffer =");
    let ack = run(&chain("ack", [0.0; 4], &[reverse, every, max_ack_delay]));
    let [none, ack] = [none, ack].map(|answer| value(&answer, Metric::TransferRate));
    assert!(ack > 2.0 * none, "{ack} against {none}");
}

#[test]
fn a_crash_loses_the_bytes_at_risk() {
    let crash = ("[node.u2.proxy]", "[node.u2.proxy]\ncrash = [{ at = \"2 s\" }]");
    for mode in ["split", "reflect"] {
        let lossy = [0.0, 0.0, 5.0, 0.0];
        let answer = run(&chain(mode, lossy, &[crash, ("replications = 3", "replications = 1")]));
        assert!(value(&answer, Metric::LostInCrashes) >= 1_460.0, "{mode}");
        // No other node has these bytes, so the transfer never completes.
        assert_eq!(answer.points[0].flows[0].mean(Metric::CompletionTime), None, "{mode}");
    }
    // A crash after the end of the transfer loses nothing.
    let late = ("[node.u2.proxy]", "[node.u2.proxy]\ncrash = [{ at = \"200 s\" }]");
    for mode in ["split", "reflect"] {
        let answer = run(&chain(mode, [0.0; 4], &[late]));
        assert_eq!(value(&answer, Metric::LostInCrashes), 0.0, "{mode}");
    }
}

/// The auditor checks each run. Proxies forward before they acknowledge, so at the end of a run
/// each may have received more than it has reported to its previous hop.
#[test]
fn counters_of_proxies_agree_at_any_end_of_a_run() {
    let plain = "congestion_control = \"sack\"\nreceive_window = \"1000 segments\"";
    let stacks = [
        "ack_every = 10",
        "receive_window = \"1 segments\"",
        "congestion_control = \"cubic\"",
        "profile = \"linux\"\ncongestion_control = \"bbr\"",
    ];
    for (mode, stack) in
        ["reflect", "split"].iter().flat_map(|mode| stacks.map(|stack| (mode, stack)))
    {
        for buffer in ["4 kB", "64 KiB"] {
            let scenario = chain(
                mode,
                [1.0; 4],
                &[
                    ("300 s", "1500 ms"),
                    ("replications = 3", "replications = 20"),
                    ("load.transfer.size = \"2 MB\"", "load = \"bulk\""),
                    ("profile = \"rfc\"\n", ""),
                    (plain, stack),
                    ("64 KiB", buffer),
                ],
            );
            let answer = Sim::default().run(&scenario, &NoProgress);
            answer.unwrap_or_else(|error| panic!("{mode}, {stack}, {buffer}: {error}"));
        }
    }
}

/// A file of 10,000 segments over four narrowband power lines (130 kbit/s) that lose 15 % each,
/// with three reflecting proxies and ns-2's queues of 50 packets. Seven seconds of packets wait in
/// a queue, so that 100 s contain four retransmissions, all of which are lost at some time. An
/// earlier version of the last proxy then reset the connection silently, with bytes at risk.
#[test]
fn a_long_timeout_on_a_lossy_line_ends_no_connection() {
    let scenario = chain(
        "reflect",
        [15.0; 4],
        &[
            ("300 s", "6000 s"),
            ("replications = 3", "replications = 2"),
            ("64 KiB", "32 MiB"),
            ("2 MB", "14.6 MB"),
            ("5 Mbit/s", "130 kbit/s"),
            ("100 packets", "50 packets"),
            (
                "profile = \"rfc\"\ncongestion_control = \"sack\"",
                "profile = \"ns2\"\ncongestion_control = \"reno\"",
            ),
            ("1000 segments\"", "20000 segments\"\nhandshake = false"),
        ],
    );
    let answer = run(&scenario);
    assert_eq!(value(&answer, Metric::LostInCrashes), 0.0);
    let arrived = answer.points[0].flows[0].metrics[&Metric::CompletionTime];
    assert_eq!(arrived.n, 2, "{arrived:?}");
}

/// During an outage of an hour the upstream proxy resets both connections, and the answer reports
/// the lost bytes.
#[test]
fn a_reset_by_a_proxy_is_reported() {
    for mode in ["split", "reflect"] {
        let outage = "[link.l2.forward]\noutage = [{ start = \"1 s\", length = \"1 h\" }]";
        let scenario = chain(
            mode,
            [0.0; 4],
            &[
                ("[link.l2.forward]", outage),
                ("300 s", "3000 s"),
                ("replications = 3", "replications = 1"),
            ],
        );
        let answer = run(&scenario);
        assert!(value(&answer, Metric::LostInCrashes) >= 1_460.0, "{mode}");
        let is_reset = |warning: &Warning| warning.message.contains("a proxy reset the connection");
        assert!(answer.warnings.iter().any(is_reset), "{mode}: {:?}", answer.warnings);
    }
}

/// Random chains: the counters of all proxies must agree with those of their neighbours at the end
/// of every run, with any losses and resets.
#[test]
fn random_chains_pass_the_audit() {
    audit_chains(0..60);
}

/// `GRIDHAUL_CHAINS=1000 cargo test --release -p gridhaul-sim --test integration many_random \
/// -- --ignored`
#[test]
#[ignore = "takes minutes"]
fn many_random_chains_pass_the_audit() {
    let count = std::env::var("GRIDHAUL_CHAINS").ok().and_then(|text| text.parse().ok());
    audit_chains(0..count.unwrap_or(500));
}

fn audit_chains(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let text = random_chain(seed);
        let scenario = Scenario::from_toml(&text, "chain.toml")
            .unwrap_or_else(|error| panic!("{seed}: {error}\n{text}"));
        if let Err(error) = Sim::default().run(&scenario, &NoProgress) {
            panic!("chain {seed}: {error}\n{text}");
        }
    }
}

/// One to four proxies of any mode, each hop with a loss of 0 to 40 % in either direction, and
/// sometimes an outage that is long enough for a proxy to reset the connection, or a crash.
fn random_chain(seed: u64) -> String {
    let mut random = RandomStream::named(seed, 0, "chain", 0, "audit");
    let mut one_of =
        |choices: &[&str]| choices[random.below(choices.len() as u64) as usize].to_owned();
    let profile = one_of(&["rfc", "ns2", "linux"]);
    let congestion_control = one_of(&["reno", "new_reno", "sack", "cubic"]);
    let handshake = one_of(&["true", "false"]);
    let window = one_of(&["3 segments", "20 segments", "1000 segments"]);
    let duration = one_of(&["20 s", "200 s", "4000 s"]);
    let load = one_of(&["load = \"bulk\"", "load.transfer.size = \"300 kB\""]);
    let delayed = one_of(&["0 s", "100 ms"]);
    let proxies: usize = one_of(&["1", "2", "3", "4"]).parse().expect("a number");
    let same = one_of(&["reflect", "split", "reflect", "mixed"]);
    let mut text = format!(
        "title = \"chain\"\nduration = \"{duration}\"\nseed = {seed}\nreplications = 2\n[stack.s]\n\
         profile = \"{profile}\"\ncongestion_control = \"{congestion_control}\"\nhandshake = \
         {handshake}\n\
         timestamps = false\nreceive_window = \"{window}\"\ndelayed_ack = \"{delayed}\"\n\
         [flow.file]\nfrom = \"n0\"\nto = \"n{}\"\nstack = \"s\"\n{load}\n\
         [node.n0]\n[node.n{}]\n",
        proxies + 1,
        proxies + 1
    );
    for proxy in 1..=proxies {
        let mode = match same.as_str() {
            "mixed" => one_of(&["reflect", "split", "snoop", "ack"]),
            same => same.to_owned(),
        };
        let buffer = one_of(&["4 KiB", "16 KiB", "64 KiB", "32 MiB"]);
        let crash = one_of(&["", "", "", "", "", "", "crash = [{ at = \"7 s\" }]\n"]);
        text +=
            &format!("[node.n{proxy}.proxy]\nmode = \"{mode}\"\nbuffer = \"{buffer}\"\n{crash}");
    }
    let losses = ["0 %", "1 %", "5 %", "15 %", "40 %"];
    for hop in 0..=proxies {
        let rate = one_of(&["50 kbit/s", "130 kbit/s", "3 Mbit/s"]);
        let delay = one_of(&["5 ms", "50 ms", "600 ms"]);
        text += &format!("[link.l{hop}]\nfrom = \"n{hop}\"\nto = \"n{}\"\n", hop + 1);
        for direction in ["forward", "reverse"] {
            let loss = one_of(&losses);
            let queue = one_of(&["10 packets", "50 packets", "unlimited"]);
            let long = "outage = [{ start = \"8 s\", length = \"3000 s\" }]\n";
            let outage = one_of(&["", "", "", "", "", "", "", "", long]);
            text += &format!(
                "[link.l{hop}.{direction}]\nrate = \"{rate}\"\ndelay = \"{delay}\"\n\
                 queue = \"{queue}\"\nloss = {{ bernoulli = \"{loss}\" }}\n{outage}"
            );
        }
    }
    text
}

#[test]
fn unsupported_proxies_are_reported_with_their_key() {
    let keys = |scenario: &Scenario| match Sim::default().run(scenario, &NoProgress) {
        Err(RunError::Unsupported(keys)) => keys.into_iter().map(|key| key.key).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let stamps = ("receive_window", "handshake = false\ntimestamps = true\nreceive_window");
    assert_eq!(keys(&chain("reflect", [0.0; 4], &[stamps])), ["stack.plain.timestamps"]);
}
