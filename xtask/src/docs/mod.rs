//! `cargo xtask docs`: regenerates the pages that are generated from the code, or makes the site.

mod site;

use clap::Args;

use crate::process::{self, cargo};

/// Arguments of `docs`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Make a site of all pages in target/site, with search, and check its links; mdBook is
    /// installed if it is missing
    #[arg(long)]
    site: bool,
    /// Leave out the explorer that runs in the browser, which takes minutes to compile
    #[arg(long, requires = "site")]
    quick: bool,
}

/// Regenerates all pages, or makes the site.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    if options.site { site::make(!options.quick) } else { regenerate() }
}

/// Regenerates all pages. Each is the golden file of a test, which writes the file instead of
/// comparing it.
fn regenerate() -> anyhow::Result<()> {
    let reference = ["test", "--quiet", "--package", "gridhaul-scenario"];
    process::run(cargo().args(reference).env("GRIDHAUL_UPDATE", "1"))?;
    let measurement = ["test", "--quiet", "--package", "gridhaul-measure", "--features", "schema"];
    let measurement = [&measurement[..], &["--test", "reference"]].concat();
    process::run(cargo().args(measurement).env("GRIDHAUL_UPDATE", "1"))?;
    let profiles = ["test", "--quiet", "--package", "gridhaul-core", "--test", "integration"];
    process::run(cargo().args(profiles).arg("profiles").env("GRIDHAUL_UPDATE", "1"))?;
    let help = ["test", "--quiet", "--package", "gridhaul", "--test", "cli", "help"];
    process::run(cargo().args(help).env("INSTA_UPDATE", "always"))?;
    let pictures = ["test", "--quiet", "--package", "gridhaul", "--test", "cli", "pictures"];
    process::run(cargo().args(pictures).env("GRIDHAUL_UPDATE", "1"))?;
    // Last: these pages list keys and defaults of the reference pages.
    let pages = ["test", "--quiet", "--package", "xtask", "--test", "documents", "generated_page"];
    process::run(cargo().args(pages).env("GRIDHAUL_UPDATE", "1"))
}
