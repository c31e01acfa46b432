//! HTML tables.

use std::fmt::Write;

use super::page::escaped;
use crate::text_table::TextTable;

/// Maximum number of value columns on a printed page.
const COLUMNS_MAX: usize = 6;

/// A table with its title as heading.
pub(super) fn table_with_heading(out: &mut String, table: &TextTable) {
    let _ = writeln!(out, "<h2>{}</h2>", escaped(&table.title));
    table_with_note(out, table);
}

/// A table with its note. A wide table is split into several that fit a printed page, each with the
/// key columns.
pub(super) fn table_with_note(out: &mut String, table: &TextTable) {
    let columns: Vec<usize> = (table.key_columns..table.headers.len()).collect();
    if columns.len() <= COLUMNS_MAX {
        *out += &table_element(table);
    } else {
        let parts = columns.len().div_ceil(COLUMNS_MAX);
        for part in columns.chunks(columns.len().div_ceil(parts)) {
            *out += &table_element(&with_columns(table, part));
        }
    }
    if let Some(note) = &table.note {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escaped(note));
    }
}

/// The key columns and the given value columns.
fn with_columns(table: &TextTable, columns: &[usize]) -> TextTable {
    let part = |row: &Vec<String>| {
        let keys = row[..table.key_columns].iter();
        keys.chain(columns.iter().filter_map(|column| row.get(*column))).cloned().collect()
    };
    TextTable {
        headers: part(&table.headers),
        rows: table.rows.iter().map(part).collect(),
        note: None,
        ..table.clone()
    }
}

/// A column heading with line-break opportunities after the dots and underscores of a key.
fn breakable(header: &str) -> String {
    escaped(header).replace('.', ".<wbr>").replace('_', "_<wbr>")
}

/// A table as an HTML element, without heading and note.
#[must_use]
pub fn table_element(table: &TextTable) -> String {
    let title = escaped(&table.title);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title} in \
         numbers\">\n<table>\n<thead><tr>",
    );
    for (column, header) in table.headers.iter().enumerate() {
        let class = if column < table.key_columns { "" } else { " class=\"n\"" };
        let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", breakable(header));
    }
    out += "</tr></thead>\n<tbody>\n";
    for row in &table.rows {
        out += "<tr>";
        for (column, cell) in row.iter().enumerate() {
            let cell = escaped(cell);
            let _ = if column < table.key_columns {
                write!(out, "<th scope=\"row\">{cell}</th>")
            } else {
                write!(out, "<td class=\"n\">{cell}</td>")
            };
        }
        out += "</tr>\n";
    }
    out += "</tbody>\n</table>\n</div>\n";
    out
}
