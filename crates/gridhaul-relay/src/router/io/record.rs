//! The record of all changes to the system: a file, by which a later process undoes them.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::relay::RouterConfig;
use serde_json::{Value, json};

use super::plan::Plan;
use super::step::Step;
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
        let value: Value = serde_json::from_str(&text).map_err(|error| damaged(path, &error))?;
        let steps = |key| steps_of(&value, key).map_err(|reason| damaged(path, &reason));
        Ok(Some(Self { set: steps("set")?, undo: steps("undo")? }))
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
        "router.state: {path}: {error}\n  help: the relay must be able to read and write this file \
         and its folder"
    ))
}

fn damaged(path: &Path, reason: &dyn std::fmt::Display) -> RunError {
    let path = path.display();
    RunError::Invalid(format!(
        "router.state: {path}: not a record of a hybrid router: {reason}\n  help: undo the changes \
         that `gridhaul-relay run FILE --dry-run` lists, then remove this file"
    ))
}

fn value_of(step: &Step) -> Value {
    match step {
        Step::Sysctl { name, value } => json!({ "sysctl": name, "value": value }),
        Step::Command { .. } => json!({ "command": step.to_string() }),
        Step::Ruleset(text) => json!({ "ruleset": text }),
    }
}

fn steps_of(record: &Value, key: &str) -> Result<Vec<Step>, String> {
    let steps = record[key].as_array().ok_or_else(|| format!("{key:?} is not a list"))?;
    let step = |value| step_of(value).ok_or_else(|| format!("{key:?} has an unknown step {value}"));
    steps.iter().map(step).collect()
}

fn step_of(value: &Value) -> Option<Step> {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    if let Some(name) = text("sysctl") {
        return Some(Step::Sysctl { name, value: text("value")? });
    }
    if let Some(line) = text("command") {
        return Step::from_command_line(&line);
    }
    text("ruleset").map(Step::Ruleset)
}

#[cfg(test)]
mod tests {
    use super::super::step::Iproute2;
    use super::*;

    #[test]
    fn a_record_reads_back_and_damage_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/terminal.router.json");
        assert_eq!(Record::read(&path).unwrap(), None);
        let record = Record {
            set: vec![Step::command(Iproute2::Ip, "rule add")],
            undo: vec![
                Step::Ruleset("delete table \"x\"\n".to_owned()),
                Step::Sysctl { name: "ipv4/conf/a/rp_filter".to_owned(), value: "1".to_owned() },
            ],
        };
        record.write(&path).unwrap();
        assert_eq!(Record::read(&path).unwrap().as_ref(), Some(&record));
        for (text, reason) in [
            (r#"{"set": [], "#, "line 1 column 12"),
            (r#"{"set": []}"#, r#""undo" is not a list"#),
            (r#"{"set": [], "undo": [{}]}"#, r#""undo" has an unknown step {}"#),
            (
                r#"{"set": [], "undo": [{"command": "nft flush ruleset"}]}"#,
                r#""undo" has an unknown step {"command":"nft flush ruleset"}"#,
            ),
        ] {
            fs::write(&path, text).unwrap();
            let error = Record::read(&path).unwrap_err().to_string();
            assert!(error.contains("not a record of a hybrid router: "), "{error}");
            assert!(error.contains(reason), "{error}");
        }
        Record::remove(&path).unwrap();
        assert_eq!(Record::read(&path).unwrap(), None);
    }
}
