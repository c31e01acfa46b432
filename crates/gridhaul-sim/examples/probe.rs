//! Prints the answer to a scenario file.
use gridhaul_scenario::backend::{Backend, Quiet};
fn main() {
    let path = std::env::args().nth(1).expect("a scenario");
    let s = gridhaul_scenario::Scenario::load(std::path::Path::new(&path)).unwrap_or_else(|e| panic!("{e}"));
    let a = gridhaul_sim::Sim::default().run(&s, &Quiet).unwrap_or_else(|e| panic!("{e}"));
    for p in &a.points {
        println!("{:?}", p.parameters);
        for r in p.flows.iter().chain(&p.links) {
            print!("{}: ", r.name);
            for (m, e) in &r.metrics { print!("{}={:.4}±{:.3} ", m, e.mean.unwrap_or(f64::NAN), e.ci95.unwrap_or(0.0)); }
            println!();
        }
    }
}
