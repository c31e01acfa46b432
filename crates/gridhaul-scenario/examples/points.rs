//! Reads a scenario file, and prints the points of its sweep with the values that they vary.
//!
//! `cargo run -p gridhaul-scenario --example points -- scenarios/hybrid.toml`

use std::path::Path;

use gridhaul_scenario::Scenario;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "scenarios/hybrid.toml".to_owned());
    let scenario = Scenario::load(Path::new(&path))?;
    println!("{}", scenario.title);
    for point in scenario.points()? {
        let values: Vec<_> =
            point.parameters.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        println!("  {}", values.join(", "));
    }
    Ok(())
}
