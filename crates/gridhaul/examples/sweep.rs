//! Sweeps two keys of a scenario file and prints one line of CSV for each combination, as pandas
//! and R read it.
//!
//! `cargo run --release -p gridhaul --example sweep`

use std::path::Path;

use gridhaul::scenario::answer::Metric;
use gridhaul::scenario::backend::NoProgress;
use gridhaul::{Changes, Engine, Vary};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/lossy-line.toml");
    let changes = Changes { replications: Some(2), ..Changes::default() };
    // The same text as for `gridhaul sweep --vary`. The first key is swept by the file itself, and
    // its values are replaced; the note says so.
    let vary: Vec<Vary> = [
        "link.power-line.forward.loss.bernoulli=0.2 %,2 %".parse()?,
        "stack.reno.congestion_control=reno,cubic".parse()?,
    ]
    .into();
    let (scenario, notes) = gridhaul::load(&file, &changes, &vary)?;
    for note in notes {
        eprintln!("{note}");
    }
    let answers = gridhaul::sweep(scenario, &[], &Engine::default(), "line", &NoProgress)?;
    let labelled: Vec<_> = answers.iter().map(|answer| ("line".to_owned(), answer)).collect();
    print!("{}", gridhaul::csv(&labelled, &[Metric::Goodput, Metric::RttMean])?);
    Ok(())
}
