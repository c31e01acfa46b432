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
    let values: Vec<usize> = (table.key_columns..table.headers.len()).collect();
    if values.len() <= COLUMNS_MAX {
        *out += &table_element(table);
    } else {
        let parts = values.len().div_ceil(COLUMNS_MAX);
        for part in values.chunks(values.len().div_ceil(parts)) {
            let columns: Vec<usize> = (0..table.key_columns).chain(part.iter().copied()).collect();
            element(out, table, &columns);
        }
    }
    if let Some(note) = &table.note {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escaped(note));
    }
}

/// A column heading with line-break opportunities after the dots and underscores of a key.
fn breakable(header: &str) -> String {
    escaped(header).replace('.', ".<wbr>").replace('_', "_<wbr>")
}

/// A table as an HTML element, without heading and note.
#[must_use]
pub fn table_element(table: &TextTable) -> String {
    let mut out = String::new();
    let columns: Vec<usize> = (0..table.headers.len()).collect();
    element(&mut out, table, &columns);
    out
}

/// Some columns as an HTML element.
fn element(out: &mut String, table: &TextTable, columns: &[usize]) {
    let title = escaped(&table.title);
    let _ = writeln!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title} in \
         numbers\">\n<table>\n<thead><tr>",
    );
    for &column in columns {
        let class = if column < table.key_columns { "" } else { " class=\"n\"" };
        let header = breakable(&table.headers[column]);
        let _ = write!(out, "<th scope=\"col\"{class}>{header}</th>");
    }
    *out += "</tr></thead>\n<tbody>\n";
    for row in &table.rows {
        *out += "<tr>";
        for &column in columns {
            let Some(cell) = row.get(column) else { continue };
            let (begin, end) = if column < table.key_columns {
                ("<th scope=\"row\">", "</th>")
            } else {
                ("<td class=\"n\">", "</td>")
            };
            *out += begin;
            *out += &escaped(cell);
            *out += end;
        }
        *out += "</tr>\n";
    }
    *out += "</tbody>\n</table>\n</div>\n";
}
