//! Descriptions of scenarios: Markdown as HTML.

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// Renders Markdown as HTML for a report: HTML in the text is escaped, links are restricted to web
/// pages and anchors, images are replaced by their text, and headings are below those of the
/// report.
pub(super) fn rendered(markdown: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut out = String::new();
    html::push_html(&mut out, Parser::new_ext(markdown, options).filter_map(permitted));
    // Tables may be wider than the page.
    out.replace("<table>", "<div class=\"scroll\"><table>").replace("</table>", "</table></div>")
}

fn permitted(event: Event<'_>) -> Option<Event<'_>> {
    Some(match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Heading { id, classes, attrs, .. }) => {
            Event::Start(Tag::Heading { level: HeadingLevel::H3, id, classes, attrs })
        }
        Event::End(TagEnd::Heading(_)) => Event::End(TagEnd::Heading(HeadingLevel::H3)),
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let dest_url = if is_page(&dest_url) { dest_url } else { CowStr::Borrowed("#") };
            Event::Start(Tag::Link { link_type, dest_url, title, id })
        }
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => return None,
        other => other,
    })
}

/// Whether a link is a web page, not a script or data URL.
fn is_page(url: &str) -> bool {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        None => true,
        Some("http" | "https" | "mailto") => true,
        Some(other) => other.contains(['/', '?', '#']),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_rendered_and_html_is_escaped() {
        for (markdown, html) in [
            ("Two\nlines.\n\nNext.", "<p>Two\nlines.</p>\n<p>Next.</p>\n"),
            ("*a* **b** `c<d`", "<p><em>a</em> <strong>b</strong> <code>c&lt;d</code></p>\n"),
            ("# Head", "<h3>Head</h3>\n"),
            ("- one\n- two", "<ul>\n<li>one</li>\n<li>two</li>\n</ul>\n"),
            ("<script>x</script>", "<p>&lt;script&gt;x&lt;/script&gt;</p>\n"),
            ("a <b>c", "<p>a &lt;b&gt;c</p>\n"),
            ("[page](https://example.org)", "<p><a href=\"https://example.org\">page</a></p>\n"),
            ("[x](javascript:alert)", "<p><a href=\"#\">x</a></p>\n"),
            ("[x](data:text)", "<p><a href=\"#\">x</a></p>\n"),
            ("![text](https://example.org/a.png)", "<p>text</p>\n"),
        ] {
            assert_eq!(rendered(markdown), html);
        }
        let table = rendered("| a | b |\n|---|---|\n| 1 | 2 |");
        assert!(table.starts_with("<div class=\"scroll\"><table>"), "{table}");
    }
}
