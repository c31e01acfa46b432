//! A scenario file with the changes of the command line.

mod argument;
mod error_context;
mod sweep_override;

use std::path::Path;

use anyhow::{anyhow, bail};
use gridhaul_data::trace;
use gridhaul_scenario::scenario::{PlanSpecification, Replications, Scenario, Sweep, Values};
use gridhaul_scenario::units::Duration;
use indexmap::IndexMap;
use toml::Value;

use crate::error::Error;
use crate::unit_sweep::ANSWER_POINTS_MAX;
use error_context::{ArgumentContext, with_argument_names};

pub use argument::{Setting, Vary};
pub use error_context::Origin;

/// Changes to a scenario before it runs.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Where the changes come from.
    pub origin: Origin,
    /// Random seed.
    pub seed: Option<u64>,
    /// Number of replications, the same for each point.
    pub replications: Option<u32>,
    /// Keys and their values.
    pub set: Vec<Setting>,
    /// Sampling interval of recorded time series.
    pub series: Option<Duration>,
    /// Links whose packets are captured, in addition to those of the scenario.
    pub pcap: Vec<String>,
    /// Flows whose events are logged, in addition to those of the scenario.
    pub events: Vec<String>,
    /// Number of the recorded replication.
    pub recorded_replication: Option<u32>,
    /// Whether the answer has the metrics of each replication, whatever the scenario says.
    pub each_replication: bool,
    /// Flows whose members have metrics of their own, in addition to those of the scenario.
    pub members: Vec<String>,
}

/// Reads a scenario file (`-`: standard input) and applies changes; `vary` adds axes to its sweep.
/// Returns the scenario, and a note for each sweep of the file that a change replaces.
///
/// # Errors
/// A file that cannot be read, errors in it or in a trace that it names, and changes that do not
/// apply to it, each with its position.
pub fn load(
    file: &Path,
    changes: &Changes,
    vary: &[Vary],
) -> Result<(Scenario, Vec<String>), Error> {
    let shown = Scenario::name_of(file);
    let is_changed = !changes.set.is_empty() || !vary.is_empty();
    // A change may replace the traces of the file; they are then opened after the changes.
    let scenario = if is_changed { Scenario::load(file)? } else { trace::load_scenario(file)? };
    let (mut scenario, notes) = change(scenario, &shown, changes, vary)?;
    if is_changed {
        // A change may name a trace relative to the scenario file.
        scenario.set_folder(Scenario::folder_of(file));
        let context = ArgumentContext::of_axes(&scenario, vary, changes.origin);
        trace::check(&scenario).map_err(|error| with_argument_names(error, &shown, &context))?;
    }
    let notes = notes.iter().map(|note| format!("{shown}: {note}")).collect();
    Ok((scenario, notes))
}

/// Applies changes to a scenario; `file` is its name in errors, and `vary` adds axes to its sweep.
/// Returns a note for each sweep of the file that a change replaces.
///
/// # Errors
/// Changes that do not apply to the scenario, each with its position.
pub fn change(
    scenario: Scenario,
    file: &str,
    changes: &Changes,
    vary: &[Vary],
) -> Result<(Scenario, Vec<String>), Error> {
    Ok(changed(scenario, file, changes, vary)?)
}

fn changed(
    mut scenario: Scenario,
    file: &str,
    changes: &Changes,
    vary: &[Vary],
) -> anyhow::Result<(Scenario, Vec<String>)> {
    let mut notes = Vec::new();
    for Setting { key, source, .. } in &changes.set {
        let named = changes.origin.name("--set", &source.text);
        notes.extend(sweep_override::replace(&mut scenario, key, &named)?);
    }
    let mut scenario = set(scenario, file, &changes.set, changes.origin)?;
    for (key, option) in [
        ("seed", changes.seed.map(|seed| format!("--seed {seed}"))),
        (
            "replications",
            changes.replications.map(|replications| format!("--replications {replications}")),
        ),
        ("record.interval", changes.series.map(|interval| format!("--series '{interval}'"))),
        (
            "record.replication",
            changes.recorded_replication.map(|number| format!("--recorded-replication {number}")),
        ),
    ] {
        if let Some(option) = option {
            notes.extend(sweep_override::replace(&mut scenario, key, &option)?);
        }
    }
    scenario.seed = changes.seed.unwrap_or(scenario.seed);
    scenario.replications = changes.replications.map_or(scenario.replications, Replications::Fixed);
    scenario.record.interval = changes.series.or(scenario.record.interval);
    for link in &changes.pcap {
        if !scenario.record.pcap.contains(link) {
            scenario.record.pcap.push(link.clone());
        }
    }
    for flow in &changes.events {
        if !scenario.record.events.contains(flow) {
            scenario.record.events.push(flow.clone());
        }
    }
    let record = &mut scenario.record;
    record.replication = changes.recorded_replication.unwrap_or(record.replication);
    record.each_replication |= changes.each_replication;
    for flow in &changes.members {
        if !record.members.contains(flow) {
            record.members.push(flow.clone());
        }
    }
    for (index, Vary { key, values, .. }) in vary.iter().enumerate() {
        if changes.set.iter().any(|set| set.key == *key) {
            bail!(
                "--vary {key}: --set gives this key a single value\n  help: remove one of the two \
                 options"
            );
        }
        // A key that is varied twice is rejected by the validation below.
        if vary[..index].iter().all(|other| other.key != *key) {
            let named = changes.origin.name("--vary", key);
            notes.extend(sweep_override::replace(&mut scenario, key, &named)?);
        }
        scenario.sweep.push(axis(key, values.clone()));
    }
    let context = ArgumentContext::of_axes(&scenario, vary, changes.origin);
    scenario.validate().map_err(|error| with_argument_names(error, file, &context))?;
    let named = |error| with_argument_names(error, file, &context);
    let points = scenario.sweep_points().map_err(named)?;
    // The points of a larger sweep are checked when they run.
    if !vary.is_empty() && points.len() <= ANSWER_POINTS_MAX {
        points.iter().try_for_each(|point| point.map(|_| ())).map_err(named)?;
    }
    Ok((scenario, notes))
}

/// Sets keys, each as a sweep over one value, so that `--set` and `--vary` accept the same keys and
/// report the same errors.
fn set(
    mut scenario: Scenario,
    file: &str,
    settings: &[Setting],
    origin: Origin,
) -> anyhow::Result<Scenario> {
    if settings.is_empty() {
        return Ok(scenario);
    }
    let swept = std::mem::take(&mut scenario.sweep);
    let mut plan = scenario.plan.take();
    let mut last: IndexMap<&str, &Setting> = IndexMap::new();
    for setting in settings {
        if let (Some(steps), Some(plan)) = (setting.key.strip_prefix("plan."), &mut plan) {
            *plan = with_plan_key(plan, steps, &setting.value)
                .map_err(|error| anyhow!("{}: {error}", origin.name("--set", &setting.key)))?;
            continue;
        }
        last.insert(&setting.key, setting);
    }
    let list = |setting: &Setting| Values::List(vec![setting.value.clone()]);
    scenario.sweep = last.iter().map(|(key, setting)| axis(key, list(setting))).collect();
    let context = ArgumentContext::of_settings(last.values().copied(), origin);
    let points = scenario.points().map_err(|error| with_argument_names(error, file, &context))?;
    if let Some(point) = points.into_iter().next() {
        scenario = point.scenario;
    }
    scenario.sweep = swept;
    scenario.plan = plan;
    Ok(scenario)
}

/// The plan with one key set. The names of entries in `choose` and `cost` contain dots themselves.
fn with_plan_key(
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
        let Some(table) = place.as_table_mut() else {
            bail!("expected a table above this key, found a value")
        };
        place = table.entry(step).or_insert_with(|| Value::Table(toml::Table::new()));
    }
    *place = value.clone();
    tree.try_into().map_err(|error: toml::de::Error| {
        let (message, remedy) = gridhaul_scenario::scenario::in_toml_terms(error.message());
        let help = if remedy.is_empty() { String::new() } else { format!("\n  help: {remedy}") };
        anyhow!("{message}{help}")
    })
}

/// Assigns the values of an experiment to keys: one value sets the key, several values sweep it.
/// Sweeps of the file over the same key are replaced; a sweep of several keys only if the
/// experiment sets each of them.
pub(crate) fn assign(
    mut scenario: Scenario,
    file: &str,
    settings: &[Vary],
) -> anyhow::Result<Scenario> {
    // Keys may be valid in combination only, such as the routers at both ends.
    let mut single_values = Vec::new();
    for Vary { key, values, source } in settings {
        let entry = scenario.sweep.iter().position(|sweep| sweep.vary.contains_key(key));
        match (entry, single(values)) {
            (Some(entry), _) if !is_set(&scenario.sweep[entry], settings) => {
                bail!(
                    "{file}: {key} is swept together with other keys; its values cannot be \
                     replaced alone\n  \
                     help: set one value for each of the keys of this sweep"
                )
            }
            (Some(entry), None) => scenario.sweep[entry] = axis(key, values.clone()),
            (None, None) => scenario.sweep.push(axis(key, values.clone())),
            (entry, Some(value)) => {
                if let Some(entry) = entry {
                    scenario.sweep.remove(entry);
                }
                single_values.push(Setting { key: key.clone(), value, source: source.clone() });
            }
        }
    }
    let scenario = set(scenario, file, &single_values, Origin::Arguments)?;
    scenario
        .points()
        .map_err(|error| with_argument_names(error, file, &ArgumentContext::default()))?;
    Ok(scenario)
}

/// The only value of a list.
fn single(values: &Values) -> Option<Value> {
    match values {
        Values::List(list) if list.len() == 1 => list.first().cloned(),
        _ => None,
    }
}

/// Whether the settings can replace a sweep: it has one key, or each of its keys is set to one
/// value.
fn is_set(sweep: &Sweep, settings: &[Vary]) -> bool {
    let has_value = |key: &String| {
        settings.iter().any(|setting| setting.key == *key && single(&setting.values).is_some())
    };
    sweep.vary.len() == 1 || sweep.vary.keys().all(has_value)
}

fn axis(key: &str, values: Values) -> Sweep {
    Sweep { vary: IndexMap::from([(key.to_owned(), values)]), label: None }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::{ScenarioError, ScenarioPoint};

    use super::*;

    /// The points of a scenario with this sweep, after an experiment has assigned its values.
    fn points(sweep: &str, settings: &[&str]) -> anyhow::Result<Vec<ScenarioPoint>> {
        let text = "title = \"t\"\nduration = \"1 s\"\n[node]\na = {}\nb = {}\n[link.l]\n\
            from = \"a\"\nto = \"b\"\n\
                    [link.l.both]\nrate = \"1 Mbit/s\"\n[flow.f]\nfrom = \"a\"\nto = \"b\"\n\
                    load = \"bulk\"\n[[sweep]]\n";
        let scenario = Scenario::from_toml(&format!("{text}{sweep}"), "a.toml").unwrap();
        let settings: Vec<Vary> = settings.iter().map(|text| text.parse().unwrap()).collect();
        assign(scenario, "a.toml", &settings).map(|scenario| scenario.points().unwrap())
    }

    #[test]
    fn an_experiment_replaces_the_sweep_of_its_file() {
        let given = |settings: &[&str]| points("vary.\"flow.f.count\" = [1, 2, 3]\n", settings);
        let found = given(&["flow.f.count=5,7", "seed=1,2"]).unwrap();
        assert_eq!(found.len(), 4);
        assert_eq!(found[3].parameters["flow.f.count"], "7");
        let found = given(&["flow.f.count=5"]).unwrap();
        assert_eq!((found.len(), found[0].scenario.flow["f"].count), (1, 5));
        assert!(given(&["flow.g.count=5"]).is_err());
    }

    #[test]
    fn a_sweep_of_several_keys_is_replaced_as_a_whole() {
        let sweep = "vary.\"flow.f.count\" = [1, 2]\nvary.seed = [3, 4]\n";
        let found = points(sweep, &["flow.f.count=5", "seed=6"]).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].scenario.flow["f"].count, found[0].scenario.seed), (5, 6));
        for part in [&["flow.f.count=5"][..], &["flow.f.count=5", "seed=6,7"]] {
            let error = points(sweep, part).unwrap_err().to_string();
            assert!(error.contains("swept together with other keys"), "{error}");
        }
    }

    #[test]
    fn a_change_has_an_option_only_on_the_command_line() {
        let text = "title = \"t\"\nduration = \"1 s\"\n[node]\na = {}\nb = {}\n[link.l]\n\
                    from = \"a\"\nto = \"b\"\n[link.l.both]\nrate = \"1 Mbit/s\"\n[flow.f]\n\
                    from = \"a\"\nto = \"b\"\nload = \"bulk\"\n";
        let keys = |origin: Origin, set: &[&str], vary: &[&str]| {
            let scenario = Scenario::from_toml(text, "a.toml").unwrap();
            let set = set.iter().map(|text| text.parse().unwrap()).collect();
            let vary: Vec<Vary> = vary.iter().map(|text| text.parse().unwrap()).collect();
            let changes = Changes { origin, set, ..Changes::default() };
            let Err(Error::Input(error)) = change(scenario, "a.toml", &changes, &vary) else {
                panic!("the change is not valid");
            };
            let error = error.downcast::<ScenarioError>().unwrap();
            let diagnostic = &error.diagnostics[0];
            (diagnostic.key.clone(), diagnostic.message.clone())
        };
        for (origin, [set, vary]) in
            [(Origin::Arguments, ["--set ", "--vary "]), (Origin::Program, ["", ""])]
        {
            let (key, _) = keys(origin, &["link.l.both.rate=64 kbits"], &[]);
            assert_eq!(key, format!("{set}link.l.both.rate"));
            let (key, _) = keys(origin, &[], &["link.l.both.rate=64 kbits"]);
            assert_eq!(key, format!("{vary}link.l.both.rate"));
            let (key, message) = keys(origin, &["record.events=[\"g\"]"], &[]);
            assert_eq!(
                (key, &*message),
                (format!("{set}record.events[0]"), "there is no flow \"g\"")
            );
        }
    }
}
