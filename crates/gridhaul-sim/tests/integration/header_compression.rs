//! Header compression as a byte model.

use gridhaul_scenario::answer::{Metric, Point};

use crate::schedulers::{close, run};

#[test]
fn compressed_headers_make_room_for_the_readings() {
    let answer = run(include_str!("../../../../scenarios/header-compression.toml"));
    let [without, with] = &answer.points[..] else { panic!("two points") };
    let known = |point: &Point, metric| {
        let mut rows = point.flows.iter().chain(&point.links);
        rows.find_map(|row| row.mean(metric).filter(|_| row.name != "meters.forward")).unwrap()
    };
    // The calculation is in the comment of the scenario.
    close(known(without, Metric::MessageLoss), 1.0 - 9_600.0 / 12_960.0, 0.02);
    close(known(without, Metric::Utilisation), 1.0, 0.001);
    assert_eq!(known(with, Metric::MessageLoss), 0.0);
    close(known(with, Metric::Utilisation), 0.8, 0.01);
    // Headers are restored: the flow has the same load in both cases.
    close(known(with, Metric::OfferedLoad), 15.0 * 864.0, 0.001);
    assert!(known(with, Metric::DelayMean) >= 0.353_3, "{}", known(with, Metric::DelayMean));
}
