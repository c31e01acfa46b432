//! UDP over links with known delay, loss, duplication and reordering.

use gridhaul_measure::method::{Phase, Proportion, Summary};
use gridhaul_measure::place::Sites;
use gridhaul_measure::protocol::{Null, Protocol, Udp};

use crate::{
    Measured, longest_gap_ms, median, millis, on_network, plan, repeated, run, scenario, turn,
    undisturbed,
};

#[test]
fn udp_measures_the_delay_of_a_link() {
    let Some(_turn) = turn(&[]) else { return };
    let scenario = scenario("delay = \"20 ms\"", "delay = \"20 ms\"");
    let is_expected = |summary: &Summary| (20.0..21.5).contains(&median(summary));
    let Measured { outcome, rows, is_disturbed } = repeated(is_expected, || {
        on_network(&scenario, "test", |sites| run(&plan(100.0, 200), &Udp, sites)).unwrap()
    });
    let summary = &outcome.summary;
    assert_eq!((summary.counts.messages, summary.counts.lost), (200, 0), "{:?}", summary.counts);
    assert!(is_expected(summary) || is_disturbed, "{} ms", median(summary));
    assert!(
        rows.iter()
            .all(|row| row.latency_from_send().is_some_and(|latency| millis(latency) >= 20.0))
    );
    assert_eq!(rows.len(), 300, "the rows contain the warm-up");
    assert_eq!(rows.iter().filter(|row| row.phase == Phase::WarmUp).count(), 100);
}

#[test]
fn udp_counts_the_loss_of_a_link_within_its_interval() {
    let Some(_turn) = turn(&[]) else { return };
    let scenario = scenario("delay = \"5 ms\", loss = { bernoulli = \"1 %\" }", "delay = \"5 ms\"");
    let plan = plan(1_000.0, 8_000);
    let (outcome, rows) = on_network(&scenario, "test", |sites| run(&plan, &Udp, sites)).unwrap();
    let loss = outcome.summary.loss();
    let [low, high] = loss.bounds(0.999);
    assert!(low <= 0.01 && 0.01 <= high, "{loss:?}: {low} to {high}");
    assert!(loss.count > 0 && outcome.summary.counts.refused == 0);
    let lost = rows.iter().filter(|row| row.phase != Phase::WarmUp && row.received.is_none());
    assert_eq!(lost.count() as u64, loss.count, "the log and the summary agree");
}

#[test]
fn an_outage_of_a_link_is_a_gap_of_the_same_length() {
    let Some(_turn) = turn(&[]) else { return };
    let outage = "delay = \"5 ms\", outage = [{ start = \"3 s\", length = \"2 s\" }]";
    let scenario = scenario(outage, "delay = \"5 ms\"");
    // One message interval of 10 ms, and the jitter of a shared machine.
    let is_expected = |summary: &Summary| (1_985.0..2_025.0).contains(&longest_gap_ms(summary));
    let (outcome, _) = undisturbed(is_expected, || {
        on_network(&scenario, "test", |sites| run(&plan(100.0, 600), &Udp, sites)).unwrap()
    });
    assert!(is_expected(&outcome.summary), "{} ms", longest_gap_ms(&outcome.summary));
    let lost = outcome.summary.counts.lost;
    assert!((199..=202).contains(&lost), "{lost}");
}

#[test]
fn duplicates_are_counted_exactly_and_are_no_losses() {
    let Some(_turn) = turn(&[]) else { return };
    let scenario = scenario("delay = \"5 ms\", duplicate = \"100 %\"", "delay = \"5 ms\"");
    let plan = plan(500.0, 500);
    let (outcome, _) = on_network(&scenario, "test", |sites| run(&plan, &Udp, sites)).unwrap();
    let counts = outcome.summary.counts;
    assert_eq!((counts.messages, counts.lost, counts.duplicates), (500, 0, 500), "{counts:?}");
}

#[test]
fn reordered_messages_are_counted_and_are_no_losses() {
    let Some(_turn) = turn(&[]) else { return };
    let reorder = "delay = \"5 ms\", reorder = { probability = \"10 %\", delay = \"5 ms\" }";
    let scenario = scenario(reorder, "delay = \"5 ms\"");
    let plan = plan(1_000.0, 2_000);
    let (outcome, _) = on_network(&scenario, "test", |sites| run(&plan, &Udp, sites)).unwrap();
    let counts = outcome.summary.counts;
    let share = Proportion { count: counts.reordered, of: counts.messages };
    let [low, high] = share.bounds(0.999);
    // A delayed message is not overtaken if the machine delays its successors as well.
    assert!(low <= 0.1 && high >= 0.09 && counts.lost == 0, "{counts:?}");
}

#[test]
fn on_the_loopback_device_no_message_is_lost() {
    for protocol in [&Null as &dyn Protocol, &Udp] {
        let (outcome, _) = run(&plan(1_000.0, 500), protocol, &Sites::loopback());
        let counts = outcome.summary.counts;
        assert_eq!((counts.messages, counts.lost, counts.duplicates), (500, 0, 0), "{protocol:?}");
    }
}
