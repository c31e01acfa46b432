//! Files and folders that a document names in backticks.

use crate::links::resolve;
use crate::page::{Finding, Page, Span};
use crate::repository::Repository;

/// Endings of files that the repository holds. Results such as `report.html` and `windows.parquet`
/// have others.
const ENDINGS: [&str; 13] = [
    ".rs", ".toml", ".csv", ".md", ".c", ".h", ".sh", ".tcl", ".py", ".json", ".svg", ".txt",
    ".yml",
];

/// Files and folders that are written by a run, belong to another program or are examples.
const ELSEWHERE: [&str; 30] = [
    "answer.json",
    "answer-model.json",
    "answer.csv",
    "*.svg",
    "feasible.svg",
    "figure-10a.svg",
    "differs.csv",
    "delays.csv",
    "same.csv",
    "plan.json",
    "paper.json",
    "comparison.json",
    "summary.json",
    "repetitions.json",
    "matrix.json",
    "reserve.json",
    "messages/",
    // An endpoint of HELICS.
    "gridhaul/supply",
    "round_trips/",
    "answer-*.json",
    "kernel/time/timer.c",
    "linux/capability.h",
    "scenario.toml",
    "village.toml",
    "SUMMARY.md",
    "artifacts/",
    "corpus/",
    "results/*",
    "results/*/*",
    "tcl/lib/ns-default.tcl",
];

/// Names of files and folders that do not exist.
///
/// A name is relative to the root or to the folder of the page, or it is the end of a real path:
/// `core/src/tcp` is `crates/gridhaul-core/src/tcp`. Below a heading that names a folder, a bare
/// name such as `audit.rs` must be in that folder, outside its tests. `*` and `<name>` stand for
/// any name.
pub(crate) fn check(repository: &Repository, page: &Page) -> Vec<Finding> {
    let folders = folders_of_sections(repository, page);
    let spans = page.code_spans().into_iter().filter(|span| is_path(repository, &span.text));
    let fault = |Span { line, text }: Span| {
        let section = folders
            .iter()
            .rev()
            .find(|(start, _)| *start <= line)
            .and_then(|(_, folder)| folder.as_deref());
        let pattern = text.trim_end_matches('/').to_owned();
        let pattern = placeholders(&pattern);
        let elsewhere = ELSEWHERE
            .iter()
            .any(|known| known.trim_end_matches('/') == pattern || matches(known, &pattern));
        if elsewhere || exists(repository, page, section, &pattern) {
            return None;
        }
        let place =
            section.map_or_else(|| "the repository".to_owned(), |folder| format!("`{folder}`"));
        Some(page.finding(
            line,
            format!("names `{text}`, but {place} has no such file or folder; correct the name"),
        ))
    };
    spans.filter_map(fault).collect()
}

/// The folder that each heading names, if it names one, with the line of the heading.
fn folders_of_sections(repository: &Repository, page: &Page) -> Vec<(usize, Option<String>)> {
    let folder_in = |text: &str| {
        let name = text.split('`').nth(1)?;
        let folders =
            [name.to_owned(), format!("crates/{name}"), format!("crates/gridhaul-{name}")];
        folders.into_iter().find(|folder| repository.has(folder))
    };
    // Comments of a crate name files of this crate.
    let parts: Vec<_> = page.path.split('/').take(2).collect();
    let own = page.path.ends_with(".rs") && parts[0] == "crates";
    let start = own.then(|| (0, Some(parts.join("/"))));
    let headings = page.headings();
    start
        .into_iter()
        .chain(headings.iter().map(|heading| (heading.line, folder_in(heading.text))))
        .collect()
}

/// Whether a code span looks like a path of the repository.
fn is_path(repository: &Repository, text: &str) -> bool {
    let characters = |c: char| c.is_ascii_alphanumeric() || "_./-*<>".contains(c);
    if text.starts_with(['/', '.', '<', '-'])
        || !text.chars().all(characters)
        || text.starts_with("points")
    {
        return false;
    }
    let first = text.split('/').next().unwrap_or_default();
    let begins =
        text.contains('/') && (repository.has(first) || repository.has(&format!("crates/{first}")));
    let ends = ENDINGS.iter().any(|ending| text.ends_with(ending) && text.len() > ending.len());
    begins || ends || text.ends_with('/')
}

fn exists(repository: &Repository, page: &Page, section: Option<&str>, pattern: &str) -> bool {
    let near = resolve(page.folder(), pattern);
    if repository.entries().any(|entry| matches(pattern, entry) || matches(&near, entry)) {
        return true;
    }
    let below = |entry: &str| match section {
        Some(folder) if !pattern.contains('/') && is_source(pattern) => entry
            .strip_prefix(folder)
            .is_some_and(|rest| rest.starts_with('/') && !rest.starts_with("/tests/")),
        _ => true,
    };
    repository.entries().filter(|entry| below(entry)).any(|entry| ends_with(pattern, entry))
}

/// Whether a name is that of a source file or of a folder.
fn is_source(name: &str) -> bool {
    !name.contains('.') || [".rs", ".c", ".h"].iter().any(|ending| name.ends_with(ending))
}

/// The pattern with `*` for each `<name>`.
fn placeholders(pattern: &str) -> String {
    let mut parts = pattern.split('<');
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.split_once('>').map_or(part, |(_, after)| after));
    rest.fold(first, |pattern, part| format!("{pattern}*{part}"))
}

/// Whether the last components of a path match the pattern, the first of them also without
/// `gridhaul-`.
fn ends_with(pattern: &str, entry: &str) -> bool {
    let count = pattern.split('/').count();
    let parts: Vec<_> = entry.split('/').collect();
    let Some(start) = parts.len().checked_sub(count) else { return false };
    let end = parts[start..].join("/");
    matches(pattern, &end)
        || end.strip_prefix("gridhaul-").is_some_and(|short| matches(pattern, short))
}

/// Whether a path matches a pattern in which `*` stands for anything but `/`.
fn matches(pattern: &str, path: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == path,
        Some((before, after)) => path.strip_prefix(before).is_some_and(|rest| {
            let end = rest.find('/').unwrap_or(rest.len());
            let cuts = rest.char_indices().map(|(index, _)| index).chain([rest.len()]);
            cuts.filter(|cut| *cut <= end).any(|cut| matches(after, &rest[cut..]))
        }),
    }
}

#[test]
fn a_file_that_does_not_exist_is_reported() {
    let entries = [
        "crates",
        "crates/gridhaul-sim",
        "crates/gridhaul-sim/src",
        "crates/gridhaul-sim/src/audit",
    ];
    let more = [
        "crates/gridhaul-sim/src/audit/mod.rs",
        "papers",
        "papers/plc",
        "papers/plc/paper.toml",
        "bench.rs",
    ];
    let repository = Repository::made_up(&[entries.as_slice(), more.as_slice()].concat());
    let good = "`sim/src/audit` `audit/` `papers/<name>/paper.toml` `report.html` `Mbit/s` \
                `audit/mod.rs`\n";
    assert_eq!(check(&repository, &Page::made_up("a.md", good)), []);
    let page = Page::made_up(
        "a.md",
        "## `gridhaul-sim`\nSee `audit.rs`.\nSee `bench.rs`, `papers/plc`.\n# \
         Rest\n`sim/src/x`\n`bench.rs`\n",
    );
    let found: Vec<_> = check(&repository, &page).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        ["a.md:2: names `audit.rs`, but `crates/gridhaul-sim` has no such file or folder; \
             correct the name",]
    );
}
