//! Relative links and their anchors.

use std::path::{Component, Path};

use crate::page::{Finding, Page, Piece};
use crate::repository::Repository;

/// Links of the page to files or headings that do not exist.
pub(crate) fn check(repository: &Repository, page: &Page) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Piece { line, text } in page.prose() {
        for target in targets(text) {
            if let Some(message) = fault(repository, page, target) {
                findings.push(page.finding(line, message));
            }
        }
    }
    findings
}

/// The targets of links (after `](`) and of `src` attributes.
fn targets(line: &str) -> Vec<&str> {
    let marks = [("](", ')'), ("src=\"", '"'), ("srcset=\"", '"')];
    let targets = |(mark, end): (&'static str, char)| {
        line.split(mark).skip(1).filter_map(move |rest| rest.split(end).next())
    };
    let without_title = |target: &'_ str| target.split(' ').next().unwrap_or_default().len();
    marks.into_iter().flat_map(targets).map(|target| &target[..without_title(target)]).collect()
}

fn fault(repository: &Repository, page: &Page, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() { page.path.clone() } else { resolve(page.folder(), file) };
    if !repository.has(&path) {
        return Some(format!("link to `{target}`, but there is no `{path}`; correct the link"));
    }
    if anchor.is_empty() {
        return None;
    }
    let own;
    let linked = if path == page.path {
        page
    } else {
        own = repository.page(&path);
        &own
    };
    let anchors: Vec<_> = linked.headings().iter().map(|heading| anchor_of(heading.text)).collect();
    let known = anchors.iter().any(|known| known == anchor);
    (!known).then(|| {
        format!(
            "link to `{target}`, but `{path}` has no such heading; its anchors are: {}",
            anchors.join(", ")
        )
    })
}

/// The path from the root of a file that is named relative to a folder.
pub(crate) fn resolve(folder: &str, file: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let joined = Path::new(folder).join(file);
    for component in joined.components() {
        match component {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(part) => parts.push(part.to_str().unwrap_or_default()),
            _ => {}
        }
    }
    parts.join("/")
}

/// The anchor that GitHub makes of a heading: lower case, no punctuation, hyphens for spaces.
fn anchor_of(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn a_link_to_a_missing_file_or_heading_is_reported() {
    let repository = Repository::made_up(&["docs", "docs/a.md", "README.md"]);
    let lines = "# The `answer` of a run\n[a](../README.md) [b](#the-answer-of-a-run) [c](https://example.org)\n";
    let page = Page::made_up("docs/a.md", lines);
    assert_eq!(check(&repository, &page), []);
    let page = Page::made_up("docs/a.md", "# Title\n[a](b.md)\n[c](#nothing)\n");
    let found: Vec<_> = check(&repository, &page).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "docs/a.md:2: link to `b.md`, but there is no `docs/b.md`; correct the link",
            "docs/a.md:3: link to `#nothing`, but `docs/a.md` has no such heading; its anchors \
             are: title",
        ]
    );
}
