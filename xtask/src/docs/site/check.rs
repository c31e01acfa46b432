//! Links of the finished site: files and anchors exist, and nothing is loaded from elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::links::normalised;

/// The pages of a site: identifiers and links by path.
struct Site {
    ids: BTreeMap<String, BTreeSet<String>>,
    links: BTreeMap<String, Vec<Link>>,
    files: BTreeSet<String>,
}

/// A link, and whether the page loads its target by itself.
struct Link {
    target: String,
    is_loaded: bool,
}

/// Wrong links of the site in a folder, one message for each.
///
/// # Errors
/// A file of the site cannot be read.
pub(super) fn errors(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut site = Site { ids: BTreeMap::new(), links: BTreeMap::new(), files: BTreeSet::new() };
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(&inner).with_context(|| format!("{}", inner.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                site.add(folder, &path)?;
            }
        }
    }
    Ok(site.errors())
}

impl Site {
    fn add(&mut self, folder: &Path, path: &PathBuf) -> anyhow::Result<()> {
        let name = path.strip_prefix(folder)?.to_string_lossy().into_owned();
        if name.ends_with(".html") {
            let text = fs::read_to_string(path).with_context(|| name.clone())?;
            self.ids.insert(name.clone(), attributes(&text, "id").into_iter().collect());
            self.links.insert(name.clone(), links(&text));
        }
        self.files.insert(name);
        Ok(())
    }

    fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        for (page, links) in &self.links {
            // The page for addresses that do not exist has links from the root of a server.
            for link in links.iter().filter(|_| page != "404.html") {
                errors.extend(self.error(page, link).map(|error| format!("{page}: {error}")));
            }
        }
        errors
    }

    fn error(&self, page: &str, link: &Link) -> Option<String> {
        let target = link.target.as_str();
        if target.contains("://") || target.starts_with("mailto:") || target.starts_with("data:") {
            return link.is_loaded.then(|| format!("loads {target} from elsewhere"));
        }
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let name = if path.is_empty() { page.to_owned() } else { normalised(page, path) };
        if !self.files.contains(&name) {
            return Some(format!("links to {target}, which does not exist"));
        }
        let known = self.ids.get(&name).is_none_or(|ids| ids.contains(anchor));
        (!anchor.is_empty() && !known).then(|| format!("links to {target}: no such heading"))
    }
}

/// Links and what the page loads.
fn links(text: &str) -> Vec<Link> {
    let link = |is_loaded| move |target: String| Link { target, is_loaded };
    let hrefs = attributes(text, "href").into_iter().map(link(false));
    hrefs.chain(attributes(text, "src").into_iter().map(link(true))).collect()
}

/// Values of an attribute in tags.
fn attributes(text: &str, name: &str) -> Vec<String> {
    let start = format!(" {name}=\"");
    let rests = text.split(start.as_str()).skip(1);
    let values = rests.filter_map(|rest| rest.split_once('"'));
    values.map(|(value, _)| value.replace("&amp;", "&")).collect()
}

#[test]
fn wrong_links_are_reported() {
    let mut site = Site { ids: BTreeMap::new(), links: BTreeMap::new(), files: BTreeSet::new() };
    let text = "<h1 id=\"a\"></h1><a href=\"#a\"><a href=\"#b\"><a href=\"../d.html#e\">\
                <a href=\"f.html\"><img src=\"https://g/h.png\"><a href=\"https://i\">";
    site.ids.insert("c/p.html".to_owned(), attributes(text, "id").into_iter().collect());
    site.ids.insert("d.html".to_owned(), BTreeSet::new());
    site.files.extend(["c/p.html".to_owned(), "d.html".to_owned()]);
    site.links.insert("c/p.html".to_owned(), links(text));
    let expected = [
        "c/p.html: links to #b: no such heading",
        "c/p.html: links to ../d.html#e: no such heading",
        "c/p.html: links to f.html, which does not exist",
        "c/p.html: loads https://g/h.png from elsewhere",
    ];
    assert_eq!(site.errors(), expected);
}
