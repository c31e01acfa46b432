//! Columns for the distribution over members (`record.distribution`), and rows that compare flows
//! (`record.fairness`).

use gridhaul_scenario::answer::{Answer, Metric};

use crate::schedulers::{close, mean, run};

const WORST_METER: &str = include_str!("../../../../scenarios/worst-meter.toml");

#[test]
fn the_worst_meter_and_the_fairness_are_those_of_the_hand_calculation() {
    let answer = run(WORST_METER);
    // The calculation is in the comment of the scenario.
    let reading = |metric| mean(&answer, "reading", metric);
    close(reading(Metric::MessageLoss), 0.05, 0.01);
    close(reading(Metric::MemberDeliveredMedian), 0.95, 0.005);
    // Standard deviations of both: 0.009 and 0.006 of one replication.
    close(reading(Metric::MemberDeliveredMin), 0.8815, 0.008);
    close(reading(Metric::MemberDeliveredP1), 0.891, 0.006);
    close(reading(Metric::MemberGoodputMedian), 95.0 * 800.0 / 3_600.0, 0.005);
    // Propagation, and 128 B at 20 kbit/s: the delay of all meters.
    for metric in [Metric::MemberDelayMedian, Metric::MemberDelayP99, Metric::MemberDelayMax] {
        close(reading(metric), 0.050 + 128.0 * 8.0 / 20e3, 1e-3);
    }
    close(mean(&answer, "services", Metric::Fairness), 0.735, 0.002);
    let sum = reading(Metric::Goodput) + mean(&answer, "status", Metric::Goodput);
    close(mean(&answer, "services", Metric::Goodput), sum, 1e-9);
}

fn row_names(answer: &Answer) -> Vec<&str> {
    answer.points[0].flows.iter().map(|row| row.name.as_str()).collect()
}

#[test]
fn other_rows_are_the_same_without_the_keys() {
    let (before, rest) = WORST_METER.split_once("[record]").unwrap();
    let (_, after) = rest.split_once("[node]").unwrap();
    let plain = run(&format!("{before}\n[node]{after}"));
    let mut with_keys = run(WORST_METER);
    assert_eq!(row_names(&plain), ["reading", "status"]);
    assert_eq!(row_names(&with_keys), ["reading", "status", "services"]);
    let point = &mut with_keys.points[0];
    point.flows.pop();
    assert!(point.flows[0].metrics.contains_key(&Metric::MemberDeliveredMin));
    assert!(!point.flows[1].metrics.contains_key(&Metric::MemberDeliveredMin));
    point.flows[0].metrics.retain(|metric, _| !metric.is_of_distributions());
    point.flows[0].replications.retain(|metric, _| !metric.is_of_distributions());
    assert_eq!(with_keys.points, plain.points);
}

#[test]
fn transfers_and_bulk_flows_are_compared_by_their_own_rates() {
    // 1 and 3 Mbit/s on links of their own, and a transfer at 2 Mbit/s that ends early: Jain's
    // index of 1, 3 and 2 is 36 / (3 * 14).
    let link = |name: &str, rate| {
        format!(
            "[link.{name}]\nfrom = '{name}'\nto = 'head'\nforward = {{ rate = '{rate} Mbit/s' }}\n\
             reverse = {{ rate = '10 Mbit/s' }}\n[node.{name}]\n[flow.{name}]\nfrom = '{name}'\n\
             to = 'head'\n"
        )
    };
    let text = format!(
        "title = 'three rates'\nduration = '60 s'\nrecord.fairness.all = ['a', 'b', 'c']\n\
         record.distribution = ['c']\n[node.head]\n{}load = 'bulk'\n{}load = 'bulk'\n\
         {}load.transfer = {{ size = '2 MB' }}\n",
        link("a", 1),
        link("b", 3),
        link("c", 2)
    );
    let answer = run(&text);
    close(mean(&answer, "all", Metric::Fairness), 36.0 / 42.0, 0.01);
    let all = answer.points[0].flows.iter().find(|row| row.name == "all").unwrap();
    assert_eq!(all.count, 3);
    assert_eq!(all.mean(Metric::Goodput), None, "rates of transfers are no sum");
    let transfer = mean(&answer, "c", Metric::Goodput);
    close(mean(&answer, "c", Metric::MemberGoodputMin), transfer, 1e-9);
}
