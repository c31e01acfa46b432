//! The order of modules that ARCHITECTURE.md lists for each large crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::graph::Graph;
use crate::imports::imports;
use crate::repository::{read, root, rust_files};
use crate::source::modules;

/// Crates with more lines than this list the order of their modules.
const LINES_MAX: usize = 5_000;

/// The blocks of modules of a page by their title, such as `gridhaul-sim`, or `gridhaul-core/tcp`
/// for a folder of a crate. A module imports only modules of later lines.
fn documented_orders(page: &str) -> BTreeMap<String, Vec<Vec<String>>> {
    let blocks = page.split("```modules ").skip(1);
    let blocks = blocks.filter_map(|block| block.split_once("```")?.0.split_once('\n'));
    let names = |line: &str| line.split(',').map(|name| name.trim().to_owned()).collect();
    blocks.map(|(title, lines)| (title.to_owned(), lines.lines().map(names).collect())).collect()
}

/// The imports between the modules in a folder of a crate; files in deeper folders count for their
/// module.
fn imports_in(title: &str) -> Graph {
    let (name, folder) = title.split_once('/').unwrap_or((title, ""));
    let graph = imports(&modules(&root().join("crates").join(name).join("src")));
    let prefix = folder.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>();
    let module = |path: &String| -> Option<String> {
        let names: Vec<&str> = path.split("::").filter(|part| !part.is_empty()).collect();
        names.strip_prefix(prefix.as_slice())?.first().map(ToString::to_string)
    };
    let mut found = Graph::new();
    for (importer, imported) in &graph {
        let Some(importer) = module(importer) else { continue };
        let mut imported: BTreeSet<String> = imported.iter().filter_map(module).collect();
        imported.remove(&importer);
        found.entry(importer).or_default().extend(imported);
    }
    found
}

/// Imports that violate the documented order, modules that the page lacks, and modules that do not
/// exist.
fn violations(order: &[Vec<String>], graph: &Graph) -> Vec<String> {
    let line = |name: &String| order.iter().position(|line| line.contains(name));
    let missing = graph.keys().filter(|name| line(name).is_none());
    let missing = missing.map(|name| format!("missing: {name}"));
    let superfluous = order.iter().flatten().filter(|name| !graph.contains_key(*name));
    let superfluous = superfluous.map(|name| format!("superfluous: {name}"));
    let imports = graph.iter().flat_map(|(name, needs)| needs.iter().map(move |need| (name, need)));
    let wrong = imports.filter(|(name, need)| line(need) <= line(name));
    let wrong = wrong.map(|(name, need)| format!("{name} imports {need}"));
    missing.chain(superfluous).chain(wrong).collect()
}

#[test]
fn modules_import_in_the_documented_order() {
    let orders = documented_orders(&read(Path::new("ARCHITECTURE.md")));
    assert!(orders.contains_key("gridhaul-sim"), "{:?}", orders.keys());
    let mut wrong = Vec::new();
    for (title, order) in &orders {
        let graph = imports_in(title);
        wrong.extend(violations(order, &graph).iter().map(|found| format!("{title}: {found}")));
    }
    assert!(wrong.is_empty(), "ARCHITECTURE.md, blocks of modules:\n{}", wrong.join("\n"));
}

#[test]
fn every_large_crate_documents_the_order_of_its_modules() {
    let orders = documented_orders(&read(Path::new("ARCHITECTURE.md")));
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for path in rust_files(&["crates"]) {
        let name = path.iter().nth(1).unwrap().to_string_lossy().into_owned();
        *lines.entry(name).or_default() += read(&path).lines().count();
    }
    let large = lines.iter().filter(|&(_, &lines)| lines > LINES_MAX).map(|(name, _)| name);
    let missing: Vec<&String> = large.filter(|name| !orders.contains_key(*name)).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md lacks a block of modules of {missing:?}");
}

#[test]
fn imports_against_the_order_are_found() {
    let orders = documented_orders("text\n```modules sim\nworld\nflow, link\n```\n");
    let order = &orders["sim"];
    let graph = |edges: &[(&str, &[&str])]| -> Graph {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        edges.iter().map(|(name, needs)| ((*name).to_owned(), names(needs))).collect()
    };
    let ordered = graph(&[("world", &["flow"]), ("flow", &[]), ("link", &[])]);
    assert_eq!(violations(order, &ordered), Vec::<String>::new());
    let other = graph(&[("world", &[]), ("link", &["flow", "world"]), ("new", &[])]);
    assert_eq!(
        violations(order, &other),
        ["missing: new", "superfluous: flow", "link imports flow", "link imports world"]
    );
}
