//! Coverage marks: every mark of a rule is reached by exactly one test that names it.

use std::collections::BTreeMap;

use crate::page::{Finding, Page};

/// Folders whose rules have marks, and the number that they have at least.
pub(crate) const MARKED: [(&str, usize); 5] = [
    ("crates/gridhaul-core/src/tcp/congestion/", 10),
    ("crates/gridhaul-core/src/tcp/recovery/", 14),
    ("crates/gridhaul-relay/src/collector/", 15),
    ("crates/gridhaul-relay/src/head/", 28),
    ("crates/gridhaul-relay/src/log/", 16),
];

/// Places of a mark.
#[derive(Default)]
struct Places<'a> {
    marks: Vec<(&'a Page, usize)>,
    owners: Vec<(&'a Page, usize)>,
}

/// Marks without exactly one line of code and exactly one owner, among these sources.
pub(crate) fn check(sources: &[Page]) -> Vec<Finding> {
    let mut all: BTreeMap<&str, Places<'_>> = BTreeMap::new();
    for page in sources {
        for (name, line) in names(page, "mark!(") {
            all.entry(name).or_default().marks.push((page, line));
        }
        for (name, line) in names(page, "covers!(") {
            all.entry(name).or_default().owners.push((page, line));
        }
    }
    let fault = |(name, places): (&str, Places<'_>)| {
        let (lines, tests) = (places.marks.len(), places.owners.len());
        let &(page, line) = places.marks.first().or(places.owners.first())?;
        (lines != 1 || tests != 1).then(|| {
            page.finding(
                line,
                format!(
                    "mark `{name}` is at {lines} lines and covered by {tests} tests; \
                     one of each is expected"
                ),
            )
        })
    };
    all.into_iter().filter_map(fault).collect()
}

/// Number of marks in the files of a folder.
pub(crate) fn count(sources: &[Page], folder: &str) -> usize {
    let files = sources.iter().filter(|page| page.path.starts_with(folder));
    files.map(|page| names(page, "mark!(").count()).sum()
}

/// The names in the calls of a macro, with their lines. A call may span lines; comments and the
/// definitions of the macros contain no names.
fn names<'a>(page: &'a Page, call: &'static str) -> impl Iterator<Item = (&'a str, usize)> {
    let calls = page.text.match_indices(call).filter(|(start, _)| {
        let line = page.text[..*start].rsplit('\n').next().unwrap_or_default();
        line.trim().is_empty()
    });
    calls.flat_map(move |(start, _)| {
        let line = page.text[..start].matches('\n').count() + 1;
        let inside = page.text[start + call.len()..].split(')').next().unwrap_or_default();
        let words = inside.split(" if ").next().unwrap_or_default().split(',');
        words.map(str::trim).filter(|word| !word.is_empty()).map(move |word| (word, line))
    })
}

#[test]
fn a_mark_without_a_test_and_one_with_two_are_reported() {
    let code = "    mark!(first);\n    mark!(second if a < b);\n    mark!(third);\n";
    let tests = "    covers!(second);\n    covers!(\n        third,\n        fourth\n    );\n\
                 \x20   covers!(third);\n";
    let pages = [Page::made_up("a.rs", code), Page::made_up("tests.rs", tests)];
    let found: Vec<_> = check(&pages).iter().map(ToString::to_string).collect();
    let expected = |at: &str, name: &str, lines: u8, tests: u8| {
        format!(
            "{at}: mark `{name}` is at {lines} lines and covered by {tests} tests; \
             one of each is expected"
        )
    };
    assert_eq!(
        found,
        [
            expected("a.rs:1", "first", 1, 0),
            expected("tests.rs:2", "fourth", 0, 1),
            expected("a.rs:3", "third", 1, 2),
        ]
    );
}
