//! Results folders, which are created completely or not at all.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use gridhaul_report::NamedChart;
use gridhaul_scenario::scenario::Scenario;
use serde::Serialize;

use crate::interrupt::{Leftovers, catch_signals, leftovers};
use crate::lock::Lock;
use crate::results_kind::{ResultsKind, ResultsOf};

/// The path of a results folder that this process has checked and locked. Nothing is written yet.
#[derive(Debug)]
pub(crate) struct Destination {
    target: PathBuf,
    kind: ResultsKind,
    force: bool,
    /// `None` before the lock is taken and after it is released.
    lock: Option<Lock>,
}

/// A temporary folder next to its destination, to which results are written.
#[derive(Debug)]
pub(crate) struct Folder {
    destination: Destination,
    partial: PathBuf,
    names: BTreeSet<String>,
}

/// Name of a scenario for labels and folders: that of its file without extension. Every results
/// folder contains a `scenario.toml`, which has the name of the folder.
pub(crate) fn scenario_name(file: &Path) -> String {
    if Scenario::is_standard_input(file) {
        return "stdin".to_owned();
    }
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let folder = absolute.parent().and_then(Path::file_name);
    let name = match file.file_stem() {
        Some(stem) if stem == "scenario" => folder.or(Some(stem)),
        stem => stem,
    };
    name.unwrap_or_default().to_string_lossy().into_owned()
}

/// The results folder of a scenario without `--out`. A scenario in a results folder does not
/// replace this folder.
pub(crate) fn default_folder(file: &Path, suffix: &str) -> PathBuf {
    let folder = Path::new("results").join(scenario_name(file) + suffix);
    let own = file.parent().and_then(|own| fs::canonicalize(own).ok());
    if own.is_some() && own == fs::canonicalize(&folder).ok() {
        return folder.with_file_name(scenario_name(file) + suffix + "-run");
    }
    folder
}

impl Destination {
    /// Checks and locks `target` before the run, so that a run does not fail when it writes its
    /// results. Without `force`, neither files that gridhaul did not write nor results of another
    /// kind are replaced.
    pub(crate) fn new(target: &Path, kind: ResultsKind, force: bool) -> anyhow::Result<Self> {
        let target = match fs::canonicalize(target) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => std::path::absolute(target)?,
            Err(error) => bail!(
                "cannot use {}: {error}\n  help: choose another folder with --out",
                target.display()
            ),
        };
        let mut destination = Self { target, kind, force, lock: None };
        destination.check()?;
        destination.check_writable()?;
        destination.lock()?;
        Ok(destination)
    }

    /// Creates the temporary folder next to the destination.
    pub(crate) fn begin(self) -> anyhow::Result<Folder> {
        let (parent, name) = self.parts()?;
        let partial = parent.join(format!(".{name}.partial-{}", std::process::id()));
        let mut leftovers = leftovers();
        fs::create_dir_all(&partial)
            .with_context(|| format!("cannot create a folder in {}", parent.display()))?;
        leftovers.entry(self.target.clone()).or_default().partial = Some(partial.clone());
        drop(leftovers);
        Ok(Folder { destination: self, partial, names: BTreeSet::new() })
    }

    /// Locks the destination until it is dropped. Its parent folder is created now, since it
    /// contains the lock.
    fn lock(&mut self) -> anyhow::Result<()> {
        catch_signals();
        let mut leftovers = leftovers();
        let (parent, _) = self.parts()?;
        let created = parent.ancestors().take_while(|parent| !parent.exists());
        let mut own =
            Leftovers { created: created.map(Path::to_owned).collect(), ..Leftovers::default() };
        let lock = fs::create_dir_all(parent)
            .with_context(|| format!("cannot create a folder in {}", parent.display()))
            .and_then(|()| Lock::take(&self.target));
        match lock {
            Ok(lock) => {
                own.lock = Some(lock.path().to_owned());
                leftovers.insert(self.target.clone(), own);
                self.lock = Some(lock);
                Ok(())
            }
            Err(error) => {
                own.remove();
                Err(error)
            }
        }
    }

    /// The folder that contains the results folder. It exists.
    pub(crate) fn parent(&self) -> anyhow::Result<&Path> {
        Ok(self.parts()?.0)
    }

    fn parts(&self) -> anyhow::Result<(&Path, &str)> {
        let name = self.target.file_name().and_then(|name| name.to_str());
        match (self.target.parent(), name) {
            (Some(parent), Some(name)) => Ok((parent, name)),
            _ => bail!("--out {}: not a valid results folder", self.target.display()),
        }
    }

    /// Creates and removes a folder in the first existing parent folder.
    fn check_writable(&self) -> anyhow::Result<()> {
        let (parent, name) = self.parts()?;
        let existing = parent.ancestors().find(|parent| parent.exists()).unwrap_or(parent);
        let probe = existing.join(format!(".{name}.probe-{}", std::process::id()));
        match fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe)) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => bail!(
                "cannot create a folder in {}: {error}\n  help: choose another folder with --out",
                existing.display()
            ),
            _ => Ok(()),
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        self.parts()?;
        let shown = self.target.display();
        if !self.target.exists() {
            return Ok(());
        }
        ensure!(
            self.target.is_dir(),
            "{shown} is a file; results are written to a folder\n  help: choose another folder \
             with --out"
        );
        let here = std::env::current_dir().context("cannot determine the current folder")?;
        ensure!(
            !here.starts_with(&self.target),
            "{shown} is or contains the current folder, and would be replaced\n  \
             help: choose another folder with --out"
        );
        if self.force {
            return Ok(());
        }
        let help = "help: choose another folder with --out, or replace the folder with --force";
        let names = match entries(&self.target)? {
            Entries::Foreign(foreign) => {
                bail!("{shown} contains {foreign}, which gridhaul did not write\n  {help}")
            }
            Entries::Results(names) => names,
        };
        if let Some(lost) = self.kind.lost(&self.target, &names) {
            bail!("{shown} contains {lost}, which this command would delete\n  {help}");
        }
        Ok(())
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        if self.lock.take().is_some()
            && let Some(own) = leftovers().remove(&self.target)
        {
            own.remove();
        }
    }
}

impl Folder {
    /// Writes a file. Characters that are unsafe in file names are replaced, since names come from
    /// scenarios.
    pub(crate) fn write(&mut self, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
        self.write_from(name, |file| file.write_all(bytes))
    }

    /// Writes a file as [`Folder::write`] does, with the contents that `contents` writes.
    pub(crate) fn write_from(
        &mut self,
        name: &str,
        contents: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let path = self.path_of(name);
        let _leftovers = leftovers();
        write_file(&path, contents)
    }

    /// Writes a value as JSON with indentation. An answer may have hundreds of megabytes, so that
    /// the text is not kept in memory.
    pub(crate) fn write_json(&mut self, name: &str, value: &impl Serialize) -> anyhow::Result<()> {
        self.write_from(name, |file| {
            let mut out = BufWriter::with_capacity(JSON_BUFFER, file);
            serde_json::to_writer_pretty(&mut out, value)?;
            out.write_all(b"\n")?;
            out.flush()
        })
    }

    /// Creates a file whose contents take long to write. Meanwhile, Ctrl-C can end the program.
    pub(crate) fn create(&mut self, name: &str) -> anyhow::Result<File> {
        let path = self.path_of(name);
        let _leftovers = leftovers();
        File::create(&path).with_context(|| format!("cannot write {}", path.display()))
    }

    fn path_of(&mut self, name: &str) -> PathBuf {
        let mut name = safe(name);
        while !self.names.insert(name.clone()) {
            name.insert(0, '_');
        }
        self.partial.join(name)
    }

    /// Writes a file in the folder of event logs.
    pub(crate) fn write_event_log(
        &mut self,
        name: &str,
        contents: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let _leftovers = leftovers();
        let folder = self.partial.join(EVENT_LOGS);
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot write {}", folder.display()))?;
        write_file(&folder.join(safe(name)), contents)
    }

    /// Writes charts, each as a file of its own.
    pub(crate) fn write_charts(&mut self, charts: &[NamedChart]) -> anyhow::Result<()> {
        for NamedChart { name, chart, .. } in charts {
            self.write(&format!("{name}.svg"), chart.to_svg().as_bytes())?;
        }
        Ok(())
    }

    /// Moves the folder to its destination and returns the path.
    pub(crate) fn commit(self) -> anyhow::Result<PathBuf> {
        let mut leftovers = leftovers();
        // Files may have been added to the destination during the run.
        self.destination.check()?;
        let target = self.destination.target.clone();
        let old = self.partial.with_extension(format!("replaced-{}", std::process::id()));
        let had_old = target.exists();
        if had_old {
            fs::rename(&target, &old)
                .with_context(|| format!("cannot replace {}", target.display()))?;
        }
        if let Err(error) = fs::rename(&self.partial, &target) {
            if had_old {
                fs::rename(&old, &target).context("cannot restore the old folder")?;
            }
            return Err(error).context(format!("cannot write {}", target.display()));
        }
        if let Some(own) = leftovers.get_mut(&target) {
            (own.partial, own.created) = (None, Vec::new());
        }
        drop(leftovers);
        if had_old {
            fs::remove_dir_all(&old).with_context(|| format!("cannot remove {}", old.display()))?;
        }
        Ok(target)
    }
}

/// Bytes of JSON that are written at once.
const JSON_BUFFER: usize = 1 << 16;

/// Folder of the event logs in a results folder.
const EVENT_LOGS: &str = "events";

fn write_file(
    path: &Path,
    contents: impl FnOnce(&mut File) -> io::Result<()>,
) -> anyhow::Result<()> {
    File::create(path)
        .and_then(|mut file| contents(&mut file))
        .with_context(|| format!("cannot write {}", path.display()))
}

impl Drop for Folder {
    fn drop(&mut self) {
        // After a commit the folder no longer exists; an error cannot be reported here.
        let _ = fs::remove_dir_all(&self.partial);
    }
}

/// The entries of an existing folder.
enum Entries {
    /// The first one that gridhaul did not write.
    Foreign(String),
    /// Sorted names of the files of a results folder; none for an empty folder.
    Results(Vec<String>),
}

fn entries(folder: &Path) -> anyhow::Result<Entries> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type()?;
        if kind.is_dir() && name == EVENT_LOGS {
            match event_logs(&entry.path())? {
                Entries::Results(logs) => names.extend(logs),
                foreign @ Entries::Foreign(_) => return Ok(foreign),
            }
            continue;
        }
        if !kind.is_file() || !known(&name) {
            return Ok(Entries::Foreign(name));
        }
        names.push(name);
    }
    names.sort();
    Ok(match names.first() {
        Some(first) if !ResultsOf::marks(folder) => Entries::Foreign(first.clone()),
        _ => Entries::Results(names),
    })
}

/// The files in the folder of event logs, with its name.
fn event_logs(folder: &Path) -> anyhow::Result<Entries> {
    let mut names = Vec::new();
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let entry = entry?;
        let name = format!("{EVENT_LOGS}/{}", entry.file_name().to_string_lossy());
        if !entry.file_type()?.is_file() || !name.ends_with(".jsonl") {
            return Ok(Entries::Foreign(name));
        }
        names.push(name);
    }
    Ok(Entries::Results(names))
}

fn known(name: &str) -> bool {
    let data = |ending| name.ends_with(ending) && !name.starts_with('.');
    ResultsOf::is_mark(name)
        || matches!(name, "report.html" | "scenario.toml" | "cells.csv")
        || (name.starts_with("answer-") && name.ends_with(".json"))
        || [".parquet", ".pcapng", ".svg"].into_iter().any(data)
}

/// A file name from a name that a scenario chose.
fn safe(name: &str) -> String {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = name.chars().map(|c| if allowed(c) { c } else { '_' }).take(120).collect();
    if name.starts_with('.') { format!("_{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(target: &Path, force: bool) -> anyhow::Result<Destination> {
        Destination::new(target, ResultsKind::of(ResultsOf::Run, None), force)
    }

    fn write(target: &Path, force: bool, text: &str) -> anyhow::Result<PathBuf> {
        let mut folder = destination(target, force)?.begin()?;
        folder.write("answer.json", text.as_bytes())?;
        folder.commit()
    }

    const ANSWER: &str = r#"{"gridhaul": "0.1.0"}"#;

    #[test]
    fn a_results_folder_of_gridhaul_is_replaced_without_leftovers() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("results/run");
        write(&target, false, ANSWER).unwrap();
        let second = r#"{"gridhaul": "0.2.0"}"#;
        write(&target, false, second).unwrap();
        assert_eq!(fs::read_to_string(target.join("answer.json")).unwrap(), second);
        assert_eq!(fs::read_dir(dir.path().join("results")).unwrap().count(), 1);
    }

    #[test]
    fn foreign_files_are_replaced_only_with_force() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("run");
        write(&target, false, ANSWER).unwrap();
        fs::write(target.join("notes.txt"), "mine").unwrap();
        let error = write(&target, false, ANSWER).unwrap_err().to_string();
        assert!(error.contains("notes.txt") && error.contains("--force"), "{error}");
        assert_eq!(fs::read_to_string(target.join("notes.txt")).unwrap(), "mine");
        write(&target, true, ANSWER).unwrap();
        assert!(!target.join("notes.txt").exists());
        // A file with the name of a result file but other contents is foreign as well.
        fs::write(target.join("answer.json"), r#"{"mine": true}"#).unwrap();
        assert!(write(&target, false, ANSWER).is_err());
    }

    #[test]
    fn a_folder_of_event_logs_is_replaced_unless_it_contains_other_files() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("run");
        let write_log = || {
            let kind = ResultsKind { event_logs: true, ..ResultsKind::of(ResultsOf::Run, None) };
            let mut folder = Destination::new(&target, kind, false)?.begin()?;
            folder.write("answer.json", ANSWER.as_bytes())?;
            folder.write_event_log("../up.jsonl", |file| file.write_all(b"{}\n"))?;
            folder.commit()
        };
        write_log().unwrap();
        write_log().unwrap();
        assert!(target.join("events/_.._up.jsonl").is_file(), "the name stays inside");
        let error = write(&target, false, ANSWER).unwrap_err().to_string();
        assert!(error.contains("an event log (events/_.._up.jsonl)"), "{error}");
        fs::write(target.join("events/notes.txt"), "mine").unwrap();
        let error = write_log().unwrap_err().to_string();
        assert!(error.contains("contains events/notes.txt, which gridhaul did not"), "{error}");
    }

    #[test]
    fn the_current_folder_and_files_are_rejected_even_with_force() {
        assert!(destination(Path::new("."), true).is_err());
        assert!(destination(Path::new("/"), true).is_err());
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(destination(file.path(), true).is_err());
    }

    #[test]
    fn an_unwritable_destination_is_rejected_before_the_run() {
        let dir = tempfile::tempdir().unwrap();
        destination(&dir.path().join("results/run"), false).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing was touched");
        // Not even root can create a folder in /proc.
        let error =
            format!("{:#}", destination(Path::new("/proc/results/run"), false).unwrap_err());
        assert!(error.starts_with("cannot create a folder in /proc: "), "{error}");
        assert!(error.ends_with("\n  help: choose another folder with --out"), "{error}");
    }

    #[test]
    fn an_abandoned_folder_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut folder =
            destination(&dir.path().join("results/run"), false).unwrap().begin().unwrap();
        folder.write("answer.json", b"{}").unwrap();
        drop(folder);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn names_from_a_scenario_stay_inside_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let mut folder = destination(&dir.path().join("run"), false).unwrap().begin().unwrap();
        for name in ["../../outside.pcapng", "..", "a/b", "a?b"] {
            folder.write(name, b"").unwrap();
        }
        let target = folder.commit().unwrap();
        assert_eq!(fs::read_dir(target).unwrap().count(), 4);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
