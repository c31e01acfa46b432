//! `cargo xtask docs --site`: all pages of the repository as a site that needs no server.
//!
//! The pages keep their places, so that their links to each other stay valid. mdBook makes the
//! site; its links are checked afterwards.

mod check;
mod links;
mod pages;
mod questions;
mod summary;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::process::{self, cargo, installed, output, program, root, target};
use pages::Page;

/// Version of mdBook: other versions have other names of files and identifiers.
const MDBOOK: &str = "0.5.4";

const BOOK: &str = r#"[book]
title = "gridhaul"
description = "TCP for power grids: simulation, equations and real kernels"
language = "en"

[build]
build-dir = "../site"
create-missing = false

[output.html]
default-theme = "light"
preferred-dark-theme = "navy"
no-section-label = true
additional-css = ["site.css"]

[output.html.fold]
enable = true

[output.html.print]
enable = false

[output.html.search]
limit-results = 20
use-boolean-and = true
boost-title = 4
boost-hierarchy = 2
"#;

/// Wide tables scroll by themselves, and not the page.
const STYLE: &str = "\
:root { --content-max-width: 1100px; }
.content main td { vertical-align: top; }
.content main th code { background: none; }
.content main table { display: block; max-width: 100%; overflow-x: auto; margin-inline: 0; }
.content main img { background: white; }
";

/// Makes the site in `target/site`.
pub(super) fn make() -> anyhow::Result<()> {
    let pages = pages::read(root())?;
    let source = target().join("site-source");
    let site = target().join("site");
    for folder in [&source, &site] {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
    }
    write_source(&pages, &source)?;
    process::run(program(&mdbook()?.to_string_lossy()).arg("build").arg(&source))?;
    let errors = check::errors(&site)?;
    ensure!(errors.is_empty(), "wrong links in the site:\n{}", errors.join("\n"));
    questions::check(&site)?;
    println!("{} pages: {}", pages.len(), site.join("index.html").display());
    Ok(())
}

/// Writes what mdBook reads: settings, summary, pages, and the files that they link to.
fn write_source(pages: &[Page], folder: &Path) -> anyhow::Result<()> {
    let source = folder.join("src");
    write(&folder.join("book.toml"), BOOK)?;
    write(&folder.join("site.css"), STYLE)?;
    write(&source.join("SUMMARY.md"), &summary::of(pages))?;
    let names = pages.iter().map(|page| page.path.as_str()).collect();
    for page in pages {
        let linked = links::rewrite(page, &names, root());
        write(&source.join(page.place()), &linked.text)?;
        for file in linked.files {
            let to = source.join(&file);
            if !to.exists() {
                make_folder_of(&to)?;
                fs::copy(root().join(&file), &to).with_context(|| file.clone())?;
            }
        }
    }
    Ok(())
}

/// The program mdBook, installed into the build folder if there is none of this version.
fn mdbook() -> anyhow::Result<PathBuf> {
    let own = target().join("tools/bin/mdbook");
    if own.is_file() {
        return Ok(own);
    }
    if installed("mdbook") && output(program("mdbook").arg("--version"))?.contains(MDBOOK) {
        return Ok(PathBuf::from("mdbook"));
    }
    println!("mdBook {MDBOOK} is missing and is installed now");
    let mut install = cargo();
    install.args(["install", "mdbook", "--version", MDBOOK, "--locked"]);
    install.args(["--no-default-features", "--features", "search", "--root"]);
    process::run(install.arg(target().join("tools")))?;
    Ok(own)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    make_folder_of(path)?;
    fs::write(path, text).with_context(|| format!("{}", path.display()))
}

fn make_folder_of(path: &Path) -> anyhow::Result<()> {
    let folder = path.parent().context("a file is in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))
}
