//! Hybrid routers: relay daemons that select one of several links.

use gridhaul_emu::Emu;
use gridhaul_scenario::answer::Metric;

use crate::relay::is_installed;
use crate::{is_trustworthy, mean, run, run_with};

/// Two routers with two links. The preferred one swallows the packets of the first router from the
/// third second on. Acknowledgements of the upload use the other link from the start.
const SCENARIO: &str = "title = 'test'\n\
    [node.near.router]\npeer = 'far'\nlinks = ['fast', 'slow']\n\
    class.acks = { flows = ['up'], acknowledgements = true, links = ['slow'] }\n\
    [node.far.router]\npeer = 'near'\nlinks = ['fast', 'slow']\n\
    [link.fast]\nfrom = 'near'\nto = 'far'\n\
    [link.fast.forward]\nrate = '10 Mbit/s'\ndelay = '10 ms'\n\
    outage = [{ start = '3 s', length = '60 s' }]\n\
    shaper = { rate = '2 Mbit/s', share.down.guarantee = '1 Mbit/s' }\n\
    [link.fast.reverse]\nrate = '2 Mbit/s'\ndelay = '10 ms'\n\
    [link.slow]\nfrom = 'near'\nto = 'far'\nboth = { rate = '1 Mbit/s', delay = '30 ms' }\n\
    [flow.down]\nfrom = 'near'\nto = 'far'\nload.periodic = { size = '200 B', every = '100 ms' }\n\
    [flow.up]\nfrom = 'far'\nto = 'near'\nload = 'bulk'\n";

#[test]
fn a_router_selects_links_by_class_and_leaves_a_link_that_swallows_packets() {
    if !is_installed() {
        return;
    }
    let Some(answer) = run("duration = '7 s'\nwarmup = '1 s'", SCENARIO) else { return };
    if !is_trustworthy(&answer) {
        return;
    }
    // Acknowledgements of the upload cross the slow link, and its data the fast one.
    let goodput = mean(&answer, "up", Metric::Goodput);
    assert!(goodput > 1.2e6, "{goodput} bit/s: more than the slow link carries");
    let acknowledgements = mean(&answer, "slow.forward", Metric::LinkThroughput);
    assert!(acknowledgements > 20e3, "{acknowledgements} bit/s on the slow link");
    // Messages that were sent into the outage arrive over the slow link.
    let longest = mean(&answer, "down", Metric::DelayMax);
    assert!((0.2..4.0).contains(&longest), "longest delay of a message: {longest} s");
}

/// An excerpt of the scenario, whose comment has the calculation: a busy machine delays probes and
/// packets.
#[test]
fn routers_leave_a_failed_line_for_the_standby_link() {
    if !is_installed() {
        return;
    }
    let text = include_str!("../../../../scenarios/failover.toml")
        .replace("duration = \"60 s\"\nreplications = 20", "duration = \"9 s\"")
        .replace("start = \"20 s\"", "start = \"3 s\"");
    let (text, _) = text.split_once("\n[[sweep]]").expect("a sweep");
    let Some(answer) = run_with(text, Emu::default()) else { return };
    if !is_trustworthy(&answer) {
        return;
    }
    // The routers leave the line 0.31 s to 0.71 s after it has failed: of the datagrams, one in
    // 20 ms, 15 to 36 are lost, and up to three are on their way at the end. Without routers 300
    // would be lost.
    let count = |metric| mean(&answer, "control", metric);
    let missing = count(Metric::MessagesDue) - count(Metric::Messages);
    assert!((10.0..150.0).contains(&missing), "{missing} datagrams");
    // Readings are transmitted again over the standby link.
    assert_eq!(mean(&answer, "readings", Metric::MessageLoss), 0.0);
    let longest = mean(&answer, "readings", Metric::DelayMax);
    assert!((0.3..4.0).contains(&longest), "longest delay of a reading: {longest} s");
}
