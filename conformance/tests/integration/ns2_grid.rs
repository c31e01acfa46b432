//! Goodput at a part of the grid of single flows, compared with ns-2 (`conformance/ns2/grid.csv`).

use std::fmt::Write as _;

use gridhaul_conformance::ns2_grid::grid;

/// Points without random loss, which need one run, and points with loss and few packets.
fn is_quick(name: &str) -> bool {
    name.contains("-l0-") || name.starts_with("r64-")
}

#[test]
fn goodput_agrees_with_ns2() {
    let mut table = String::new();
    let mut differ = 0;
    for point in grid().iter().filter(|point| is_quick(&point.name)) {
        let goodput = point.simulate(5).unwrap_or_else(|error| panic!("{}: {error}", point.name));
        let agrees = point.agrees(&goodput) || point.deviation().is_some();
        differ += u32::from(!agrees);
        let _ = writeln!(
            table,
            "{} {:<24} {:<8} ns-2 {:9.2} ± {:6.2}  sim {:9.2} ± {:6.2} kbit/s",
            if agrees { ' ' } else { '!' },
            point.name,
            point.congestion_control,
            point.goodput_mean,
            point.goodput_ci95,
            goodput.mean.unwrap_or(f64::NAN),
            goodput.ci95.unwrap_or(0.0),
        );
    }
    assert_eq!(differ, 0, "points marked ! differ\n{table}");
}
