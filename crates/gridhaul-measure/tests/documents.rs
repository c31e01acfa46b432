//! The commands `gridhaul measure ...` in the documents. They are run here and not with the other
//! commands, because the main program is built without this one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gridhaul_testing::{has_file, has_program};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The commands in the `sh` blocks of a document, without comments.
fn commands(text: &str) -> Vec<String> {
    let mut inside = false;
    let mut commands = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside && line.trim() == "```sh";
        } else if let Some(arguments) = line.strip_prefix("gridhaul measure ").filter(|_| inside) {
            commands.push(arguments.split(" # ").next().unwrap_or_default().trim().to_owned());
        }
    }
    commands
}

#[test]
fn every_measurement_in_the_documents_works() {
    if !has_program("mosquitto") || !has_file("/dev/net/tun") {
        return;
    }
    let mut documents = vec![repository().join("README.md")];
    for folder in ["docs", "docs/guides"] {
        let entries = fs::read_dir(repository().join(folder)).unwrap();
        documents.extend(entries.map(|entry| entry.unwrap().path()));
    }
    let documents =
        documents.iter().filter(|path| path.extension().is_some_and(|name| name == "md"));
    let mut count = 0;
    for document in documents {
        let desk = tempfile::tempdir().unwrap();
        for folder in ["scenarios", "measurements"] {
            std::os::unix::fs::symlink(repository().join(folder), desk.path().join(folder))
                .unwrap();
        }
        for arguments in commands(&fs::read_to_string(document).unwrap()) {
            let mut program = Command::new(env!("CARGO_BIN_EXE_gridhaul-measure"));
            let done =
                program.args(arguments.split(' ')).current_dir(desk.path()).output().unwrap();
            let error = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{}: {arguments}\n{error}", document.display());
            count += 1;
        }
    }
    assert!(count >= 3, "{count} commands were found");
}
