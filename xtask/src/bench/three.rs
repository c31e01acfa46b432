//! `cargo xtask bench three`: the same flows on the simulator (profile `linux`) and on the kernel
//! of this machine, over the networks of `bench/three/networks.toml`. Most are a bulk flow over one
//! link; others have a scenario of their own. Deviations with known causes are listed in
//! `bench/three/exceptions.toml`.

use std::fs;

use anyhow::{Context, ensure};
use toml::{Table, Value};

use super::Measurement;
use super::agreement::{self, Case, Report};
use super::settings::{kbit_per_s, text};
use crate::process::{self, cargo, root};

/// Congestion control algorithms, and the largest relative deviation of their goodput.
const CONGESTION_CONTROLS: [(&str, f64); 4] =
    [("reno", 0.1), ("cubic", 0.1), ("vegas", 0.1), ("bbr", 0.15)];

/// Measures and prints a table. The caller prints the returned value.
pub(super) fn run(only: &[String]) -> anyhow::Result<Vec<Measurement>> {
    // The kernel runs in real time, so a release build is not needed.
    process::run(cargo().args(["build", "--package", "gridhaul"]))?;
    let heading = format!("{:<26}{:<7}", "network", "TCP");
    let exceptions = "bench/three/exceptions.toml";
    agreement::compare(&cases(only)?, Report { name: "three", heading: &heading, exceptions })
}

/// All networks, or those with these names, with all congestion control algorithms. Each run loads
/// Vegas, which is part of gridhaul, into the kernel.
fn cases(only: &[String]) -> anyhow::Result<Vec<Case>> {
    let networks = root().join("bench/three/networks.toml");
    let networks: Table = fs::read_to_string(networks)?.parse()?;
    let networks = networks["network"].as_array().context("networks.toml has no networks")?;
    let names: Vec<_> =
        networks.iter().filter_map(|network| network.get("name")?.as_str()).collect();
    for name in only {
        ensure!(
            names.contains(&name.as_str()),
            "there is no network {name:?}; choose from: {}",
            names.join(", ")
        );
    }
    let mut cases = Vec::new();
    for (congestion_control, limit) in CONGESTION_CONTROLS {
        for network in networks {
            let network = network.as_table().context("a network is a table")?;
            let name = text(network, "name")?;
            if only.is_empty() || only.iter().any(|wanted| wanted == name) {
                cases.push(case(network, congestion_control, limit)?);
            }
        }
    }
    Ok(cases)
}

fn case(network: &Table, congestion_control: &str, goodput_share: f64) -> anyhow::Result<Case> {
    let name = text(network, "name")?;
    let mut settings = match network.contains_key("scenario") {
        true => Vec::new(),
        false => settings_of_link(network)?,
    };
    settings.push(("stack.linux.congestion_control".to_owned(), congestion_control.to_owned()));
    if let Some(own) = network.get("set") {
        let own = own.as_table().context("`set` is a table")?;
        for key in own.keys() {
            settings.push((key.clone(), text(own, key)?.to_owned()));
        }
    }
    let scenario = network.get("scenario").and_then(Value::as_str).unwrap_or("bulk.toml");
    Ok(Case {
        key: format!("{name} {congestion_control}"),
        label: format!("{name:<26}{congestion_control:<7}"),
        scenario: format!("bench/three/{scenario}"),
        settings,
        goodput_share,
        load_kbit_per_s: kbit_per_s(text(network, "rate")?)?,
    })
}

/// Values of the link and of the run that replace those of `bench/three/bulk.toml`.
fn settings_of_link(network: &Table) -> anyhow::Result<Vec<(String, String)>> {
    let (round_trip, unit) =
        text(network, "rtt")?.split_once(' ').context("expected a number and a unit")?;
    let delay = format!("{} {unit}", round_trip.parse::<f64>()? / 2.0);
    let settings = [
        ("link.way.forward.rate", text(network, "rate")?),
        ("link.way.forward.delay", &delay),
        ("link.way.reverse.delay", &delay),
        ("link.way.forward.queue", text(network, "queue")?),
        ("link.way.forward.loss.bernoulli", text(network, "loss")?),
        ("stack.linux.mss", text(network, "mss")?),
        ("duration", text(network, "duration")?),
    ];
    Ok(settings.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec())
}
