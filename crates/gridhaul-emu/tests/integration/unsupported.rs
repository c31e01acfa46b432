//! Keys that are rejected before a run; these tests require no privileges.

use std::path::Path;

use gridhaul_emu::Emu;
use gridhaul_scenario::backend::Backend;
use gridhaul_scenario::scenario::Scenario;

use crate::pair::pair;

#[test]
fn unsupported_keys_are_named() {
    let link = "both = { rate = '1 Mbit/s' }";
    let flows = "[stack.old]\nprofile = 'ns2'\ncongestion_control = 'tahoe'\nack_every = 4\n\
        initial_ssthresh = '9 segments'\nprr = false\nhystart = false\n\
        [flow.up]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nstack = 'old'";
    let text = format!("duration = '1 s'\n{}", pair(link, flows));
    assert_eq!(
        keys_of(&text),
        ["stack.old.profile"],
        "keys that the profile implies are not listed"
    );
    let expected = ["congestion_control", "initial_ssthresh", "prr", "hystart", "ack_every"];
    let expected = expected.map(|key| format!("stack.old.{key}"));
    assert_eq!(keys_of(&text.replace("ns2", "linux")), expected);
}

#[test]
fn attacks_are_rejected_by_name() {
    let flows = "[flow.up]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\n\
        [attack.bots]\nstart = '1 s'\nlength = '1 s'\n\
        action.flood = { from = 'near', to = 'far', rate = '1 Mbit/s' }";
    let text = format!("duration = '9 s'\n{}", pair("both = { rate = '1 Mbit/s' }", flows));
    assert_eq!(keys_of(&text), ["attack.bots"]);
}

/// Unsupported keys, with reasons, for these keys of a link and of the stack `s`.
fn unsupported_keys(link: &str, stack: &str) -> Vec<(String, String)> {
    let flows = format!(
        "[stack.s]\n{stack}\n[flow.up]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nstack = 's'"
    );
    let link = format!("both = {{ rate = '1 Mbit/s'{link} }}");
    unsupported_of(&format!("duration = '1 s'\n{}", pair(&link, &flows)))
}

fn unsupported_of(text: &str) -> Vec<(String, String)> {
    let scenario = Scenario::from_toml(text, "test.toml").expect("a scenario");
    let unsupported = Emu::default().supports(&scenario).err().unwrap_or_default();
    unsupported.into_iter().map(|unsupported| (unsupported.key, unsupported.reason)).collect()
}

fn keys_of(text: &str) -> Vec<String> {
    unsupported_of(text).into_iter().map(|(key, _)| key).collect()
}

#[test]
fn sizes_out_of_range_are_rejected_by_key() {
    let unsupported = |link: &str, stack: &str| -> Vec<String> {
        unsupported_keys(link, stack).into_iter().map(|(key, _)| key).collect()
    };
    let none = [""; 0];
    // 88 B in the kernel (TCP_MIN_MSS), of which timestamps take 12.
    assert_eq!(unsupported("", "mss = '76 B'"), none);
    assert_eq!(unsupported("", "mss = '75 B'"), ["stack.s.mss"]);
    assert_eq!(unsupported("", "mss = '87 B'\ntimestamps = false"), ["stack.s.mss"]);
    assert_eq!(unsupported("", "mss = '88 B'\ntimestamps = false"), none);
    assert_eq!(unsupported("", "mss = '32756 B'"), ["stack.s.mss"]);
    assert_eq!(unsupported("", "receive_window = '2 segments'"), none);
    assert_eq!(unsupported("", "receive_window = '1 segments'"), ["stack.s.receive_window"]);
    assert_eq!(unsupported("", "receive_window = '1 B'"), ["stack.s.receive_window"]);
    assert_eq!(unsupported("", "receive_window = '1073725440 B'"), none);
    assert_eq!(unsupported("", "header = '40 B'"), none);
    assert_eq!(unsupported("", "header = '52 B'"), ["stack.s.header"]);
    assert_eq!(unsupported("", "dupthresh = 300"), none);
    assert_eq!(unsupported("", "dupthresh = 301"), ["stack.s.dupthresh"]);
    assert_eq!(unsupported(", shaper = { rate = '8 bit/s' }", ""), none);
    assert_eq!(unsupported(", shaper = { rate = '7 bit/s' }", ""), ["link.wire.both.shaper.rate"]);
}

#[test]
fn timers_and_parameters_out_of_range_are_rejected_with_a_remedy() {
    let cases = [
        // A tick is 1 to 10 ms.
        ("rto_min = '1 us'", "rto_min", "one of its ticks"),
        ("rto_min = '1 ms'", "rto_min", "backend `sim`"),
        ("rto_min = '200 s'", "rto_min", "`rto_max`, which is 2 min"),
        ("rto_max = '999 ms'", "rto_max", "\"1 s\" to \"2 min\""),
        ("rto_max = '200 s'", "rto_max", "backend `sim`"),
        ("delayed_ack = '1 us'", "delayed_ack", "one of its ticks"),
        ("delayed_ack = '1 ms'", "delayed_ack", "\"0 s\""),
        ("delayed_ack = '500 ms'", "delayed_ack", "200 ms at most"),
        ("dupthresh = 301", "dupthresh", "1 to 300"),
        ("congestion_control = 'medx'\nmedx_alpha = 0.9999", "medx_alpha", "expected 0 to 0.999"),
        ("congestion_control = 'medx'\nmedx_beta = 2000", "medx_beta", "expected 0.001 to 1000"),
        ("congestion_control = 'medx'\nmedx_buffer = 20", "medx_buffer", "expected 2 to 8"),
        (
            "congestion_control = 'medx'\nmedx_classifier = 'oracle'",
            "medx_classifier",
            "backend `sim`",
        ),
        (
            "congestion_control = 'medx'\nmedx_classifier = 'ecn'",
            "medx_classifier",
            "backend `sim`",
        ),
        ("congestion_control = 'vegas'\nvegas_gamma = 1.5", "vegas_gamma", "whole segments"),
        ("congestion_control = 'vegas'\nvegas_beta = 2e6", "vegas_beta", "up to 1000000"),
    ];
    // Missing prerequisites of the congestion control algorithms are not tested here.
    let of_scenario = |unsupported: Vec<(String, String)>| -> Vec<_> {
        unsupported.into_iter().filter(|(key, _)| key != "stack.s.congestion_control").collect()
    };
    for (stack, key, remedy) in cases {
        let unsupported = of_scenario(unsupported_keys("", stack));
        assert_eq!(unsupported.len(), 1, "{stack}: {unsupported:?}");
        assert_eq!(unsupported[0].0, format!("stack.s.{key}"));
        assert!(unsupported[0].1.contains(remedy), "{stack}: {}", unsupported[0].1);
    }
    let fine = [
        "rto_min = '11 ms'",
        "rto_min = '3 s'",
        "rto_max = '1 s'",
        "rto_max = '120 s'",
        "delayed_ack = '11 ms'",
        "delayed_ack = '200 ms'",
        "delayed_ack = '0 s'",
        "medx_buffer = 20",
    ];
    for stack in fine {
        assert_eq!(of_scenario(unsupported_keys("", stack)), [], "{stack}");
    }
}

#[test]
fn an_unsupported_key_of_one_sweep_point_is_rejected_before_any_run() {
    let flows = "[stack.s]\nprr = false\n\
        [flow.up]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nstack = 's'\n\
        [[sweep]]\nvary.'stack.s.dupthresh' = [3, 300, 301]";
    let text = format!("duration = '1 s'\n{}", pair("both = { rate = '1 Mbit/s' }", flows));
    assert_eq!(
        keys_of(&text),
        ["stack.s.prr", "stack.s.dupthresh"],
        "a key of all points is reported once"
    );
}

#[test]
fn a_proxy_of_mode_none_is_supported() {
    let text = |mode: &str| {
        let link = "both = { rate = '1 Mbit/s' }";
        let flows = "[flow.up]\nfrom = 'near'\nto = 'far'\nload = 'bulk'";
        let proxy = format!("near.proxy.mode = '{mode}'");
        format!("duration = '1 s'\n{}", pair(link, flows).replace("near = {}", &proxy))
    };
    assert_eq!(keys_of(&text("none")), [""; 0]);
    assert_eq!(keys_of(&text("split"))[0], "node.near.proxy");
}

#[test]
fn the_scenarios_of_relays_are_supported_at_every_point() {
    for file in ["scenarios/relay.toml", "papers/sa-tcp/relays.toml"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
        let scenario = Scenario::from_toml(&std::fs::read_to_string(&path).unwrap(), file)
            .unwrap_or_else(|error| panic!("{error}"));
        for point in scenario.points().unwrap() {
            let supported = Emu::default().supports(&point.scenario);
            assert!(supported.is_ok(), "{file}: {supported:?}");
        }
    }
}
