//! Rust source files as modules of their crate: the code without comments, strings' contents and
//! tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Path of a module in its crate; empty for `lib.rs` and `main.rs`.
pub(crate) type ModulePath = Vec<String>;

/// The modules of a crate without its tests, with the code of each. `lib.rs` and `main.rs` are one
/// module.
pub(crate) fn modules(source_folder: &Path) -> BTreeMap<ModulePath, String> {
    let mut all = BTreeMap::new();
    read_folder(source_folder, &[], &mut all);
    let mut tests: BTreeSet<ModulePath> = BTreeSet::new();
    for (path, code) in &all {
        tests.extend(test_modules(code).map(|name| [path.as_slice(), &[name]].concat()));
    }
    all.retain(|path, _| !(1..=path.len()).any(|length| tests.contains(&path[..length])));
    for code in all.values_mut() {
        *code = without_tests(code);
    }
    all
}

fn read_folder(folder: &Path, parent: &[String], modules: &mut BTreeMap<ModulePath, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let child = [parent, std::slice::from_ref(&stem)].concat();
        if path.is_dir() {
            read_folder(&path, &child, modules);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let is_parent = matches!(stem.as_str(), "mod" | "lib" | "main");
            let name = if is_parent { parent.to_vec() } else { child };
            let code = without_comments(&fs::read_to_string(&path).unwrap());
            modules.entry(name).or_default().push_str(&code);
        }
    }
}

/// The names of modules that are declared for tests only: `#[cfg(test)] mod name;`.
fn test_modules(code: &str) -> impl Iterator<Item = String> {
    let declared = code.split("#[cfg(test)]").skip(1);
    declared.filter_map(|rest| {
        let line = rest.trim_start().lines().next()?;
        let (_, name) = line.strip_suffix(';')?.rsplit_once("mod ")?;
        Some(name.to_owned())
    })
}

/// Code without the module of tests at its end.
fn without_tests(code: &str) -> String {
    let begin = code.match_indices("#[cfg(test)]").find(|(index, attribute)| {
        let item = code[index + attribute.len()..].trim_start();
        item.lines().next().is_some_and(|line| line.contains("mod ") && line.ends_with('{'))
    });
    code[..begin.map_or(code.len(), |(index, _)| index)].to_owned()
}

/// Code without comments, and with empty strings, so that neither is read as code.
pub(crate) fn without_comments(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '/' if rest.peek() == Some(&'/') => {
                while rest.peek().is_some_and(|&next| next != '\n') {
                    rest.next();
                }
            }
            '"' => {
                code.push_str("\"\"");
                while let Some(next) = rest.next() {
                    match next {
                        '\\' => drop(rest.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            // A quote as a character.
            '\'' if rest.peek() == Some(&'"') => {
                code.push('\'');
                rest.next();
            }
            _ => code.push(character),
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_tests_are_no_code() {
        let source = "use a; // crate::b\nlet c = \"crate::d \\\" e\"; let f = '\"';\n\
                      #[cfg(test)]\nmod tests {\n    use g;\n}\n";
        let code = without_comments(source);
        assert_eq!(without_tests(&code), "use a; \nlet c = \"\"; let f = '';\n");
        let declared = "#[cfg(test)]\nmod samples;\n#[cfg(test)]\npub(crate) mod test_data;\n";
        assert_eq!(test_modules(declared).collect::<Vec<_>>(), ["samples", "test_data"]);
    }
}
