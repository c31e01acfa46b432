//! Solves a scenario file with the model and prints the answer as JSON: `answer FILE [paper |
//! printed]`.

use gridhaul_model::Model;
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("expected the path of a scenario file")?;
    let scenario = Scenario::from_toml(&std::fs::read_to_string(&path)?, &path)?;
    let answer = match arguments.next().as_deref() {
        Some("paper") => Model::PAPER.run(&scenario, &NoProgress)?,
        Some("printed") => Model::PRINTED.run(&scenario, &NoProgress)?,
        _ => Model::REFINED.run(&scenario, &NoProgress)?,
    };
    println!("{}", serde_json::to_string_pretty(&answer)?);
    Ok(())
}
