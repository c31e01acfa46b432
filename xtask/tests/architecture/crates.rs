//! Dependencies of crates against ARCHITECTURE.md, and the one crate that may have unsafe code.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::graph::{Graph, in_cycles};
use crate::repository::{read, root, rust_files};
use crate::source::without_comments;

/// Reads lines such as `gridhaul-sim ← gridhaul-core, gridhaul-data`.
fn drawn(page: &str) -> Graph {
    let arrows = page.lines().filter_map(|line| line.split_once('←'));
    let names = |text: &str| {
        text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    arrows.map(|(name, needs)| (name.trim().to_owned(), names(needs))).collect()
}

/// Reads the output of `cargo metadata --no-deps`. Dependencies of every kind count, those of tests
/// as well.
fn built(metadata: &Value) -> Graph {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    let packages = list(&metadata["packages"]);
    let own: BTreeSet<String> = packages.iter().map(name).collect();
    let needs = |package: &Value| {
        list(&package["dependencies"]).iter().map(name).filter(|need| own.contains(need)).collect()
    };
    packages.iter().map(|package| (name(package), needs(package))).collect()
}

/// Dependencies that the page lacks, and dependencies that do not exist.
fn differences(drawn: &Graph, built: &Graph) -> Vec<String> {
    let arrows = |graph: &Graph| -> BTreeSet<String> {
        let alone = graph.keys().map(|name| format!("crate {name}"));
        let arrows = graph
            .iter()
            .flat_map(|(name, needs)| needs.iter().map(move |need| format!("{name} ← {need}")));
        alone.chain(arrows).collect()
    };
    let (drawn, built) = (arrows(drawn), arrows(built));
    let missing = built.difference(&drawn).map(|arrow| format!("missing: {arrow}"));
    let superfluous = drawn.difference(&built).map(|arrow| format!("superfluous: {arrow}"));
    missing.chain(superfluous).collect()
}

/// The output of `cargo metadata --no-deps`.
fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Root source files of libraries and programs, each with the name of its crate.
fn crate_roots(metadata: &Value) -> Vec<(String, String)> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut roots = Vec::new();
    for package in list(&metadata["packages"]) {
        for target in list(&package["targets"]) {
            if list(&target["kind"]).iter().any(|kind| kind == "lib" || kind == "bin") {
                roots.push((text(&package["name"]), text(&target["src_path"])));
            }
        }
    }
    roots
}

#[test]
fn only_one_crate_may_have_unsafe_code() {
    let roots = crate_roots(&metadata());
    assert!(roots.len() > 10, "{roots:?}");
    for (name, path) in roots {
        let source = std::fs::read_to_string(&path).unwrap();
        let forbids = source.lines().any(|line| line == "#![forbid(unsafe_code)]");
        let is_module = path.ends_with("gridhaul-web/src/lib.rs");
        assert_eq!(forbids, name != "gridhaul-linux" && !is_module, "{path}");
    }
}

/// The functions of the WebAssembly module have names, and no unsafe code.
#[test]
fn the_module_of_the_page_has_no_unsafe_code_but_names() {
    let mut names = 0;
    for path in rust_files(&["crates/gridhaul-web/src"]) {
        let code = without_comments(&read(&path));
        for rest in code.split("unsafe").skip(1) {
            let is_name = rest.starts_with("(no_mangle)]");
            assert!(is_name || rest.starts_with("_code"), "{}: unsafe{rest}", path.display());
            names += usize::from(is_name);
        }
    }
    assert_eq!(names, 4);
}

#[test]
fn architecture_md_has_the_dependencies_of_the_crates() {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let built = built(&metadata());
    assert!(built.len() > 10, "{built:?}");
    let wrong = differences(&drawn(&page), &built);
    assert!(wrong.is_empty(), "ARCHITECTURE.md, section Crates:\n{}", wrong.join("\n"));
    assert_eq!(in_cycles(&built), BTreeSet::new(), "these crates depend on each other");
}

/// Crates of this repository on which `gridhaul` depends when it is built with these features.
fn needs_of_gridhaul(features: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "-p", "gridhaul", "--edges", "normal,build", "--prefix", "none"])
        .args(["--offline", "--locked"])
        .args(features)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| name.starts_with("gridhaul-")).map(str::to_owned).collect()
}

#[test]
fn the_library_and_the_program_build_without_the_emulator() {
    let of_linux = ["gridhaul-cc", "gridhaul-emu", "gridhaul-linux"].map(str::to_owned);
    let of_linux = BTreeSet::from(of_linux);
    assert!(needs_of_gridhaul(&[]).is_superset(&of_linux), "the default has the emulator");
    for features in
        [&["--no-default-features"][..], &["--no-default-features", "--features", "cli"]]
    {
        let needs = needs_of_gridhaul(features);
        assert!(needs.contains("gridhaul-sim") && needs.contains("gridhaul-model"), "{needs:?}");
        assert!(needs.is_disjoint(&of_linux), "{features:?}: {needs:?}");
    }
}

#[test]
fn a_missing_arrow_a_superfluous_one_and_a_cycle_are_found() {
    let graph = drawn("```\ncore ←\nsim  ← core, data\ndata ← core\n```\nother text\n");
    assert_eq!(graph["sim"], BTreeSet::from(["core".to_owned(), "data".to_owned()]));
    assert_eq!(differences(&graph, &graph), Vec::<String>::new());
    let other = drawn("core ←\nsim ← core\ndata ← core, sim\n");
    let found = differences(&graph, &other);
    assert_eq!(found, ["missing: data ← sim", "superfluous: sim ← data"]);
    assert_eq!(differences(&graph, &drawn("core ←\nsim ← core, data\n")).len(), 2);
    assert_eq!(in_cycles(&graph), BTreeSet::new());
    let cycle = drawn("core ← sim\nsim ← core, data\ndata ←\n");
    assert_eq!(in_cycles(&cycle), BTreeSet::from(["core".to_owned(), "sim".to_owned()]));
}

/// Source files in a folder and its subfolders.
fn source_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            source_files(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}

/// The name of the module that a file has, unless the file is the root of an executable.
fn module_name(path: &Path, tests: &Path) -> Option<String> {
    let is_root = path.parent() == Some(tests) || path.ends_with("main.rs");
    let named = if path.ends_with("mod.rs") { path.parent()? } else { path };
    (!is_root).then(|| named.file_stem().unwrap_or_default().to_string_lossy().into_owned())
}

/// A file that no `mod` declares is not compiled, and its tests do not run.
#[test]
fn each_file_of_tests_is_a_module_or_an_executable() {
    let mut undeclared = Vec::new();
    for (_, root) in crate_roots(&metadata()) {
        let tests = Path::new(&root).ancestors().nth(2).unwrap().join("tests");
        let mut files = Vec::new();
        source_files(&tests, &mut files);
        let declared: BTreeSet<_> = files
            .iter()
            .flat_map(|path| {
                let text = std::fs::read_to_string(path).unwrap();
                let names = text.lines().filter_map(|line| {
                    line.trim_start_matches("pub(crate) ").strip_prefix("mod ")?.strip_suffix(';')
                });
                names.map(str::to_owned).collect::<Vec<_>>()
            })
            .collect();
        undeclared.extend(files.into_iter().filter(|path| {
            module_name(path, &tests).is_some_and(|name| !declared.contains(&name))
        }));
    }
    assert_eq!(undeclared, Vec::<PathBuf>::new(), "declare these modules, or remove the files");
}
