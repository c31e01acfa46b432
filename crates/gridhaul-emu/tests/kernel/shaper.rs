//! Shapers: the token buckets of the kernel, with the cases of the simulator.

use gridhaul_scenario::answer::Metric;
use gridhaul_testing::LinkCase;

use crate::medium::check;
use crate::{mean, run};

#[test]
fn a_shaper_enforces_guarantees_and_limits_without_a_queue_downstream() {
    let [shares, _] = LinkCase::shapers();
    let Some(answer) = run("", &shares.scenario) else { return };
    check(&shares, &answer);
    // Packets leave one by one and do not queue at the link.
    let waiting = mean(&answer, "wire.forward", Metric::QueueMean);
    assert!(waiting < 0.2, "{waiting} packets");
}

#[test]
fn a_shaper_cuts_a_burst_into_packets() {
    let [_, burst] = LinkCase::shapers();
    let Some(answer) = run("", &burst.scenario) else { return };
    check(&burst, &answer);
    assert!(mean(&answer, "wire.forward", Metric::QueueMax) <= 2.0);
}
