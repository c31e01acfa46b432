//! Points of a sweep: one scenario for each combination of swept values.

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value as Json;

use super::error::{Problem, ScenarioError};
use super::file::explain;
use super::{Range, Scenario, Sweep, Values, check, suggest};
use crate::units;

/// One combination of swept values, and the scenario that results.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioPoint {
    /// Swept keys and their values, as text; empty without a sweep.
    pub parameters: IndexMap<String, String>,
    /// The scenario with these values and without a sweep.
    pub scenario: Scenario,
}

/// Most points of one scenario: beyond, somebody has mistyped a number.
const POINTS_MAX: usize = 100_000;

/// Most combinations that are tried when a file is read; the others are tried as points are made.
const TRIED: usize = 1_000;

impl Scenario {
    /// Number of combinations of swept values; 1 without a sweep.
    ///
    /// # Errors
    /// A sweep that is not well formed or has more than 100,000 points.
    pub fn point_count(&self) -> Result<usize, ScenarioError> {
        let axes = axes(self).map_err(failed)?;
        Ok(axes.iter().map(Axis::len).product())
    }

    /// All combinations of swept values, the last entry of the sweep changing fastest.
    ///
    /// # Errors
    /// A sweep that is not well formed (its key is named), or a combination that is no valid
    /// scenario.
    pub fn points(&self) -> Result<Vec<ScenarioPoint>, ScenarioError> {
        self.validate()?;
        let axes = axes(self).map_err(failed)?;
        let base = base(self);
        let count = axes.iter().map(Axis::len).product();
        let point = |number| point(&base, &axes, &indices(&axes, number)).map_err(failed);
        (0..count).map(point).collect()
    }
}

/// What is wrong with the sweep of a scenario that is otherwise valid. Each value is tried once,
/// together with the first values of the other entries.
pub(super) fn problems(scenario: &Scenario) -> Vec<Problem> {
    let axes = match axes(scenario) {
        Ok(axes) => axes,
        Err(problem) => return vec![problem],
    };
    let base = base(scenario);
    let mut tries = vec![vec![0; axes.len()]];
    for (entry, axis) in axes.iter().enumerate() {
        tries.extend((1..axis.len()).take(TRIED).map(|index| {
            let mut indices = vec![0; axes.len()];
            indices[entry] = index;
            indices
        }));
    }
    let tries = tries.iter().take(TRIED);
    tries.filter_map(|indices| point(&base, &axes, indices).err()).take(1).collect()
}

fn failed(problem: Problem) -> ScenarioError {
    ScenarioError::one("", problem)
}

/// The scenario as a tree whose keys can be set, without its sweep.
fn base(scenario: &Scenario) -> Json {
    let mut tree = serde_json::to_value(scenario).unwrap_or_default();
    if let Json::Object(tree) = &mut tree {
        tree.shift_remove("sweep");
    }
    tree
}

/// One entry of a sweep: its keys, each with as many values as the others.
struct Axis {
    entry: usize,
    keys: Vec<(String, Vec<Json>)>,
}

impl Axis {
    fn len(&self) -> usize {
        self.keys.first().map_or(1, |(_, values)| values.len())
    }
}

fn indices(axes: &[Axis], mut number: usize) -> Vec<usize> {
    let mut indices = vec![0; axes.len()];
    for (index, axis) in indices.iter_mut().zip(axes).rev() {
        *index = number % axis.len();
        number /= axis.len();
    }
    indices
}

fn axes(scenario: &Scenario) -> Result<Vec<Axis>, Problem> {
    let base = base(scenario);
    let mut axes = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    let mut count: usize = 1;
    for (entry, sweep) in scenario.sweep.iter().enumerate() {
        for key in sweep.vary.keys() {
            if seen.contains(&key.as_str()) {
                return Err(Problem::new(
                    name(entry, key),
                    "this key is varied by an earlier entry already",
                    "keep one of the two",
                ));
            }
            seen.push(key);
        }
        let axis = axis(entry, sweep, &base)?;
        count = count.saturating_mul(axis.len());
        if count > POINTS_MAX {
            return Err(Problem::new(
                format!("sweep[{entry}]"),
                format!("the sweep has more than {POINTS_MAX} points"),
                "entries are combined in every way; take fewer values, or vary keys together in \
                 one entry",
            ));
        }
        axes.push(axis);
    }
    Ok(axes)
}

fn axis(entry: usize, sweep: &Sweep, base: &Json) -> Result<Axis, Problem> {
    let mut keys: Vec<(String, Vec<Json>)> = Vec::new();
    if sweep.vary.is_empty() {
        return Err(Problem::new(
            format!("sweep[{entry}].vary"),
            "no key is varied",
            "name one: vary.\"link.uplink.both.rate\" = [\"1 Mbit/s\", \"2 Mbit/s\"]",
        ));
    }
    for (key, values) in &sweep.vary {
        let fail =
            |message: String, remedy: String| Problem::new(name(entry, key), message, remedy);
        find(base, key).map_err(|(message, remedy)| fail(message, remedy))?;
        let values = match values {
            Values::List(list) => list.iter().map(json).collect(),
            Values::Range(range) => {
                span(range).map_err(|(message, remedy)| fail(message, remedy))?
            }
        };
        if values.is_empty() {
            return Err(fail("the list is empty".into(), "give at least one value".into()));
        }
        if let Some((first, others)) = keys.first()
            && others.len() != values.len()
        {
            return Err(fail(
                format!("{} values, but {first:?} has {}", values.len(), others.len()),
                "keys of one entry vary together: give them equally many values, or put them \
                 into entries of their own"
                    .into(),
            ));
        }
        keys.push((key.clone(), values));
    }
    Ok(Axis { entry, keys })
}

fn name(entry: usize, key: &str) -> String {
    format!("sweep[{entry}].vary.{key:?}")
}

/// Why something is wrong, and the remedy.
type Refusal = (String, String);

/// Checks that a key leads somewhere. Its last step may be absent where it is optional; whether
/// it exists at all is known when it is set.
fn find(base: &Json, key: &str) -> Result<(), Refusal> {
    let steps: Vec<_> = key.split('.').collect();
    let mut tree = base;
    for (depth, step) in steps.iter().enumerate() {
        if depth == 0 && *step == "sweep" {
            return Err(("a sweep cannot vary itself".into(), "name a key outside it".into()));
        }
        let next = match tree {
            Json::Object(table) => table.get(*step),
            Json::Array(list) => match step.parse().ok().and_then(|index: usize| list.get(index)) {
                None => {
                    return Err((
                        format!("{:?} has no entry {step}", steps[..depth].join(".")),
                        format!("entries are counted from 0; it has {}", list.len()),
                    ));
                }
                found => found,
            },
            _ => {
                return Err((
                    format!("{:?} is a value and has no keys below it", steps[..depth].join(".")),
                    "vary the whole value, or write it as a table first".into(),
                ));
            }
        };
        match (next, tree) {
            (Some(next), _) => tree = next,
            (None, Json::Object(table))
                if depth == 0 || NAMED.contains(&steps[0]) && depth == 1 =>
            {
                let known: Vec<_> = table.keys().map(String::as_str).collect();
                let what = if depth == 0 { "key" } else { steps[0] };
                return Err((
                    format!("there is no {what} {step:?}"),
                    suggest::remedy(step, &known),
                ));
            }
            (None, _) => return Ok(()),
        }
    }
    Ok(())
}

/// Tables whose keys are names that the file chooses.
const NAMED: [&str; 4] = ["node", "link", "stack", "flow"];

/// The values of a range.
fn span(range: &Range) -> Result<Vec<Json>, Refusal> {
    let (ends, log) = match (&range.linear, &range.log) {
        (Some(ends), None) => (ends, false),
        (None, Some(ends)) => (ends, true),
        _ => {
            return Err((
                "a range has either `linear` or `log`".into(),
                "write { linear = [first, last], points = 5 }".into(),
            ));
        }
    };
    let points = range.points as usize;
    if !(2..=POINTS_MAX).contains(&points) {
        return Err((
            format!("a range has from 2 to {POINTS_MAX} points, not {points}"),
            "for one value write a list: [\"1 Mbit/s\"]".into(),
        ));
    }
    let (first, last) = (End::of(&ends[0])?, End::of(&ends[1])?);
    if first.unit != last.unit {
        let told = |end: &End| match end.unit {
            Some(unit) => format!("{unit:?}"),
            None => "no unit".into(),
        };
        return Err((
            format!("the ends have different units: {} and {}", told(&first), told(&last)),
            "write both ends in one unit; it is the unit of all values".into(),
        ));
    }
    if log && (first.number <= 0.0 || last.number <= 0.0) {
        return Err((
            "a logarithmic range has both ends above 0".into(),
            "start above 0, or use `linear`".into(),
        ));
    }
    let whole = first.whole && last.whole;
    let at = |index: usize| {
        let share = index as f64 / (points - 1) as f64;
        let number = match index {
            0 => first.number,
            _ if index == points - 1 => last.number,
            _ if log => (first.number.ln() * (1.0 - share) + last.number.ln() * share).exp(),
            _ => first.number * (1.0 - share) + last.number * share,
        };
        first.written(number, whole)
    };
    Ok((0..points).map(at).collect())
}

/// One end of a range.
struct End<'a> {
    number: f64,
    unit: Option<&'a str>,
    /// Whether the values between must be whole numbers.
    whole: bool,
}

impl<'a> End<'a> {
    fn of(value: &'a toml::Value) -> Result<Self, Refusal> {
        let fail = || {
            (
                format!("{value} cannot be the end of a range"),
                "write numbers, or texts with a number and a unit: [\"1 ms\", \"9 ms\"]".into(),
            )
        };
        let end = match value {
            toml::Value::Integer(number) => {
                Self { number: *number as f64, unit: None, whole: true }
            }
            toml::Value::Float(number) => Self { number: *number, unit: None, whole: false },
            toml::Value::String(text) => {
                let (number, unit) = units::split(text);
                let number = number.replace('_', "").parse().map_err(|_| fail())?;
                let whole = matches!(unit, "packets" | "segments");
                Self { number, unit: Some(unit), whole }
            }
            _ => return Err(fail()),
        };
        if end.number.is_finite() { Ok(end) } else { Err(fail()) }
    }

    fn written(&self, number: f64, whole: bool) -> Json {
        // Twelve digits: 0.1 + 0.2 is written 0.3.
        let number = if whole { number.round() } else { rounded(number) };
        match self.unit {
            Some(unit) => format!("{number} {unit}").into(),
            None if whole => (number as i64).into(),
            None => number.into(),
        }
    }
}

fn rounded(number: f64) -> f64 {
    format!("{number:.11e}").parse().unwrap_or(number)
}

fn json(value: &toml::Value) -> Json {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(truth) => (*truth).into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(list) => list.iter().map(json).collect(),
        toml::Value::Table(table) => {
            table.iter().map(|(key, value)| (key.clone(), json(value))).collect()
        }
    }
}

fn point(base: &Json, axes: &[Axis], indices: &[usize]) -> Result<ScenarioPoint, Problem> {
    let mut settings = Vec::new();
    for (axis, index) in axes.iter().zip(indices) {
        for (key, values) in &axis.keys {
            settings.push(Setting { entry: axis.entry, key, value: &values[*index] });
        }
    }
    let mut tree = base.clone();
    for setting in &settings {
        setting.apply(&mut tree)?;
    }
    let scenario = Scenario::deserialize(&tree).map_err(|error| blame(base, &settings, &error))?;
    if let Some(problem) = check::problems(&scenario).into_iter().next() {
        let named = settings.iter().find(|setting| problem.key.starts_with(setting.key));
        return Err(match named.or(settings.first()) {
            Some(setting) => {
                let refused = setting.refused(&format!("{}: {}", problem.key, problem.message));
                Problem { remedy: problem.remedy, ..refused }
            }
            None => problem,
        });
    }
    let parameters = settings.iter().map(|setting| (setting.key.to_owned(), setting.text()));
    Ok(ScenarioPoint { parameters: parameters.collect(), scenario })
}

/// One key and the value that it takes at a point.
struct Setting<'a> {
    entry: usize,
    key: &'a str,
    value: &'a Json,
}

impl Setting<'_> {
    fn apply(&self, tree: &mut Json) -> Result<(), Problem> {
        let mut place = tree;
        for step in self.key.split('.') {
            place = match place {
                Json::Object(table) => {
                    table.entry(step).or_insert_with(|| Json::Object(serde_json::Map::new()))
                }
                Json::Array(list) => match step.parse().ok().and_then(|i: usize| list.get_mut(i)) {
                    Some(entry) => entry,
                    None => return Err(self.refused("the key does not exist")),
                },
                _ => return Err(self.refused("the key is below a value that is not a table")),
            };
        }
        *place = self.value.clone();
        Ok(())
    }

    fn refused(&self, reason: &str) -> Problem {
        Problem::new(
            name(self.entry, self.key),
            format!("with the value {}: {reason}", self.value),
            "",
        )
    }

    fn unreadable(&self, error: &serde_json::Error) -> Problem {
        let (message, remedy) = explain::reworded(&error.to_string(), self.key);
        Problem { remedy, ..self.refused(&message) }
    }

    fn text(&self) -> String {
        match self.value {
            Json::String(text) => text.clone(),
            value => value.to_string(),
        }
    }
}

/// Finds the setting that makes a tree unreadable: the first that does so alone.
fn blame(base: &Json, settings: &[Setting<'_>], error: &serde_json::Error) -> Problem {
    for setting in settings {
        let mut tree = base.clone();
        if let Err(problem) = setting.apply(&mut tree) {
            return problem;
        }
        if let Err(error) = Scenario::deserialize(&tree) {
            return setting.unreadable(&error);
        }
    }
    match settings.first() {
        Some(setting) => setting.unreadable(&error),
        None => Problem::new("sweep", error.to_string(), ""),
    }
}
