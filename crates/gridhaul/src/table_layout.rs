//! Layout of tables for the width of a terminal: wrapped headings, transposed tables, omitted last
//! columns, or columns split into several tables.

use gridhaul_report::TextTable;
use gridhaul_scenario::answer::Metric;

/// Blanks between columns.
pub(crate) const COLUMN_GAP: usize = 2;

/// Smallest width to which a row name is shortened.
const NAME_WIDTH_MIN: usize = 8;

/// Largest number of rows of a table that is transposed.
const TRANSPOSED_ROWS_MAX: usize = 12;

/// Lays out a table for at most `width` characters: one table, or several with a part of the
/// columns each.
pub(crate) fn fit(table: &TextTable, width: usize) -> Vec<TextTable> {
    let lines =
        |text: &str| text.lines().map(|line| wrap_sentence(line, width)).collect::<Vec<_>>();
    let mut tables = fit_columns(table, width);
    for table in &mut tables {
        table.title = lines(&table.title).join("\n");
        table.note = table.note.as_deref().map(|note| lines(note).join("\n"));
    }
    tables
}

/// Wraps a sentence into lines of at most `width` characters, or longer ones for longer words.
fn wrap_sentence(sentence: &str, width: usize) -> String {
    let mut text = String::new();
    let mut taken = 0;
    for word in sentence.split(' ') {
        let length = word.chars().count();
        if taken > 0 && taken + 1 + length > width {
            (text, taken) = (text + "\n", 0);
        } else if taken > 0 {
            (text, taken) = (text + " ", taken + 1);
        }
        text.push_str(word);
        taken += length;
    }
    text
}

fn fit_columns(table: &TextTable, width: usize) -> Vec<TextTable> {
    if fits(table, width) {
        return vec![table.clone()];
    }
    let wrapped = with_wrapped_headers(table);
    if fits(&wrapped, width) {
        return vec![wrapped];
    }
    let transposed = (table.rows.len() <= TRANSPOSED_ROWS_MAX).then(|| self::transposed(table));
    if let Some(transposed) = transposed.filter(|transposed| fits(transposed, width)) {
        return vec![transposed];
    }
    let short = with_shortened_names(wrapped, width);
    if metrics_of(table).len() >= 2 {
        return vec![without_last_columns(&short, table, width)];
    }
    split_columns(&short, width)
}

fn fits(table: &TextTable, width: usize) -> bool {
    total_width(&column_widths(table)) <= width
}

fn total_width(widths: &[usize]) -> usize {
    (widths.iter().sum::<usize>() + COLUMN_GAP * widths.len()).saturating_sub(COLUMN_GAP)
}

/// Width of each column, heading included.
fn column_widths(table: &TextTable) -> Vec<usize> {
    let of_text = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    let column = |(index, header): (usize, &String)| {
        let cells = table.rows.iter().filter_map(|row| row.get(index));
        cells.map(|cell| of_text(cell)).fold(of_text(header), usize::max)
    };
    table.headers.iter().enumerate().map(column).collect()
}

/// Headings wrapped at blanks and dots to the width of their columns.
fn with_wrapped_headers(table: &TextTable) -> TextTable {
    let bare = TextTable { headers: vec![String::new(); table.headers.len()], ..table.clone() };
    let headers = table.headers.iter().zip(column_widths(&bare));
    let headers = headers.map(|(header, width)| wrap_header(header, width)).collect();
    TextTable { headers, ..table.clone() }
}

/// Wraps a heading into lines of at most `width` characters, or longer ones for longer words.
fn wrap_header(header: &str, width: usize) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in header.split(' ') {
        // A scenario key is wrapped before its dots.
        for (index, step) in word.split('.').enumerate() {
            let step = if index > 0 { format!(".{step}") } else { step.to_owned() };
            words.push(step);
        }
    }
    let longest = words.iter().map(|word| word.chars().count()).max().unwrap_or(0);
    let width = width.max(longest);
    let mut lines: Vec<String> = vec![String::new()];
    for word in words {
        let Some(line) = lines.last_mut() else { break };
        let blank = usize::from(!line.is_empty() && !word.starts_with('.'));
        if line.is_empty() || line.chars().count() + blank + word.chars().count() <= width {
            line.extend(std::iter::repeat_n(' ', blank));
            line.push_str(&word);
        } else {
            lines.push(word);
        }
    }
    lines.join("\n")
}

/// The transposed table: columns become rows.
fn transposed(table: &TextTable) -> TextTable {
    let keys = table.key_columns.max(1);
    let name = |row: &Vec<String>| row[..keys.min(row.len())].join("\n");
    let heading = table.headers[..keys.min(table.headers.len())].join("\n");
    let headers = std::iter::once(heading).chain(table.rows.iter().map(name)).collect();
    let row = |index: usize| {
        let cells = table.rows.iter().map(|row| row.get(index).cloned().unwrap_or_default());
        std::iter::once(table.headers[index].clone()).chain(cells).collect()
    };
    let rows = (keys..table.headers.len()).map(row).collect();
    TextTable { headers, rows, key_columns: 1, ..table.clone() }
}

/// Shortens the row names so that the widest column fits next to them.
fn with_shortened_names(mut table: TextTable, width: usize) -> TextTable {
    let keys = table.key_columns.min(table.headers.len());
    loop {
        let widths = column_widths(&table);
        let widest = widths[keys..].iter().copied().max();
        let taken = total_width(&widths[..keys]) + widest.map_or(0, |widest| widest + COLUMN_GAP);
        let longest = (0..keys).max_by_key(|&index| widths[index]);
        let Some(index) = longest.filter(|&index| taken > width && widths[index] > NAME_WIDTH_MIN)
        else {
            return table;
        };
        let maximum = widths[index].saturating_sub(taken - width).max(NAME_WIDTH_MIN);
        // Names differ mostly in their last part, so the beginning is cut.
        let cut = |text: &str| match text.chars().count().checked_sub(maximum) {
            None | Some(0) => text.to_owned(),
            Some(over) => std::iter::once('…').chain(text.chars().skip(over + 1)).collect(),
        };
        let lines: Vec<_> = table.headers[index].lines().map(cut).collect();
        table.headers[index] = lines.join("\n");
        for row in &mut table.rows {
            row[index] = cut(&row[index]);
        }
    }
}

/// The columns of a table that are metrics, identified by their headings.
fn metrics_of(table: &TextTable) -> Vec<(usize, Metric)> {
    let headers = table.headers.iter().enumerate().skip(table.key_columns);
    let metric = |header: &str| {
        let info = |metric: &&Metric| {
            let heading = metric.info().heading;
            header
                .strip_prefix(heading)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
        };
        Metric::ALL.iter().rev().find(info).copied()
    };
    headers.filter_map(|(index, header)| Some((index, metric(header)?))).collect()
}

/// As many columns from the left as fit, and a note that lists the omitted ones. The most important
/// metrics come first.
fn without_last_columns(table: &TextTable, full: &TextTable, width: usize) -> TextTable {
    let widths = column_widths(table);
    let fitting = (1..=widths.len()).take_while(|&count| total_width(&widths[..count]) <= width);
    let kept = fitting.last().unwrap_or(0).max(table.key_columns + 1).min(widths.len());
    let dropped = metrics_of(full).into_iter().filter(|(index, _)| *index >= kept);
    let columns: Vec<_> = dropped.map(|(_, metric)| metric.info().column).collect();
    let note = format!(
        "Omitted at a width of {width}: {}. Use --only {}, --csv or the report to see these \
         columns.",
        columns.join(", "),
        columns.first().copied().unwrap_or_default(),
    );
    let notes = full.note.iter().cloned().chain([note]);
    TextTable {
        headers: table.headers[..kept].to_vec(),
        rows: table.rows.iter().map(|row| row[..kept.min(row.len())].to_vec()).collect(),
        note: Some(notes.collect::<Vec<_>>().join("\n")),
        ..table.clone()
    }
}

/// The columns split into several tables; each table repeats the row names.
fn split_columns(table: &TextTable, width: usize) -> Vec<TextTable> {
    let widths = column_widths(table);
    let keys = table.key_columns.min(widths.len());
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for index in keys..widths.len() {
        let with = |part: &Vec<usize>| {
            let columns = (0..keys).chain(part.iter().copied()).chain([index]);
            total_width(&columns.map(|column| widths[column]).collect::<Vec<_>>()) <= width
        };
        match parts.last_mut() {
            Some(part) if with(part) => part.push(index),
            _ => parts.push(vec![index]),
        }
    }
    let last = parts.len().saturating_sub(1);
    let part = |(number, columns): (usize, &Vec<usize>)| {
        let pick = |cells: &Vec<String>| {
            let columns = (0..keys).chain(columns.iter().copied());
            columns.filter_map(|column| cells.get(column).cloned()).collect::<Vec<_>>()
        };
        TextTable {
            title: if number == 0 { table.title.clone() } else { String::new() },
            headers: pick(&table.headers),
            rows: table.rows.iter().map(pick).collect(),
            key_columns: keys,
            note: table.note.clone().filter(|_| number == last),
        }
    };
    parts.iter().enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(headers: &[&str], rows: usize, keys: usize) -> TextTable {
        TextTable {
            title: "Flows".into(),
            headers: headers.iter().map(ToString::to_string).collect(),
            rows: (0..rows).map(|_| headers.iter().map(|_| "1.234".to_owned()).collect()).collect(),
            key_columns: keys,
            note: None,
        }
    }

    const METRICS: [&str; 5] = [
        "link.a.forward.rate",
        "flow",
        "goodput (kbit/s)",
        "round-trip time, mean (ms)",
        "fairness",
    ];

    #[test]
    fn headings_are_wrapped_before_columns_are_omitted() {
        let fitted = fit(&table(&METRICS, 20, 2), 60);
        assert_eq!(fitted[0].headers[3], "round-trip\ntime, mean\n(ms)");
        assert_eq!(fitted[0].headers.len(), 5);
    }

    #[test]
    fn omitted_columns_are_named_with_the_option_that_shows_them() {
        let fitted = fit(&table(&METRICS, 20, 2), 30);
        let note = fitted[0].note.as_deref().unwrap();
        assert!(note.contains("fairness_index") && note.contains("--only"), "{note}");
        assert!(fitted[0].headers.len() < 5, "{:?}", fitted[0].headers);
    }

    #[test]
    fn tables_with_few_rows_are_transposed() {
        let many: Vec<_> = (0..12).map(|index| format!("column {index}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        let fitted = fit(&table(&many, 3, 1), 50);
        assert_eq!((fitted.len(), fitted[0].rows.len(), fitted[0].headers.len()), (1, 11, 4));
    }

    #[test]
    fn columns_of_comparisons_are_split_and_none_is_lost() {
        let headers = ["", "metric", "a long label of one", "another", "difference", "result"];
        let fitted = fit(&table(&headers, 20, 2), 30);
        assert!(fitted.len() > 1);
        let found: Vec<_> = fitted.iter().flat_map(|part| part.headers[2..].to_vec()).collect();
        assert_eq!(found.len(), 4, "{found:?}");
    }

    proptest! {
        #[test]
        fn every_table_fits(columns in 2_usize..20, rows in 0_usize..30, width in 24_usize..200) {
            let name = |index| format!("a name of column {index}");
            let names: Vec<_> = (0..columns).map(name).collect();
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            for part in fit(&table(&names, rows, 1), width) {
                prop_assert!(fits(&part, width), "{part:?}");
            }
        }
    }
}
