//! `cargo xtask web`: the page of `gridhaul explore` without a server, for the documentation site.

mod compiler;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;

use crate::dist::dependencies::{licence_texts, of_package};
use crate::process::{self, cargo, installed, program, root, target};
use compiler::Compiler;

/// Arguments of `web`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Compare the answers of the WebAssembly module, run by Node.js, with those of the native
    /// code, byte by byte, for these scenario files; without files, for those in `scenarios/`
    #[arg(long, value_name = "SCENARIO", num_args = 0..)]
    check: Option<Vec<PathBuf>>,
}

/// Makes the page, and checks the module.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let folder = target().join("explorer");
    make(&folder)?;
    let Some(files) = &options.check else { return Ok(()) };
    ensure!(installed("node"), "node is missing; install the Debian package nodejs");
    let files = if files.is_empty() { scenarios()? } else { files.clone() };
    let mut compare = page_program();
    process::run(compare.arg("compare").arg(module()).args(files))?;
    browse(&folder)
}

/// Opens the page from its folder in headless Chromium.
fn browse(folder: &Path) -> anyhow::Result<()> {
    if !installed("chromium") {
        println!("the page was not opened: chromium is missing (Debian package chromium)");
        return Ok(());
    }
    let mut test = cargo();
    test.args(["test", "--locked", "-p", "gridhaul", "--test", "cli", "explore::web_page"]);
    test.args(["--", "--ignored"]).env("GRIDHAUL_WEB_PAGE", folder.join("index.html"));
    process::run(&mut test)
}

/// Makes the page `index.html` in a folder, and the licences of the crates in its module.
///
/// # Errors
/// There is no compiler for WebAssembly, or the page is too large.
pub(crate) fn make(folder: &Path) -> anyhow::Result<()> {
    let compiler = Compiler::find()?;
    let mut build = compiler.cargo()?;
    build.args(["rustc", "--locked", "--package", "gridhaul-web", "--lib"]);
    build.args(["--crate-type", "cdylib", "--profile", "web", "--target", compiler::TARGET]);
    process::run(&mut build)?;
    fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
    let licences = licence_texts(&of_package("gridhaul-web", compiler::TARGET)?)?;
    fs::write(folder.join("licences.txt"), licences)?;
    process::run(program("gzip").args(["-9", "--no-name", "--force", "--keep"]).arg(module()))?;
    let module = module().with_extension("wasm.gz");
    process::run(page_program().arg("page").arg(module).arg(folder.join("index.html")))
}

/// The module that cargo has built.
fn module() -> PathBuf {
    target().join(compiler::TARGET).join("web/gridhaul_web.wasm")
}

/// The program that makes the page and compares the module.
fn page_program() -> std::process::Command {
    let mut run = cargo();
    run.args(["run", "--quiet", "--locked", "--package", "gridhaul-web"]);
    run.args(["--features", "program", "--"]);
    run
}

/// The examples. Those of `scenarios/systems` last an hour each, and take minutes.
fn scenarios() -> anyhow::Result<Vec<PathBuf>> {
    let folder = root().join("scenarios");
    let entries = fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    let is_scenario = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "toml");
    let mut files: Vec<_> = paths.into_iter().filter(is_scenario).collect();
    files.sort();
    Ok(files)
}
