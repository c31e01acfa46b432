//! What is asked: a scenario file, and what the command line changes in it.

use std::path::Path;
use std::str::FromStr;

use anyhow::{anyhow, bail};
use gridhaul_scenario::scenario::{Plan, Range, Scenario, ScenarioError, Sweep, Values};
use indexmap::IndexMap;
use toml::Value;

use crate::args::Changes;

/// A key and the value that it is given: `link.uplink.forward.rate=3 Mbit/s`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setting {
    key: String,
    value: Value,
}

/// A key and the values that it takes: a list, or a range behind `lin:` or `log:`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Vary {
    key: String,
    values: Values,
}

/// Reads a scenario and changes it as the command line says.
pub(crate) fn load(file: &Path, changes: &Changes, vary: &[Vary]) -> anyhow::Result<Scenario> {
    let shown = file.display().to_string();
    if changes.set.is_empty() && vary.is_empty() {
        return change(Scenario::load(file)?, &shown, changes, vary);
    }
    // What the file says of traces may be replaced: they are opened afterwards.
    let scenario = Scenario::load_to_change(file)?;
    let first = scenario.sweep.len();
    let mut scenario = change(scenario, &shown, changes, vary)?;
    // A trace may be new. An own folder is a whole path already.
    scenario.lies_in(file.parent().unwrap_or(Path::new("")));
    let keys = vary.iter().map(|vary| vary.key.as_str());
    scenario.check_traces().map_err(|error| named(error, &shown, "--vary", first, keys))?;
    Ok(scenario)
}

/// Changes a scenario as the command line says; `file` is its name in errors.
pub(crate) fn change(
    scenario: Scenario,
    file: &str,
    changes: &Changes,
    vary: &[Vary],
) -> anyhow::Result<Scenario> {
    let mut scenario = set(scenario, file, &changes.set)?;
    scenario.seed = changes.seed.unwrap_or(scenario.seed);
    scenario.repeat = changes.repeat.unwrap_or(scenario.repeat);
    scenario.record.interval = changes.series.or(scenario.record.interval);
    for link in &changes.pcap {
        if !scenario.record.pcap.contains(link) {
            scenario.record.pcap.push(link.clone());
        }
    }
    let first = scenario.sweep.len();
    scenario.sweep.extend(vary.iter().map(|vary| axis(&vary.key, vary.values.clone())));
    let keys = vary.iter().map(|vary| vary.key.as_str());
    scenario.validate().map_err(|error| named(error, file, "--vary", first, keys.clone()))?;
    if !vary.is_empty() {
        scenario.points().map_err(|error| named(error, file, "--vary", first, keys))?;
    }
    Ok(scenario)
}

/// Sets keys. A key that is set is a sweep over one value, so that both know the same keys and
/// refuse the same mistakes.
pub(crate) fn set(
    mut scenario: Scenario,
    file: &str,
    settings: &[Setting],
) -> anyhow::Result<Scenario> {
    if settings.is_empty() {
        return Ok(scenario);
    }
    let swept = std::mem::take(&mut scenario.sweep);
    let mut plan = scenario.plan.take();
    let mut last: IndexMap<&str, &Value> = IndexMap::new();
    for setting in settings {
        if let (Some(steps), Some(plan)) = (setting.key.strip_prefix("plan."), &mut plan) {
            *plan = planned(plan, steps, &setting.value)
                .map_err(|error| anyhow!("--set {}: {error}", setting.key))?;
            continue;
        }
        if swept.iter().flat_map(|sweep| sweep.vary.keys()).any(|key| dotted(key) == setting.key) {
            bail!(
                "--set {}: {file} sweeps this key already\n  help: remove it from `sweep` in the file",
                setting.key
            );
        }
        last.insert(&setting.key, &setting.value);
    }
    let axes = last.iter().map(|(key, value)| axis(key, Values::List(vec![(*value).clone()])));
    scenario.sweep = axes.collect();
    let points =
        scenario.points().map_err(|error| named(error, file, "--set", 0, last.keys().copied()))?;
    if let Some(point) = points.into_iter().next() {
        scenario = point.scenario;
    }
    scenario.sweep = swept;
    scenario.plan = plan;
    Ok(scenario)
}

/// The plan with one key set. What is chosen and what costs are keys with dots of their own.
fn planned(plan: &Plan, key: &str, value: &Value) -> anyhow::Result<Plan> {
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
    tree.try_into().map_err(|error: toml::de::Error| anyhow!("{}", error.message()))
}

/// Gives keys the values of an experiment: one sets the key, several sweep over it. What the file
/// sweeps is replaced.
pub(crate) fn assign(
    mut scenario: Scenario,
    file: &str,
    settings: &[Vary],
) -> anyhow::Result<Scenario> {
    for Vary { key, values } in settings {
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
                scenario = set(scenario, file, &[Setting { key: key.clone(), value }])?;
            }
        }
    }
    scenario.points().map_err(|error| named(error, file, "", 0, std::iter::empty()))?;
    Ok(scenario)
}

fn axis(key: &str, values: Values) -> Sweep {
    Sweep { vary: IndexMap::from([(key.to_owned(), values)]), label: None }
}

/// Names the flags of the command line where the error names entries of a sweep.
fn named<'a>(
    mut error: ScenarioError,
    file: &str,
    flag: &str,
    first: usize,
    keys: impl Iterator<Item = &'a str>,
) -> anyhow::Error {
    file.clone_into(&mut error.file);
    let flags: Vec<_> = keys
        .enumerate()
        .map(|(index, key)| {
            (format!("sweep[{}].vary.{key:?}", first + index), format!("{flag} {key}"))
        })
        .collect();
    for problem in &mut error.problems {
        for (entry, flag) in &flags {
            problem.key = problem.key.replace(entry, flag);
        }
    }
    error.into()
}

impl FromStr for Setting {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = split(text)?;
        Ok(Self { key, value: value_of(value) })
    }
}

impl FromStr for Vary {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (key, values) = split(text)?;
        let values = match values.split_once(':') {
            Some(("lin", ends)) => range(ends, false)?,
            Some(("log", ends)) => range(ends, true)?,
            _ => Values::List(pieces(values).into_iter().map(value_of).collect()),
        };
        Ok(Self { key, values })
    }
}

fn split(text: &str) -> Result<(String, &str), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => {
            Ok((dotted(key.trim()), value.trim()))
        }
        _ => Err("write KEY=VALUE, such as 'link.uplink.forward.rate=3 Mbit/s'".into()),
    }
}

/// The number of a list's entry stands behind a dot; errors write it in brackets.
fn dotted(key: &str) -> String {
    key.replace('[', ".").replace(']', "")
}

/// A value as it would stand in the file, where quotes around texts may be left out.
fn value_of(text: &str) -> Value {
    let document = format!("value = {text}");
    let read = document.parse::<toml::Table>().ok().filter(|table| table.len() == 1);
    read.and_then(|mut table| table.remove("value")).unwrap_or_else(|| Value::String(text.into()))
}

fn range(text: &str, log: bool) -> Result<Values, String> {
    let parts: Vec<_> = text.split(':').map(str::trim).collect();
    let [first, last, points] = parts[..] else {
        return Err("write first:last:number, such as 'lin:1 Mbit/s:10 Mbit/s:10'".into());
    };
    let points = points.parse().map_err(|_| format!("{points:?} is not a number of points"))?;
    let ends = Some([value_of(first), value_of(last)]);
    let (linear, log) = if log { (None, ends) } else { (ends, None) };
    Ok(Values::Range(Range { linear, log, points }))
}

/// The pieces between commas that stand outside quotes and brackets.
fn pieces(text: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut depth, mut quoted) = (Vec::new(), 0, 0_i32, false);
    for (at, character) in text.char_indices() {
        match character {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                pieces.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(text[start..].trim());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_reads_texts_numbers_and_tables() {
        let value = |text: &str| text.parse::<Setting>().unwrap().value;
        assert_eq!(value("link.a.forward.rate=3 Mbit/s"), Value::String("3 Mbit/s".into()));
        assert_eq!(value("seed=7"), Value::Integer(7));
        assert_eq!(value("stack.a.sack=true"), Value::Boolean(true));
        assert!(value("link.a.forward.loss={bernoulli = \"1 %\"}").is_table());
        let setting: Setting = "link.a.forward.outage[0].start=1 s".parse().unwrap();
        assert_eq!(setting.key, "link.a.forward.outage.0.start");
        assert!("seed".parse::<Setting>().is_err());
        assert!("=7".parse::<Setting>().is_err());
        // Nothing may be smuggled in behind the value.
        assert_eq!(value("title=1\nseed = 2"), Value::String("1\nseed = 2".into()));
    }

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

    #[test]
    fn values_are_a_list_or_a_range() {
        let values = |text: &str| text.parse::<Vary>().map(|vary| vary.values);
        let Ok(Values::List(list)) = values("a=1 ms, 2 ms") else { panic!() };
        assert_eq!(list, [Value::String("1 ms".into()), Value::String("2 ms".into())]);
        let Ok(Values::List(list)) = values("a={x = 1, y = 2},{x = 3, y = 4}") else { panic!() };
        assert_eq!(list.len(), 2);
        let Ok(Values::Range(range)) = values("a=log:1 ms:100 ms:3") else { panic!() };
        assert_eq!((range.linear, range.points), (None, 3));
        assert!(values("a=lin:1 ms:100 ms").is_err());
        assert!(values("a=lin:1 ms:100 ms:many").is_err());
    }
}
