//! The folder in which the paths of a scenario begin.

use std::path::{self, Path};

use toml::Value;

use crate::scenario::{Load, Scenario, Values};

impl Scenario {
    /// Says that the scenario lies in this folder: paths of its traces begin there, or in the
    /// [`Scenario::folder`] that it names, which becomes a whole path. Nothing happens where no
    /// flow and no sweep names a trace.
    pub fn set_folder(&mut self, folder: &Path) {
        let own = Path::new(self.folder.as_deref().unwrap_or_default());
        if self.has_trace()
            && let Ok(whole) = match own.as_os_str().is_empty() {
                true => path::absolute(folder),
                false => path::absolute(folder.join(own)),
            }
        {
            self.folder = whole.to_str().map(str::to_owned);
        }
    }

    /// Whether a flow, a sweep or a plan names a trace.
    #[must_use]
    pub fn has_trace(&self) -> bool {
        let swept = self.sweep.iter().flat_map(|sweep| &sweep.vary);
        let chosen = self.plan.iter().flat_map(|plan| &plan.choose);
        self.flow.values().any(|flow| matches!(flow.load, Load::Trace(_)))
            || swept.chain(chosen).any(|(_, values)| match values {
                Values::List(list) => list.iter().any(holds_a_trace),
                Values::Range(_) => false,
            })
    }
}

/// Whether a swept value brings a trace where there was another load.
fn holds_a_trace(value: &Value) -> bool {
    match value {
        Value::Table(table) => table.contains_key("trace") || table.values().any(holds_a_trace),
        Value::Array(list) => list.iter().any(holds_a_trace),
        _ => false,
    }
}
