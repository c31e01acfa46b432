//! Hundreds to thousands of meters, compared with ns-2 (`conformance/ns2/meters.csv`).

use std::fmt::Write as _;

use gridhaul_conformance::ns2_grid::agree;
use gridhaul_conformance::ns2_meters::{MetersPoint, QUANTITIES, points};

/// The points with most packets run only in the example `meters`.
fn is_quick(point: &MetersPoint) -> bool {
    point.meters <= 100 || point.meters <= 1000 && point.window == 2
}

#[test]
fn meters_agree_with_ns2() {
    let mut table = String::new();
    let mut differ = 0;
    for point in points().iter().filter(|point| is_quick(point)) {
        let own = point.simulate(5).unwrap_or_else(|error| panic!("{}: {error}", point.name));
        for (index, (ns2, own)) in point.ns2.iter().zip(own).enumerate() {
            let (Some(ns2), Some(own)) = (*ns2, own) else { continue };
            if !agree(ns2, own) && point.deviation(index).is_none() {
                differ += 1;
                let name = QUANTITIES[index];
                let _ = writeln!(table, "{}: {name}: ns-2 {ns2:?}, sim {own:?}", point.name);
            }
        }
    }
    assert_eq!(differ, 0, "mean and half width of the confidence interval:\n{table}");
}
