//! Completion times of transfers that share a link.

use gridhaul_model::Model;
use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;

/// Twenty transfers of 5 kB over 1 Mbit/s, of which one takes 73 ms.
fn answer(spread: &str) -> Answer {
    answer_of("5 kB", spread)
}

fn answer_of(size: &str, spread: &str) -> Answer {
    let text = format!(
        "title = \"transfers\"\nduration = \"100 s\"\n[node]\na = {{}}\nb = {{}}\n\
         [link.l]\nfrom = \"a\"\nto = \"b\"\n\
         both = {{ rate = \"1 Mbit/s\", delay = \"10 ms\", queue = \"200 packets\" }}\n\
         [flow.f]\nfrom = \"a\"\nto = \"b\"\ncount = 20\n{spread}\n\
         load.transfer = {{ size = \"{size}\" }}\n"
    );
    let scenario =
        Scenario::from_toml(&text, "transfers.toml").unwrap_or_else(|error| panic!("{error}"));
    Model::REFINED.run(&scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"))
}

fn mean_s(answer: &Answer) -> Option<f64> {
    answer.points[0].flows[0].mean(Metric::CompletionTime)
}

/// The simulator has 73.5 ms: the link is used for 1.7 % of the time in which they start.
#[test]
fn transfers_that_hardly_meet_take_the_time_of_one() {
    let time_s = mean_s(&answer("start_spread = \"50 s\"")).unwrap();
    assert!((time_s / 0.0735 - 1.0).abs() < 0.01, "{time_s}");
}

/// The simulator has a mean of 476.6 ms: the link transmits one transfer after another.
#[test]
fn transfers_that_start_at_once_wait_for_half_of_the_others() {
    let answer = answer("start_spread = \"0 s\"");
    let time_s = mean_s(&answer).unwrap();
    assert!((time_s / 0.4766 - 1.0).abs() < 0.01, "{time_s}");
    let goodput = answer.points[0].flows[0].mean(Metric::Goodput).unwrap();
    assert!((goodput / 908_744.0 - 1.0).abs() < 0.01, "{goodput}");
}

/// Rounds of several transfers interleave: only the bounds are known.
#[test]
fn transfers_of_several_rounds_that_start_at_once_have_neither_mean_nor_goodput() {
    let answer = answer_of("100 kB", "start_spread = \"0 s\"");
    assert_eq!(mean_s(&answer), None);
    assert_eq!(answer.points[0].flows[0].mean(Metric::Goodput), None);
}

/// The simulator has 150 ms, between one transfer and the last of all.
#[test]
fn transfers_that_overlap_in_part_have_no_mean() {
    let answer = answer("");
    assert_eq!(mean_s(&answer), None);
    let note = "the transfers share a link and overlap";
    assert!(answer.warnings.iter().any(|warning| warning.message.contains(note)), "{answer:?}");
}
