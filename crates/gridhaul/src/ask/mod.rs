//! What is asked: a scenario file, and what the command line changes in it.

mod argument;
mod blame;
mod swept;

use std::path::Path;

use anyhow::{anyhow, bail};
use gridhaul_data::trace;
use gridhaul_scenario::scenario::{PlanSpecification, Scenario, Sweep, Values};
use gridhaul_scenario::units::Duration;
use indexmap::IndexMap;
use toml::Value;

use crate::error::Error;
use blame::{Blame, named};

pub use argument::{Setting, Vary};

/// What is changed in a scenario before it runs.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Seed of all random numbers.
    pub seed: Option<u64>,
    /// Number of replications.
    pub replications: Option<u32>,
    /// Keys and their values.
    pub set: Vec<Setting>,
    /// Interval of the samples of recorded series.
    pub series: Option<Duration>,
    /// Links whose packets are captured, in addition to those of the scenario.
    pub pcap: Vec<String>,
}

/// Reads a scenario file, `-` being standard input, and changes it; `vary` adds to its sweep. Returns the scenario,
/// and notes on what of the file's sweep the changes replace.
///
/// # Errors
/// A file that cannot be read, what is wrong in it or in a trace that it names, and changes that do not fit it,
/// each with its place.
pub fn load(
    file: &Path,
    changes: &Changes,
    vary: &[Vary],
) -> Result<(Scenario, Vec<String>), Error> {
    let shown = Scenario::name_of(file);
    let is_changed = !changes.set.is_empty() || !vary.is_empty();
    // What the file says of traces may be replaced: they are opened afterwards.
    let scenario = if is_changed { Scenario::load(file)? } else { trace::load_scenario(file)? };
    let (mut scenario, notes) = change(scenario, &shown, changes, vary)?;
    if is_changed {
        // A trace may be new. An own folder is a whole path already.
        scenario.set_folder(Scenario::folder_of(file));
        let blame = Blame::of_axes(&scenario, vary);
        trace::check(&scenario).map_err(|error| named(error, &shown, &blame))?;
    }
    let notes = notes.iter().map(|note| format!("{shown}: {note}")).collect();
    Ok((scenario, notes))
}

/// Changes a scenario as the command line says; `file` is its name in errors. Returns notes on what
/// of the file's sweep is replaced as well.
pub(crate) fn change(
    mut scenario: Scenario,
    file: &str,
    changes: &Changes,
    vary: &[Vary],
) -> anyhow::Result<(Scenario, Vec<String>)> {
    let mut notes = Vec::new();
    for Setting { key, written, .. } in &changes.set {
        notes.extend(swept::replace(&mut scenario, key, &format!("--set {}", written.text))?);
    }
    let mut scenario = set(scenario, file, &changes.set)?;
    for (key, option) in [
        ("seed", changes.seed.map(|seed| format!("--seed {seed}"))),
        (
            "replications",
            changes.replications.map(|replications| format!("--replications {replications}")),
        ),
        ("record.interval", changes.series.map(|interval| format!("--series '{interval}'"))),
    ] {
        if let Some(option) = option {
            notes.extend(swept::replace(&mut scenario, key, &option)?);
        }
    }
    scenario.seed = changes.seed.unwrap_or(scenario.seed);
    scenario.replications = changes.replications.unwrap_or(scenario.replications);
    scenario.record.interval = changes.series.or(scenario.record.interval);
    for link in &changes.pcap {
        if !scenario.record.pcap.contains(link) {
            scenario.record.pcap.push(link.clone());
        }
    }
    for (index, Vary { key, values, .. }) in vary.iter().enumerate() {
        if changes.set.iter().any(|set| set.key == *key) {
            bail!("--vary {key}: --set gives this key one value\n  help: leave one of the two out");
        }
        // A key that is varied twice is refused below.
        if vary[..index].iter().all(|other| other.key != *key) {
            notes.extend(swept::replace(&mut scenario, key, &format!("--vary {key}"))?);
        }
        scenario.sweep.push(axis(key, values.clone()));
    }
    let blame = Blame::of_axes(&scenario, vary);
    scenario.validate().map_err(|error| named(error, file, &blame))?;
    if !vary.is_empty() {
        scenario.points().map_err(|error| named(error, file, &blame))?;
    }
    Ok((scenario, notes))
}

/// Sets keys. A key that is set is a sweep over one value, so that both know the same keys and
/// refuse the same mistakes.
fn set(mut scenario: Scenario, file: &str, settings: &[Setting]) -> anyhow::Result<Scenario> {
    if settings.is_empty() {
        return Ok(scenario);
    }
    let swept = std::mem::take(&mut scenario.sweep);
    let mut plan = scenario.plan.take();
    let mut last: IndexMap<&str, &Setting> = IndexMap::new();
    for setting in settings {
        if let (Some(steps), Some(plan)) = (setting.key.strip_prefix("plan."), &mut plan) {
            *plan = planned(plan, steps, &setting.value)
                .map_err(|error| anyhow!("--set {}: {error}", setting.key))?;
            continue;
        }
        last.insert(&setting.key, setting);
    }
    let list = |setting: &Setting| Values::List(vec![setting.value.clone()]);
    scenario.sweep = last.iter().map(|(key, setting)| axis(key, list(setting))).collect();
    let blame = Blame::of_settings(last.values().copied());
    let points = scenario.points().map_err(|error| named(error, file, &blame))?;
    if let Some(point) = points.into_iter().next() {
        scenario = point.scenario;
    }
    scenario.sweep = swept;
    scenario.plan = plan;
    Ok(scenario)
}

/// The plan with one key set. What is chosen and what costs are keys with dots of their own.
fn planned(
    plan: &PlanSpecification,
    key: &str,
    value: &Value,
) -> anyhow::Result<PlanSpecification> {
    let mut tree = Value::try_from(plan)?;
    let steps: Vec<_> = match key.split_once('.') {
        Some((table @ ("choose" | "cost"), rest)) => vec![table, rest.trim_matches('"')],
        _ => key.split('.').collect(),
    };
    let mut place = &mut tree;
    for step in steps {
        let Some(table) = place.as_table_mut() else { bail!("the key is below a value") };
        place = table.entry(step).or_insert_with(|| Value::Table(toml::Table::new()));
    }
    *place = value.clone();
    tree.try_into().map_err(|error: toml::de::Error| {
        let (message, remedy) = gridhaul_scenario::scenario::in_toml_terms(error.message());
        let help = if remedy.is_empty() { String::new() } else { format!("\n  help: {remedy}") };
        anyhow!("{message}{help}")
    })
}

/// Gives keys the values of an experiment: one sets the key, several sweep over it. What the file
/// sweeps is replaced.
pub(crate) fn assign(
    mut scenario: Scenario,
    file: &str,
    settings: &[Vary],
) -> anyhow::Result<Scenario> {
    for Vary { key, values, written } in settings {
        let single = match values {
            Values::List(list) if list.len() == 1 => list.first().cloned(),
            _ => None,
        };
        let entry = scenario.sweep.iter().position(|sweep| sweep.vary.contains_key(key));
        match (entry, single) {
            (Some(entry), _) if scenario.sweep[entry].vary.len() > 1 => {
                bail!("{file}: {key} varies together with other keys, and cannot be given others")
            }
            (Some(entry), None) => scenario.sweep[entry] = axis(key, values.clone()),
            (None, None) => scenario.sweep.push(axis(key, values.clone())),
            (entry, Some(value)) => {
                if let Some(entry) = entry {
                    scenario.sweep.remove(entry);
                }
                let setting = Setting { key: key.clone(), value, written: written.clone() };
                scenario = set(scenario, file, &[setting])?;
            }
        }
    }
    scenario.points().map_err(|error| named(error, file, &Blame::default()))?;
    Ok(scenario)
}

fn axis(key: &str, values: Values) -> Sweep {
    Sweep { vary: IndexMap::from([(key.to_owned(), values)]), label: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_replaces_what_its_file_sweeps() {
        let text = "title = \"t\"\nduration = \"1 s\"\n[node]\na = {}\nb = {}\n[link.l]\nfrom = \"a\"\nto = \"b\"\n\
                    [link.l.both]\nrate = \"1 Mbit/s\"\n[flow.f]\nfrom = \"a\"\nto = \"b\"\n\
                    load = \"bulk\"\n[[sweep]]\nvary.\"flow.f.count\" = [1, 2, 3]\n";
        let scenario = Scenario::from_toml(text, "a.toml").unwrap();
        let given = |texts: &[&str]| {
            let settings: Vec<Vary> = texts.iter().map(|text| text.parse().unwrap()).collect();
            assign(scenario.clone(), "a.toml", &settings).map(|s| s.points().unwrap())
        };
        let points = given(&["flow.f.count=5,7", "seed=1,2"]).unwrap();
        assert_eq!(points.len(), 4);
        assert_eq!(points[3].parameters["flow.f.count"], "7");
        let points = given(&["flow.f.count=5"]).unwrap();
        assert_eq!((points.len(), points[0].scenario.flow["f"].count), (1, 5));
        assert!(given(&["flow.g.count=5"]).is_err());
    }
}
