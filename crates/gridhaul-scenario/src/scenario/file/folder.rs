//! The folder to which the paths in a scenario are relative.

use std::path::{self, Path};

use toml::Value;

use crate::scenario::{Link, Load, Scenario, Values};

impl Scenario {
    /// Sets the folder of the scenario file: paths of traces and qualities are relative to it, or
    /// to the [`Scenario::folder`] of the file, which becomes an absolute path. Without traces in
    /// flows or sweeps, the folder is not set.
    pub fn set_folder(&mut self, folder: &Path) {
        let own = Path::new(self.folder.as_deref().unwrap_or_default());
        if self.has_trace()
            && let Ok(joined) = match own.as_os_str().is_empty() {
                true => path::absolute(folder),
                false => path::absolute(folder.join(own)),
            }
        {
            self.folder = joined.to_str().map(str::to_owned);
        }
    }

    /// Whether a flow, a link, a sweep or a plan refers to a trace or to a quality in a file.
    #[must_use]
    pub fn has_trace(&self) -> bool {
        let swept = self.sweep.iter().flat_map(|sweep| &sweep.vary);
        let chosen = self.plan.iter().flat_map(|plan| &plan.choose);
        self.flow.values().any(|flow| matches!(flow.load, Load::Trace(_)))
            || self.has_link_file()
            || swept.chain(chosen).any(|(key, values)| match values {
                // The trace of a link is also the value of a key.
                Values::List(list) => {
                    key.split('.').any(|step| step == "trace" || step == "file")
                        || list.iter().any(contains_file)
                }
                Values::Range(_) => false,
            })
    }

    /// Whether a direction of a link has a trace, or its quality in a file.
    #[must_use]
    pub fn has_link_file(&self) -> bool {
        let mut directions = self.link.values().flat_map(Link::given);
        directions.any(|(_, direction)| direction.files().next().is_some())
    }
}

/// Whether a swept value contains a trace or the name of a file.
fn contains_file(value: &Value) -> bool {
    match value {
        Value::Table(table) => {
            let names_file = ["trace", "file"].iter().any(|key| table.contains_key(*key));
            names_file || table.values().any(contains_file)
        }
        Value::Array(list) => list.iter().any(contains_file),
        _ => false,
    }
}
