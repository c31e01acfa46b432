//! Scenarios that differ from a given one in some keys.

use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::setting::{self, Setting};
use crate::scenario::error::Diagnostic;
use crate::scenario::file::{self, explain};
use crate::scenario::{Scenario, check, power_line};

/// A scenario without sweep and plan, as the basis of others.
#[derive(Debug, Clone)]
pub(super) struct Template {
    /// Its keys.
    tree: Json,
    /// The scenario of these keys; `None` if they are none.
    scenario: Option<Scenario>,
}

/// An entry of a table, such as a link.
#[derive(Clone, Copy, PartialEq)]
struct Entry<'a> {
    table: &'a str,
    name: &'a str,
}

impl Template {
    pub(super) fn new(tree: Json) -> Self {
        let scenario = Scenario::deserialize(&tree).ok();
        Self { tree, scenario }
    }

    /// The scenario with these settings.
    ///
    /// # Errors
    /// A key that does not exist, or values that are wrong or contradict each other.
    pub(super) fn with(&self, settings: &[Setting<'_>]) -> Result<Scenario, Diagnostic> {
        let quick = self.with_entries(settings);
        match quick.filter(|scenario| check::diagnostics(scenario).is_empty()) {
            Some(scenario) => Ok(scenario),
            None => self.with_all_keys(settings),
        }
    }

    /// The scenario of which only the entries with settings, such as a link, are read again: a
    /// large sweep takes most of its time to build its points. `None` if that is not sufficient, or
    /// if a value is wrong.
    fn with_entries(&self, settings: &[Setting<'_>]) -> Option<Scenario> {
        let mut scenario = self.scenario.clone()?;
        let mut entries: Vec<Entry<'_>> = Vec::new();
        for setting in settings {
            if setting::has_list(&setting.value) {
                return None;
            }
            let mut steps = setting::steps(setting.key);
            match (steps.next()?, steps.next()) {
                ("seed", None) => scenario.seed = u64::deserialize(&setting.value).ok()?,
                (_, None) => return None,
                (table, Some(name)) if entries.contains(&Entry { table, name }) => {}
                (table, Some(name)) => entries.push(Entry { table, name }),
            }
        }
        for Entry { table, name } in entries {
            let entry = self.entry(Entry { table, name }, settings)?;
            match table {
                "node" => read(&entry, scenario.node.get_mut(name)?)?,
                "link" => read(&entry, scenario.link.get_mut(name)?)?,
                "medium" => read(&entry, scenario.medium.get_mut(name)?)?,
                "stack" => read(&entry, scenario.stack.get_mut(name)?)?,
                "flow" => read(&entry, scenario.flow.get_mut(name)?)?,
                "attack" => read(&entry, scenario.attack.get_mut(name)?)?,
                _ => return None,
            }
        }
        Some(scenario)
    }

    /// The keys of an entry of a table with the settings that concern it.
    fn entry(&self, entry: Entry<'_>, settings: &[Setting<'_>]) -> Option<Json> {
        let Entry { table, name } = entry;
        let entry = self.tree.get(table)?.get(name)?.clone();
        let entries = Map::from_iter([(name.to_owned(), entry)]);
        let mut tree = Json::Object(Map::from_iter([(table.to_owned(), entries.into())]));
        remove_derived(&mut tree, settings);
        for setting in settings {
            let mut steps = setting::steps(setting.key);
            if (steps.next(), steps.next()) == (Some(table), Some(name)) {
                setting.apply(&mut tree).ok()?;
            }
        }
        Some(tree[table][name].take())
    }

    /// The scenario of which all keys are read again.
    fn with_all_keys(&self, settings: &[Setting<'_>]) -> Result<Scenario, Diagnostic> {
        let mut tree = self.tree.clone();
        remove_derived(&mut tree, settings);
        for setting in settings {
            setting.apply(&mut tree)?;
        }
        let scenario = Scenario::deserialize(&tree);
        let scenario = scenario.map_err(|error| self.blame(settings, &error))?;
        let has_list = settings.iter().any(|setting| setting::has_list(&setting.value));
        let list = if has_list { file::list_read_as_table(&tree, &scenario) } else { None };
        if let Some(diagnostic) = list.or_else(|| check::diagnostics(&scenario).into_iter().next())
        {
            let named = settings.iter().find(|setting| diagnostic.key.starts_with(setting.key));
            return Err(match named.or(settings.first()) {
                Some(setting) => {
                    let reason = format!("{}: {}", diagnostic.key, diagnostic.message);
                    let refused = setting.refused(&diagnostic.key, &reason);
                    Diagnostic { remedy: diagnostic.remedy, ..refused }
                }
                None => diagnostic,
            });
        }
        Ok(scenario)
    }

    /// Finds the setting that causes an error: the first one that does so alone.
    fn blame(&self, settings: &[Setting<'_>], error: &serde_json::Error) -> Diagnostic {
        for setting in settings {
            let mut tree = self.tree.clone();
            if let Err(diagnostic) = setting.apply(&mut tree) {
                return diagnostic;
            }
            if let Err(error) = Scenario::deserialize(&tree) {
                return setting.unreadable(&tree, &error);
            }
        }
        // No setting fails alone: two of them contradict each other.
        match settings.first() {
            Some(setting) => {
                let (message, remedy) = explain::in_toml_terms(&error.to_string(), setting.key);
                Diagnostic { remedy, ..setting.refused("", &message) }
            }
            None => Diagnostic::new("sweep", explain::in_toml_terms(&error.to_string(), "").0, ""),
        }
    }
}

/// Directions that a power line has set would otherwise hide the changed keys of the line.
fn remove_derived(tree: &mut Json, settings: &[Setting<'_>]) {
    let is_set_below = |key: &str| {
        settings.iter().any(|set| set.key.strip_prefix(key).is_some_and(|s| s.starts_with('.')))
    };
    power_line::remove_derived(tree, is_set_below);
}

/// Reads an entry of a table; `None` if it is wrong.
fn read<'a, T: Deserialize<'a>>(entry: &'a Json, into: &mut T) -> Option<()> {
    *into = T::deserialize(entry).ok()?;
    Some(())
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::scenario::points::{base, indices, settings};

    fn toml_files(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) =
            entries.partition(|path| path.is_dir());
        let is_toml = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "toml");
        let below = folders.iter().flat_map(|folder| toml_files(folder));
        files.into_iter().filter(is_toml).chain(below).collect()
    }

    #[test]
    fn entries_that_are_read_again_give_the_scenario_of_all_keys() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folders = ["scenarios", "papers"].map(|name| root.join(name));
        let mut quick = 0;
        for path in folders.iter().flat_map(|folder| toml_files(folder)) {
            let Ok(scenario) = Scenario::load(&path) else { continue };
            let template = Template::new(base(&scenario));
            let sweep = scenario.sweep_points().unwrap();
            for index in (0..sweep.len()).step_by(sweep.len().div_ceil(20)) {
                let settings = settings(&sweep.axes, &indices(&sweep.axes, index));
                let expected = template.with_all_keys(&settings).unwrap();
                if let Some(found) = template.with_entries(&settings) {
                    assert_eq!(found, expected, "{} {index}", path.display());
                    quick += 1;
                }
            }
        }
        assert!(quick > 100, "{quick} points of sweeps");
    }
}
