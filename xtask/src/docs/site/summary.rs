//! The table of contents, by the folders of the pages.

use super::pages::Page;

/// Parts of the table of contents in their order, each with the beginnings of the paths of its
/// pages. A page belongs to the first part of which it has a beginning; the last one takes all.
const PARTS: [(&str, &[&str]); 8] = [
    ("", &["README.md"]),
    ("First steps", &["docs/tutorial.md", "docs/glossary.md"]),
    ("Guides", &["docs/guides/"]),
    ("Reference", &["docs/reference/", "docs/defaults.md", "docs/compat.md", "docs/python-api.md"]),
    ("Papers", &["papers/"]),
    ("Validation", &["docs/validation.md", "docs/performance.md", "docs/failures-of-others.md"]),
    ("Limitations", &["docs/limitations/"]),
    ("Development", &[""]),
];

/// The file `SUMMARY.md` of mdBook.
pub(super) fn of(pages: &[Page]) -> String {
    let mut summary = "# Summary\n".to_owned();
    for (index, (title, beginnings)) in PARTS.iter().enumerate() {
        if !title.is_empty() {
            summary += &format!("\n# {title}\n\n");
        }
        let own = pages.iter().filter(|page| part_of(page) == index);
        let mut own: Vec<_> = own.collect();
        own.sort_by_key(|page| {
            let beginning = beginnings.iter().position(|start| page.path.starts_with(start));
            (beginning, folder(page).to_owned(), !page.path.ends_with("README.md"), &page.path)
        });
        for page in &own {
            let (title, place) = (page.title(), page.place());
            if index == 0 {
                summary += &format!("\n[{title}]({place})\n");
                continue;
            }
            let depth = own.iter().filter(|other| is_below(page, other)).count();
            summary += &format!("{}- [{title}]({place})\n", "  ".repeat(depth));
        }
    }
    summary
}

/// Index of the part to which a page belongs.
fn part_of(page: &Page) -> usize {
    let is_of = |beginnings: &[&str]| beginnings.iter().any(|start| page.path.starts_with(start));
    PARTS.iter().position(|(_, beginnings)| is_of(beginnings)).unwrap_or(PARTS.len() - 1)
}

/// Whether a page is in the folder of the page `README.md` `other`, or below it.
fn is_below(page: &Page, other: &Page) -> bool {
    page.path != other.path
        && other.path.ends_with("README.md")
        && page.path.starts_with(folder(other))
}

/// The folder of a page with its slash; empty for the root.
fn folder(page: &Page) -> &str {
    page.path.rfind('/').map_or("", |end| &page.path[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::site::pages;
    use crate::process::root;

    #[test]
    fn every_page_of_the_repository_is_in_the_summary_once() {
        let pages = pages::read(root()).unwrap();
        assert!(pages.len() > 60, "{} pages", pages.len());
        let summary = of(&pages);
        for page in &pages {
            let link = format!("]({})", page.place());
            assert_eq!(summary.matches(&link).count(), 1, "{}\n{summary}", page.path);
        }
    }

    #[test]
    fn pages_of_a_folder_are_below_its_readme() {
        let page = |path: &str| Page { path: path.to_owned(), text: format!("# T {path}\n") };
        let pages = ["README.md", "SECURITY.md", "papers/README.md", "papers/plc/README.md"];
        let summary = of(&pages.map(page));
        assert!(summary.starts_with("# Summary\n\n[T README.md](index.md)\n"), "{summary}");
        let link = |folder: &str| format!("- [T {folder}README.md]({folder}index.md)\n");
        let papers = format!("# Papers\n\n{}  {}", link("papers/"), link("papers/plc/"));
        assert!(summary.contains(&papers), "{summary}");
        assert!(summary.contains("# Development\n\n- [T SECURITY.md](SECURITY.md)\n"), "{summary}");
    }
}
