//! Scenario files: reading, writing, hashing.

pub(super) mod explain;
mod folder;
mod lists;
mod locate;
mod misplaced;

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use serde::Serialize;
use serde::de::{Deserialize, DeserializeOwned};
use sha2::{Digest, Sha256};
use toml::de::DeTable;

use super::error::{Diagnostic, ScenarioError, SourceLocation};
use super::{Record, Replications, Scenario, check, points};
use locate::Document;

pub(super) use locate::steps as path_steps;

/// Size limit of a scenario file in bytes: far above the size of useful files, and fast to read.
const SIZE_MAX: u64 = 4_000_000;

/// A scenario and the file from which it was read, so that later errors can show their location in
/// the file.
#[derive(Debug, Clone)]
pub struct ScenarioFile {
    /// The scenario.
    pub scenario: Scenario,
    /// Name of the file in errors.
    name: String,
    text: String,
}

impl Scenario {
    /// Reads a scenario from the text of a TOML file; `file` is its name in errors.
    ///
    /// # Errors
    /// A text that is not TOML, unknown keys, wrong types or units, and inconsistent values (see
    /// [`Scenario::validate`]). All inconsistencies are reported together.
    pub fn from_toml(text: &str, file: &str) -> Result<Self, ScenarioError> {
        Self::read(text, file, None)
    }

    /// Reads a scenario; `folder` is the folder of its file, if any.
    fn read(text: &str, file: &str, folder: Option<&Path>) -> Result<Self, ScenarioError> {
        let (mut scenario, document) = parse::<Self>(text, file)?;
        let mut diagnostics = check::diagnostics(&scenario);
        if diagnostics.is_empty() {
            diagnostics = points::diagnostics(&scenario);
        }
        if diagnostics.is_empty() {
            if let Some(folder) = folder {
                scenario.set_folder(folder);
            }
            return Ok(scenario);
        }
        Err(located(file, &document, diagnostics))
    }

    /// Reads a scenario file of at most 4 MB. If the scenario refers to a trace,
    /// [`Scenario::folder`] is set to the folder of the file; no other file is opened.
    ///
    /// # Errors
    /// A file that is missing, unreadable, too large, not a regular file or not text, and the
    /// errors of [`Scenario::from_toml`].
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        ScenarioFile::load(path).map(|file| file.scenario)
    }

    /// Whether a scenario is read from standard input: `-`, `/dev/stdin` or another name of it.
    #[must_use]
    pub fn is_standard_input(path: &Path) -> bool {
        ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"]
            .iter()
            .any(|name| path == Path::new(name))
    }

    /// Name of a scenario file in errors.
    #[must_use]
    pub fn name_of(path: &Path) -> String {
        match Self::is_standard_input(path) {
            true => "standard input".to_owned(),
            false => path.display().to_string(),
        }
    }

    /// The folder to which paths in a scenario are relative: that of its file, or the current one
    /// if the scenario is read from a pipe.
    #[must_use]
    pub fn folder_of(path: &Path) -> &Path {
        let parent = path.parent().filter(|_| !is_pipe(path)).unwrap_or(Path::new(""));
        // The folder of a bare file name.
        if parent.as_os_str().is_empty() { Path::new(".") } else { parent }
    }

    /// Checks the consistency of the scenario: names, routes, sizes and ranges. A scenario that was
    /// read from a file has already been checked.
    ///
    /// # Errors
    /// All diagnostics together, without locations.
    pub fn validate(&self) -> Result<(), ScenarioError> {
        let diagnostics = check::diagnostics(self);
        if diagnostics.is_empty() {
            return Ok(());
        }
        Err(ScenarioError { file: String::new(), diagnostics })
    }

    /// The merged scenario as TOML, including every default value. Parsing it gives an equal
    /// scenario.
    #[must_use]
    pub fn to_toml(&self) -> String {
        #[expect(clippy::expect_used, reason = "every field is text, number, list or table")]
        toml::to_string(self).expect("a scenario can be written as TOML")
    }

    /// SHA-256 of the merged scenario of [`Scenario::to_toml`] without its folder, in hexadecimal:
    /// the hash does not depend on the location of the file. It covers the path of a trace, not the
    /// rows.
    #[must_use]
    pub fn sha256(&self) -> String {
        let digest = Sha256::digest(Self { folder: None, ..self.clone() }.to_toml());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// SHA-256 of everything that determines the metrics of a replication of this point, and of
    /// `context`: the resolved scenario without its texts, sweep, plan, recordings, folder and
    /// number of replications. As [`Scenario::sha256`], it covers the path of a trace only.
    #[must_use]
    pub fn results_sha256(&self, context: &str) -> [u8; 32] {
        let relevant = Self {
            title: String::new(),
            description: String::new(),
            folder: None,
            record: Record::default(),
            replications: Replications::Fixed(1),
            sweep: Vec::new(),
            plan: None,
            ..self.clone()
        };
        // The scenario consists of texts, numbers and tables, so it always has a JSON form.
        let text = serde_json::to_string(&relevant).unwrap_or_default();
        Sha256::new().chain_update(text).chain_update("\n").chain_update(context).finalize().into()
    }
}

impl ScenarioFile {
    /// Reads a scenario file as [`Scenario::load`] does.
    ///
    /// # Errors
    /// Those of [`Scenario::load`].
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let name = Scenario::name_of(path);
        let text = text_of(path).map_err(|diagnostic| ScenarioError::one(&name, diagnostic))?;
        let scenario = Scenario::read(&text, &name, Some(Scenario::folder_of(path)))?;
        Ok(Self { scenario, name, text })
    }

    /// An error with these diagnostics, each located at its key in the file.
    #[must_use]
    pub fn error(&self, diagnostics: Vec<Diagnostic>) -> ScenarioError {
        match DeTable::parse(&self.text) {
            Ok(table) => located(&self.name, &Document::new(&self.text, table), diagnostics),
            // Unreachable: the text has been parsed before.
            Err(_) => ScenarioError { file: self.name.clone(), diagnostics },
        }
    }
}

/// Reads the text of a file of another format than a scenario with the same error messages;
/// `check` finds inconsistent values.
///
/// # Errors
/// A text that is not TOML, unknown keys, wrong types or units, and the findings of `check`.
pub fn read_text<T: DeserializeOwned + Serialize>(
    text: &str,
    file: &str,
    check: impl FnOnce(&T) -> Vec<Diagnostic>,
) -> Result<T, ScenarioError> {
    let (read, document) = parse(text, file)?;
    let diagnostics = check(&read);
    if diagnostics.is_empty() { Ok(read) } else { Err(located(file, &document, diagnostics)) }
}

/// Reads a file of at most 4 MB as [`read_text`] does.
///
/// # Errors
/// A file that cannot be read, and the errors of [`read_text`].
pub fn read_file<T: DeserializeOwned + Serialize>(
    path: &Path,
    check: impl FnOnce(&T) -> Vec<Diagnostic>,
) -> Result<T, ScenarioError> {
    let name = Scenario::name_of(path);
    let text = text_of(path).map_err(|diagnostic| ScenarioError::one(&name, diagnostic))?;
    read_text(&text, &name, check)
}

/// A message of the TOML or JSON parser without names of Rust types, and the remedy.
#[must_use]
pub fn in_toml_terms(message: &str) -> (String, String) {
    explain::in_toml_terms(message, "")
}

/// The first error in a tree of keys that is not a scenario. `None` if the tree cannot be written
/// as TOML, or is a scenario.
pub(super) fn why_unreadable(tree: &serde_json::Value) -> Option<Diagnostic> {
    let text = toml::to_string(&without_null(tree)?).ok()?;
    let table = DeTable::parse(&text).ok()?;
    let document = Document::new(&text, table.clone());
    let error = Scenario::deserialize(toml::Deserializer::from(table)).err()?;
    Some(explain::types(&error, &document))
}

/// The first list of a tree of keys that was read as a table of the scenario.
pub(super) fn list_read_as_table(
    tree: &serde_json::Value,
    scenario: &Scenario,
) -> Option<Diagnostic> {
    let text = toml::to_string(&without_null(tree)?).ok()?;
    let document = Document::new(&text, DeTable::parse(&text).ok()?);
    lists::diagnostics(&document, scenario).into_iter().next()
}

/// The tree as TOML, which has no null: keys without a value are left out.
fn without_null(tree: &serde_json::Value) -> Option<toml::Value> {
    use serde_json::Value as Json;
    Some(match tree {
        Json::Null => return None,
        Json::Bool(value) => toml::Value::Boolean(*value),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => toml::Value::Integer(integer),
            None => toml::Value::Float(number.as_f64().filter(|_| !number.is_u64())?),
        },
        Json::String(text) => toml::Value::String(text.clone()),
        Json::Array(list) => {
            toml::Value::Array(list.iter().map(without_null).collect::<Option<_>>()?)
        }
        Json::Object(table) => {
            let known = table.iter().filter(|(_, value)| !value.is_null());
            let pairs = known.map(|(key, value)| Some((key.clone(), without_null(value)?)));
            toml::Value::Table(pairs.collect::<Option<_>>()?)
        }
    })
}

impl SourceLocation {
    /// Location of a key in a value given as a command-line argument: `path` leads from the value
    /// to the key, such as `.periodic.size`. The whole value if there is no key at this path.
    #[must_use]
    pub fn in_argument(argument: &str, value: Range<usize>, path: &str) -> Self {
        const KEY: &str = "value = ";
        let text = format!("{KEY}{}", argument.get(value.clone()).unwrap_or_default());
        let inner = DeTable::parse(&text).ok().filter(|_| !path.is_empty());
        let inner = inner.and_then(|table| {
            Document::new(&text, table.clone()).location(&format!("value{path}"))
        });
        let Some(location) = inner.filter(|found| found.line == 1 && found.column > KEY.len())
        else {
            return Self::of_argument(argument, value);
        };
        let before = argument.get(..value.start).unwrap_or_default().chars().count();
        let column = before + location.column - KEY.len();
        Self { column, length: location.length, ..Self::of_argument(argument, value) }
    }
}

/// Reads a text of TOML as a `T`, without checking whether its values are consistent.
fn parse<'t, T: DeserializeOwned + Serialize>(
    text: &'t str,
    file: &str,
) -> Result<(T, Document<'t>), ScenarioError> {
    let fail = |diagnostic| ScenarioError::one(file, diagnostic);
    if text.len() as u64 > SIZE_MAX {
        return Err(fail(too_large()));
    }
    let table = DeTable::parse(text).map_err(|error| fail(explain::syntax(&error, text)))?;
    let document = Document::new(text, table.clone());
    let read = T::deserialize(toml::Deserializer::from(table))
        .map_err(|error| fail(explain::types(&error, &document)))?;
    let lists = lists::diagnostics(&document, &read);
    if lists.is_empty() { Ok((read, document)) } else { Err(located(file, &document, lists)) }
}

/// An error with located diagnostics, in the order of the file.
fn located(file: &str, document: &Document<'_>, mut diagnostics: Vec<Diagnostic>) -> ScenarioError {
    for diagnostic in &mut diagnostics {
        diagnostic.location = document.location(&diagnostic.key);
    }
    diagnostics
        .sort_by_key(|diagnostic| diagnostic.location.as_ref().map(|location| location.line));
    ScenarioError { file: file.to_owned(), diagnostics }
}

/// Whether a path is standard input or another open file of this process; shells use such paths for
/// process substitution: `<(…)` is `/dev/fd/63`.
fn is_pipe(path: &Path) -> bool {
    Scenario::is_standard_input(path)
        || ["/dev/fd", "/proc/self/fd"].iter().any(|folder| path.starts_with(folder))
}

fn text_of(path: &Path) -> Result<String, Diagnostic> {
    if Scenario::is_standard_input(path) {
        let text = text_from(io::stdin().lock())?;
        let empty = "the input is empty";
        let remedy = "redirect a scenario to it: gridhaul run - < scenario.toml";
        return if text.is_empty() { Err(Diagnostic::new("", empty, remedy)) } else { Ok(text) };
    }
    if is_pipe(path) {
        return text_from(File::open(path).map_err(|error| unreadable(&error))?);
    }
    let metadata = path.metadata().map_err(|error| unreadable(&error))?;
    if metadata.is_dir() {
        return Err(Diagnostic::new("", "this is a directory, not a file", NAME_A_FILE));
    }
    // Devices and pipes have no size to check, and reading one may never end.
    if !metadata.is_file() {
        return Err(Diagnostic::new("", "this is not a regular file", NAME_A_FILE));
    }
    if metadata.len() > SIZE_MAX {
        return Err(too_large());
    }
    text_from(File::open(path).map_err(|error| unreadable(&error))?)
}

fn text_from(source: impl Read) -> Result<String, Diagnostic> {
    let mut bytes = Vec::new();
    // One byte more than the limit: a file may have grown since its size was checked, and a pipe
    // has no size.
    source.take(SIZE_MAX + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    if bytes.len() as u64 > SIZE_MAX {
        return Err(too_large());
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        Diagnostic::new(
            "",
            format!("this is not a text file: line {line} is not valid UTF-8"),
            "name a TOML file; if it is one, save it as UTF-8 in your editor",
        )
    })
}

const NAME_A_FILE: &str = "name a TOML file";

fn unreadable(error: &io::Error) -> Diagnostic {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => "check the spelling and the directory",
        io::ErrorKind::PermissionDenied => "make the file readable, for example with `chmod u+r`",
        _ => NAME_A_FILE,
    };
    Diagnostic::new("", format!("cannot read this file: {error}"), remedy)
}

fn too_large() -> Diagnostic {
    Diagnostic::new(
        "",
        "this is larger than 4 MB, the limit for a file",
        "check the file name; describe many equal nodes as a group with `count`",
    )
}
