//! Prints all points with many meters: ns-2, gridhaul and their difference. Slow; use `--release`.
//!
//! Arguments: number of replications (default 5), and a part of the name of the points.

use gridhaul_conformance::ns2_grid::agree;
use gridhaul_conformance::ns2_meters::{QUANTITIES, points};

fn main() {
    let replications = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(5);
    let only = std::env::args().nth(2).unwrap_or_default();
    let mut bad = 0;
    for point in points().iter().filter(|point| point.name.contains(&only)) {
        println!("{}", point.name);
        let own = point.simulate(replications).unwrap_or_else(|error| panic!("{error}"));
        for (index, (ns2, own)) in point.ns2.iter().zip(own).enumerate() {
            let (Some(ns2), Some(own)) = (*ns2, own) else { continue };
            let explanation = match (agree(ns2, own), point.deviation(index)) {
                (true, _) => "",
                (false, Some(reason)) => reason,
                (false, None) => "<-- not explained",
            };
            bad += u32::from(explanation == "<-- not explained");
            println!(
                "  {:<24} ns-2 {:11.4} ± {:9.4}  gridhaul {:11.4} ± {:9.4}  {:+6.2} \
                 %  {explanation}",
                QUANTITIES[index],
                ns2.0,
                ns2.1,
                own.0,
                own.1,
                if ns2.0 == own.0 { 0.0 } else { (own.0 / ns2.0 - 1.0) * 100.0 },
            );
        }
    }
    println!("{bad} quantities differ without a reason");
    std::process::exit(i32::from(bad > 0));
}
