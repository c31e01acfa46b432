//! Prints all points of the grid: ns-2, gridhaul and their difference. Slow; use `--release`.

fn main() {
    let replications = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(20);
    let only = std::env::args().nth(2).unwrap_or_default();
    let mut bad = 0;
    for point in gridhaul_conformance::ns2_grid::grid() {
        if !point.congestion_control.contains(&only) {
            continue;
        }
        let goodput = point.simulate(replications).unwrap_or_else(|error| panic!("{error}"));
        let mean = goodput.mean.unwrap_or(f64::NAN);
        let agrees = point.agrees(&goodput);
        bad += u32::from(!agrees && point.deviation().is_none());
        println!(
            "{:<24} {:<8} ns-2 {:9.2} ± {:6.2}  gridhaul {:9.2} ± {:6.2}  {:+6.2} %  {}",
            point.name,
            point.congestion_control,
            point.goodput_mean,
            point.goodput_ci95,
            mean,
            goodput.ci95.unwrap_or(0.0),
            (mean / point.goodput_mean - 1.0) * 100.0,
            if agrees { "" } else { point.deviation().unwrap_or("<-- not explained") }
        );
    }
    println!("{bad} points differ without a reason");
    std::process::exit(i32::from(bad > 0));
}
