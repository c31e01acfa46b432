//! A report as one HTML file without scripts and external resources.

use std::fmt::Write;

use gridhaul_report::TextTable;
use gridhaul_report::chart::{Chart, STYLE};
use gridhaul_report::html::{PAGE_STYLE, escaped, table_element};

/// A part of a report.
pub(crate) enum Section<'a> {
    /// Text; paragraphs are separated by empty lines.
    Text(String),
    /// Charts side by side, with a heading.
    Charts(&'a str, Vec<Chart>),
    /// A table with its title as heading.
    Table(&'a TextTable),
}

/// The page. Writing to a `String` cannot fail, so results are dropped.
pub(crate) fn page(title: &str, meta: &str, sections: &[Section<'_>]) -> String {
    let (title, meta) = (escaped(title), escaped(meta));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta name=\"generator\" content=\"gridhaul\">\n<title>{title}</title>\n\
         <style>\n{PAGE_STYLE}{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n\
         <p class=\"meta\">{meta}</p>\n</header>\n<main>\n"
    );
    for section in sections {
        match section {
            Section::Text(text) => {
                for paragraph in text.split("\n\n") {
                    let _ = writeln!(out, "<p>{}</p>", escaped(paragraph));
                }
            }
            Section::Charts(heading, charts) => {
                let _ = writeln!(out, "<h2>{}</h2>\n<section class=\"charts\">", escaped(heading));
                for chart in charts {
                    let _ = writeln!(out, "<figure>{}</figure>", chart.to_inline_svg());
                }
                out += "</section>\n";
            }
            Section::Table(table) => {
                let _ = writeln!(out, "<h2>{}</h2>", escaped(&table.title));
                out += &table_element(table);
                for line in table.note.iter().flat_map(|note| note.lines()) {
                    let _ = writeln!(out, "<p class=\"note\">{}</p>", escaped(line));
                }
            }
        }
    }
    out + "</main>\n<footer></footer>\n</body>\n</html>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let page = page("a\u{1b} < b", "", &[Section::Text("\"x\" & 'y'\n\nz".into())]);
        assert!(page.contains("<h1>a  &lt; b</h1>"), "{page}");
        assert!(page.contains("<p>&quot;x&quot; &amp; &#39;y&#39;</p>\n<p>z</p>"), "{page}");
    }
}
