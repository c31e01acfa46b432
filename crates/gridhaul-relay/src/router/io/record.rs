//! The record of all changes to the system: a file, by which a later process undoes them.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::relay::RouterConfig;
use serde_json::{Value, json};

use super::plan::{Plan, Step};
use crate::file_lock::FileLock;
use crate::runtime::RunError;
use crate::runtime::listener::{START_ATTEMPTS, pause};

/// Changes that were made, and those that undo them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub set: Vec<Step>,
    pub undo: Vec<Step>,
}

impl Record {
    pub(super) fn new(plan: &Plan, undo: Vec<Step>) -> Self {
        Self { set: plan.steps().cloned().collect(), undo }
    }

    /// The record of a router, if there is one.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, RunError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(path, &error)),
        };
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let steps = |key: &str| -> Option<Vec<Step>> {
            value[key].as_array()?.iter().map(step_of).collect()
        };
        match (steps("set"), steps("undo")) {
            (Some(set), Some(undo)) => Ok(Some(Self { set, undo })),
            _ => Err(failed(path, &"the content is not a record of a hybrid router")),
        }
    }

    /// Stores the record, before the first change is made.
    pub(super) fn write(&self, path: &Path) -> Result<(), RunError> {
        let list = |steps: &[Step]| steps.iter().map(value_of).collect::<Vec<_>>();
        let text = json!({ "set": list(&self.set), "undo": list(&self.undo) }).to_string();
        let store = || -> io::Result<()> {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let new = path.with_extension("new");
            let mut file = fs::File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, path)
        };
        store().map_err(|error| failed(path, &error))
    }

    /// Removes the record of a router whose changes are undone.
    pub(super) fn remove(path: &Path) -> Result<(), RunError> {
        fs::remove_file(path).map_err(|error| failed(path, &error))
    }
}

/// The file of the record. A relative folder begins at the folder of the configuration file.
pub(super) fn path_of(config: &RelayConfig, router: &RouterConfig, folder: &Path) -> PathBuf {
    folder.join(&router.state).join(format!("{}.router.json", config.name))
}

/// Excludes other processes that change the system by the same record. A router that was killed
/// while it started a program leaves the lock with that process for a moment.
pub(super) fn lock(path: &Path) -> Result<FileLock, RunError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| failed(path, &error))?;
    }
    let file = path.with_extension("lock");
    for attempt in 0..START_ATTEMPTS {
        if attempt > 0 {
            pause();
        }
        if let Some(lock) = FileLock::try_new(&file).map_err(|error| failed(&file, &error))? {
            return Ok(lock);
        }
    }
    let path = path.display();
    Err(RunError::Invalid(format!(
        "router.state: {path}: this hybrid router is running, in another process\n  help: stop it \
         (SIGTERM), which undoes its changes; another router needs another `name`"
    )))
}

fn failed(path: &Path, error: &dyn std::fmt::Display) -> RunError {
    let path = path.display();
    RunError::Invalid(format!(
        "router.state: {path}: {error}\n  help: the relay must be able to write to this folder; a \
         damaged record must be removed by hand, with the changes that `run --dry-run` lists"
    ))
}

fn value_of(step: &Step) -> Value {
    match step {
        Step::Sysctl { name, value } => json!({ "sysctl": name, "value": value }),
        Step::Command(command) => json!({ "command": command }),
        Step::Ruleset(text) => json!({ "ruleset": text }),
    }
}

fn step_of(value: &Value) -> Option<Step> {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    if let Some(name) = text("sysctl") {
        return Some(Step::Sysctl { name, value: text("value")? });
    }
    text("command").map(Step::Command).or_else(|| text("ruleset").map(Step::Ruleset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_and_damage_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/terminal.router.json");
        assert_eq!(Record::read(&path).unwrap(), None);
        let record = Record {
            set: vec![Step::Command("ip rule add".to_owned())],
            undo: vec![
                Step::Ruleset("delete table \"x\"\n".to_owned()),
                Step::Sysctl { name: "ipv4/conf/a/rp_filter".to_owned(), value: "1".to_owned() },
            ],
        };
        record.write(&path).unwrap();
        assert_eq!(Record::read(&path).unwrap().as_ref(), Some(&record));
        fs::write(&path, "{\"set\": [], \"undo\": [{}]}").unwrap();
        let error = Record::read(&path).unwrap_err().to_string();
        assert!(error.contains("is not a record of a hybrid router"), "{error}");
        Record::remove(&path).unwrap();
        assert_eq!(Record::read(&path).unwrap(), None);
    }
}
