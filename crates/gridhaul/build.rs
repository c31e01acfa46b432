//! Embeds the folder `papers/` in the program, so that `gridhaul paper` does not need the
//! repository.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let papers = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("../../papers");
    println!("cargo::rerun-if-changed={}", papers.display());
    let mut code = String::from("&[\n");
    for folder in sorted(&papers)? {
        if !folder.join("paper.toml").is_file() {
            continue;
        }
        let _ = writeln!(code, "Embedded {{ name: {:?}, files: &[", name(&folder));
        for file in sorted(&folder)?.into_iter().filter(|file| file.is_file()) {
            let path = file.canonicalize()?;
            let _ = writeln!(code, "({:?}, include_str!({path:?})),", name(&file));
        }
        code.push_str("] },\n");
    }
    code.push_str("]\n");
    fs::write(Path::new(&variable("OUT_DIR")?).join("papers.rs"), code)
}

fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<_> = entries.collect::<io::Result<_>>()?;
    paths.sort();
    Ok(paths)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
