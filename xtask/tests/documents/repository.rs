//! The files of the repository.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::page::Page;

/// Folders that hold nothing of the repository's own.
const SKIPPED: [&str; 4] = ["target", "results", "node_modules", "__pycache__"];

/// The files and folders of the repository.
pub(crate) struct Repository {
    root: PathBuf,
    /// Files and folders, relative to the root, with `/`.
    entries: BTreeSet<String>,
}

impl Repository {
    pub(crate) fn open() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("xtask is in the root")
            .to_owned();
        let mut entries = BTreeSet::new();
        list(&root, "", &mut entries);
        Self { root, entries }
    }

    /// A repository of these entries, for tests; no file can be read.
    #[cfg(test)]
    pub(crate) fn made_up(entries: &[&str]) -> Self {
        Self { root: PathBuf::new(), entries: entries.iter().map(ToString::to_string).collect() }
    }

    /// Documents whose statements are checked. The changelog is excluded: it names what has been
    /// removed.
    pub(crate) fn pages(&self) -> Vec<Page> {
        let wanted = |path: &&String| path.ends_with(".md") && *path != "CHANGELOG.md";
        self.entries.iter().filter(wanted).map(|path| self.page(path)).collect()
    }

    /// Documents, sources, scenarios, conformance cases and scripts, but not the examples of these
    /// tests.
    pub(crate) fn texts(&self) -> Vec<Page> {
        let endings = [".md", ".rs", ".toml", ".c", ".h", ".py", ".tcl", ".sh"];
        let wanted = |path: &&String| {
            endings.iter().any(|ending| path.ends_with(ending))
                && !path.starts_with("xtask/tests/documents/")
                && *path != "CHANGELOG.md"
        };
        self.entries.iter().filter(wanted).map(|path| self.page(path)).collect()
    }

    /// The comments of all Rust sources: pages whose other lines are empty.
    pub(crate) fn comments(&self) -> Vec<Page> {
        let sources = self
            .entries
            .iter()
            .filter(|path| path.ends_with(".rs") && !path.starts_with("xtask/tests/"));
        let comment = |line: &str| {
            let line = line.trim_start();
            let marks = ["//!", "///", "//"].iter().find_map(|mark| line.strip_prefix(mark));
            // A heading such as `# Errors` names no folder.
            marks.map_or_else(String::new, |text| text.trim_start_matches([' ', '#']).to_owned())
        };
        let page = |path: &String| {
            let lines: Vec<_> = self.read(path).lines().map(comment).collect();
            Page { path: path.clone(), text: lines.join("\n") }
        };
        sources.map(page).collect()
    }

    pub(crate) fn page(&self, path: &str) -> Page {
        Page { path: path.to_owned(), text: self.read(path) }
    }

    pub(crate) fn read(&self, path: &str) -> String {
        let full = self.root.join(path);
        fs::read_to_string(&full).unwrap_or_else(|error| panic!("{}: {error}", full.display()))
    }

    /// Replaces a generated page.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let full = self.root.join(path);
        fs::write(&full, text).unwrap_or_else(|error| panic!("{}: {error}", full.display()));
    }

    pub(crate) fn is_file(&self, path: &str) -> bool {
        self.root.join(path).is_file()
    }

    /// Whether this file or folder exists, relative to the root.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.entries.contains(path)
    }

    /// All files and folders, relative to the root.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(String::as_str)
    }
}

fn list(folder: &Path, prefix: &str, entries: &mut BTreeSet<String>) {
    let read = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in read {
        let entry = entry.expect("entries of a folder can be read");
        let name = entry.file_name().to_string_lossy().into_owned();
        if SKIPPED.contains(&name.as_str())
            || (name.starts_with('.') && name != ".cargo" && name != ".config")
        {
            continue;
        }
        let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            list(&entry.path(), &path, entries);
        }
        entries.insert(path);
    }
}
