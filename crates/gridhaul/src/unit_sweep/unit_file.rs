//! The files of units: one per unit, written under a temporary name and then renamed, so that a
//! crash leaves complete files only.

use std::fs::{self, File};
use std::io::{self, BufRead, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, anyhow};
use crc32fast::Hasher;
use gridhaul_scenario::answer::{Run, RunRows, Warning};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::point_key::{PROGRAM, PointKey};

/// A finished run.
#[derive(Debug)]
pub(super) struct UnitRun {
    pub(super) point: PointKey,
    pub(super) replication: u32,
    pub(super) run: Run,
}

/// The first line of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    gridhaul: String,
    program: String,
    backend: String,
    /// Bytes between the header and the checksum: a shorter file is damaged.
    bytes: u64,
    pub(super) entries: Vec<HeaderEntry>,
}

/// Consecutive replications of a point, and the place of their lines after the header.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct HeaderEntry {
    pub(super) point: String,
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) at: u64,
    pub(super) bytes: u64,
}

/// A line of a file.
#[derive(Debug, Deserialize)]
pub(super) struct StoredRun {
    pub(super) rows: RunRows,
    #[serde(default)]
    pub(super) warnings: Vec<Warning>,
}

/// A line of a file, as it is written.
#[derive(Debug, Serialize)]
struct WrittenRun<'a> {
    rows: &'a RunRows,
    #[serde(skip_serializing_if = "<[Warning]>::is_empty")]
    warnings: &'a [Warning],
}

/// Beginning and end of the names of the files.
pub(super) const PREFIX: &str = "unit-";
pub(super) const ENDING: &str = ".jsonl";

/// Length of the last line, see [`checksum`].
const CHECKSUM_LENGTH: u64 = 21;

/// The last line of a file: the CRC-32 of all lines before it. Results are digits, so that a
/// damaged one would be another valid result.
fn checksum(hash: Hasher) -> String {
    format!("{{\"crc32\":\"{:08x}\"}}\n", hash.finalize())
}

impl Header {
    /// Reads a file of this length to its end: the header, and the position after it. `None` if the
    /// file is damaged, so that all of its entries are valid or none is used.
    pub(super) fn read(mut file: impl BufRead, length: u64) -> Option<(Self, u64)> {
        let mut line = Vec::new();
        file.read_until(b'\n', &mut line).ok()?;
        let header = Self::parse(&line, length)?;
        let mut hash = Hasher::new();
        hash.update(&line);
        let mut results = file.by_ref().take(header.bytes);
        loop {
            let chunk = results.fill_buf().ok()?;
            if chunk.is_empty() {
                break;
            }
            hash.update(chunk);
            let bytes = chunk.len();
            results.consume(bytes);
        }
        let mut last = String::new();
        file.read_to_string(&mut last).ok()?;
        (last == checksum(hash)).then_some((header, line.len() as u64))
    }

    /// The header in the first line of a file of this length.
    fn parse(line: &[u8], length: u64) -> Option<Self> {
        let header: Self = serde_json::from_slice(line).ok()?;
        let fits = |entry: &HeaderEntry| {
            entry.point.parse::<PointKey>().is_ok()
                && entry.at.checked_add(entry.bytes).is_some_and(|end| end <= header.bytes)
        };
        let rest = length.checked_sub(line.len() as u64 + CHECKSUM_LENGTH);
        let is_complete = rest == Some(header.bytes);
        (is_complete && header.entries.iter().all(fits)).then_some(header)
    }
}

/// Writes a unit to a file of a folder, which is created.
pub(super) fn write(folder: &Path, runs: &[UnitRun]) -> anyhow::Result<()> {
    match encode(runs)? {
        Some((name, contents)) => write_file(folder, &name, &contents),
        None => Ok(()),
    }
}

/// Writes a unit in the form of [`encode`], which another process has computed.
///
/// # Errors
/// Contents of another version of the program, or a file that cannot be written.
pub(super) fn write_encoded(folder: &Path, contents: &[u8]) -> anyhow::Result<()> {
    let damaged = || "the results of a worker are damaged";
    let line = contents.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    // Another version may have another form of the rest.
    let header: Header = serde_json::from_slice(line).with_context(damaged)?;
    if header.program != PROGRAM {
        return Err(anyhow!(
            "a worker has gridhaul {}, and this process {PROGRAM}\n  help: install the same \
             version everywhere",
            header.program
        ));
    }
    let (header, _) = Header::read(contents, contents.len() as u64).with_context(damaged)?;
    write_file(folder, &name_of(&header), contents)
}

fn write_file(folder: &Path, name: &str, contents: &[u8]) -> anyhow::Result<()> {
    replace(folder, name, contents)
        .with_context(|| format!("cannot write {}", folder.join(name).display()))
}

/// The name and the contents of the file of a unit; `None` without runs.
///
/// # Errors
/// A result has no form in JSON.
pub(super) fn encode(runs: &[UnitRun]) -> anyhow::Result<Option<(String, Vec<u8>)>> {
    let mut body = Vec::new();
    let mut entries: Vec<HeaderEntry> = Vec::new();
    for UnitRun { point, replication, run } in runs {
        let at = body.len() as u64;
        let line = WrittenRun { rows: &run.rows, warnings: &run.warnings };
        serde_json::to_writer(&mut body, &line)?;
        body.push(b'\n');
        let (point, end) = (point.to_string(), body.len() as u64);
        match entries.last_mut() {
            Some(last) if last.point == point && last.first + last.count == *replication => {
                last.count += 1;
                last.bytes = end - last.at;
            }
            _ => entries.push(HeaderEntry {
                point,
                first: *replication,
                count: 1,
                at,
                bytes: end - at,
            }),
        }
    }
    if entries.is_empty() {
        return Ok(None);
    }
    let header = Header {
        gridhaul: env!("CARGO_PKG_VERSION").to_owned(),
        program: PROGRAM.to_owned(),
        backend: "sim".to_owned(),
        bytes: body.len() as u64,
        entries,
    };
    let mut contents = serde_json::to_vec(&header)?;
    contents.push(b'\n');
    contents.append(&mut body);
    let mut hash = Hasher::new();
    hash.update(&contents);
    contents.extend(checksum(hash).into_bytes());
    Ok(Some((name_of(&header), contents)))
}

/// The name of the file of a unit: its first run, its length and a hash of all its runs. Processes
/// that compute the same sweep at the same time may have units with the same beginning.
fn name_of(header: &Header) -> String {
    let mut hash = Sha256::new();
    for HeaderEntry { point, first, count, .. } in &header.entries {
        hash.update(format!("{point} {first} {count}\n"));
    }
    let hash: String = hash.finalize()[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    let count: u64 = header.entries.iter().map(|entry| u64::from(entry.count)).sum();
    let first = header.entries.first();
    let (point, replication) = first.map_or(("", 0), |first| (first.point.as_str(), first.first));
    format!("{PREFIX}{point}-{replication}-{count}-{hash}{ENDING}")
}

/// Writes a file under a temporary name, and renames it when its contents are on the disk. Points
/// that resolve to the same scenario have the same key, so that two threads may write files of one
/// name at the same time: a number makes their temporary names differ.
fn replace(folder: &Path, name: &str, contents: &[u8]) -> io::Result<()> {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    fs::create_dir_all(folder)?;
    let number = WRITES.fetch_add(1, Ordering::Relaxed);
    let partial = folder.join(format!(".{name}.partial-{}-{number}", std::process::id()));
    let written = File::create(&partial).and_then(|mut file| {
        file.write_all(contents)?;
        file.sync_data()
    });
    let moved = written.and_then(|()| fs::rename(&partial, folder.join(name)));
    if moved.is_err() {
        let _ = fs::remove_file(&partial);
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_write_files_of_one_name_at_the_same_time() {
        let dir = tempfile::tempdir().unwrap();
        let write = || (0..100).try_for_each(|_| replace(dir.path(), "unit.jsonl", b"results"));
        let results: Vec<io::Result<()>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(write)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
    }
}
