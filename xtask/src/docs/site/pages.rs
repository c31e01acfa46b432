//! The pages of the repository.

use std::fs;
use std::path::Path;

use anyhow::Context;

/// Folders without pages of the repository's own.
const SKIPPED: [&str; 4] = ["target", "results", "node_modules", "__pycache__"];

/// A page.
pub(super) struct Page {
    /// Path relative to the root of the repository.
    pub(super) path: String,
    pub(super) text: String,
}

impl Page {
    /// The first heading.
    pub(super) fn title(&self) -> &str {
        let heading = self.text.lines().find_map(|line| line.strip_prefix("# "));
        heading.unwrap_or(&self.path).trim()
    }

    /// The path in the site, whose pages for folders are named `index`.
    pub(super) fn place(&self) -> String {
        match self.path.strip_suffix("README.md") {
            Some(folder) => format!("{folder}index.md"),
            None => self.path.clone(),
        }
    }
}

/// All pages below a folder, in the order of their paths.
///
/// # Errors
/// A file cannot be read.
pub(super) fn read(root: &Path) -> anyhow::Result<Vec<Page>> {
    let mut paths = Vec::new();
    list(root, "", &mut paths)?;
    paths.sort();
    let page = |path: String| {
        let text = fs::read_to_string(root.join(&path)).with_context(|| path.clone())?;
        Ok(Page { path, text })
    };
    paths.into_iter().map(page).collect()
}

fn list(folder: &Path, prefix: &str, paths: &mut Vec<String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            list(&entry.path(), &format!("{prefix}{name}/"), paths)?;
        } else if name.ends_with(".md") {
            paths.push(format!("{prefix}{name}"));
        }
    }
    Ok(())
}
