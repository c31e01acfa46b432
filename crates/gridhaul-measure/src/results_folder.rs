//! The folder of the results of a command.

use std::fs;
use std::path::Path;

use anyhow::Context;

/// Creates the folder of the results before a run, so that a run whose results cannot be kept does
/// not start.
///
/// # Errors
/// The folder cannot be created.
pub fn create(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

/// Writes a file of the results completely, or leaves the old one.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let partial = path.with_extension("partial");
    let moved = fs::write(&partial, text).and_then(|()| fs::rename(&partial, path));
    if moved.is_err() {
        let _ = fs::remove_file(&partial);
    }
    moved.with_context(|| format!("cannot write {}", path.display()))
}
