//! The simulator says of itself where a Linux does something else and it counts.

use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_sim::Sim;

/// What is said about the flow, if anything.
fn said(link: &str, stack: &str) -> Vec<String> {
    let text = format!(
        "title = 'limits'\nduration = '10 s'\nnode.a = {{}}\nnode.b = {{}}\n\
         [link.l]\nfrom = 'a'\nto = 'b'\n\
         both = {{ rate = '2 Mbit/s', delay = '20 ms', queue = '40 packets'{link} }}\n\
         [stack.s]\ncongestion_control = 'reno'\n{stack}\n\
         [flow.up]\nfrom = 'a'\nto = 'b'\nload = 'bulk'\nstack = 's'\n"
    );
    let scenario = Scenario::from_toml(&text, "limits.toml").unwrap();
    let answer = Sim::default().run(&scenario, &NoProgress).unwrap();
    assert!(answer.warnings.iter().all(|warning| warning.about == "flow.up"));
    answer.warnings.into_iter().map(|warning| warning.message).collect()
}

#[test]
fn far_overtaking_is_told_and_what_rack_waits_for_is_not() {
    // A round trip of 40 ms.
    let reorder = |by| format!(", reorder = {{ probability = '10 %', delay = '{by}' }}");
    let far = said(&reorder("60 ms"), "");
    assert!(matches!(&far[..], [one] if one.contains("overtaken")), "{far:?}");
    assert_eq!(said(&reorder("10 ms"), ""), [""; 0]);
    assert_eq!(said(&reorder("60 ms"), "profile = 'rfc'"), [""; 0], "that is no host's");
}

#[test]
fn losses_without_sack_are_told() {
    let without = said("", "sack = false");
    assert!(matches!(&without[..], [one] if one.contains("selective")), "{without:?}");
    assert_eq!(said("", ""), [""; 0]);
    let unharmed = said("", "sack = false\nreceive_window = '20 kB'");
    assert_eq!(unharmed, [""; 0], "nothing is repeated");
}
