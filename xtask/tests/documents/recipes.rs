//! The recipes of CONTRIBUTING.md: tables of what to add where, and the test that checks the step.

use crate::page::{Finding, Page};
use crate::repository::Repository;

/// The header of the tables.
const HEADER: &str = "| | file | what to add | checked by |";

/// A row of a table.
pub(crate) struct Recipe {
    line: usize,
    file: String,
    /// The code spans in the column of additions. The file contains each of them.
    anchors: Vec<String>,
    /// The code spans in the column of tests: names of functions, or commands.
    tests: Vec<String>,
    /// Whether the compiler or a reviewer checks the step.
    is_untested: bool,
}

/// The rows of all tables with the header.
pub(crate) fn read(page: &Page) -> Vec<Recipe> {
    let mut inside = false;
    let mut recipes = Vec::new();
    for piece in page.prose() {
        if piece.text == HEADER {
            inside = true;
        } else if !piece.text.starts_with('|') {
            inside = false;
        } else if inside && !piece.text.starts_with("|-") {
            let cells: Vec<_> = piece.text.trim_matches('|').split(" | ").collect();
            let quoted = |index: usize| {
                let cell = cells.get(index).copied().unwrap_or_default();
                let spans: Vec<_> = cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
                spans
            };
            let file = quoted(1).into_iter().next().unwrap_or_default();
            let last = cells.last().copied().unwrap_or_default().trim();
            let is_untested = matches!(last, "compiler" | "review");
            recipes.push(Recipe {
                line: piece.line,
                file,
                anchors: quoted(2),
                tests: quoted(3),
                is_untested,
            });
        }
    }
    recipes
}

/// The errors in a row. A file with `<name>` is new: the repository must have others of its kind.
pub(crate) fn check(repository: &Repository, page: &Page, recipe: &Recipe) -> Vec<Finding> {
    let Recipe { line, file, anchors, tests, is_untested } = recipe;
    let mut findings = Vec::new();
    let mut find = |message: String| findings.push(page.finding(*line, message));
    let files = files(repository, file);
    if files.is_empty() {
        find(format!("the recipe names `{file}`, but there is no such file; correct the recipe"));
    }
    for anchor in anchors {
        if !files.is_empty()
            && !files.iter().any(|file| repository.read(file).contains(anchor.as_str()))
        {
            find(format!(
                "the recipe says that `{file}` contains `{anchor}`, but it does not; correct the \
                 recipe"
            ));
        }
    }
    if tests.is_empty() && !is_untested {
        find(format!(
            "the recipe names no test for `{file}`; name one, or write compiler or review"
        ));
    }
    // Commands have spaces; the check of commands covers them.
    for test in tests.iter().filter(|test| !test.contains(' ')) {
        if !has_test(repository, test) {
            find(format!(
                "the recipe names the test `{test}`, but no file has `fn {test}`; correct the \
                 recipe"
            ));
        }
    }
    findings
}

/// Files that the recipe means; a folder stands for all files in it.
fn files(repository: &Repository, named: &str) -> Vec<String> {
    let (before, after) = named.split_once("<name>").unwrap_or((named, ""));
    let fits = |path: &str| match named.contains("<name>") {
        true => {
            path.len() > named.len() - "<name>".len()
                && path.starts_with(before)
                && path.ends_with(after)
        }
        false => path == named || (named.ends_with('/') && path.starts_with(named)),
    };
    let found = repository.entries().filter(|path| fits(path) && repository.is_file(path));
    found.map(str::to_owned).collect()
}

fn has_test(repository: &Repository, test: &str) -> bool {
    let mark = format!("fn {test}(");
    let mut sources =
        repository.entries().filter(|path| path.ends_with(".rs") && repository.is_file(path));
    sources.any(|path| repository.read(path).contains(&mark))
}

/// Folders of the workspace that the table of folders does not list.
pub(crate) fn unlisted(repository: &Repository, page: &Page) -> Vec<Finding> {
    let is_crate =
        |path: &&str| path.strip_prefix("crates/").is_some_and(|name| !name.contains('/'));
    let others = ["conformance", "papers", "scenarios", "bench", "fuzz", "xtask"];
    let folders = repository.entries().filter(is_crate).chain(others);
    let missing = folders.filter(|folder| !page.text.contains(&format!("| `{folder}` |")));
    missing
        .map(|folder| {
            page.finding(1, format!("does not list the folder `{folder}`; add a row to the table"))
        })
        .collect()
}

#[test]
fn a_wrong_recipe_is_reported() {
    let repository = Repository::open();
    let good = "| 1 | `xtask/tests/documents/<name>.rs` | `HEADER` of a table | \
                `a_wrong_recipe_is_reported` |";
    let bad = "| 2 | `xtask/src/gone.rs` | a line | `no_such_test_anywhere` |";
    let worse = "| 3 | `xtask/src/main.rs` | a line in `no_such_macro!` | compilation |";
    let page = Page::made_up(
        "a.md",
        &format!("{HEADER}\n|---|---|---|---|\n{good}\n{bad}\n{worse}\n\n| other | table |\n"),
    );
    let recipes = read(&page);
    assert_eq!(recipes.len(), 3);
    let count = |index: usize| check(&repository, &page, &recipes[index]).len();
    assert_eq!([count(0), count(1), count(2)], [0, 2, 2]);
    assert_eq!(unlisted(&Repository::made_up(&["crates/a", "crates/a/src"]), &page).len(), 7);
    let first = &check(&repository, &page, &recipes[1])[0];
    assert_eq!(
        first.to_string(),
        "a.md:4: the recipe names `xtask/src/gone.rs`, but there is no such file; correct the \
         recipe"
    );
}
