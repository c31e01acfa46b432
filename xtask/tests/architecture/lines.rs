//! Lines of Rust files have at most 100 columns, also in comments and strings, which rustfmt leaves
//! as they are.

use crate::repository::{read, rust_files};

/// Maximum number of characters in a line; `max_width` of rustfmt.
const COLUMNS_MAX: usize = 100;

/// The numbers of the lines that are too long. An address cannot be wrapped, nor can text of
/// another language in a raw string.
fn long_lines(source: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut in_raw_string = false;
    for (index, line) in source.lines().enumerate() {
        let begins = line.contains("r#\"");
        let is_raw = in_raw_string || begins;
        let after = if begins { line.rsplit("r#\"").next().unwrap_or_default() } else { line };
        in_raw_string = is_raw && !after.contains("\"#");
        if line.chars().count() > COLUMNS_MAX && !line.contains("https://") && !is_raw {
            found.push(index + 1);
        }
    }
    found
}

#[test]
fn lines_of_rust_files_have_at_most_100_columns() {
    let mut found = Vec::new();
    for path in rust_files(&["crates", "conformance", "fuzz", "xtask"]) {
        let lines = long_lines(&read(&path));
        if !lines.is_empty() {
            found.push(format!("{}: {lines:?}", path.display()));
        }
    }
    assert!(found.is_empty(), "lines with more than {COLUMNS_MAX} columns:\n{}", found.join("\n"));
}

#[test]
fn columns_are_characters_and_raw_strings_and_addresses_may_be_longer() {
    let line = |character: &str, count: usize| character.repeat(count);
    let raw = ["r#\"".to_owned(), line("y", 101), format!("{}\"#;", line("z", 101))].join("\n");
    let source = [line("é", 100), line("x", 101), format!("{} https://x", line("x", 100)), raw];
    assert_eq!(long_lines(&source.join("\n")), [2]);
}
