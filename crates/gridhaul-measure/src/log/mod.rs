//! The log of a run: a folder of Parquet files with one row for each message.
//!
//! A Parquet file is readable only when its footer is written. Therefore a log consists of parts,
//! each a complete file, so that a fault loses at most the rows of the part in memory. Readers of
//! Parquet data sets (pandas, DuckDB, Polars) read the folder as one table.

mod parquet;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use ::parquet::errors::ParquetError;
use gridhaul_scenario::units::{Duration, Instant};
use thiserror::Error;

use crate::method::Message;
use crate::settings::Settings;

/// Rows of the largest part; this bounds the memory.
const ROWS_PER_PART: usize = 1 << 17;

/// Time that a part covers at most: a process that is killed loses the messages of this time.
const TIME_PER_PART: Duration = Duration::from_secs(5);

/// Why a log cannot be written.
#[derive(Debug, Error)]
pub enum LogError {
    /// The folder contains a log already.
    #[error(
        "{path} contains the log of another run\n  help: choose another folder with --out, or \
         remove it"
    )]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// A file cannot be written. Parts that were written before are complete.
    #[error("cannot write {path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A part cannot be encoded.
    #[error("cannot write {path}: {source}")]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: ParquetError,
    },
}

/// A log that is being written.
#[derive(Debug)]
pub struct MessageLog {
    folder: PathBuf,
    /// Properties of the run, stored in every part.
    properties: Settings,
    parts: u32,
    rows: Vec<Message>,
    /// A part could not be written, which has been reported.
    has_failed: bool,
}

impl MessageLog {
    /// Creates an empty log in a folder, with properties of the run that every part stores.
    ///
    /// # Errors
    /// The folder cannot be created, or contains a log.
    pub fn create(folder: &Path, properties: Settings) -> Result<Self, LogError> {
        let io = |source| LogError::Io { path: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(io)?;
        if fs::read_dir(folder).map_err(io)?.next().is_some() {
            return Err(LogError::Exists { path: folder.to_owned() });
        }
        Ok(Self {
            folder: folder.to_owned(),
            properties,
            parts: 0,
            rows: Vec::new(),
            has_failed: false,
        })
    }

    /// Appends a row, and writes the part if it is complete. After an error, the log keeps the rows
    /// of the part that could not be written and no further ones: each would encode the part again.
    ///
    /// # Errors
    /// The part cannot be written. Earlier parts are complete.
    pub fn push(&mut self, message: &Message) -> Result<(), LogError> {
        if self.has_failed {
            return Ok(());
        }
        self.rows.push(*message);
        let start = self.rows.first().map_or(Instant::ZERO, |first| first.intended);
        if self.rows.len() >= ROWS_PER_PART || message.intended.since(start) >= TIME_PER_PART {
            let written = self.flush();
            self.has_failed = written.is_err();
            return written;
        }
        Ok(())
    }

    /// Writes the remaining rows.
    ///
    /// # Errors
    /// The part cannot be written.
    pub fn flush(&mut self) -> Result<(), LogError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let path = self.folder.join(format!("part-{:05}.parquet", self.parts));
        // A part gets its name when it is complete.
        let partial = path.with_extension("parquet.partial");
        let io = |source| LogError::Io { path: path.clone(), source };
        let encoded = File::create(&partial)
            .map_err(ParquetError::from)
            .and_then(|file| parquet::write(file, &self.rows, &self.properties));
        if let Err(source) = encoded {
            let _ = fs::remove_file(&partial);
            return Err(LogError::Parquet { path, source });
        }
        fs::rename(&partial, &path).map_err(io)?;
        self.parts += 1;
        self.rows.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Output};

    use ::parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;
    use crate::method::{Ledger, Schedule, Summary};

    /// Number of messages of [`messages_of_a_long_run`].
    const MESSAGES: &str = "GRIDHAUL_MESSAGES";

    /// Folder for its log.
    const FOLDER: &str = "GRIDHAUL_LOG_FOLDER";

    /// Most memory of a process that logs a run of any length.
    const MEMORY_MAX_KB: u64 = 150_000;

    /// Most memory that this process has had (proc(5)).
    fn peak_memory_kb() -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Numbers of rows of the parts of a log, in their order.
    fn rows(folder: &Path) -> Vec<i64> {
        let mut parts: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        parts.sort();
        let rows = |part: &PathBuf| {
            let reader = SerializedFileReader::new(File::open(part).unwrap()).unwrap();
            reader.metadata().file_metadata().num_rows()
        };
        parts.iter().map(rows).collect()
    }

    /// Accounts for messages at 100,000/s, without waiting, and logs them until the log fails.
    fn account(messages: u64, log: &mut MessageLog) -> Result<Summary, LogError> {
        let schedule = Schedule::new(100_000.0, messages);
        let mut ledger = Ledger::new(schedule, Duration::from_secs(1));
        let mut summary = Summary::new(&schedule);
        for sequence in 0..schedule.total() {
            let sent = schedule.intended(sequence);
            ledger.handle_sent(sequence, sent);
            let latency = Duration::from_nanos(500_000 + sequence.wrapping_mul(7_919) % 300_000);
            ledger.handle_arrival(sequence, sent + latency);
            while let Some(message) = ledger.poll_closed(sent) {
                summary.add(&message);
                log.push(&message)?;
            }
        }
        while let Some(message) = ledger.poll_rest(schedule.total()) {
            summary.add(&message);
            log.push(&message)?;
        }
        log.flush()?;
        Ok(summary)
    }

    /// Runs [`messages_of_a_long_run`] in a process of its own, whose memory is that of the log,
    /// after commands of a shell.
    fn in_own_process(messages: u64, folder: &Path, before: &str) -> Output {
        let program = std::env::current_exe().unwrap();
        let test = "log::tests::messages_of_a_long_run";
        let script = format!("{before} exec \"$0\" --exact {test} --ignored --nocapture");
        let mut shell = Command::new(if before.is_empty() { "sh" } else { "unshare" });
        if !before.is_empty() {
            shell.args(["--mount", "sh"]);
        }
        shell.args(["-c", &script]).arg(program);
        shell.env(MESSAGES, messages.to_string()).env(FOLDER, folder).output().unwrap()
    }

    /// Not a test on its own: other tests of this process would add to the memory. With 10,000,000
    /// messages: `GRIDHAUL_MESSAGES=10000000 cargo test --workspace --lib messages_of_a_long_run --
    /// --ignored --nocapture`
    #[test]
    #[ignore = "a process of its own, which other tests start"]
    fn messages_of_a_long_run() {
        let messages = std::env::var(MESSAGES).map_or(1_000_000, |text| text.parse().unwrap());
        let temporary = tempfile::tempdir().unwrap();
        let folder = std::env::var_os(FOLDER).map_or_else(
            || temporary.path().join("messages"),
            |folder| Path::new(&folder).join("messages"),
        );
        let mut log = MessageLog::create(&folder, Settings::default()).unwrap();
        let done = account(messages, &mut log);
        let parts = rows(&folder);
        println!(
            "{} rows in {} parts, {} kB of memory at most",
            parts.iter().sum::<i64>(),
            parts.len(),
            peak_memory_kb()
        );
        match done {
            Ok(summary) => assert_eq!(summary.counts.messages, messages),
            Err(error) => println!("the log ended: {error}"),
        }
        assert!(peak_memory_kb() < MEMORY_MAX_KB, "{} kB", peak_memory_kb());
    }

    #[test]
    fn the_memory_of_a_log_does_not_grow_with_the_run() {
        let desk = tempfile::tempdir().unwrap();
        let done = in_own_process(300_000, desk.path(), "");
        let text = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
        // With the messages of the warm-up, the first second.
        assert!(text.contains("400000 rows in 4 parts"), "{text}");
    }

    /// The parts that were written before the disk was full are complete.
    #[test]
    fn rows_are_kept_when_the_disk_is_full() {
        let desk = tempfile::tempdir().unwrap();
        let mount = "mount -t tmpfs -o size=4m none \"$GRIDHAUL_LOG_FOLDER\" || exit 77;";
        let done = in_own_process(1_000_000, desk.path(), mount);
        let text = String::from_utf8_lossy(&done.stdout);
        let required = gridhaul_testing::tools_are_required();
        if !done.status.success() && !required && !text.contains("rows") {
            return; // This machine does not permit a mount.
        }
        assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
        let kept = text.split(" rows in").next().and_then(|before| before.rsplit('\n').next());
        let kept: usize = kept.unwrap().trim().parse().unwrap();
        assert!(kept > 0 && kept.is_multiple_of(ROWS_PER_PART) && kept < 1_000_000, "{text}");
        assert!(text.contains("cannot write") && text.contains("No space left"), "{text}");
    }
}
