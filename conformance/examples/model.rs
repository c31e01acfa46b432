//! Prints the goodput of ns-2 and of the analytical model for each point of the grid.

fn main() {
    for point in gridhaul_conformance::ns2_grid::grid() {
        let Some(goodput) = point.model() else { continue };
        println!(
            "{:<24} {:<8} ns-2 {:9.2} ± {:6.2}  model {goodput:9.2}  {:+6.1} %",
            point.name,
            point.congestion_control,
            point.goodput_mean,
            point.goodput_ci95,
            (goodput / point.goodput_mean - 1.0) * 100.0,
        );
    }
}
