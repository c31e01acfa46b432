//! The modules of a crate that a module names: in `use`, and as paths that begin with `crate`,
//! `super` or `self`.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::Graph;
use crate::source::ModulePath;

/// Each module with the modules that it names, without its own submodules: a module declares them,
/// re-exports their items and has fields of their types, while they extend its methods.
pub(crate) fn imports(modules: &BTreeMap<ModulePath, String>) -> Graph {
    let mut graph = Graph::new();
    for (module, code) in modules {
        let mut named = BTreeSet::new();
        for path in paths(code) {
            let target = resolve(&path, module, modules);
            named.extend(target.filter(|target| !target.starts_with(module)));
        }
        let name = |path: &ModulePath| path.join("::");
        graph.insert(name(module), named.iter().map(name).collect());
    }
    graph
}

/// The paths that code names.
fn paths(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut rest = code;
    while let Some(begin) = find_word(rest, "use") {
        let (before, after) = rest.split_at(begin);
        paths.extend(qualified(before));
        let (tree, after) = after["use".len()..].split_once(';').unwrap_or((after, ""));
        let tree: String = tree.split_whitespace().collect::<Vec<_>>().join(" ");
        expand(&tree, "", &mut paths);
        rest = after;
    }
    paths.extend(qualified(rest));
    paths
}

/// The position of a word: neither a letter, a digit nor an underscore before or after it.
fn find_word(code: &str, word: &str) -> Option<usize> {
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    let places = code.match_indices(word).map(|(index, _)| index);
    places.into_iter().find(|&index| {
        let before = code[..index].chars().next_back();
        let after = code[index + word.len()..].chars().next();
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    })
}

/// Paths in code that begin with `crate`, `super` or `self`.
fn qualified(code: &str) -> Vec<String> {
    let is_path = |character: char| character.is_alphanumeric() || "_:".contains(character);
    let words = code.split(|character| !is_path(character));
    let begins = ["crate::", "super::", "self::"];
    let found = words.filter(|word| begins.iter().any(|begin| word.starts_with(begin)));
    found.map(str::to_owned).collect()
}

/// Adds the paths of a tree such as `crate::{a, b::{c, d}}`.
fn expand(tree: &str, prefix: &str, paths: &mut Vec<String>) {
    let Some((begin, list)) = tree.split_once('{') else {
        let name = tree.split(" as ").next().unwrap_or_default();
        paths.push(format!("{prefix}{}", name.trim()));
        return;
    };
    let prefix = format!("{prefix}{}", begin.trim());
    let list = list.trim_end().strip_suffix('}').unwrap_or(list);
    let (mut depth, mut start) = (0, 0);
    for (index, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&list[start..index], &prefix, paths);
                start = index + 1;
            }
            _ => {}
        }
    }
    if !list[start..].trim().is_empty() {
        expand(&list[start..], &prefix, paths);
    }
}

/// The module to which a path leads: the longest part of it that is a module. `None` for paths to
/// other crates.
fn resolve(
    path: &str,
    module: &ModulePath,
    modules: &BTreeMap<ModulePath, String>,
) -> Option<ModulePath> {
    let mut names = path.split("::").map(str::trim).filter(|name| !name.is_empty()).peekable();
    let mut target = match names.peek()? {
        &"crate" => {
            names.next();
            Vec::new()
        }
        &("super" | "self") => {
            let mut base = module.clone();
            while let Some(name) = names.next_if(|name| matches!(*name, "super" | "self")) {
                if name == "super" {
                    base.pop();
                }
            }
            base
        }
        name => {
            // A submodule, or another crate.
            let child = [module.as_slice(), &[(*name).to_owned()]].concat();
            modules.contains_key(&child).then(|| module.clone())?
        }
    };
    for name in names {
        target.push(name.to_owned());
        if !modules.contains_key(&target) {
            target.pop();
            break;
        }
    }
    Some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_found_in_trees_and_in_paths() {
        let module = |path: &str, code: &str| {
            let path = path.split("::").filter(|name| !name.is_empty()).map(str::to_owned);
            (path.collect(), code.to_owned())
        };
        let modules = BTreeMap::from([
            module("", "mod world;"),
            module("world", "use self::nodes::Node;\nuse crate::{link, flow::{self, Flow as F}};"),
            module("world::nodes", "use super::World;\nfn f(x: super::super::link::Link) {}"),
            module("flow", "use std::link::Name;"),
            module("link", ""),
        ]);
        let graph = imports(&modules);
        let named = |name: &str| graph[name].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(named("world"), ["flow", "link"]);
        assert_eq!(named("world::nodes"), ["link", "world"]);
        assert!(named("flow").is_empty());
    }
}
