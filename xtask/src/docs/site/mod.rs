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
use crate::web;
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

/// Pages that link to the explorer in the browser, which exists in the site only.
const LINKED_TO_EXPLORER: [&str; 3] = ["README.md", "docs/tutorial.md", "docs/guides/explore.md"];

/// Makes the site in `target/site`, with the explorer in the browser or without.
pub(super) fn make(has_explorer: bool) -> anyhow::Result<()> {
    let pages = pages::read(root())?;
    let source = target().join("site-source");
    let site = target().join("site");
    for folder in [&source, &site] {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
    }
    write_source(&pages, &source, has_explorer)?;
    if has_explorer {
        web::make(&source.join("src/explorer"))?;
    }
    process::run(program(mdbook()?).arg("build").arg(&source))?;
    let errors = check::errors(&site)?;
    ensure!(errors.is_empty(), "wrong links in the site:\n{}", errors.join("\n"));
    questions::check(&site)?;
    println!("{} pages: {}", pages.len(), site.join("index.html").display());
    Ok(())
}

/// Writes what mdBook reads: settings, summary, pages, and the files that they link to.
fn write_source(pages: &[Page], folder: &Path, has_explorer: bool) -> anyhow::Result<()> {
    let source = folder.join("src");
    write(&folder.join("book.toml"), BOOK)?;
    write(&folder.join("site.css"), STYLE)?;
    write(&source.join("SUMMARY.md"), &summary::of(pages))?;
    let names = pages.iter().map(|page| page.path.as_str()).collect();
    for page in pages {
        let linked = links::rewrite(page, &names, root());
        let is_linked = has_explorer && LINKED_TO_EXPLORER.contains(&page.path.as_str());
        let text = if is_linked { with_link(page, &linked.text) } else { linked.text };
        write(&source.join(page.place()), &text)?;
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

/// The text of a page with a link to the explorer after its heading.
fn with_link(page: &Page, text: &str) -> String {
    let (heading, rest) = text.split_once('\n').unwrap_or((text, ""));
    let up = "../".repeat(page.path.matches('/').count());
    format!(
        "{heading}\n\n**[Try it in this browser]({up}explorer/index.html)**: move the sliders of a \
         scenario, and see throughput, window, queue and delay. Nothing to install, and nothing \
         is sent.\n{rest}"
    )
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

#[test]
fn the_link_to_the_explorer_follows_the_heading() {
    let page = Page { path: "docs/tutorial.md".to_owned(), text: String::new() };
    let text = with_link(&page, "# Tutorial\n\nText.\n");
    assert!(text.starts_with("# Tutorial\n\n**[Try it in this browser](../explorer/index.html)"));
    assert!(text.ends_with(".\n\nText.\n"), "{text}");
}

#[test]
fn pages_with_a_link_to_the_explorer_exist() {
    for path in LINKED_TO_EXPLORER {
        assert!(root().join(path).is_file(), "{path}");
    }
}
