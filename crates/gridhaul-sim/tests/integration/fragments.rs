//! Datagrams of several fragments.

use gridhaul_scenario::answer::Metric;
use gridhaul_scenario::backend::Backend;
use gridhaul_scenario::scenario::Scenario;
use gridhaul_sim::Sim;

use crate::schedulers::{close, mean, run};

const FRAGMENTS: &str = include_str!("../../../../scenarios/fragments.toml");

#[test]
fn a_lost_fragment_loses_its_datagram() {
    let answer = run(&FRAGMENTS.replace("duration = \"20 s\"", "duration = \"20000 s\""));
    // The calculation is in the comment of the scenario: 80,000 datagrams, so that the standard
    // deviation of the loss is 0.12 percentage points.
    close(mean(&answer, "profile", Metric::MessageLoss), 1.0 - 0.95_f64.powi(3), 0.03);
    close(mean(&answer, "profile", Metric::DelayMax), 0.192_72, 1e-6);
    close(mean(&answer, "profile", Metric::OfferedLoad), 4_068.0 * 8.0 / 0.25, 1e-4);
    close(mean(&answer, "radio.forward", Metric::PacketsIn), 3.0 * 80_000.0, 1e-4);
    let one = FRAGMENTS.replace("4000 B", "1472 B").replace("\"20 s\"", "\"20000 s\"");
    close(mean(&run(&one), "profile", Metric::MessageLoss), 0.05, 0.05);
}

#[test]
fn a_router_fragments_for_a_smaller_mtu_and_an_echo_returns_complete() {
    let text = "title = 'fragments'\nduration = '10 s'\n[node]\na = {}\nrouter = {}\nb = {}\n\
        [link.first]\nfrom = 'a'\nto = 'router'\nboth = { rate = '10 Mbit/s', mtu = '1500 B' }\n\
        [link.second]\nfrom = 'router'\nto = 'b'\nboth = { rate = '10 Mbit/s', mtu = '1280 B', \
        duplicate = '50 %' }\n\
        [flow.ping]\nfrom = 'a'\nto = 'b'\ntransport = 'echo'\n\
        load.periodic = { size = '4000 B', every = '100 ms' }";
    let answer = run(text);
    assert_eq!(mean(&answer, "ping", Metric::MessageLoss), 0.0);
    let packets = |link: &str| mean(&answer, link, Metric::PacketsIn);
    let messages = mean(&answer, "ping", Metric::MessagesDue);
    assert_eq!(mean(&answer, "ping", Metric::Messages), messages);
    assert_eq!(packets("first.forward"), 3.0 * messages);
    // The first two fragments are divided again.
    assert_eq!(packets("second.forward"), 5.0 * messages);
}

#[test]
fn segments_above_the_mtu_are_refused_with_the_size_that_fits() {
    let scenario = |small: &str, rest: &str| {
        let link = |name: &str, from: &str, to: &str| {
            let mtu = if name == small { ", mtu = '1400 B'" } else { "" };
            format!(
                "[link.{name}]\nfrom = '{from}'\nto = '{to}'\nboth = {{ rate = '1 Mbit/s'{mtu} }}\n"
            )
        };
        let links = link("lan", "a", "r") + &link("tunnel", "r", "s") + &link("wan", "s", "b");
        let text = format!(
            "title = 'mss'\nduration = '1 s'\nnode = {{ a = {{}}, r = {{}}, s = {{}}, b = {{}} \
             }}\n{links}[flow.f]\nfrom = 'a'\nto = 'b'\nload = 'bulk'\n{rest}"
        );
        Sim::default().supports(&Scenario::from_toml(&text, "test.toml").unwrap())
    };
    let refused = scenario("tunnel", "").unwrap_err();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].key, "flow.f.stack");
    assert!(refused[0].reason.contains("mss = \"1348 B\""), "{}", refused[0].reason);
    assert!(scenario("tunnel", "stack = 's'\n[stack.s]\nmss = '1348 B'").is_ok());
    // Hosts know the MTU of their own links, unless the stack states its segments.
    assert!(scenario("lan", "").is_ok() && scenario("wan", "").is_ok());
    assert!(scenario("lan", "stack = 's'\n[stack.s]\nmss = '1460 B'").is_err());
}
