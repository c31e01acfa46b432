//! What people see: tables on standard output, progress on standard error.

use std::fmt;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use gridhaul_report::TextTable;
use gridhaul_scenario::backend::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::interrupt;

/// Prints data on standard output. A reader that went away (`| head`) is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        result => result.context("cannot write to standard output"),
    }
}

/// Says something on standard error. Nobody is there to be told that nobody listens (`2>&-`, a full disk).
pub(crate) fn say(line: fmt::Arguments<'_>) {
    // In one piece, so that lines of several threads do not mix.
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Prints tables, with rules on a terminal and plain elsewhere.
pub(crate) fn print_tables(tables: &[TextTable]) -> anyhow::Result<()> {
    let ruled = io::stdout().is_terminal();
    let texts: Vec<_> = tables.iter().map(|table| draw(table, ruled)).collect();
    print(&texts.join("\n"))
}

/// A rule below the headings, nothing else.
const RULED: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Draws a table; numbers are aligned right.
pub(crate) fn draw(table: &TextTable, ruled: bool) -> String {
    let mut drawn = Table::new();
    drawn.set_content_arrangement(ContentArrangement::Disabled);
    drawn.load_style(if ruled { RULED } else { NOTHING });
    drawn.set_header(&table.headers);
    drawn.add_rows(&table.rows);
    for (index, column) in drawn.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index >= table.key_columns {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = String::new();
    if !table.title.is_empty() {
        text.push_str(&table.title);
        text.push('\n');
    }
    for line in drawn.to_string().lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if let Some(note) = &table.note {
        text.push_str(note);
        text.push('\n');
    }
    text
}

/// Progress of a run on standard error; silent when that is not a terminal.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
    /// Thousandths of the work that the bar shows.
    shown: AtomicU64,
}

impl Bar {
    /// A bar with a label in front, hidden if `quiet`.
    pub(crate) fn new(label: &str, quiet: bool) -> Self {
        let target =
            if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(None, target).with_message(label.to_owned());
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {percent} %  {eta} left")
        {
            bar.set_style(style);
        }
        Self { bar, shown: AtomicU64::new(u64::MAX) }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Progress for Bar {
    fn advance(&self, done: u64, total: u64) {
        // Backends report often, and drawing takes longer than counting.
        let thousandths = (u128::from(done) * 1000 / u128::from(total.max(1))) as u64;
        if self.shown.swap(thousandths, Ordering::Relaxed) != thousandths {
            self.bar.set_length(total);
            self.bar.set_position(done);
        }
    }

    fn is_interrupted(&self) -> bool {
        interrupt::is_requested()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_aligned_right_and_lines_end_without_blanks() {
        let table = TextTable {
            title: "Flows".into(),
            headers: vec!["flow".into(), "goodput".into()],
            rows: vec![
                vec!["download".into(), "1.2 Mbit/s".into()],
                vec!["up".into(), "9 kbit/s".into()],
            ],
            key_columns: 1,
            note: Some("A note.".into()),
        };
        insta::assert_snapshot!(draw(&table, false), @"
        Flows
        flow         goodput
        download  1.2 Mbit/s
        up          9 kbit/s
        A note.
        ");
        assert!(draw(&table, true).lines().nth(2).unwrap().starts_with("──"));
    }
}
