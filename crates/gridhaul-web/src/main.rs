//! `gridhaul-web`: makes the page without a server, and compares the module of WebAssembly with the
//! native code. `cargo xtask web` builds both and calls the program.

#![forbid(unsafe_code)]

mod comparison;
mod page;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use anyhow::{Context, ensure};

const USAGE: &str = "\
gridhaul-web page MODULE.wasm.gz PAGE.html    make the page with the module
gridhaul-web compare MODULE.wasm SCENARIO...  compare the answers of the module, run by Node.js, \
with those of the native code";

/// The page is small enough for a slow connection.
const PAGE_BYTES_MAX: usize = 3_000_000;

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let result = match &arguments[..] {
        [command, module, page] if command == Path::new("page") => make_page(module, page),
        [command, module, files @ ..] if command == Path::new("compare") && !files.is_empty() => {
            comparison::compare(module, files)
        }
        _ => Err(anyhow::anyhow!("expected\n{USAGE}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn make_page(module: &Path, to: &Path) -> anyhow::Result<()> {
    let module = read(module)?;
    let page = page::make(&module)?;
    fs::write(to, &page).with_context(|| format!("cannot write {}", to.display()))?;
    let size = |bytes: usize| format!("{:.2} MB", bytes as f64 / 1e6);
    println!("{}: {}", to.display(), size(page.len()));
    ensure!(page.len() <= PAGE_BYTES_MAX, "the page is larger than {}", size(PAGE_BYTES_MAX));
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}
