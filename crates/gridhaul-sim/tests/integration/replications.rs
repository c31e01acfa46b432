//! Replications: confidence intervals, metrics of transfers, and the columns of a row.

use gridhaul_scenario::Scenario;
use gridhaul_scenario::answer::{Estimate, Metric, Point, Row, Scope};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_sim::Sim;

use crate::support::{run as answer, two_nodes};

/// A link of 1 Mbit/s between two nodes, with further keys of the scenario, the link and the flow.
fn line(keys: &str, link: &str, flow: &str) -> String {
    let link = format!("rate = '1 Mbit/s', delay = '10 ms', {link}");
    two_nodes(keys, &link, &format!("[flow.up]\nfrom = 'a'\nto = 'b'\n{flow}"))
}

fn point(keys: &str, link: &str, flow: &str) -> Point {
    answer(&line(keys, link, flow)).points.remove(0)
}

fn estimates(point: &Point) -> impl Iterator<Item = &Estimate> {
    point.flows.iter().chain(&point.links).flat_map(|row| row.metrics.values())
}

fn up(point: &Point, metric: Metric) -> Estimate {
    point.flows[0].metrics[&metric]
}

#[test]
fn replications_without_random_numbers_are_deterministic() {
    let point =
        point("duration = '5 s'\nreplications = 3", "queue = '10 packets'", "load = 'bulk'");
    assert!(point.deterministic);
    assert!(estimates(&point).all(|estimate| estimate.ci95.is_none()));
    assert_eq!(up(&point, Metric::Goodput).n, 3);
}

#[test]
fn equal_replications_of_a_random_run_are_not_deterministic() {
    // A loss so rare that it does not occur in three short runs.
    let rare = "loss = { bernoulli = '0.0000001 %' }";
    let point = point("duration = '5 s'\nreplications = 3", rare, "load = 'bulk'");
    assert!(!point.deterministic);
    assert_eq!(up(&point, Metric::Goodput).ci95, Some(0.0));
    assert!(up(&point, Metric::Goodput).mean.is_some_and(|mean| mean > 0.0));
}

#[test]
fn an_equal_count_does_not_make_a_random_run_deterministic() {
    // Ten messages in each replication, at random times.
    let periodic = "load.periodic = { size = '100 B', every = '1 s' }";
    let point = point("duration = '12 s'\nwarmup = '2 s'\nreplications = 5", "", periodic);
    assert!(!point.deterministic);
    let messages = up(&point, Metric::Messages);
    assert!(messages.ci95.is_some() && messages.n == 5, "{messages:?}");
}

#[test]
fn a_deterministic_run_does_not_depend_on_the_seed() {
    let links =
        ["", "queue = '4 packets'", "aqm = { codel = {} }", "loss = { packets = [5, 9, 17] }"];
    let loads = [
        "load = 'bulk'\ncount = 2\nstart_spread = '0 s'",
        "load.transfer.size = '200 kB'",
        "load.request_response = { request = '200 B', response = '20 kB', pause = '100 ms' }",
        "load.periodic = { size = '900 B', every = '20 ms', synchronised = true }",
        "load.burst = { size = '3 kB', at = '1 s', count = 5 }\nstart_spread = '0 s'",
    ];
    for (profile, phase) in [("rfc", ""), ("linux", ""), ("ns2", "clock_phase = '4 ms'")] {
        for congestion_control in ["reno", "vegas", "cubic", "bbr"] {
            for link in links {
                for load in loads {
                    let flow = format!(
                        "stack = 's'\n{load}\n[stack.s]\nprofile = '{profile}'\ncongestion_control \
                         = '{congestion_control}'\n{phase}"
                    );
                    let text = line("duration = '4 s'", link, &flow);
                    let Ok(mut scenario) = Scenario::from_toml(&text, "seed.toml") else {
                        continue;
                    };
                    assert!(scenario.is_deterministic(), "{text}");
                    let mut run = |seed| {
                        scenario.seed = seed;
                        Sim::default().run(&scenario, &NoProgress).expect("an answer").points
                    };
                    assert_eq!(run(1), run(2), "{text}");
                }
            }
        }
    }
}

/// A timeout occurs at a tick of the clock, whose phase is random for each agent in ns-2.
#[test]
fn replications_of_ns2_differ_in_the_phase_of_their_clocks() {
    let loss = "loss = { packets = [41, 42, 43] }";
    let answer = |phase| {
        let stack = format!("[stack.s]\nprofile = 'ns2'\ncongestion_control = 'reno'\n{phase}");
        let flow = format!("stack = 's'\nload.transfer.size = '60 kB'\n{stack}");
        point("duration = '30 s'\nreplications = 5", loss, &flow)
    };
    let (random, fixed) = (answer(""), answer("clock_phase = '3 ms'"));
    for point in [&random, &fixed] {
        assert!(up(point, Metric::Timeouts).mean.is_some_and(|timeouts| timeouts >= 1.0));
    }
    let interval = up(&random, Metric::CompletionTime).ci95.expect("five times");
    // Ticks of 10 ms: times differ by up to that, and twice that for the second timeout.
    assert!((0.001..0.1).contains(&interval), "{interval}");
    assert!(fixed.deterministic && !random.deterministic);
}

#[test]
fn every_row_has_every_column_of_its_scope() {
    for load in ["load = 'bulk'", "load.poisson = { size = '100 B', every = '1 s' }"] {
        let answer = answer(&line("duration = '5 s'", "", load));
        let columns = |row: &Row| row.metrics.keys().copied().collect::<Vec<_>>();
        let of_scope = |scope| Metric::of_every_row(scope).collect::<Vec<_>>();
        for row in &answer.points[0].flows {
            assert_eq!(columns(row), of_scope(Scope::Flow));
        }
        for row in &answer.points[0].links {
            assert_eq!(columns(row), of_scope(Scope::Link));
        }
        // An endless flow has no completion time.
        assert_eq!(up(&answer.points[0], Metric::CompletionTime), Estimate::default());
    }
}

#[test]
fn goodput_of_a_finished_transfer_is_size_over_completion_time() {
    // The transfer ends long before the run; the first two begin in the warm-up.
    let keys = "duration = '20 s'\nwarmup = '2 s'";
    for start in ["0 s", "1500 ms", "5 s"] {
        let flow = format!("start = '{start}'\nload.transfer.size = '100 kB'");
        let point = point(keys, "", &flow);
        let time = up(&point, Metric::CompletionTime).mean.expect("the transfer finished");
        assert!((0.8..2.0).contains(&time), "{time}");
        let goodput = up(&point, Metric::Goodput).mean.expect("the flow delivered data");
        assert!((goodput * time - 800_000.0).abs() < 1e-3, "{goodput} for {time} s");
        assert_eq!(up(&point, Metric::TransferRate).mean, Some(goodput));
        assert_eq!(up(&point, Metric::TransfersFinished).mean, Some(1.0));
        assert_eq!(up(&point, Metric::TransfersUnfinished).mean, Some(0.0));
    }
}

#[test]
fn goodput_of_several_transfers_does_not_exceed_the_link() {
    let point = point("duration = '60 s'", "", "count = 5\nload.transfer.size = '100 kB'");
    let goodput = up(&point, Metric::Goodput).mean.expect("the flows delivered data");
    // 1460 of 1500 bytes are payload; less during slow start.
    assert!((0.8e6..1e6 * 1460.0 / 1500.0).contains(&goodput), "{goodput}");
    let fairness = up(&point, Metric::Fairness).mean.expect("there are several flows");
    assert!((0.5..1.0).contains(&fairness), "the transfers finish at different times: {fairness}");
}

#[test]
fn a_completion_time_with_unfinished_transfers_is_censored() {
    // Transfers that start late cannot finish.
    let keys = "duration = '6 s'\nreplications = 6";
    let flow = "count = 4\nstart_spread = '6 s'\nload.transfer.size = '150 kB'";
    let answer = answer(&line(keys, "", flow));
    let point = &answer.points[0];
    let share = up(point, Metric::TransfersUnfinished).mean.expect("a share");
    let finished = up(point, Metric::TransfersFinished).mean.expect("a number");
    assert!(share > 0.0 && share < 1.0, "{share}");
    assert!((finished - 4.0 * (1.0 - share)).abs() < 1e-9);
    assert!(up(point, Metric::CompletionTime).censored && up(point, Metric::TransferRate).censored);
    assert!(!up(point, Metric::Goodput).censored);
    let warned = answer
        .warnings
        .iter()
        .any(|warning| warning.message.contains("transfers_unfinished_ratio"));
    assert!(warned, "{:?}", answer.warnings);
}

#[test]
fn n_is_the_number_of_replications_that_have_the_metric() {
    // One message a minute with a random phase: some runs of 30 s have no message.
    let flow = "transport = 'datagram'\nload.periodic = { size = '100 B', every = '60 s' }";
    let point = point("duration = '30 s'\nreplications = 12", "", flow);
    let delay = up(&point, Metric::DelayMean);
    assert!((1..12).contains(&delay.n), "{delay:?}");
    let loss = up(&point, Metric::MessageLoss);
    assert_eq!(loss.n, delay.n, "a run without messages has no loss of 0");
    assert_eq!(up(&point, Metric::Messages).n, 12);
}

#[test]
fn a_transfer_that_never_finishes_has_no_completion_time() {
    let point = point("duration = '2 s'", "", "load.transfer.size = '10 MB'");
    let time = up(&point, Metric::CompletionTime);
    assert_eq!((time.mean, time.n, time.censored), (None, 0, false));
    assert_eq!(up(&point, Metric::TransfersUnfinished).mean, Some(1.0));
    let goodput = up(&point, Metric::Goodput).mean.expect("a part was delivered");
    assert!((0.5e6..1e6).contains(&goodput), "{goodput}");
}
