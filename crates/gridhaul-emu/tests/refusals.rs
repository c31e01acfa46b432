//! What is refused before anything runs; no kernel is asked for much, so any user may look.

mod pair;

use gridhaul_emu::Emu;
use gridhaul_scenario::backend::Backend;
use gridhaul_scenario::scenario::Scenario;
use pair::pair;

#[test]
fn what_a_kernel_cannot_do_is_named() {
    let link = "both = { rate = '1 Mbit/s' }";
    let flows = "[stack.old]\nprofile = 'ns2'\ncongestion_control = 'tahoe'\nack_every = 4\n\
        initial_ssthresh = '9 segments'\nprr = false\nhystart = false\n\
        [flow.up]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nstack = 'old'";
    let text = format!("duration = '1 s'\n{}", pair(link, flows));
    assert_eq!(keys_of(&text), ["stack.old.profile"], "what follows from it is not listed");
    let expected = ["congestion_control", "initial_ssthresh", "prr", "hystart", "ack_every"];
    let expected = expected.map(|key| format!("stack.old.{key}"));
    assert_eq!(keys_of(&text.replace("ns2", "linux")), expected);
}

/// Keys that are refused with this at the end of a link and in the stack `s`, and why.
fn refusals(link: &str, stack: &str) -> Vec<(String, String)> {
    let flows = format!(
        "[stack.s]\n{stack}\n[flow.up]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nstack = 's'"
    );
    let link = format!("both = {{ rate = '1 Mbit/s'{link} }}");
    refused_of(&format!("duration = '1 s'\n{}", pair(&link, &flows)))
}

fn refused_of(text: &str) -> Vec<(String, String)> {
    let scenario = Scenario::from_toml(text, "test.toml").expect("a scenario");
    let refused = Emu::default().supports(&scenario).err().unwrap_or_default();
    refused.into_iter().map(|refused| (refused.key, refused.reason)).collect()
}

fn keys_of(text: &str) -> Vec<String> {
    refused_of(text).into_iter().map(|(key, _)| key).collect()
}

#[test]
fn sizes_that_a_kernel_does_not_take_are_refused_by_key() {
    let refused = |link: &str, stack: &str| -> Vec<String> {
        refusals(link, stack).into_iter().map(|(key, _)| key).collect()
    };
    let none = [""; 0];
    // 88 B in the kernel (TCP_MIN_MSS), of which timestamps take 12.
    assert_eq!(refused("", "mss = '76 B'"), none);
    assert_eq!(refused("", "mss = '75 B'"), ["stack.s.mss"]);
    assert_eq!(refused("", "mss = '87 B'\ntimestamps = false"), ["stack.s.mss"]);
    assert_eq!(refused("", "mss = '88 B'\ntimestamps = false"), none);
    assert_eq!(refused("", "mss = '32756 B'"), ["stack.s.mss"]);
    assert_eq!(refused("", "receive_window = '2 segments'"), none);
    assert_eq!(refused("", "receive_window = '1 segments'"), ["stack.s.receive_window"]);
    assert_eq!(refused("", "receive_window = '1 B'"), ["stack.s.receive_window"]);
    assert_eq!(refused("", "receive_window = '1073725440 B'"), none);
    assert_eq!(refused("", "receive_window = '1073725441 B'"), ["stack.s.receive_window"]);
    assert_eq!(refused("", "header = '40 B'"), none);
    assert_eq!(refused("", "header = '52 B'"), ["stack.s.header"]);
    assert_eq!(refused("", "dupthresh = 300"), none);
    assert_eq!(refused("", "dupthresh = 301"), ["stack.s.dupthresh"]);
    assert_eq!(refused(", shaper = { rate = '8 bit/s' }", ""), none);
    assert_eq!(refused(", shaper = { rate = '7 bit/s' }", ""), ["link.wire.both.shaper.rate"]);
}

#[test]
fn timers_and_parameters_that_a_kernel_does_not_take_are_refused_with_a_remedy() {
    let cases = [
        // A tick is 1 to 10 ms.
        ("rto_min = '1 us'", "rto_min", "one of its ticks"),
        ("rto_min = '1 ms'", "rto_min", "--on sim"),
        ("rto_min = '200 s'", "rto_min", "`rto_max`, which is 2 min"),
        ("rto_max = '999 ms'", "rto_max", "\"1 s\" to \"2 min\""),
        ("rto_max = '200 s'", "rto_max", "--on sim"),
        ("delayed_ack = '1 us'", "delayed_ack", "one of its ticks"),
        ("delayed_ack = '1 ms'", "delayed_ack", "\"0 s\""),
        ("delayed_ack = '500 ms'", "delayed_ack", "200 ms at most"),
        ("dupthresh = 301", "dupthresh", "1 to 300"),
        ("receive_window = '3 GB'", "receive_window", "\"1073725440 B\""),
        ("congestion_control = 'medx'\nmedx_alpha = 0.9999", "medx_alpha", "expected 0 to 0.999"),
        ("congestion_control = 'medx'\nmedx_beta = 2000", "medx_beta", "expected 0.001 to 1000"),
        ("congestion_control = 'medx'\nmedx_buffer = 20", "medx_buffer", "expected 2 to 8"),
        ("congestion_control = 'vegas'\nvegas_gamma = 1.5", "vegas_gamma", "whole segments"),
        ("congestion_control = 'vegas'\nvegas_beta = 2e6", "vegas_beta", "up to 1000000"),
    ];
    // What this machine lacks for our congestion control is another matter.
    let of_scenario = |refused: Vec<(String, String)>| -> Vec<_> {
        refused.into_iter().filter(|(key, _)| key != "stack.s.congestion_control").collect()
    };
    for (stack, key, remedy) in cases {
        let refused = of_scenario(refusals("", stack));
        assert_eq!(refused.len(), 1, "{stack}: {refused:?}");
        assert_eq!(refused[0].0, format!("stack.s.{key}"));
        assert!(refused[0].1.contains(remedy), "{stack}: {}", refused[0].1);
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
        assert_eq!(of_scenario(refusals("", stack)), [], "{stack}");
    }
}

#[test]
fn what_one_point_of_a_sweep_asks_for_is_refused_before_any_is_run() {
    let flows = "[stack.s]\nprr = false\n\
        [flow.up]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nstack = 's'\n\
        [[sweep]]\nvary.'stack.s.dupthresh' = [3, 300, 301]";
    let text = format!("duration = '1 s'\n{}", pair("both = { rate = '1 Mbit/s' }", flows));
    assert_eq!(
        keys_of(&text),
        ["stack.s.prr", "stack.s.dupthresh"],
        "and what all ask for is told once"
    );
}

#[test]
fn a_proxy_that_does_nothing_needs_no_kernel() {
    let text = |mode: &str| {
        let link = "both = { rate = '1 Mbit/s' }";
        let flows = "[flow.up]\nfrom = 'near'\nto = 'far'\nload = 'bulk'";
        let proxy = format!("near.proxy.mode = '{mode}'");
        format!("duration = '1 s'\n{}", pair(link, flows).replace("near = {}", &proxy))
    };
    assert_eq!(keys_of(&text("none")), [""; 0]);
    assert_eq!(keys_of(&text("split"))[0], "node.near.proxy");
}
