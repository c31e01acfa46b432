//! The crates that are linked into the programs or a package, with their licences.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

use super::PROGRAMS;
use crate::process::{self, root};

/// A crate of a registry that is linked into a program.
pub(crate) struct Dependency {
    pub(super) name: String,
    pub(super) version: String,
    /// SPDX expression.
    pub(super) licence: String,
    /// SHA-256 of the archive, by Cargo.lock.
    pub(super) checksum: Option<String>,
    folder: PathBuf,
}

/// The dependencies of the programs, ordered by name and version.
pub(super) fn linked() -> anyhow::Result<Vec<Dependency>> {
    let metadata = process::metadata()?;
    let linked = reachable(&metadata)?;
    selected(&metadata, &|package| linked.contains(package["id"].as_str().unwrap_or_default()))
}

/// The dependencies of a package on a target, with the features of this package alone.
pub(crate) fn of_package(package: &str, target: &str) -> anyhow::Result<Vec<Dependency>> {
    let mut tree = process::cargo();
    tree.args(["tree", "--locked", "--package", package, "--target", target]);
    let tree = process::output(tree.args(["--edges", "normal", "--prefix", "none"]))?;
    // A line begins with the name and the version: `serde v1.0.0`.
    let name = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let names: BTreeSet<String> = tree.lines().map(name).collect();
    selected(&process::metadata()?, &|package| {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        names.contains(&format!("{} v{}", text("name"), text("version")))
    })
}

/// The packages of registries with a property.
fn selected(
    metadata: &Value,
    is_linked: &dyn Fn(&Value) -> bool,
) -> anyhow::Result<Vec<Dependency>> {
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let checksums = checksums()?;
    let mut found = Vec::new();
    for package in packages {
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        if package["source"].is_null() || !is_linked(package) {
            continue;
        }
        let (name, version) = (text("name"), text("version"));
        let checksum = checksums.get(&format!("{name} {version}")).cloned();
        let manifest = PathBuf::from(text("manifest_path"));
        let folder = manifest.parent().unwrap_or(Path::new("/")).to_owned();
        // Old packages write `/` for OR.
        let licence = text("license").replace('/', " OR ");
        found.push(Dependency { name, version, licence, checksum, folder });
    }
    found.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(found)
}

/// Identifiers of the packages that the programs are linked from: neither tests nor build scripts.
fn reachable(metadata: &Value) -> anyhow::Result<BTreeSet<String>> {
    let nodes = metadata["resolve"]["nodes"].as_array().context("cargo metadata has no graph")?;
    let mut edges = BTreeMap::new();
    let mut open = Vec::new();
    for node in nodes {
        let id = node["id"].as_str().unwrap_or_default();
        let is_linked = |dependency: &&Value| {
            let kinds = dependency["dep_kinds"].as_array();
            kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
        };
        let targets = node["deps"].as_array().into_iter().flatten().filter(is_linked);
        let targets = targets.filter_map(|dependency| dependency["pkg"].as_str());
        edges.insert(id, targets.collect::<Vec<_>>());
        let is_program = PROGRAMS.iter().any(|name| id.contains(&format!("/crates/{name}#")));
        if is_program {
            open.push(id);
        }
    }
    anyhow::ensure!(open.len() == PROGRAMS.len(), "not all programs are in the graph: {open:?}");
    let mut found = BTreeSet::new();
    while let Some(id) = open.pop() {
        if found.insert(id.to_owned()) {
            open.extend(edges.get(id).into_iter().flatten());
        }
    }
    Ok(found)
}

/// Checksums of Cargo.lock by name and version.
fn checksums() -> anyhow::Result<BTreeMap<String, String>> {
    let lock: toml::Table = fs::read_to_string(root().join("Cargo.lock"))?.parse()?;
    let packages = lock["package"].as_array().context("Cargo.lock has no packages")?;
    let checksum = |package: &toml::Value| {
        let text = |key: &str| Some(package.get(key)?.as_str()?.to_owned());
        Some((format!("{} {}", text("name")?, text("version")?), text("checksum")?))
    };
    Ok(packages.iter().filter_map(checksum).collect())
}

/// All texts of licences, each once, with the crates that it is for.
pub(crate) fn licence_texts(dependencies: &[Dependency]) -> anyhow::Result<String> {
    let mut crates = BTreeMap::<String, Vec<String>>::new();
    let mut text = String::from(
        "gridhaul contains these crates, each under the licence named beside it. The texts \
         follow.\n\n",
    );
    for dependency in dependencies {
        let Dependency { name, version, licence, .. } = dependency;
        text.push_str(&format!("{name} {version}: {licence}\n"));
        for file in licence_files(&dependency.folder)? {
            let bytes = fs::read(&file).with_context(|| format!("{}", file.display()))?;
            let found = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
            crates.entry(found.trim().to_owned()).or_default().push(format!("{name} {version}"));
        }
    }
    for (licence, names) in crates {
        let line = "-".repeat(72);
        text.push_str(&format!("\n{line}\nFor {}:\n\n{licence}\n", names.join(", ")));
    }
    Ok(text)
}

/// Files with licences and notices in the folder of a crate, in order.
fn licence_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        let starts = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE", "COPYRIGHT"];
        if path.is_file() && starts.iter().any(|start| name.starts_with(start)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
