//! Measurements that are kept in a file as they are made, so that an interrupted command continues.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Name of the file in the folder of the results.
const NAME: &str = "measurements.jsonl";

/// Measurements by key, in memory and, if there is a folder, in a file with one line each.
#[derive(Debug)]
pub(super) struct Store {
    entries: Vec<Entry>,
    file: Option<(PathBuf, File)>,
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    key: String,
    value: Value,
}

/// The first line of the file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Heading {
    gridhaul: String,
    paper: String,
}

impl Heading {
    fn own() -> Self {
        Self { gridhaul: env!("CARGO_PKG_VERSION").into(), paper: "reserve".into() }
    }
}

impl Store {
    /// Reads the measurements of a folder, or begins with none; `discards` those of an earlier
    /// command.
    ///
    /// # Errors
    /// The file cannot be read or written, or belongs to another version of the program.
    pub(super) fn open(folder: Option<&Path>, discards: bool) -> anyhow::Result<Self> {
        let Some(folder) = folder else { return Ok(Self { entries: Vec::new(), file: None }) };
        let path = folder.join(NAME);
        let context = || path.display().to_string();
        let options = OpenOptions::new().read(true).append(true).create(true).clone().open(&path);
        let mut file = options.with_context(context)?;
        let (entries, complete) = if discards { (Vec::new(), 0) } else { read(&file, &path)? };
        // The line that was being written when the program was killed.
        file.set_len(complete).with_context(context)?;
        if complete == 0 {
            append(&mut file, &Heading::own()).with_context(context)?;
        }
        Ok(Self { entries, file: Some((path, file)) })
    }

    /// The measurements with this key, in the order in which they were made.
    pub(super) fn of<T: DeserializeOwned>(&self, key: &str) -> Vec<T> {
        let own = self.entries.iter().filter(|entry| entry.key == key);
        own.filter_map(|entry| T::deserialize(&entry.value).ok()).collect()
    }

    /// Number of measurements.
    pub(super) const fn count(&self) -> usize {
        self.entries.len()
    }

    /// Keeps a measurement.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn push<T: Serialize>(&mut self, key: &str, value: &T) -> anyhow::Result<()> {
        let entry = Entry { key: key.to_owned(), value: serde_json::to_value(value)? };
        if let Some((path, file)) = &mut self.file {
            append(file, &entry).with_context(|| format!("cannot write {}", path.display()))?;
        }
        self.entries.push(entry);
        Ok(())
    }
}

fn append(file: &mut File, line: &impl Serialize) -> anyhow::Result<()> {
    let line = serde_json::to_string(line)? + "\n";
    file.write_all(line.as_bytes())?;
    Ok(file.sync_data()?)
}

/// The entries, and the length of all complete lines in bytes.
fn read(file: &File, path: &Path) -> anyhow::Result<(Vec<Entry>, u64)> {
    let (mut entries, mut complete) = (Vec::new(), 0);
    let mut reader = BufReader::new(file);
    let mut line = String::new();
    for number in 1.. {
        line.clear();
        let place = || format!("{}, line {number}", path.display());
        let length = reader.read_line(&mut line).with_context(place)?;
        if !line.ends_with('\n') {
            break;
        }
        if number == 1 {
            let heading: Heading = serde_json::from_str(&line).with_context(place)?;
            ensure!(
                heading == Heading::own(),
                "{}: measurements of gridhaul {} for the paper {}\n  help: choose another \
                 folder, or remove this file",
                path.display(),
                heading.gridhaul,
                heading.paper
            );
        } else {
            entries.push(serde_json::from_str(&line).with_context(place)?);
        }
        complete += length as u64;
    }
    Ok((entries, complete))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_survive_and_an_unfinished_line_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Store::open(Some(folder.path()), false).unwrap();
        let mut store = open();
        store.push("a", &1).unwrap();
        store.push("b", &2).unwrap();
        store.push("a", &3).unwrap();
        drop(store);
        let path = folder.path().join(NAME);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.clone() + "{\"key\":\"a\",\"val").unwrap();
        let mut store = open();
        assert_eq!((store.of::<u32>("a"), store.of::<u32>("c")), (vec![1, 3], vec![]));
        store.push("c", &4).unwrap();
        drop(store);
        assert_eq!(open().of::<u32>("c"), [4]);
        assert!(std::fs::read_to_string(&path).unwrap().starts_with(&text));
        assert_eq!(Store::open(Some(folder.path()), true).unwrap().count(), 0);
        assert_eq!(open().count(), 0, "discarded");
    }

    #[test]
    fn a_file_of_another_version_or_with_a_damaged_line_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let refused = |text: &str| {
            std::fs::write(&path, text).unwrap();
            format!("{:#}", Store::open(Some(folder.path()), false).unwrap_err())
        };
        let error = refused("{\"gridhaul\":\"0.0.0\",\"paper\":\"reserve\"}\n");
        assert!(error.contains("gridhaul 0.0.0") && error.contains("another folder"), "{error}");
        let heading = serde_json::to_string(&Heading::own()).unwrap();
        let error = refused(&format!("{heading}\nno JSON\n"));
        assert!(error.contains("measurements.jsonl, line 2"), "{error}");
        assert!(std::fs::read_to_string(&path).unwrap().contains("no JSON"), "nothing is removed");
    }
}
