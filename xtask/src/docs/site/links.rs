//! Links of a page, with the names that their targets have in the site.

use std::collections::BTreeSet;
use std::path::Path;

use super::pages::Page;

/// A page of the site, and the files of the repository that it links to.
pub(super) struct Linked {
    pub(super) text: String,
    pub(super) files: BTreeSet<String>,
}

/// A link to a file or a page.
enum Target {
    /// Outside of the repository, or within the page.
    Other,
    /// The link that the site has in its place.
    Site(String),
    /// A folder without a page: the text remains.
    Nothing,
}

/// Rewrites the relative links of a page; `pages` are the paths of all pages.
pub(super) fn rewrite(page: &Page, pages: &BTreeSet<&str>, root: &Path) -> Linked {
    let mut linked = Linked { text: String::new(), files: BTreeSet::new() };
    let mut in_block = false;
    for line in page.text.lines() {
        in_block ^= line.trim_start().starts_with("```");
        if in_block {
            linked.text += line;
        } else {
            rewrite_line(line, &mut linked, &|target, files| {
                resolve(page, target, pages, root, files)
            });
        }
        linked.text.push('\n');
    }
    linked
}

/// Rewrites `[text](target)` and `src="target"`, but not within code spans.
fn rewrite_line(
    line: &str,
    linked: &mut Linked,
    resolve: &dyn Fn(&str, &mut BTreeSet<String>) -> Target,
) {
    let mut rest = line;
    let mut in_code = false;
    while let Some(c) = rest.chars().next() {
        in_code ^= c == '`';
        let start = if rest.starts_with("](") { "](" } else { "src=\"" };
        let end = if start == "](" { ')' } else { '"' };
        let target = rest.strip_prefix(start).filter(|_| !in_code);
        let Some((target, after)) = target.and_then(|text| text.split_once(end)) else {
            linked.text.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        match resolve(target, &mut linked.files) {
            Target::Other => linked.text += &format!("{start}{target}{end}"),
            Target::Site(target) => linked.text += &format!("{start}{target}{end}"),
            // The text of the link stays in brackets, which Markdown shows as they are.
            Target::Nothing => linked.text.push(']'),
        }
        rest = after;
    }
}

fn resolve(
    page: &Page,
    target: &str,
    pages: &BTreeSet<&str>,
    root: &Path,
    files: &mut BTreeSet<String>,
) -> Target {
    let is_outside = target.contains("://") || target.starts_with("mailto:");
    if is_outside || target.starts_with('#') || target.is_empty() {
        return Target::Other;
    }
    let (path, anchor) = target
        .split_once('#')
        .map_or((target, String::new()), |(path, anchor)| (path, format!("#{anchor}")));
    let resolved = normalised(&page.path, path);
    let up = "../".repeat(page.path.matches('/').count());
    let readme = format!("{resolved}/README.md").trim_start_matches('/').to_owned();
    for name in [resolved.as_str(), &readme] {
        if pages.contains(name) {
            let place = Page { path: name.to_owned(), text: String::new() }.place();
            return Target::Site(format!("{up}{place}{anchor}"));
        }
    }
    if root.join(&resolved).is_file() {
        let link = format!("{up}{resolved}");
        files.insert(resolved);
        return Target::Site(link);
    }
    Target::Nothing
}

/// The path relative to the root of a link in a page.
pub(super) fn normalised(page: &str, link: &str) -> String {
    let mut parts: Vec<_> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[test]
fn links_have_the_names_of_the_site() {
    let page = |path: &str, text: &str| Page { path: path.to_owned(), text: text.to_owned() };
    let text = "See [a](../notes/README.md#b), [c](../notes), [d](x.md), [e](https://f),\n`[g](h)` \
                [i](#j) [k](../xtask/Cargo.toml) [l](../xtask/src)\n```\n[m](n.md)\n```\n";
    let pages = ["notes/README.md", "texts/x.md"].into();
    let linked = rewrite(&page("texts/y.md", text), &pages, crate::process::root());
    let expected = "See [a](../notes/index.md#b), [c](../notes/index.md), [d](../texts/x.md), \
                    [e](https://f),\n`[g](h)` [i](#j) [k](../xtask/Cargo.toml) [l]\n```\n\
                    [m](n.md)\n```\n";
    assert_eq!(linked.text, expected);
    assert_eq!(linked.files, ["xtask/Cargo.toml".to_owned()].into());
}
