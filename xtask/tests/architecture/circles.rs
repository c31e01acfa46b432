//! Circles of files: files that import each other, directly or indirectly.

use std::fs;

use crate::graph::circles;
use crate::imports::imports;
use crate::repository::root;
use crate::source::modules;

/// Number of files that may import each other.
const FILES_MAX: usize = 3;

#[test]
fn no_more_than_three_files_import_each_other() {
    let mut large = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let found = circles(&imports(&modules(&folder.join("src"))));
        let found = found.iter().filter(|circle| circle.len() > FILES_MAX);
        large.extend(found.map(|circle| format!("{name}: {circle:?}")));
    }
    assert!(large.is_empty(), "files that import each other:\n{}", large.join("\n"));
}
