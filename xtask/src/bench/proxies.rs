//! `cargo xtask bench proxies`: bulk flows through chains of one, three and seven proxies, in the
//! simulator and on the kernel of this machine, where each proxy is a daemon of `gridhaul relay`.
//! `bench/proxies/points.toml` lists modes, rates, round-trip times and losses, and
//! `bench/proxies/exceptions.toml` the deviations with known causes.

use std::fs;

use anyhow::Context;
use toml::{Table, Value};

use super::Measurement;
use super::agreement::{self, Case, Report};
use super::settings::{kbit_per_s, text};
use crate::process::{self, cargo, root};

/// Largest relative deviation of the goodput.
const GOODPUT: f64 = 0.1;

/// Buffer of the proxies: as large as the window of the receiver.
const BUFFER: &str = "1 MB";

/// Measures the points whose names contain one of these texts, or all, and prints a table. The
/// caller prints the returned value.
pub(super) fn run(only: &[String]) -> anyhow::Result<Vec<Measurement>> {
    let packages = ["--package", "gridhaul", "--package", "gridhaul-relay"];
    process::run(cargo().arg("build").args(packages))?;
    let points: Table = fs::read_to_string(root().join("bench/proxies/points.toml"))?.parse()?;
    let points = points["point"].as_array().context("points.toml has no points")?;
    let points = points.iter().filter_map(Value::as_table);
    let cases: Vec<Case> = points.map(case).collect::<anyhow::Result<_>>()?;
    let is_wanted =
        |case: &Case| only.is_empty() || only.iter().any(|text| case.key.contains(text));
    let cases: Vec<Case> = cases.into_iter().filter(is_wanted).collect();
    let heading = label(["proxies", "mode", "TCP", "rate", "round trip", "loss"]);
    let exceptions = "bench/proxies/exceptions.toml";
    agreement::compare(&cases, Report { name: "proxies", heading: &heading, exceptions })
}

fn case(point: &Table) -> anyhow::Result<Case> {
    let proxies = point.get("proxies").and_then(Value::as_integer).context("no proxies")?;
    let [mode, congestion_control, rate, rtt, loss] =
        ["mode", "congestion_control", "rate", "rtt", "loss"].map(|key| text(point, key));
    let (mode, congestion_control, rate, rtt, loss) =
        (mode?, congestion_control?, rate?, rtt?, loss?);
    let milliseconds: f64 = rtt.strip_suffix(" ms").context("rtt in ms")?.parse()?;
    let delay = format!("{} ms", milliseconds / 2.0);
    let mut settings = vec![("stack.linux.congestion_control".to_owned(), congestion_control)];
    for proxy in 1..=proxies {
        let node = format!("node.proxy{proxy}.proxy");
        settings.push((format!("{node}.mode"), mode));
        if !matches!(mode, "none" | "ack") {
            settings.push((format!("{node}.buffer"), BUFFER));
        }
    }
    for hop in 1..=proxies + 1 {
        for direction in ["forward", "reverse"] {
            let link = format!("link.hop{hop}.{direction}");
            settings.push((format!("{link}.rate"), rate));
            settings.push((format!("{link}.delay"), &delay));
            settings.push((format!("{link}.loss.bernoulli"), loss));
        }
    }
    let number = proxies.to_string();
    let words = [&*number, mode, congestion_control, rate, rtt, loss];
    Ok(Case {
        key: words.join(" "),
        label: label(words),
        scenario: format!("bench/proxies/chain-{proxies}.toml"),
        settings: settings.into_iter().map(|(key, value)| (key, value.to_owned())).collect(),
        goodput_share: GOODPUT,
        load_kbit_per_s: kbit_per_s(rate)? * (proxies as u64 + 1),
    })
}

fn label([proxies, mode, congestion_control, rate, rtt, loss]: [&str; 6]) -> String {
    format!("{proxies:<8}{mode:<8}{congestion_control:<6}{rate:>11}{rtt:>11}{loss:>6}")
}
