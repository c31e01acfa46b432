//! Output for users: tables on standard output, progress and messages on standard error.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::Observer;
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use gridhaul_cli::{print, say, signal};
use gridhaul_report::{TextTable, shown_warnings};
use gridhaul_scenario::answer::{Answer, RecordingFile, Warning};
use gridhaul_scenario::backend::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::table_layout::{COLUMN_GAP, fit};

/// Prints tables, fitted to the width of the terminal if there is one.
pub(crate) fn print_tables(tables: &[TextTable]) -> anyhow::Result<()> {
    print(&texts(tables))
}

/// The text of tables as printed.
pub(crate) fn texts(tables: &[TextTable]) -> String {
    let is_terminal = io::stdout().is_terminal();
    let width = width();
    let fitted = |table: &TextTable| match width {
        Some(width) => fit(table, width),
        None => vec![table.clone()],
    };
    let texts = tables.iter().flat_map(fitted).map(|table| draw(&table, is_terminal));
    texts.collect::<Vec<_>>().join("\n")
}

/// Characters in a line: `COLUMNS` if set, else the width of the terminal.
fn width() -> Option<usize> {
    let configured = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let terminal = || Table::new().width().filter(|_| io::stdout().is_terminal()).map(usize::from);
    configured.filter(|&width| width > 0).or_else(terminal)
}

/// Table style with a rule below the headings only.
const fn rule(fill: char) -> TableStyle {
    TableStyle::new().header_separator(LineStyle::none().fill(fill).junction(fill))
}

/// Draws a table with numbers aligned right. Without a terminal, the rule consists of ASCII
/// characters and numbers have no thousands separators.
pub(crate) fn draw(table: &TextTable, for_terminal: bool) -> String {
    let mut drawn = Table::new();
    drawn.set_content_arrangement(ContentArrangement::Disabled);
    drawn.load_style(rule(if for_terminal { '─' } else { '-' }));
    drawn.set_header(&table.headers);
    drawn.add_rows(&table.rows);
    let last = table.headers.len().saturating_sub(1);
    for (index, column) in drawn.column_iter_mut().enumerate() {
        // comfy-table adds one blank between columns.
        column.set_padding((0, if index == last { 0 } else { COLUMN_GAP as u16 - 1 }));
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
    if for_terminal { text } else { text.replace('\u{202f}', "") }
}

/// Progress bar on standard error; hidden if that is not a terminal.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
    /// Work that the bar shows, in thousandths.
    shown: AtomicU64,
    recordings: Option<SharedRecordingFile>,
}

/// The file of all recordings of a command, created at the first recording.
#[derive(Debug, Clone)]
struct SharedRecordingFile {
    folder: PathBuf,
    file: Arc<Mutex<Weak<RecordingFile>>>,
}

impl SharedRecordingFile {
    fn open(&self) -> io::Result<Arc<RecordingFile>> {
        let mut shared = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = shared.upgrade() {
            return Ok(file);
        }
        let file = Arc::new(RecordingFile::new(tempfile::tempfile_in(&self.folder)?));
        *shared = Arc::downgrade(&file);
        Ok(file)
    }
}

impl Bar {
    /// A bar after a label, hidden if `quiet`.
    pub(crate) fn new(label: &str, quiet: bool) -> Self {
        let target =
            if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(None, target).with_message(label.to_owned());
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {percent} %  {eta} left")
        {
            bar.set_style(style);
        }
        Self { bar, shown: AtomicU64::new(u64::MAX), recordings: None }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Shows the progress of the library: progress bars, warnings and notes.
#[derive(Debug, Clone)]
pub(crate) struct Terminal {
    /// Hide progress bars, but show warnings and notes.
    quiet: bool,
    /// Unnamed file with the recordings; `None`: they are kept in memory.
    recordings: Option<SharedRecordingFile>,
    /// Whether the beginning of each part is a line, if standard error is not a terminal.
    lines: bool,
    /// Warnings that have been printed.
    printed: Arc<Mutex<BTreeSet<String>>>,
}

impl Terminal {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet, recordings: None, lines: false, printed: Arc::default() }
    }

    /// Reports the beginning of each part also to files and pipes, for commands with many parts.
    pub(crate) fn with_lines(self) -> Self {
        Self { lines: true, ..self }
    }

    /// Stores the recordings of a run in an unnamed file on the file system of a folder.
    pub(crate) fn recording_in(self, folder: &Path) -> Self {
        let recordings = SharedRecordingFile { folder: folder.to_owned(), file: Arc::default() };
        Self { recordings: Some(recordings), ..self }
    }
}

impl Observer for Terminal {
    fn begin(&self, part: &str) -> Box<dyn Progress> {
        if self.lines && !self.quiet && !io::stderr().is_terminal() {
            say(format_args!("{part}"));
        }
        let mut bar = Bar::new(part, self.quiet);
        bar.recordings.clone_from(&self.recordings);
        Box::new(bar)
    }

    fn on_answer(&self, answer: &Answer, alone: bool) {
        let by = if alone { String::new() } else { format!("{}: ", answer.backend) };
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        for shown in shown_warnings(&answer.warnings) {
            let Warning { about, message } = shown.warning;
            let text = format!("{about}: {message}{}", shown.remark());
            // Several backends and points give the same warning about a scenario.
            if printed.insert(text.clone()) {
                say(format_args!("warning: {by}{text}"));
            }
        }
    }

    fn on_note(&self, note: &str) {
        say(format_args!("note: {note}"));
    }

    fn on_estimate(&self, estimate: &str) {
        if !self.quiet {
            say(format_args!("{estimate}"));
        }
    }
}

impl Progress for Bar {
    fn advance(&self, done: u64, total: u64) {
        // Backends report often, so the bar is redrawn only when it changes visibly.
        let thousandths = (u128::from(done) * 1000 / u128::from(total.max(1))) as u64;
        if self.shown.swap(thousandths, Ordering::Relaxed) != thousandths {
            self.bar.set_length(total);
            self.bar.set_position(done);
        }
    }

    fn is_interrupted(&self) -> bool {
        signal::end_requested()
    }

    fn recording_file(&self) -> io::Result<Option<Arc<RecordingFile>>> {
        self.recordings.as_ref().map(SharedRecordingFile::open).transpose()
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
        --------------------
        download  1.2 Mbit/s
        up          9 kbit/s
        A note.
        ");
        assert!(draw(&table, true).lines().nth(2).unwrap().starts_with("──"));
    }
}
