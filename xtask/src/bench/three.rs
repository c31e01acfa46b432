//! `cargo xtask bench three`: the same bulk flows on the simulator (profile `linux`) and on the
//! kernel of this machine, over the emulated networks of `bench/three/networks.toml`. Deviations
//! with known causes are listed in `bench/three/exceptions.toml`.

use std::fs;

use anyhow::{Context, ensure};
use toml::Table;

use super::Measurement;
use super::agreement::{self, Case, Report};
use super::settings::{kbit_per_s, text};
use crate::process::{self, cargo, root};

/// Congestion control algorithms, and the largest relative deviation of their goodput.
const CONGESTION_CONTROLS: [(&str, f64); 4] =
    [("reno", 0.1), ("cubic", 0.1), ("vegas", 0.1), ("bbr", 0.15)];

/// Keys that a network may have, and what they set.
const OPTIONAL: [(&str, &str); 8] = [
    ("delayed_ack", "stack.linux.delayed_ack"),
    ("sack", "stack.linux.sack"),
    ("receive_window", "stack.linux.receive_window"),
    ("reordered", "link.way.forward.reorder.probability"),
    ("held_back", "link.way.forward.reorder.delay"),
    ("duplicated", "link.way.forward.duplicate"),
    ("codel_ecn", "link.way.forward.aqm.codel.ecn"),
    ("ecn", "stack.linux.ecn"),
];

/// Measures and prints a table. The caller prints the returned value.
pub(super) fn run(only: &[String]) -> anyhow::Result<Vec<Measurement>> {
    // The kernel runs in real time, so a release build is not needed.
    process::run(cargo().args(["build", "--package", "gridhaul"]))?;
    let heading = format!("{:<24}{:<7}", "network", "TCP");
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
    let half = |key: &str| -> anyhow::Result<String> {
        let (number, unit) =
            text(network, key)?.split_once(' ').context("expected a number and a unit")?;
        Ok(format!("{} {unit}", number.parse::<f64>()? / 2.0))
    };
    let delay = half("rtt")?;
    let mut settings = vec![
        ("link.way.forward.rate", text(network, "rate")?),
        ("link.way.forward.delay", &delay),
        ("link.way.reverse.delay", &delay),
        ("link.way.forward.queue", text(network, "queue")?),
        ("link.way.forward.loss.bernoulli", text(network, "loss")?),
        ("stack.linux.mss", text(network, "mss")?),
        ("stack.linux.congestion_control", congestion_control),
        ("duration", text(network, "duration")?),
    ];
    for (key, setting) in OPTIONAL {
        if network.contains_key(key) {
            settings.push((setting, text(network, key)?));
        }
    }
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    Ok(Case {
        key: format!("{name} {congestion_control}"),
        label: format!("{name:<24}{congestion_control:<7}"),
        scenario: "bench/three/bulk.toml".to_owned(),
        settings: settings.iter().map(owned).collect(),
        goodput_share,
        load_kbit_per_s: kbit_per_s(text(network, "rate")?)?,
    })
}
