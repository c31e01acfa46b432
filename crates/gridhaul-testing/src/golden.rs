//! Golden files: expected texts for review. `GRIDHAUL_UPDATE=1` rewrites them.

use std::path::{Path, PathBuf};

/// Compares a text with a file of the repository, named from its root.
///
/// # Panics
/// The file is different, or cannot be written.
pub fn check(path: &str, text: &str) {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("GRIDHAUL_UPDATE").is_some() {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).unwrap();
        }
        // Renamed in one step, because another test may read the file at the same time.
        let temporary = path.with_extension("new");
        std::fs::write(&temporary, text).unwrap();
        std::fs::rename(&temporary, &path).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    if let Some((line, (expected, found))) =
        (1..).zip(expected.lines().zip(text.lines())).find(|(_, (one, other))| one != other)
    {
        panic!(
            "{} is out of date at line {line}; review the difference, then run GRIDHAUL_UPDATE=1 \
             cargo test\n\
             expected {expected}\n   found {found}",
            path.display()
        );
    }
    assert_eq!(expected, text, "{} is stale; GRIDHAUL_UPDATE=1 cargo test", path.display());
}
