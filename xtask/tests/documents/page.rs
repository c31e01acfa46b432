//! A text file, and what a reader sees of it: code spans, code blocks, links and headings.

use std::fmt;

/// A text file of the repository.
pub(crate) struct Page {
    /// Path relative to the root of the repository.
    pub(crate) path: String,
    /// The whole text.
    pub(crate) text: String,
}

/// A false statement: where it is, what is wrong and what to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    file: String,
    line: usize,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}:{}: {}", self.file, self.line, self.message)
    }
}

/// A piece of a page and its line, counted from one.
pub(crate) struct Piece<'a> {
    pub(crate) line: usize,
    pub(crate) text: &'a str,
}

/// The text between two backticks, and the line in which it begins.
pub(crate) struct Span {
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl Page {
    /// A page for tests that is in no file.
    #[cfg(test)]
    pub(crate) fn made_up(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// The folder of the page; empty for the root.
    pub(crate) fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    pub(crate) fn finding(&self, line: usize, message: String) -> Finding {
        Finding { file: self.path.clone(), line, message }
    }

    /// Lines outside code blocks.
    pub(crate) fn prose(&self) -> Vec<Piece<'_>> {
        self.lines().into_iter().filter(|(_, in_block)| !in_block).map(|(piece, _)| piece).collect()
    }

    /// Lines inside code blocks, between fences or indented by four columns after an empty line.
    pub(crate) fn blocks(&self) -> Vec<Piece<'_>> {
        self.lines().into_iter().filter(|(_, in_block)| *in_block).map(|(piece, _)| piece).collect()
    }

    /// The fenced blocks of a language, each with the line of its first fence.
    pub(crate) fn fenced(&self, language: &str) -> Vec<(usize, String)> {
        let fence = format!("```{language}");
        let mut blocks: Vec<(usize, String)> = Vec::new();
        let mut inside = false;
        for (index, line) in self.text.lines().enumerate() {
            if !inside && line.trim() == fence {
                blocks.push((index + 1, String::new()));
                inside = true;
            } else if line.trim_start().starts_with("```") {
                inside = false;
            } else if inside && let Some((_, block)) = blocks.last_mut() {
                *block += line;
                block.push('\n');
            }
        }
        blocks
    }

    /// The text between backticks, outside code blocks. A span may go on in the next line of its
    /// paragraph.
    pub(crate) fn code_spans(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut open: Option<Span> = None;
        for Piece { line, text } in self.prose() {
            if text.trim().is_empty() {
                open = None;
            }
            for (index, part) in text.split('`').enumerate() {
                let begins = index > 0 && open.is_none();
                if index > 0
                    && let Some(span) = open.take()
                {
                    spans.push(span);
                }
                if begins {
                    open = Some(Span { line, text: part.to_owned() });
                } else if index == 0
                    && let Some(span) = &mut open
                {
                    span.text = format!("{} {}", span.text, part.trim());
                }
            }
        }
        spans
    }

    /// Headings without their hashes.
    pub(crate) fn headings(&self) -> Vec<Piece<'_>> {
        let headings = self.prose().into_iter().filter(|piece| piece.text.starts_with('#'));
        headings
            .map(|piece| Piece {
                line: piece.line,
                text: piece.text.trim_start_matches('#').trim(),
            })
            .collect()
    }

    fn lines(&self) -> Vec<(Piece<'_>, bool)> {
        let (mut fenced, mut indented, mut empty_before) = (false, false, true);
        let mut lines = Vec::new();
        for (index, text) in self.text.lines().enumerate() {
            let piece = Piece { line: index + 1, text };
            if text.trim_start().starts_with("```") {
                fenced = !fenced;
                continue;
            }
            indented = text.starts_with("    ") && (indented || empty_before);
            empty_before = text.trim().is_empty();
            lines.push((piece, fenced || indented));
        }
        lines
    }
}

#[test]
fn spans_blocks_and_prose_are_distinguished() {
    let page = Page::made_up(
        "a.md",
        "Use `a` and `b\nc`, not d`e`.\n\n    block 1\n\n```\nblock 2\n```\n# `Head`\n",
    );
    let spans: Vec<_> = page.code_spans().into_iter().map(|span| (span.line, span.text)).collect();
    let expected = [(1, "a"), (1, "b c"), (2, "e"), (9, "Head")];
    assert_eq!(spans, expected.map(|(line, text)| (line, text.to_owned())));
    let blocks: Vec<_> = page
        .blocks()
        .iter()
        .map(|piece| piece.text.trim())
        .filter(|line| !line.is_empty())
        .collect();
    assert_eq!(blocks, ["block 1", "block 2"]);
}
