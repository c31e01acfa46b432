//! Parsers of command lines, help texts and sources of xtask, for the check of commands.

use std::collections::BTreeSet;

/// The words of the first command of a line, without comments and what is quoted.
pub(crate) fn words(text: &str) -> Vec<&str> {
    let end = [" #", " | ", " > ", " && ", "; "].iter().filter_map(|mark| text.find(mark)).min();
    let text = &text[..end.unwrap_or(text.len())];
    let unquoted = text.split(['\'', '"']).step_by(2);
    unquoted.flat_map(str::split_whitespace).collect()
}

/// Options that a help text lists, such as `-q, --quiet` and `--csv[=<FILE>]`.
pub(crate) fn options(help: &str) -> BTreeSet<String> {
    let lines = help.lines().map(str::trim).filter(|line| line.starts_with('-'));
    let name = |line: &str| {
        let start = line.find("--")?;
        let rest = &line[start..];
        let end = rest
            .find(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit() && c != '-')
            .unwrap_or(rest.len());
        Some(rest[..end].to_owned())
    };
    lines.filter_map(name).collect()
}

/// Words in quotation marks of a source, its commands (variants of an enumeration) and its options.
pub(crate) fn chores(source: &str) -> BTreeSet<String> {
    let mut words: BTreeSet<_> = source.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    let lines: Vec<_> = source.lines().map(str::trim).collect();
    for pair in lines.windows(2) {
        let name = pair[1].split([':', '(', ',']).next().unwrap_or_default();
        if pair[0].starts_with("///") {
            words.insert(name.to_lowercase());
        } else if pair[0].starts_with("#[arg(long") {
            words.insert(format!("--{name}"));
        }
    }
    words
}

/// The names by which a command can refer to a path of the repository: file, package, test or
/// example.
pub(crate) fn targets(path: &str) -> Vec<String> {
    let mut targets = vec![format!("file {path}")];
    let parts: Vec<_> = path.split('/').collect();
    match parts[..] {
        ["crates", name] => targets.push(format!("package {name}")),
        ["conformance"] => targets.push("package gridhaul-conformance".to_owned()),
        ["xtask"] => targets.push("package xtask".to_owned()),
        _ => {}
    }
    for (folder, kind) in [("tests", "test"), ("examples", "example")] {
        if let [.., before, name] = parts[..]
            && before == folder
        {
            targets.push(format!("{kind} {}", name.trim_end_matches(".rs")));
        }
    }
    targets
}
