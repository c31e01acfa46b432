//! Checks the table "sentence of the paper, claim, verdict" of `papers/README.md` against the
//! papers.

use std::collections::BTreeMap;
use std::path::Path;

use super::Paper;

/// A row of the table of a paper.
struct Row {
    line: usize,
    names: Vec<String>,
    /// Whether the claim holds by every backend that answers it.
    holds: bool,
}

/// The rows of each paper: below a heading ``## `name` ``, tables with a column `claim`, which has
/// the names of claims and of lines of `expected.csv` as code, in which `*` stands for any
/// characters, and no name for a sentence that is not tested or tested elsewhere. Code with `_` or
/// `/` is the name of a test or of a file. The columns after it are verdicts: of all backends, or
/// of one each.
fn rows(page: &str) -> BTreeMap<String, Vec<Row>> {
    let mut papers: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    let (mut current, mut column) = (None, None);
    for (index, line) in page.lines().enumerate() {
        if let Some(heading) = line.strip_prefix("## ") {
            let name = heading.strip_prefix('`').and_then(|rest| rest.split('`').next());
            current = name.map(str::to_owned);
        }
        let columns: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        if !line.starts_with('|') {
            column = None;
        } else if column.is_none() {
            column = columns.iter().position(|heading| *heading == "claim");
        } else if let (Some(paper), Some(column)) = (&current, column)
            && let Some((claims, verdicts)) = columns[column..].split_first()
        {
            let code = claims.split('`').skip(1).step_by(2);
            let names = code.filter(|name| !name.contains(['_', '/'])).map(str::to_owned).collect();
            let holds = verdicts.iter().all(|verdict| matches!(*verdict, "holds" | "yes" | "–"));
            papers.entry(paper.clone()).or_default().push(Row { line: index + 1, names, holds });
        }
    }
    papers
}

/// Whether a name fits a pattern with at most one `*`.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((begin, end)) => {
            name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end)
        }
    }
}

/// The claims of a paper, each with whether a backend is recorded as not agreeing.
fn claims(paper: &Paper) -> Vec<(&str, bool)> {
    let claims = paper.claims.iter().map(|claim| (claim.name.as_str(), !claim.fails.is_empty()));
    let cells = paper.cells.iter().map(|cell| (cell.cell.as_str(), cell.differs.is_some()));
    claims.chain(cells).collect()
}

/// Faults of a page.
fn faults(page: &str, papers: &[Paper]) -> Vec<String> {
    let mut faults = Vec::new();
    let tables = rows(page);
    for paper in papers {
        let (name, none) = (paper.name, Vec::new());
        let (rows, claims) = (tables.get(name).unwrap_or(&none), claims(paper));
        for row in rows {
            for pattern in &row.names {
                let own: Vec<_> = claims.iter().filter(|(claim, _)| fits(pattern, claim)).collect();
                if own.is_empty() {
                    faults.push(format!("line {}: {name} has no claim {pattern:?}", row.line));
                }
                if own.iter().any(|(_, differs)| *differs) && row.holds {
                    faults.push(format!("line {}: {pattern} is recorded as differing", row.line));
                }
            }
        }
        for (claim, _) in &claims {
            let mut patterns = rows.iter().flat_map(|row| &row.names);
            if !patterns.any(|pattern| fits(pattern, claim)) {
                faults.push(format!("{name}: no row has the claim {claim}"));
            }
        }
    }
    faults
}

#[test]
fn the_table_of_claims_and_the_papers_have_the_same_claims() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers/README.md");
    let page = std::fs::read_to_string(path).unwrap();
    let faults = faults(&page, &Paper::all().unwrap());
    assert!(faults.is_empty(), "papers/README.md:\n{}", faults.join("\n"));
}

#[test]
fn unknown_missing_and_wrong_rows_are_reported() {
    let mut paper = Paper::named("hybrid").unwrap();
    paper.claims.truncate(1);
    paper.cells.retain(|cell| ["f6-every-up", "f6-delayed-up"].contains(&cell.cell.as_str()));
    let claim = paper.claims[0].name.clone();
    let page = |rows: &str| format!("## `hybrid`: title\n| sentence | claim | verdict |\n{rows}");
    let good = page(&format!("| a | `{claim}` | holds |\n| b | `f6-*` | one differs |\n"));
    let papers = [paper];
    assert_eq!(faults(&good, &papers), Vec::<String>::new());
    let expected = |page: &str, wanted: &str| {
        let found = faults(page, &papers);
        assert!(found.iter().any(|fault| fault.contains(wanted)), "{wanted}: {found:?}");
    };
    expected(&good.replace("`f6-*`", "`f6-*`, `f9`"), "line 4: hybrid has no claim \"f9\"");
    expected(&good.replace("`f6-*`", "`f6-e*`"), "no row has the claim f6-delayed-up");
    expected(&good.replace("one differs", "holds"), "line 4: f6-* is recorded as differing");
    expected(&good.replace("`hybrid`", "`other`"), &format!("no row has the claim {claim}"));
}
