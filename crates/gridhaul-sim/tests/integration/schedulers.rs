//! Schedulers: priority, shares and rates of classes.

use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_sim::Sim;

pub(crate) fn run(text: &str) -> Answer {
    let scenario = Scenario::from_toml(text, "test.toml").expect("a scenario");
    Sim::default().run(&scenario, &NoProgress).expect("a run")
}

pub(crate) fn mean(answer: &Answer, name: &str, metric: Metric) -> f64 {
    let mut rows = answer.points[0].flows.iter().chain(&answer.points[0].links);
    let row = rows.find(|row| row.name == name).expect("a row of this name");
    row.mean(metric).unwrap_or_else(|| panic!("{name} has no {metric:?}"))
}

#[track_caller]
pub(crate) fn close(value: f64, expected: f64, relative: f64) {
    let off = (value / expected - 1.0).abs();
    assert!(off <= relative, "{value} is {:.2} % off {expected}", off * 100.0);
}

const PRIORITY: &str = include_str!("../../../../scenarios/priority.toml");

#[test]
fn control_messages_wait_for_one_packet_of_the_readings() {
    let text = PRIORITY.replace("duration = \"20 s\"", "duration = \"500 s\"");
    let answer = run(&text);
    // The calculation is in the comment of the scenario.
    let largest = 0.070_977;
    assert!(mean(&answer, "control", Metric::DelayMax) <= largest);
    close(mean(&answer, "control", Metric::DelayP98), 0.070_0, 0.01);
    close(mean(&answer, "control", Metric::DelayMean), 0.024_102 + 0.046_875 / 2.0, 0.05);
    assert_eq!(answer.points[0].deadline_checks[0].met, Some(true));
    let used =
        |class: &str| mean(&answer, &format!("backhaul.forward.{class}"), Metric::Utilisation);
    close(used("control"), 0.004, 0.02);
    close(used("readings"), 0.996, 0.001);
    close(mean(&answer, "backhaul.forward", Metric::Utilisation), 1.0, 0.001);
    // Without the scheduler a message waits for all packets of the queue.
    let (begin, end) = ("[link.backhaul.forward.scheduler.class]", "[stack.meter]");
    let common: String = {
        let (before, rest) = PRIORITY.split_once(begin).unwrap();
        let (_, after) = rest.split_once(end).unwrap();
        [before, end, after].concat()
    };
    let delay = mean(&run(&common), "control", Metric::DelayMedian);
    assert!(delay > 1.0, "{delay} s");
}

/// Three flows of bulk data over 2 Mbit/s with this scheduler.
fn three_flows(scheduler: &str) -> Answer {
    let flow = |name: &str, keys: &str| {
        format!("[flow.{name}]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\n{keys}\n")
    };
    run(&format!(
        "title = 'classes'\nduration = '40 s'\nwarmup = '5 s'\n[node]\nnear = {{}}\nfar = {{}}\n\
         [link.wire]\nfrom = 'near'\nto = 'far'\nreverse = {{ rate = '2 Mbit/s' }}\n\
         [link.wire.forward]\nrate = '2 Mbit/s'\ndelay = '5 ms'\n{scheduler}\n{}{}{}",
        flow("alarm", "dscp = 'AF21'"),
        flow("slow", "dscp = 'AF21'"),
        flow("other", ""),
    ))
}

#[test]
fn classes_share_a_link_by_their_weights_and_a_token_bucket_limits_one() {
    let answer = three_flows(
        "scheduler.class.alarm = { dscp = ['AF21'], weight = 3 }\n\
         scheduler.class.slow = { flows = ['slow'], rate = '200 kbit/s' }\n\
         scheduler.class.other = {}",
    );
    let used = |class: &str| mean(&answer, &format!("wire.forward.{class}"), Metric::Utilisation);
    // 10 %, and three and one quarters of the other 90 %.
    close(used("slow"), 0.1, 0.01);
    close(used("alarm"), 0.675, 0.01);
    close(used("other"), 0.225, 0.01);
    let counts = |name: &str, metric| mean(&answer, name, metric);
    for metric in [Metric::PacketsIn, Metric::PacketsOut, Metric::DropsQueue] {
        let classes: f64 = ["alarm", "slow", "other"]
            .map(|class| counts(&format!("wire.forward.{class}"), metric))
            .iter()
            .sum();
        assert_eq!(classes, counts("wire.forward", metric), "{metric}");
    }
}

#[test]
fn each_class_has_its_own_queue_management() {
    let answer = three_flows(
        "scheduler.class.alarm = { flows = ['alarm'], aqm.codel = {} }\n\
         scheduler.class.slow = { flows = ['slow'], queue = '10 packets' }\n\
         scheduler.class.other = { aqm.fq_codel = {}, queue = '200 packets' }",
    );
    let class_mean = |class: &str, metric| mean(&answer, &format!("wire.forward.{class}"), metric);
    assert_eq!(class_mean("slow", Metric::QueueMax), 10.0);
    // Each class has a third of 2 Mbit/s, at which 10 packets take 180 ms.
    assert!(
        class_mean("alarm", Metric::LinkDelayMean) < 0.15,
        "{}",
        class_mean("alarm", Metric::LinkDelayMean)
    );
    for class in ["alarm", "slow", "other"] {
        close(class_mean(class, Metric::Utilisation), 1.0 / 3.0, 0.03);
    }
}

/// Packets of 1000 B take 8 ms, and a packet arrives every second: none waits.
#[test]
fn a_packet_that_the_transmitter_takes_at_once_is_in_no_queue() {
    for keys in ["{}", "{ queue = '0 packets' }"] {
        let answer = run(&format!(
            "title = 't'\nduration = '10 s'\n[node]\na = {{}}\nb = {{}}\n\
             [link.l]\nfrom = 'a'\nto = 'b'\nreverse.rate = '10 Mbit/s'\n\
             forward = {{ rate = '1 Mbit/s', scheduler.class.own = {keys} }}\n\
             [flow.f]\nfrom = 'a'\nto = 'b'\ntransport = 'datagram'\n\
             load.periodic = {{ size = '972 B', every = '1 s', synchronised = true }}"
        ));
        for row in ["l.forward", "l.forward.own"] {
            assert_eq!(mean(&answer, row, Metric::QueueMax), 0.0, "{row} with {keys}");
            assert_eq!(mean(&answer, row, Metric::PacketsOut), 10.0, "{row} with {keys}");
        }
    }
}
