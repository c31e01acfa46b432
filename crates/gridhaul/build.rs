//! Embeds the folder `papers/` in the program, so that `gridhaul paper` does not need the
//! repository, and a hash of the sources of the simulator, which identifies results.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    embed_papers()?;
    let mut hash = FNV_OFFSET;
    for source in SIMULATOR {
        let folder = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("..").join(source);
        println!("cargo::rerun-if-changed={}", folder.display());
        hash = hash_of(&folder, hash)?;
    }
    println!("cargo::rustc-env=GRIDHAUL_SIMULATOR={}+{hash:016x}", variable("CARGO_PKG_VERSION")?);
    Ok(())
}

/// Sources that determine the results of a simulation.
const SIMULATOR: [&str; 4] =
    ["gridhaul-scenario/src", "gridhaul-core/src", "gridhaul-data/src", "gridhaul-sim/src"];

/// The 64-bit FNV-1a hash.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// Continues a hash with the names and contents of all files in a folder.
fn hash_of(folder: &Path, hash: u64) -> io::Result<u64> {
    sorted(folder)?.into_iter().try_fold(hash, |hash, path| {
        let hash = hashed(hash, name(&path).as_bytes());
        if path.is_dir() { hash_of(&path, hash) } else { Ok(hashed(hash, &fs::read(&path)?)) }
    })
}

fn hashed(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME))
}

fn embed_papers() -> io::Result<()> {
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
