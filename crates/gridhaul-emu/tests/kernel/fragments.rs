//! Datagrams that the kernel divides into fragments.

use gridhaul_core::link::{LinkDirection, LinkRandomStreams};
use gridhaul_emu::Emu;
use gridhaul_scenario::answer::Metric;
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::{Duration, Instant};

use crate::{close, mean, run, run_with};

/// Share of the datagrams of three packets of which the link of a scenario loses a packet.
fn expected_loss(text: &str, datagrams: usize) -> f64 {
    let scenario = Scenario::from_toml(text, "fragments.toml").unwrap();
    let random = LinkRandomStreams::named(scenario.seed, 0, "radio.forward", 0);
    let mut link = LinkDirection::<()>::new(scenario.link["radio"].forward().unwrap(), random);
    let mut now = Instant::ZERO;
    let mut is_lost = || {
        link.handle_packet(now, 1_500, ()).unwrap();
        now += Duration::from_secs(1);
        !link.poll_output(now).unwrap().outcome.arrives()
    };
    let lost = (0..datagrams).filter(|_| [(); 3].map(|()| is_lost()).contains(&true)).count();
    lost as f64 / datagrams as f64
}

#[test]
fn a_fragment_that_the_link_loses_costs_its_datagram() {
    let text = include_str!("../../../../scenarios/fragments.toml");
    let Some(answer) = run_with(text, Emu::default()) else { return };
    let (lost, expected) = (mean(&answer, "profile", Metric::MessageLoss), expected_loss(text, 80));
    // The last datagram may be on its way.
    assert!((lost - expected).abs() < 0.014, "{lost}, expected {expected}");
    close(mean(&answer, "profile", Metric::DelayMedian), 0.192_72, 0.01);
    assert!((mean(&answer, "radio.forward", Metric::PacketsIn) - 240.0).abs() <= 3.0);
}

#[test]
fn a_router_of_the_kernel_fragments_for_a_smaller_mtu() {
    let text = "title = 'fragments'\n[node]\na = {}\nrouter = {}\nb = {}\n\
        [link.first]\nfrom = 'a'\nto = 'router'\nboth = { rate = '10 Mbit/s', mtu = '1500 B' }\n\
        [link.second]\nfrom = 'router'\nto = 'b'\nboth = { rate = '10 Mbit/s', mtu = '1280 B' }\n\
        [flow.ping]\nfrom = 'a'\nto = 'b'\ntransport = 'echo'\n\
        load.periodic = { size = '4000 B', every = '100 ms' }";
    let Some(answer) = run("duration = '2 s'", text) else { return };
    assert_eq!(mean(&answer, "ping", Metric::MessageLoss), 0.0);
    let packets = |link: &str| mean(&answer, link, Metric::PacketsIn);
    close(packets("second.forward") / packets("first.forward"), 5.0 / 3.0, 0.02);
}
