//! Parameters that are anonymous tuples of equal types: a caller can exchange the values without an
//! error of the compiler. A struct or separate parameters name them.

use crate::repository::{read, rust_files};
use crate::source::without_comments;

/// Functions with such a parameter: coordinates of a point, a mean with its interval, names of a
/// suite.
const EXCEPTIONS: [&str; 6] = [
    "conformance/src/ns2_grid.rs: fn agree",
    "crates/gridhaul-report/src/chart/line.rs: fn from",
    "crates/gridhaul/src/plan/verify_tests.rs: fn verification_of",
    "crates/gridhaul/tests/cli/emu/mod.rs: fn is_loaded",
    "xtask/src/bench/agreement/estimate.rs: fn pair",
    "xtask/src/test/suites.rs: fn is",
];

/// The names of functions with such a parameter.
fn functions(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (begin, _) in code.match_indices("fn ") {
        let head = &code[begin + "fn ".len()..];
        let name: String = head.chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect();
        let Some(list) = head.find('(').map(|open| &head[open..]) else { continue };
        let parameters = split(inside(list));
        if !name.is_empty() && parameters.iter().any(|parameter| is_tuple_of_equals(parameter)) {
            found.push(name);
        }
    }
    found
}

/// The text between the bracket at the beginning and its counterpart.
fn inside(text: &str) -> &str {
    let mut depth = 0;
    for (index, character) in text.char_indices() {
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[1..index];
        }
    }
    text
}

/// The parts of a list that commas separate, without those inside brackets.
fn split(list: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut begin, mut before) = (Vec::new(), 0, 0, ' ');
    for (index, character) in list.char_indices() {
        match character {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '>' if before != '-' && before != '=' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(list[begin..index].trim());
                begin = index + 1;
            }
            _ => {}
        }
        before = character;
    }
    parts.push(list[begin..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// Whether a parameter such as `(a, b): (u32, u32)` has a tuple type with two equal types.
fn is_tuple_of_equals(parameter: &str) -> bool {
    let pattern_end = if parameter.starts_with('(') { inside(parameter).len() + 2 } else { 0 };
    let Some((_, kind)) = parameter[pattern_end..].split_once(':') else { return false };
    let kind = kind.trim().trim_start_matches('&');
    if !kind.starts_with('(') || inside(kind).len() + 2 != kind.len() {
        return false;
    }
    let kinds = split(inside(kind));
    kinds.iter().enumerate().any(|(index, kind)| kinds[..index].contains(kind))
}

#[test]
fn no_parameter_is_a_tuple_of_equal_types() {
    let mut found = Vec::new();
    for path in rust_files(&["crates", "conformance", "xtask"]) {
        let names = functions(&without_comments(&read(&path)));
        found.extend(names.iter().map(|name| format!("{}: fn {name}", path.display())));
    }
    found.retain(|function| !EXCEPTIONS.contains(&function.as_str()));
    assert!(found.is_empty(), "parameters that can be exchanged unnoticed:\n{}", found.join("\n"));
}

#[test]
fn tuples_of_equal_types_are_found() {
    let code = "fn a((x, y): (u32, u32)) {}\nfn b<T: Into<f64>>(x: &(T, &str, T), n: u8) {}\n\
                fn c((x, y): (u32, u64), f: impl Fn(u8, u8) -> (u8, u8), g: [(u8, u8); 2]) {}\n";
    assert_eq!(functions(code), ["a", "b"]);
}
