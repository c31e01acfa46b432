//! Options that replace what a file sweeps.

use anyhow::bail;
use gridhaul_scenario::scenario::{Scenario, Values};

use super::argument::dotted_key;

/// Takes a key out of the sweep, because an option gives it other values. Returns a note where the
/// file sweeps the key.
///
/// # Errors
/// The file sweeps a table that holds the key: the option would have no effect.
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
                "{option}: the file sweeps `{table}`, which holds this key, and would replace its value\n  \
                 help: give `{table}` as a whole"
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
        let apart = match others.len() {
            0 => String::new(),
            _ => format!(", and {} no longer vary together with it", others.join(", ")),
        };
        let plural = if values == 1 { "" } else { "s" };
        return Ok(Some(format!(
            "{option} replaces the {values} value{plural} that the file sweeps for `{swept}`{apart}"
        )));
    }
    Ok(None)
}
