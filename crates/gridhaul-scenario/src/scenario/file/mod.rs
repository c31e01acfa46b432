//! Scenario files: reading, writing, hashing.

pub(super) mod explain;
mod locate;
mod traces;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;
use sha2::{Digest, Sha256};
use toml::de::DeTable;

use super::error::{Problem, ScenarioError};
use super::{Scenario, check, points};
use locate::Document;

/// Largest scenario file in bytes: far above any that people write, and quick to read.
const SIZE_MAX: u64 = 4_000_000;

impl Scenario {
    /// Reads a scenario from the text of a TOML file; `file` is its name in errors.
    ///
    /// # Errors
    /// A text that is not TOML, unknown keys, wrong types or units, and whatever contradicts
    /// itself (see [`Scenario::validate`]). All contradictions are told together.
    pub fn from_toml(text: &str, file: &str) -> Result<Self, ScenarioError> {
        Self::read(text, file, None, Traces::Closed)
    }

    /// Reads a scenario that lies in a folder, if it lies anywhere.
    fn read(
        text: &str,
        file: &str,
        folder: Option<&Path>,
        traces: Traces,
    ) -> Result<Self, ScenarioError> {
        let fail = |problem| ScenarioError::one(file, problem);
        if text.len() as u64 > SIZE_MAX {
            return Err(fail(too_large()));
        }
        let table = DeTable::parse(text).map_err(|error| fail(explain::syntax(&error, text)))?;
        let document = Document::new(text, table.clone());
        let mut scenario = Self::deserialize(toml::Deserializer::from(table))
            .map_err(|error| fail(explain::types(&error, &document)))?;
        let mut problems = check::problems(&scenario);
        if problems.is_empty() {
            problems = points::problems(&scenario);
        }
        if problems.is_empty()
            && let Some(folder) = folder
        {
            scenario.lies_in(folder);
            if traces == Traces::Opened {
                problems = traces::problems(&scenario);
            }
        }
        if problems.is_empty() {
            return Ok(scenario);
        }
        for problem in &mut problems {
            problem.place = document.place(&problem.key);
        }
        problems.sort_by_key(|problem| problem.place.as_ref().map(|place| place.line));
        Err(ScenarioError { file: file.to_owned(), problems })
    }

    /// Reads a scenario file of at most 4 MB. If it names a trace, its folder is kept in
    /// [`Scenario::folder`], and the traces of its flows are opened to see that they can be read.
    ///
    /// # Errors
    /// A file that is missing, unreadable, too large, not a regular file or not text, and the
    /// errors of [`Scenario::from_toml`] and of the traces.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        Self::load_with(path, Traces::Opened)
    }

    /// Reads a scenario file like [`Scenario::load`], but opens no traces: what is changed next may
    /// name others. See [`Scenario::check_traces`].
    ///
    /// # Errors
    /// As [`Scenario::load`], without those of the traces.
    pub fn load_to_change(path: &Path) -> Result<Self, ScenarioError> {
        Self::load_with(path, Traces::Closed)
    }

    /// Opens the traces of the flows, at all points of a sweep, to see that they can be read.
    ///
    /// # Errors
    /// All problems of traces together, without places.
    pub fn check_traces(&self) -> Result<(), ScenarioError> {
        let problems = traces::problems(self);
        if problems.is_empty() {
            return Ok(());
        }
        Err(ScenarioError { file: String::new(), problems })
    }

    fn load_with(path: &Path, traces: Traces) -> Result<Self, ScenarioError> {
        let file = path.display().to_string();
        let text = text_of(path).map_err(|problem| ScenarioError::one(&file, problem))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::read(&text, &file, Some(folder), traces)
    }

    /// Checks that the scenario does not contradict itself: names, routes, sizes and ranges. One
    /// that was read from a file has been checked.
    ///
    /// # Errors
    /// All problems together, without places.
    pub fn validate(&self) -> Result<(), ScenarioError> {
        let problems = check::problems(self);
        if problems.is_empty() {
            return Ok(());
        }
        Err(ScenarioError { file: String::new(), problems })
    }

    /// Writes the merged scenario: every default spelt out. It reads back to an equal value.
    #[must_use]
    pub fn to_toml(&self) -> String {
        #[expect(clippy::expect_used, reason = "every field is text, number, list or table")]
        toml::to_string(self).expect("a scenario can be written as TOML")
    }

    /// SHA-256 of the merged scenario as [`Scenario::to_toml`] writes it but for its folder, in
    /// hexadecimal: the same wherever the file lies. Of a trace it covers the path as written, not
    /// the rows.
    #[must_use]
    pub fn sha256(&self) -> String {
        let digest = Sha256::digest(Self { folder: None, ..self.clone() }.to_toml());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Whether traces are opened when a scenario is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Traces {
    Opened,
    Closed,
}

fn text_of(path: &Path) -> Result<String, Problem> {
    let metadata = path.metadata().map_err(|error| unreadable(&error))?;
    if metadata.is_dir() {
        return Err(Problem::new("", "this is a directory, not a scenario file", NAME_A_FILE));
    }
    // Neither devices nor pipes: they have no size to refuse, and reading one may never end.
    if !metadata.is_file() {
        return Err(Problem::new("", "this is not a regular file", NAME_A_FILE));
    }
    if metadata.len() > SIZE_MAX {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    // One byte more than allowed: the file may have grown since its size was asked.
    file.take(SIZE_MAX + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    if bytes.len() as u64 > SIZE_MAX {
        return Err(too_large());
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        Problem::new(
            "",
            format!("this is not a text file: line {line} is not valid UTF-8"),
            "name a TOML file; if it is one, save it as UTF-8 in your editor",
        )
    })
}

const NAME_A_FILE: &str = "name a TOML file, such as `scenarios/feeder.toml`";

fn unreadable(error: &io::Error) -> Problem {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => "check the spelling and the directory",
        io::ErrorKind::PermissionDenied => "make the file readable, for example with `chmod u+r`",
        _ => NAME_A_FILE,
    };
    Problem::new("", format!("cannot read this file: {error}"), remedy)
}

fn too_large() -> Problem {
    Problem::new(
        "",
        "this is larger than 4 MB, the limit for a scenario file",
        "check that it is the right file; describe many equal nodes by one with `count`",
    )
}
