//! A module with submodules is a file `mod.rs` in its folder, never a file with a folder of the
//! same name (`clippy::self_named_module_files` as a test, which needs no build of the workspace).

use crate::repository::{root, rust_files};

#[test]
fn no_module_has_a_file_and_a_folder_of_its_name() {
    let files = rust_files(&["crates", "conformance", "fuzz", "xtask"]);
    let is_self_named = |path: &&std::path::PathBuf| root().join(path.with_extension("")).is_dir();
    let found: Vec<_> = files.iter().filter(is_self_named).collect();
    assert!(found.is_empty(), "move these files to mod.rs in their folders: {found:?}");
}
