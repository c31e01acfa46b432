//! Tables as text.

use gridhaul_report::TextTable;

/// The text of a table: keys left, numbers right, a rule below the headings.
pub(crate) fn text(table: &TextTable) -> String {
    let columns = table.headers.len();
    let rows = std::iter::once(&table.headers).chain(&table.rows);
    let mut widths = vec![0; columns];
    for row in rows.clone() {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(number, (cell, &width))| {
            if number < table.key_columns {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let mut lines: Vec<String> = rows.map(line).collect();
    let rule = "-".repeat(widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1));
    lines.insert(1, rule + "\n");
    let title = if table.title.is_empty() { String::new() } else { format!("{}\n", table.title) };
    let note = table.note.iter().map(|note| format!("{note}\n"));
    std::iter::once(title).chain(lines).chain(note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_aligned_left_and_numbers_right() {
        let table = TextTable {
            headers: ["latency", "p50"].map(String::from).to_vec(),
            rows: vec![vec!["from send".into(), "20.1".into()], vec!["floor".into(), "0.1".into()]],
            key_columns: 1,
            note: Some("in ms".into()),
            ..TextTable::default()
        };
        let expected =
            "latency     p50\n---------------\nfrom send  20.1\nfloor       0.1\nin ms\n";
        assert_eq!(text(&table), expected);
    }
}
