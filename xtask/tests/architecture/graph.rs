//! Directed graphs of names, and their cycles.

use std::collections::{BTreeMap, BTreeSet};

/// The names on which each name depends.
pub(crate) type Graph = BTreeMap<String, BTreeSet<String>>;

/// Names that depend on themselves, directly or indirectly: those that remain after repeated
/// removal of names without dependencies (Kahn 1962), and of names on which none depends.
pub(crate) fn in_cycles(graph: &Graph) -> BTreeSet<String> {
    let mut left = graph.clone();
    loop {
        let needed: BTreeSet<String> = left.values().flatten().cloned().collect();
        let free: BTreeSet<String> = left
            .iter()
            .filter(|(name, needs)| {
                !needed.contains(*name) || needs.iter().all(|need| !left.contains_key(need))
            })
            .map(|(name, _)| name.clone())
            .collect();
        if free.is_empty() {
            return left.into_keys().collect();
        }
        left.retain(|name, _| !free.contains(name));
    }
}

/// The sets of names that all depend on each other, those with two names or more.
pub(crate) fn circles(graph: &Graph) -> Vec<BTreeSet<String>> {
    let reachable = |from: &String| {
        let mut reached = BTreeSet::new();
        let mut open: Vec<&String> = graph.get(from).into_iter().flatten().collect();
        while let Some(name) = open.pop() {
            if reached.insert(name.clone()) {
                open.extend(graph.get(name).into_iter().flatten());
            }
        }
        reached
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        graph.keys().map(|name| (name, reachable(name))).collect();
    let mut circles: Vec<BTreeSet<String>> = Vec::new();
    for (name, targets) in &reached {
        let mutual = targets
            .iter()
            .filter(|target| reached.get(target).is_some_and(|targets| targets.contains(*name)));
        let circle: BTreeSet<String> = mutual.cloned().collect();
        if circle.len() > 1 && !circles.contains(&circle) {
            circles.push(circle);
        }
    }
    circles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &str)]) -> Graph {
        let mut graph = Graph::new();
        for &(from, to) in edges {
            graph.entry(to.to_owned()).or_default();
            graph.entry(from.to_owned()).or_default().insert(to.to_owned());
        }
        graph
    }

    #[test]
    fn names_that_depend_on_each_other_are_a_circle() {
        let graph =
            graph(&[("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d")]);
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        assert_eq!(circles(&graph), [names(&["a", "b", "c"]), names(&["d", "e"])]);
        assert_eq!(in_cycles(&graph), names(&["a", "b", "c", "d", "e"]));
    }

    #[test]
    fn names_without_a_way_back_are_no_circle() {
        let graph = graph(&[("a", "b"), ("a", "c"), ("b", "c")]);
        assert!(circles(&graph).is_empty());
        assert!(in_cycles(&graph).is_empty());
    }
}
