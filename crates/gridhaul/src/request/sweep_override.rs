//! Options that replace a sweep of the scenario file.

use anyhow::bail;
use gridhaul_scenario::scenario::{Scenario, Values};
use gridhaul_scenario::units::counted;

use super::argument::dotted_key;

/// Removes a key from the sweep because an option sets it. Returns a note if the file sweeps the
/// key.
///
/// # Errors
/// The file sweeps a table that contains the key: the option would have no effect.
pub(super) fn replace(
    scenario: &mut Scenario,
    key: &str,
    option: &str,
) -> anyhow::Result<Option<String>> {
    for (index, entry) in scenario.sweep.iter_mut().enumerate() {
        let above = |swept: &&String| {
            key.strip_prefix(&dotted_key(swept)).is_some_and(|rest| rest.starts_with('.'))
        };
        if let Some(table) = entry.vary.keys().find(above) {
            bail!(
                "{option}: the file sweeps `{table}`, which contains this key and would override \
                 this value\n  help: give all of `{table}` instead"
            );
        }
        let Some(swept) = entry.vary.keys().find(|swept| dotted_key(swept) == key).cloned() else {
            continue;
        };
        let values = match entry.vary.shift_remove(&swept) {
            Some(Values::List(list)) => list.len(),
            Some(Values::Range(range)) => range.points as usize,
            None => 0,
        };
        let others: Vec<_> = entry.vary.keys().map(|key| format!("`{key}`")).collect();
        if others.is_empty() {
            scenario.sweep.remove(index);
        }
        let decoupled = match others.len() {
            0 => String::new(),
            _ => format!(", and {} no longer vary together with this key", others.join(", ")),
        };
        return Ok(Some(format!(
            "{option} replaces the {} that the file sweeps for `{swept}`{decoupled}",
            counted(values, "value")
        )));
    }
    Ok(None)
}
