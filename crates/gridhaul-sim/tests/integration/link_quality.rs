//! Distribution of the quality of links over the members of a group.

use std::path::Path;

use gridhaul_scenario::answer::Metric;

use crate::schedulers::{close, mean, run};

const QUALITY: &str = include_str!("../../../../scenarios/link-quality.toml");

/// Means over the ranks: loss, delay of the readings that arrive, and share within the deadline.
struct Expected {
    loss: f64,
    delay: f64,
    met: f64,
}

/// The integrals of the comment of the scenario.
fn expected() -> Expected {
    const STEPS: u32 = 100_000;
    let at = |quantiles: [f64; 5], rank: f64| {
        let index = ((rank * 4.0) as usize).min(3);
        quantiles[index] + (quantiles[index + 1] - quantiles[index]) * (rank * 4.0 - index as f64)
    };
    let (mut arrived, mut delays, mut met) = (0.0, 0.0, 0.0);
    for step in 0..STEPS {
        let rank = (f64::from(step) + 0.5) / f64::from(STEPS);
        let rate = at([8e3, 30e3, 60e3, 110e3, 250e3], rank);
        let weight = 1.0 - at([0.12, 0.04, 0.015, 0.005, 0.0], rank);
        let delay = 4_224.0 / rate + at([0.4, 0.15, 0.08, 0.06, 0.04], rank);
        arrived += weight / f64::from(STEPS);
        delays += weight * delay / f64::from(STEPS);
        met += if delay <= 0.5 { weight / f64::from(STEPS) } else { 0.0 };
    }
    Expected { loss: 1.0 - arrived, delay: delays / arrived, met }
}

#[test]
fn meters_have_the_measured_quantiles() {
    let answer = run(QUALITY);
    let expected = expected();
    assert!((expected.loss - 0.03).abs() < 1e-6);
    // 20,000 readings of 5,000 random ranks: standard deviations of 4 %, 1 % and 0.6 %.
    close(mean(&answer, "reading", Metric::MessageLoss), expected.loss, 0.15);
    close(mean(&answer, "reading", Metric::DelayMean), expected.delay, 0.04);
    close(mean(&answer, "reading", Metric::DeadlineMet), expected.met, 0.02);
    close(mean(&answer, "reading", Metric::DelayP98), 0.803, 0.05);
    let load = 20_000.0 * 4_224.0 / 3_600.0 / 5_000.0;
    close(mean(&answer, "radio.forward", Metric::Utilisation), load / 82.25e3, 0.01);
}

#[test]
fn the_same_seed_gives_the_same_links_and_a_larger_group_keeps_them() {
    // Without a queue, the delay of each reading of a meter is that of its link.
    let delays = |count: u32, seed: u32, replication: u32| {
        let text = QUALITY
            .replace("count = 5000", &format!("count = {count}"))
            .replace("duration", &format!("seed = {seed}\nreplications = 2\nduration"))
            .replace("[node]", "[record]\nmembers = [\"reading\"]\n[node]");
        let rows = run(&text).points[0].members.clone();
        let row = rows.into_iter().find(|row| row.replication == replication).expect("a row");
        let delays = &row.metrics[&Metric::DelayMean];
        delays[..10].iter().map(|delay| delay.expect("readings arrive")).collect::<Vec<_>>()
    };
    let ten = delays(10, 1, 0);
    assert_eq!(ten, delays(10, 1, 0));
    assert_eq!(ten, delays(30, 1, 0));
    assert_ne!(ten, delays(10, 2, 0));
    assert_ne!(ten, delays(10, 1, 1));
}

#[test]
fn ranks_are_independent_or_common() {
    // Readings of 528 B at 8 or 80 kbit/s, and an additional delay of 0 or 1 s at the same ranks:
    // with a common rank, a delay of 0.528 s - 0.4752 s * rank + rank.
    let spread = |common: bool, own_delay: &str| {
        let (head, rest) = QUALITY.split_once("rate = [").expect("quantiles of the rate");
        let (_, rest) = rest.split_once("common_rank = true").expect("the end of the quantiles");
        let quality = format!(
            "rate = ['8 kbit/s', '80 kbit/s']\ndelay = ['0 s', '1 s']\ncommon_rank = {common}"
        );
        let table = "[link.radio.both.quality]";
        let own = format!("[link.radio.both]\ndelay = '{own_delay}'\n{table}");
        let text = format!("{}{quality}{rest}", head.replace(table, &own));
        mean(&run(&text), "reading", Metric::DelayMax)
    };
    // The slowest link with the longest delay has 1.528 s, of a common rank 1.0528 s.
    let [independent, common] = [spread(false, "0 s"), spread(true, "0 s")];
    assert!(independent > 1.2 && independent < 1.528, "{independent}");
    assert!(common > 1.05 && common < 1.0529, "{common}");
    // The delay of the direction is added to that of the member.
    close(spread(true, "2 s"), common + 2.0, 1e-6);
}

#[test]
fn quantiles_of_a_file_have_their_ranks() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/traces");
    let text = include_str!("../../../../scenarios/measured-meters.toml")
        .replace("traces/", &format!("{}/", folder.display()));
    let answer = run(&text);
    // 8,000 readings of 2,000 random ranks: standard deviations of 7 % and 0.3 %.
    close(mean(&answer, "reading", Metric::MessageLoss), 0.0326, 0.25);
    close(mean(&answer, "reading", Metric::DeadlineMet), 0.9532, 0.012);
    let load = 8_000.0 * 4_224.0 / 3_600.0 / 2_000.0;
    close(mean(&answer, "radio.forward", Metric::Utilisation), load / 81.99e3, 0.01);
}
