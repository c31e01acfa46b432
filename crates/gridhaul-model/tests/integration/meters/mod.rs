//! Scenarios of meters: agreement with paper `sa-tcp` and with the simulator, and convergence or a
//! warning for every answer.

mod backpressure;
mod case;
mod design;
mod link_loss;
mod start_keys;
mod threads;

use gridhaul_model::Model;
use gridhaul_scenario::answer::{Answer, DeadlineCheck, Metric, Row};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;

use self::case::{Case, FIGURE_10};

#[test]
fn loss_is_highest_over_one_hop_and_higher_with_vegas() {
    for backend in [&Model::REFINED as &dyn Backend, &Model::PAPER] {
        let [reno, vegas] = FIGURE_10.both(0).map(|case| case.loss(backend));
        assert!(vegas >= reno, "{reno} {vegas}");
    }
    // Section 5: the loss exceeds 0.7 in both cases.
    for backend in [&Model::REFINED as &dyn Backend, &Model::PAPER] {
        for case in FIGURE_10.both(0) {
            assert!(case.loss(backend) > 0.7);
        }
    }
}

#[test]
fn fifty_aggregators_reduce_the_loss_below_10_percent_with_the_papers_assumptions() {
    for case in FIGURE_10.both(50) {
        assert!(case.loss(&Model::PAPER) < 0.1);
    }
    // "Between 50 and 250" (section 5): under Vegas for most of them.
    let low = (50..=250).step_by(10).filter(|&n| FIGURE_10.both(n)[1].loss(&Model::PAPER) < 0.1);
    assert!(low.count() > 21 / 2);
}

/// A single aggregator is excluded: its window of 64 segments cannot saturate the link.
#[test]
fn loss_with_aggregators_is_below_one_hop_with_the_papers_assumptions() {
    let one_hop = FIGURE_10.both(0).map(|case| case.loss(&Model::PAPER));
    for aggregators in [2, 5, 20, 50, 100, 300, 1000] {
        for (case, one_hop) in FIGURE_10.both(aggregators).into_iter().zip(one_hop) {
            assert!(case.loss(&Model::PAPER) < one_hop, "{case:?}");
        }
    }
}

#[test]
fn loss_of_reno_falls_faster_and_of_vegas_stays_low_for_longer_with_the_papers_assumptions() {
    for aggregators in [1, 2, 5] {
        let [reno, vegas] = FIGURE_10.both(aggregators).map(|case| case.loss(&Model::PAPER));
        assert!(reno < vegas, "{aggregators}: {reno} {vegas}");
    }
    for aggregators in [20, 50, 100, 300] {
        let [reno, vegas] = FIGURE_10.both(aggregators).map(|case| case.loss(&Model::PAPER));
        assert!(vegas < reno, "{aggregators}: {reno} {vegas}");
    }
    for congestion_control in 0..2 {
        let losses =
            [20, 100, 300, 1000].map(|n| FIGURE_10.both(n)[congestion_control].loss(&Model::PAPER));
        assert!(losses.is_sorted(), "{losses:?}");
    }
}

#[test]
fn aggregators_increase_the_delay() {
    for backend in [&Model::REFINED as &dyn Backend, &Model::PAPER] {
        let delay = |case: Case| case.metric(backend, Metric::SegmentDelayTotal);
        for aggregators in [5, 50, 500] {
            for (one, two) in FIGURE_10.both(0).into_iter().zip(FIGURE_10.both(aggregators)) {
                assert!(delay(two) > delay(one));
            }
        }
    }
}

/// Measured with `gridhaul run` over 700 to 1500 s: 1 Mbit/s, 100 packets, a round-trip time of 50
/// ms.
#[test]
fn one_hop_agrees_with_the_packet_simulation() {
    let figure_7 = Case { rate: "1 Mbit/s", rtt_us: 50_000, rto_min: "200 ms", ..FIGURE_10 };
    for (meters, vegas, simulated) in [
        (12_000, false, 0.0020),
        (15_000, false, 0.3134),
        (20_000, false, 0.5035),
        (30_000, false, 0.5919),
        (12_000, true, 0.0022),
        (15_000, true, 0.3406),
        (20_000, true, 0.5511),
        (30_000, true, 0.6606),
    ] {
        let loss = Case { meters, vegas, ..figure_7 }.loss(&Model::REFINED);
        assert!((loss - simulated).abs() < 0.02, "{meters} {vegas}: {loss} {simulated}");
    }
}

/// Measured as above, with the restart behaviour of the profile: Reno begins a burst with one
/// segment, Vegas with a running timer.
#[test]
fn one_hop_with_restarts_agrees_with_the_packet_simulation() {
    let figure_7 = Case { rate: "1 Mbit/s", rtt_us: 50_000, rto_min: "200 ms", ..FIGURE_10 };
    for (meters, vegas, load, loss) in [
        (4_000, false, 0.497e6, 0.0),
        (8_000, false, 0.887e6, 0.0),
        (8_000, true, 0.970e6, 0.0),
        (16_000, true, 1.342e6, 0.2547),
        (24_000, true, 2.093e6, 0.5223),
        (32_000, true, 2.643e6, 0.6216),
    ] {
        let case = Case { meters, vegas, restart: true, ..figure_7 };
        let (offered, lost) =
            (case.metric(&Model::REFINED, Metric::OfferedLoad), case.loss(&Model::REFINED));
        assert!((offered / load - 1.0).abs() < 0.08, "{meters} {vegas}: {offered} {load}");
        assert!((lost - loss).abs() < 0.035, "{meters} {vegas}: {lost} {loss}");
    }
}

/// Measured with `gridhaul run bench/model/aggregators.toml`; deviations are explained in
/// docs/limitations/model-meters.md.
#[test]
fn aggregators_agree_with_the_packet_simulation() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/model/aggregators.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let scenario = Scenario::from_toml(&text, path).unwrap_or_else(|error| panic!("{error}"));
    let answer =
        Model::REFINED.run(&scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"));
    for (congestion_control, meters, aggregators, loss, delay) in [
        ("reno", "8000", "5", 0.0, Some(0.0533)),
        ("vegas", "8000", "200", 0.0, Some(0.0533)),
        ("reno", "20000", "20", 0.3773, Some(1.886)),
        ("vegas", "20000", "5", 0.3904, None),
        ("vegas", "12000", "20", 0.0117, None),
    ] {
        let wanted = [congestion_control, congestion_control, meters, aggregators];
        let point = answer.points.iter().find(|point| point.parameters.values().eq(wanted));
        let row = &point.expect("a point of the sweep").flows[0];
        let (lost, took) =
            (row.mean(Metric::SegmentLossTotal), row.mean(Metric::SegmentDelayTotal));
        let (lost, took) = (lost.unwrap(), took.unwrap());
        assert!((lost - loss).abs() < 0.02, "{wanted:?}: {lost} {loss}");
        if let Some(delay) = delay {
            let deviation: f64 = took / delay - 1.0;
            assert!(deviation.abs() < 0.1, "{wanted:?}: {took} {delay}");
        }
    }
}

/// Messages over a link of 1 Mbit/s and 25 ms with a queue: the row and the check of the deadline
/// of 5 s.
fn messages(
    meters: u64,
    vegas: bool,
    link_keys: &str,
    load: &str,
    backend: &dyn Backend,
) -> (Row, DeadlineCheck) {
    let congestion_control = if vegas { "vegas" } else { "reno" };
    let text = format!(
        "title = \"messages\"\nduration = \"300 s\"\n[node]\nmeter = {{ count = {meters} }}\nhead \
         = {{}}\n\
         [link.line]\nfrom = \"meter\"\nto = \"head\"\nshared = true\n\
         reverse = {{ rate = \"1 Gbit/s\", delay = \"25 ms\" }}\n\
         forward = {{ rate = \"1 Mbit/s\", delay = \"25 ms\", {link_keys} }}\n\
         [stack.meter]\nprofile = \"ns2\"\ncongestion_control = \"{congestion_control}\"\nmss \
         = \"200 B\"\n\
         header = \"40 B\"\nreceive_window = \"2 segments\"\nhandshake = false\n\
         [flow.reading]\nfrom = \"meter\"\nto = \"head\"\nstack = \"meter\"\ndeadline = \"5 s\"\n\
         load.{load}\n"
    );
    let scenario = Scenario::from_toml(&text, "messages.toml");
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    let answer = backend.run(&scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"));
    (answer.points[0].flows[0].clone(), answer.points[0].deadline_checks[0].clone())
}

const POISSON: &str = "poisson = { size = \"200 B\", every = \"24 s\" }";
const QUEUE: &str = "queue = \"100 packets\"";

/// Measured with `gridhaul run bench/model/delays.toml --on sim`: mean and 98th percentile, in
/// seconds. Packets of constant size wait half as long as with exponential sizes, so the equations
/// overestimate the delay.
#[test]
fn delays_of_messages_agree_with_the_packet_simulation_below_full_load() {
    for (meters, vegas, mean, p98) in [
        (2_500, false, 0.027_213, 0.029_119),
        (5_000, false, 0.027_620, 0.031_055),
        (7_500, false, 0.028_418, 0.034_463),
        (10_000, false, 0.030_752, 0.043_583),
        (2_500, true, 0.027_160, 0.029_023),
        (5_000, true, 0.027_574, 0.030_991),
        (7_500, true, 0.028_409, 0.034_463),
        (10_000, true, 0.030_986, 0.044_511),
    ] {
        let (row, check) = messages(meters, vegas, QUEUE, POISSON, &Model::REFINED);
        let assert_ratio = |metric, simulated: f64, maximum: f64| {
            let ratio = row.mean(metric).unwrap() / simulated;
            assert!((0.99..maximum).contains(&ratio), "{meters} {vegas}: {metric} {ratio}");
        };
        assert_ratio(Metric::DelayMean, mean, 1.14);
        assert_ratio(Metric::DelayP98, p98, 1.46);
        assert_eq!((check.met, check.measured.unwrap() > 0.9999), (Some(true), true));
    }
}

/// Measured with `gridhaul run bench/model/bursts.toml --on sim`.
#[test]
fn delays_of_bursts_in_overload_are_dominated_by_timeouts() {
    let bursts = "on_off = { on = \"100 ms\", off = \"1 min\", size = \"200 B\" }";
    for (meters, vegas, mean, deadline_met) in
        [(32_000, false, 11.57, 0.832), (16_000, true, 6.18, 0.849), (24_000, true, 33.6, 0.492)]
    {
        let (row, check) = messages(meters, vegas, QUEUE, bursts, &Model::REFINED);
        let ratio = row.mean(Metric::DelayMean).unwrap() / mean;
        assert!((0.8..1.25).contains(&ratio), "{meters} {vegas}: {ratio}");
        let share = check.measured.unwrap();
        assert!((share - deadline_met).abs() < 0.08, "{meters} {vegas}: {share}");
        assert_eq!(check.met, Some(false));
    }
}

#[test]
fn limiting_delays_are_exact_or_missing() {
    let delays = [Metric::DelayMean, Metric::DelayMedian, Metric::DelayP98];
    for vegas in [false, true] {
        let row_with = |link_keys, load| messages(100, vegas, link_keys, load, &Model::REFINED);
        // No loss and almost no queueing: 1.92 ms transmission and 25 ms propagation.
        let (row, check) = row_with(QUEUE, POISSON);
        for metric in delays {
            assert!((row.mean(metric).unwrap() / 0.02692 - 1.0).abs() < 0.01, "{metric}");
        }
        assert!(check.measured.unwrap() > 0.9999);
        // Capacity for the packet in transmission only: delivered packets have not waited.
        let (row, _) = row_with("queue = \"0 packets\"", POISSON);
        let median = row.mean(Metric::DelayMedian).unwrap();
        assert!((median / 0.02692 - 1.0).abs() < 1e-6, "{median}");
        // Loss of 50 %: half arrives at once, and each timeout delivers half of the rest.
        let (row, check) = row_with(
            "loss.bernoulli = \"50 %\"",
            "poisson = { size = \"200 B\", every = \"1 h\" \
                }",
        );
        assert!(row.mean(Metric::DelayMean).unwrap() > 1.0);
        let (share, low) = (check.measured.unwrap(), if vegas { 0.5 } else { 0.75 });
        assert!(share > low && share < 1.0, "{share}");
        // Very rare messages do not interact. (A rate of zero is rejected by the scenario.)
        let (row, _) = row_with(QUEUE, "poisson = { size = \"200 B\", every = \"876000 h\" }");
        assert!((row.mean(Metric::DelayP98).unwrap() / 0.02692 - 1.0).abs() < 1e-6);
        // Without delivery there is no delay.
        let (row, check) = row_with("loss.bernoulli = \"100 %\"", POISSON);
        assert!(delays.iter().all(|metric| row.mean(*metric).is_none()), "{row:?}");
        assert_eq!((check.measured, check.met), (None, None));
        // The offered load exceeds the capacity: backlog and delay grow without bound.
        let (row, check) = messages(20_000, vegas, QUEUE, POISSON, &Model::REFINED);
        assert_eq!((row.mean(Metric::DelayMean), check.met), (None, None));
        // The paper's chain gives rates only.
        assert_eq!(messages(100, vegas, QUEUE, POISSON, &Model::PAPER).1.met, None);
    }
}

/// A message of several segments takes one round trip for each window before the last.
#[test]
fn long_messages_take_several_windows() {
    let load = "periodic = { size = \"1000 B\", every = \"1 h\" }";
    // 50 ms plus the transmission times of a segment (1.92 ms) and an acknowledgement (negligible).
    let (rtt, transit) = (0.05192, 0.02692);
    // Five segments: Vegas sends 2, 2, 1; Reno after a silence 1, 2, 2.
    for vegas in [false, true] {
        let (row, _) = messages(10, vegas, QUEUE, load, &Model::REFINED);
        let delay = row.mean(Metric::DelayMean).unwrap();
        assert!((delay / (2.0 * rtt + transit) - 1.0).abs() < 0.02, "{delay}");
    }
}

/// A sample of `cargo run --release -p gridhaul-model --example robustness`.
#[test]
fn random_scenarios_are_solved_or_cause_a_warning() {
    let mut unsolved = 0;
    for number in 0..60 {
        for paper in [false, true] {
            let outcome = design::solve(number, paper).unwrap_or_else(|wrong| panic!("{wrong}"));
            unsolved += u32::from(outcome.unsolved);
            assert!(outcome.unsolved || outcome.residual < 1e-6);
        }
    }
    assert_eq!(unsolved, 0);
}

/// Cases found by the random scenarios: packets of different sizes in one queue, whose mean size
/// lagged by one evaluation; and two saturated queues in series that oscillated.
#[test]
fn hard_cases_are_solved() {
    for (number, paper) in [(127, true), (174, false), (174, true), (293, false)] {
        let outcome = design::solve(number, paper).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert!(!outcome.unsolved, "{number} {paper}");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/district.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.split("[plan]").next().unwrap().replace("count = 20\n", "count = 6\n");
    let text = text.replace("rate = \"1 Mbit/s\"", "rate = \"256 kbit/s\"");
    let scenario = Scenario::from_toml(&text, path).unwrap_or_else(|error| panic!("{error}"));
    let answer =
        Model::REFINED.run(&scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"));
    assert!(
        answer.warnings.iter().all(|warning| warning.about != "model"),
        "{:?}",
        answer.warnings
    );
}

/// Checks that every answer of the grid has finite values and ratios in their range, and a small
/// residual or a warning. Returns the numbers of points and warnings, and the worst residual.
fn grid(
    meters: &[u64],
    aggregators: &[u64],
    rates: &[&'static str],
    queues: &[u64],
    rtts: &[u64],
) -> (u32, u32, f64) {
    let (mut points, mut warned, mut worst) = (0, 0, 0.0_f64);
    for backend in [&Model::REFINED as &dyn Backend, &Model::PAPER] {
        for &meters in meters {
            for &aggregators in aggregators.iter().filter(|&&aggregators| aggregators < meters) {
                for &rate in rates {
                    for &queue in queues {
                        for &rtt_us in rtts {
                            for vegas in [false, true] {
                                let network =
                                    Case { meters, aggregators, rate, queue, ..FIGURE_10 };
                                let case = Case { rtt_us, vegas, ..network };
                                let answer = case.answer(backend);
                                let residual = check(&case, &answer);
                                points += 1;
                                let unsolved =
                                    answer.warnings.iter().any(|warning| warning.about == "model");
                                warned += u32::from(unsolved);
                                assert!(residual < 1e-6 || unsolved, "{case:?}: {residual}");
                                worst = worst.max(residual);
                            }
                        }
                    }
                }
            }
        }
    }
    (points, warned, worst)
}

fn check(case: &Case, answer: &Answer) -> f64 {
    let mut worst = 0.0_f64;
    for row in &answer.points[0].flows {
        for metric in [Metric::Goodput, Metric::SegmentLoss, Metric::RttMean, Metric::Residual] {
            assert!(row.mean(metric).is_some(), "{case:?}: {metric} is not a number");
        }
        for (metric, estimate) in &row.metrics {
            let Some(value) = estimate.mean else { continue };
            assert!(value >= 0.0, "{case:?}: {metric} {value}");
            if matches!(
                metric,
                Metric::SegmentLoss | Metric::SegmentLossTotal | Metric::RetransmissionRatio
            ) {
                assert!(value <= 1.0, "{case:?}: {metric} {value}");
            }
            if *metric == Metric::Residual {
                worst = worst.max(value);
            }
        }
    }
    worst
}

#[test]
fn every_corner_of_the_grid_converges() {
    grid(
        &[1_000, 10_000_000],
        &[0, 1, 500],
        &["64 kbit/s", "1 Gbit/s"],
        &[1, 100],
        &[1_000, 5_000_000],
    );
}

/// `cargo test --release -p gridhaul-model --test integration meters -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes: the whole grid"]
fn the_whole_grid_converges() {
    let (points, warned, worst) = grid(
        &[1_000, 100_000, 10_000_000],
        &[0, 1, 100, 10_000],
        &["64 kbit/s", "2 Mbit/s", "1 Gbit/s"],
        &[1, 100, 10_000],
        &[1_000, 100_000, 5_000_000],
    );
    println!("{points} points, {warned} with warnings, worst residual {worst:.1e}");
}
