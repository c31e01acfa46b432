//! Files that no module declares, and public items that only tests use. The compiler reports
//! neither: it does not look for files, and takes every public item of a library for used.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::repository::{read, root, rust_files};
use crate::source::{modules, without_comments};

/// Crates whose items are not checked: the first serves tests only, the other is being divided.
const UNCHECKED: [&str; 2] = ["gridhaul-testing", "gridhaul-relay"];

/// Public items that only tests use, and why they exist.
const FOR_TESTS: [(&str, &str); 20] = [
    ("answer_reference", "a test compares the page with the repository"),
    ("approximate_rate", "published formula, which bounds the exact one"),
    ("cubic_rate", "published formula, which bounds the exact one"),
    ("delivery_rate", "published formula, which bounds the exact one"),
    ("events_reference", "a test compares the page with the repository"),
    ("float_values", "completes the codec; a measurement has messages of bytes"),
    ("FixedSize", "framing of a relay's configuration, which its own crate implements"),
    ("from_millimetres", "constructor in the unit that a distance stores"),
    ("imbalance", "property of the solution of a Markov chain"),
    (
        "is_expired",
        "completes the receiver; a measurement has a time after which messages are lost",
    ),
    ("occupied", "space that a test compares with the reference model"),
    ("process_id", "tests stop a broker by a signal"),
    ("relay_reference", "a test compares the page with the repository"),
    ("SampleCounter", "completes the receiver; a measurement has numbers of its own"),
    ("scenario_reference", "a test compares the page with the repository"),
    ("series_reference", "a test compares the page with the repository"),
    ("tables_reference", "a test compares the page with the repository"),
    ("unix_nanos", "completes the codec; a measurement does not read times of frames"),
    ("set_ack", "completes the fields that a packet rewriter changes"),
    ("set_destination_port", "completes the fields that a packet rewriter changes"),
];

/// Names of crates with product code.
fn crates() -> Vec<String> {
    let entries = fs::read_dir(root().join("crates")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// How often each word occurs.
fn count_words(code: &str, counts: &mut BTreeMap<String, usize>) {
    let words = code.split(|character: char| !character.is_alphanumeric() && character != '_');
    for word in words.filter(|word| !word.is_empty()) {
        *counts.entry(word.to_owned()).or_default() += 1;
    }
}

/// How often each name occurs in a format string, such as `{NAME}`.
fn count_formatted(source: &str, counts: &mut BTreeMap<String, usize>) {
    for rest in source.split('{').skip(1) {
        let end = rest.find(|character: char| !character.is_alphanumeric() && character != '_');
        let name = &rest[..end.unwrap_or(0)];
        if !name.is_empty() && rest[name.len()..].starts_with(['}', ':']) {
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
}

/// Code without imports, which name an item without using it, and without the heads of `impl`,
/// which extend it. An export to Python is a use.
fn uses_only(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut skipped_until: Option<char> = None;
    let mut is_exported = false;
    for line in code.lines() {
        let trimmed = line.trim_start();
        let is_visible = trimmed.strip_prefix("pub").map_or(trimmed, |rest| {
            rest.trim_start_matches(|character: char| character != ' ').trim_start()
        });
        if skipped_until.is_none() && !is_exported {
            skipped_until = match is_visible.split([' ', '<']).next() {
                Some("use") => Some(';'),
                Some("impl") => Some('{'),
                _ => None,
            };
        }
        is_exported = trimmed == "#[pymodule_export]";
        match skipped_until {
            Some(end) if line.contains(end) => skipped_until = None,
            Some(_) => {}
            None => {
                kept.push_str(line);
                kept.push('\n');
            }
        }
    }
    kept
}

/// Names of the public functions, types and constants that code defines, without those for tests
/// and traits, which are used by their implementations.
fn public_items(code: &str) -> BTreeSet<String> {
    const KINDS: [&str; 6] = ["fn", "struct", "enum", "type", "const", "static"];
    let mut items = BTreeSet::new();
    let mut for_tests = false;
    for line in code.lines().map(str::trim_start) {
        let is_item = line.starts_with("pub");
        if is_item && !for_tests {
            let words =
                line.split(|character: char| !character.is_alphanumeric() && character != '_');
            let mut words = words.filter(|word| !word.is_empty()).skip(1).peekable();
            while let Some(word) = words.next() {
                let next = words.peek().copied().unwrap_or_default();
                // The lifetime `'static` is the last word of a line.
                let is_name = !next.is_empty() && !KINDS.contains(&next) && next != "unsafe";
                if KINDS.contains(&word) && is_name {
                    items.insert(next.to_owned());
                    break;
                }
            }
        }
        let continues = line.starts_with('#') || line.is_empty();
        for_tests = line.starts_with("#[cfg(test)]") || (for_tests && continues);
    }
    items
}

#[test]
fn every_file_of_a_crate_is_a_module() {
    let mut orphans = Vec::new();
    for name in crates() {
        let folder = root().join("crates").join(&name).join("src");
        let files = rust_files(&[&format!("crates/{name}/src")]);
        let sources: Vec<String> = files.iter().map(|path| read(path)).collect();
        let code: String = sources.iter().map(|source| without_comments(source)).collect();
        for path in &files {
            let relative = root().join(path).strip_prefix(&folder).unwrap().with_extension("");
            let module = match relative.file_name().unwrap().to_str().unwrap() {
                "mod" => relative.parent().unwrap().to_owned(),
                "lib" | "main" => continue,
                _ => relative,
            };
            let module = module.file_name().unwrap().to_string_lossy().into_owned();
            // Macros declare the modules of congestion controls and of loss classifiers.
            let is_named = |source: &String| source.contains(&format!("#[path = \"{module}.rs\"]"));
            let is_declared = code.contains(&format!("mod {module};"))
                || sources.iter().any(is_named)
                || (path.iter().any(|part| part == "tcp") && code.contains("mod $module;"));
            if !is_declared {
                orphans.push(path.display().to_string());
            }
        }
    }
    assert!(orphans.is_empty(), "no module declares these files:\n{}", orphans.join("\n"));
}

#[test]
fn every_public_item_is_used_outside_of_tests() {
    let mut counts = BTreeMap::new();
    let mut items = BTreeMap::new();
    for name in crates() {
        for (module, code) in modules(&root().join("crates").join(&name).join("src")) {
            count_words(&uses_only(&code), &mut counts);
            if !UNCHECKED.contains(&name.as_str()) {
                let place = format!("{name}: {}", module.join("::"));
                items.extend(public_items(&code).into_iter().map(|item| (item, place.clone())));
            }
        }
    }
    for path in rust_files(&["crates", "conformance", "xtask", "fuzz"]) {
        count_formatted(&read(&path), &mut counts);
        let is_source = path.iter().nth(2).is_some_and(|part| part == "src");
        let is_test = path.iter().any(|part| part == "tests");
        if !(is_test || path.starts_with("crates") && is_source) {
            count_words(&uses_only(&without_comments(&read(&path))), &mut counts);
        }
    }
    let is_for_tests = |item: &String| FOR_TESTS.iter().any(|(name, _)| name == item);
    // The definition itself is the only occurrence.
    let unused = items.iter().filter(|&(item, _)| {
        counts.get(item).copied().unwrap_or_default() <= 1 && !is_for_tests(item)
    });
    let unused: Vec<String> = unused.map(|(item, place)| format!("{place}: {item}")).collect();
    assert!(unused.is_empty(), "only tests use these items:\n{}", unused.join("\n"));
}

#[test]
fn imports_and_implementations_are_no_use_of_an_item() {
    let code = "pub use a::Item;\nimpl Item {\n    pub const fn len(&self) {}\n}\nlet x = Item;\n\
                pub(crate) struct Other;\n#[cfg(test)]\n#[must_use]\npub fn helper() {}\n";
    let mut counts = BTreeMap::new();
    count_words(&uses_only(code), &mut counts);
    assert_eq!(counts.get("Item"), Some(&1));
    assert_eq!(public_items(code).into_iter().collect::<Vec<_>>(), ["Other", "len"]);
}
