//! The results of runs in the files of some folders.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use gridhaul_scenario::answer::Run;

use super::point_key::PointKey;
use super::unit_file::{ENDING, Header, HeaderEntry, PREFIX, StoredRun};

/// The results of all valid files of some folders. Only their headers are in memory.
#[derive(Debug, Default)]
pub(super) struct Store {
    files: Vec<PathBuf>,
    entries: BTreeMap<PointKey, Vec<Entry>>,
    /// Files that are damaged.
    pub(super) damaged: Vec<PathBuf>,
}

/// Consecutive replications of a point in a file.
#[derive(Debug, Clone, Copy)]
struct Entry {
    file: u32,
    first: u32,
    count: u32,
    at: u64,
    bytes: u64,
}

impl Store {
    /// Reads the headers of all files in the folders, and verifies the checksums. A folder may be
    /// absent.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub(super) fn open(folders: &[PathBuf]) -> anyhow::Result<Self> {
        let mut store = Self::default();
        for folder in folders {
            let entries = match fs::read_dir(folder) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                found => found.with_context(|| format!("cannot read {}", folder.display()))?,
            };
            let mut paths = Vec::new();
            for entry in entries {
                let entry = entry.with_context(|| format!("cannot read {}", folder.display()))?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.starts_with(PREFIX) && name.ends_with(ENDING) {
                    paths.push(entry.path());
                }
            }
            paths.sort();
            for path in paths {
                if store.add(&path).is_none() {
                    store.damaged.push(path);
                }
            }
        }
        Ok(store)
    }

    /// Adds the entries of a file; `None` if it is damaged.
    fn add(&mut self, path: &Path) -> Option<()> {
        let file = File::open(path).ok()?;
        let length = file.metadata().ok()?.len();
        let (header, start) = Header::read(BufReader::new(file), length)?;
        let number = self.files.len() as u32;
        self.files.push(path.to_owned());
        for HeaderEntry { point, first, count, at, bytes } in header.entries {
            let entry = Entry { file: number, first, count, at: start + at, bytes };
            self.entries.entry(point.parse().ok()?).or_default().push(entry);
        }
        Some(())
    }

    /// Number of stored results; those of a run that is stored twice count twice.
    pub(super) fn run_count(&self) -> u64 {
        self.entries.values().flatten().map(|entry| u64::from(entry.count)).sum()
    }

    /// Whether the result of a replication is stored.
    pub(super) fn has(&self, point: PointKey, replication: u32) -> bool {
        self.entries
            .get(&point)
            .is_some_and(|entries| entries.iter().any(|entry| entry.has(replication)))
    }

    /// The stored results of a point among its first `count` replications, in their order.
    ///
    /// # Errors
    /// A file cannot be read or is damaged.
    pub(super) fn runs(&self, point: PointKey, count: u32) -> anyhow::Result<Vec<(u32, Run)>> {
        let mut runs: Vec<(u32, Run)> = Vec::new();
        for entry in self.entries.get(&point).into_iter().flatten() {
            let path = &self.files[entry.file as usize];
            let read = || entry.read(path);
            for (replication, run) in read().with_context(|| {
                format!("cannot read the results in {}; remove this file", path.display())
            })? {
                if replication < count {
                    runs.push((replication, run));
                }
            }
        }
        // Shards that overlap have the same result twice.
        runs.sort_by_key(|(replication, _)| *replication);
        runs.dedup_by_key(|(replication, _)| *replication);
        Ok(runs)
    }

    /// The stored results of a point among its first `count` replications, up to the first missing
    /// one.
    ///
    /// # Errors
    /// A file cannot be read or is damaged.
    pub(super) fn first_runs(&self, point: PointKey, count: u32) -> anyhow::Result<Vec<Run>> {
        let runs = (0..).zip(self.runs(point, count)?);
        let contiguous = runs.take_while(|(expected, (replication, _))| replication == expected);
        Ok(contiguous.map(|(_, (_, run))| run).collect())
    }
}

impl Entry {
    const fn has(&self, replication: u32) -> bool {
        replication >= self.first && replication - self.first < self.count
    }

    fn read(&self, path: &Path) -> anyhow::Result<Vec<(u32, Run)>> {
        let mut bytes = vec![0; self.bytes as usize];
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(self.at))?;
        file.read_exact(&mut bytes)?;
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let runs = lines.zip(self.first..).map(|(line, replication)| {
            let StoredRun { rows, warnings } = serde_json::from_slice(line)?;
            Ok((replication, Run { rows, warnings, ..Run::default() }))
        });
        let runs: Vec<(u32, Run)> = runs.collect::<anyhow::Result<_>>()?;
        if runs.len() != self.count as usize {
            return Err(anyhow!("{} of {} lines", runs.len(), self.count));
        }
        Ok(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::super::unit_file::{UnitRun, encode, write, write_encoded};
    use super::*;
    use gridhaul_scenario::answer::{DelayCounts, Metric, RunRows, Warning};
    use gridhaul_scenario::units::Duration;

    fn key(digit: char) -> PointKey {
        digit.to_string().repeat(32).parse().unwrap()
    }

    fn run(goodput: f64) -> Run {
        let mut delays = DelayCounts::default();
        delays.add(Duration::from_nanos(1_234_567_891), 3);
        let rows = RunRows {
            flows: vec![vec![(Metric::Goodput, goodput), (Metric::RttMean, 0.1 + 0.2)]],
            links: vec![vec![]],
            delays: vec![Some(delays), None],
            ..RunRows::default()
        };
        let warnings = vec![Warning { about: "a".into(), message: "b \"c\"".into() }];
        Run { rows, warnings, ..Run::default() }
    }

    fn unit(point: char, replications: std::ops::Range<u32>) -> Vec<UnitRun> {
        let run = |replication| UnitRun {
            point: key(point),
            replication,
            run: run(f64::from(replication) / 3.0),
        };
        replications.map(run).collect()
    }

    #[test]
    fn results_read_back_to_the_last_bit() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("units");
        let mut runs = unit('a', 2..5);
        runs.extend(unit('b', 0..1));
        write(&folder, &runs).unwrap();
        write(&folder, &unit('a', 0..2)).unwrap();
        let store = Store::open(&[folder.clone(), dir.path().join("absent")]).unwrap();
        assert!(store.has(key('a'), 0) && store.has(key('a'), 4) && !store.has(key('a'), 5));
        let found = store.runs(key('a'), 4).unwrap();
        let numbers: Vec<u32> = found.iter().map(|(replication, _)| *replication).collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        for (replication, found) in found {
            let expected = run(f64::from(replication) / 3.0);
            assert_eq!((found.rows, found.warnings), (expected.rows, expected.warnings));
        }
        assert!(store.runs(key('c'), 4).unwrap().is_empty());
        // No temporary file is left.
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
    }

    #[test]
    fn a_damaged_file_has_no_results() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &unit('a', 0..3)).unwrap();
        let path = fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
        let text = fs::read(&path).unwrap();
        for cut in [0, 10, text.len() / 2, text.len() - 1] {
            fs::write(&path, &text[..cut]).unwrap();
            let store = Store::open(&[dir.path().to_owned()]).unwrap();
            assert!(!store.has(key('a'), 0), "{cut} bytes");
            assert_eq!(store.damaged, std::slice::from_ref(&path));
        }
    }

    #[test]
    fn a_file_with_another_bit_is_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let (name, contents) = encode(&unit('a', 0..2)).unwrap().unwrap();
        let path = dir.path().join(name);
        for at in 0..contents.len() {
            let mut other = contents.clone();
            other[at] ^= 1;
            fs::write(&path, &other).unwrap();
            let store = Store::open(&[dir.path().to_owned()]).unwrap();
            assert_eq!((store.run_count(), store.damaged.len()), (0, 1), "byte {at}");
            assert!(write_encoded(dir.path(), &other).is_err(), "byte {at}");
        }
        fs::write(&path, &contents).unwrap();
        assert_eq!(Store::open(&[dir.path().to_owned()]).unwrap().run_count(), 2);
    }

    #[test]
    fn a_header_that_contradicts_its_file_is_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let mut runs = unit('a', 0..3);
        runs.extend(unit('b', 0..1));
        let (name, contents) = encode(&runs).unwrap().unwrap();
        let text = String::from_utf8(contents).unwrap();
        let of_b = format!("\"point\":\"{}\"", "b".repeat(32));
        let mut damaged = vec![text[..text.len() - 1].to_owned()];
        damaged.extend(
            [
                ("\"at\":0", "\"at\":9999999"),
                ("\"at\":0", "\"at\":18446744073709551615"),
                (&of_b, "\"point\":\"/../../b\""),
            ]
            .map(|(found, changed)| text.replacen(found, changed, 1)),
        );
        for damaged in damaged {
            fs::write(dir.path().join(&name), &damaged).unwrap();
            let store = Store::open(&[dir.path().to_owned()]).unwrap();
            assert!(!store.has(key('a'), 0) && store.damaged.len() == 1, "{damaged}");
            let error = write_encoded(dir.path(), damaged.as_bytes()).unwrap_err();
            assert!(error.to_string().contains("damaged"), "{error}");
        }
        write_encoded(dir.path(), text.as_bytes()).unwrap();
        assert!(Store::open(&[dir.path().to_owned()]).unwrap().has(key('b'), 0));
    }

    #[test]
    fn overlapping_units_count_once() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &unit('a', 0..3)).unwrap();
        write(dir.path(), &unit('a', 1..5)).unwrap();
        let store = Store::open(&[dir.path().to_owned()]).unwrap();
        assert_eq!(store.runs(key('a'), 100).unwrap().len(), 5);
    }
}
