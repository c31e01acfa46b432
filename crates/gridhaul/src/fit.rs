//! Tables that fit a terminal: headings in several lines, turned, without their last columns, or in
//! parts below each other.

use gridhaul_report::TextTable;
use gridhaul_scenario::answer::Metric;

/// Columns stand this far apart.
pub(crate) const GAP: usize = 2;

/// Least characters of a name that is shortened.
const NAME_MIN: usize = 8;

/// Most rows of a table that is turned.
const TURNED_MAX: usize = 12;

/// The table in a form that is at most so many characters wide: one table, or parts of it.
pub(crate) fn fit(table: &TextTable, width: usize) -> Vec<TextTable> {
    let lines = |text: &str| text.lines().map(|line| filled(line, width)).collect::<Vec<_>>();
    let mut tables = columns(table, width);
    for table in &mut tables {
        table.title = lines(&table.title).join("\n");
        table.note = table.note.as_deref().map(|note| lines(note).join("\n"));
    }
    tables
}

/// A sentence in lines of at most so many characters, where its words allow.
fn filled(sentence: &str, width: usize) -> String {
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

fn columns(table: &TextTable, width: usize) -> Vec<TextTable> {
    if is_within(table, width) {
        return vec![table.clone()];
    }
    let wrapped = wrapped(table);
    if is_within(&wrapped, width) {
        return vec![wrapped];
    }
    let turned = (table.rows.len() <= TURNED_MAX).then(|| self::turned(table));
    if let Some(turned) = turned.filter(|turned| is_within(turned, width)) {
        return vec![turned];
    }
    let short = shortened(wrapped, width);
    if metrics_of(table).len() >= 2 {
        return vec![without_last(&short, table, width)];
    }
    parts(&short, width)
}

fn is_within(table: &TextTable, width: usize) -> bool {
    total(&widths(table)) <= width
}

fn total(widths: &[usize]) -> usize {
    (widths.iter().sum::<usize>() + GAP * widths.len()).saturating_sub(GAP)
}

/// Width of each column, heading included.
fn widths(table: &TextTable) -> Vec<usize> {
    let of_text = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    let column = |(index, header): (usize, &String)| {
        let cells = table.rows.iter().filter_map(|row| row.get(index));
        cells.map(|cell| of_text(cell)).fold(of_text(header), usize::max)
    };
    table.headers.iter().enumerate().map(column).collect()
}

/// Headings broken at blanks and dots, as narrow as their columns allow.
fn wrapped(table: &TextTable) -> TextTable {
    let bare = TextTable { headers: vec![String::new(); table.headers.len()], ..table.clone() };
    let headers = table.headers.iter().zip(widths(&bare));
    let headers = headers.map(|(header, width)| broken(header, width)).collect();
    TextTable { headers, ..table.clone() }
}

/// A heading in lines of at most so many characters, where its words allow.
fn broken(header: &str, width: usize) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in header.split(' ') {
        // A key of a scenario breaks before its dots.
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

/// Columns become rows.
fn turned(table: &TextTable) -> TextTable {
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

/// Names shortened, so that beside them there is room for the widest column.
fn shortened(mut table: TextTable, width: usize) -> TextTable {
    let keys = table.key_columns.min(table.headers.len());
    loop {
        let widths = widths(&table);
        let widest = widths[keys..].iter().copied().max();
        let taken = total(&widths[..keys]) + widest.map_or(0, |widest| widest + GAP);
        let longest = (0..keys).max_by_key(|&index| widths[index]);
        let Some(index) = longest.filter(|&index| taken > width && widths[index] > NAME_MIN) else {
            return table;
        };
        let most = widths[index].saturating_sub(taken - width).max(NAME_MIN);
        // The last part of a name tells it from others.
        let cut = |text: &str| match text.chars().count().checked_sub(most) {
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

/// The metrics whose headings a table has, with their columns.
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

/// As many columns from the left as fit, and a note on the others. The first ones are those that are
/// looked at first.
fn without_last(table: &TextTable, whole: &TextTable, width: usize) -> TextTable {
    let widths = widths(table);
    let fitting = (1..=widths.len()).take_while(|&count| total(&widths[..count]) <= width);
    let kept = fitting.last().unwrap_or(0).max(table.key_columns + 1).min(widths.len());
    let dropped = metrics_of(whole).into_iter().filter(|(index, _)| *index >= kept);
    let columns: Vec<_> = dropped.map(|(_, metric)| metric.info().column).collect();
    let note = format!(
        "Left out, for a width of {width}: {}. See them with --only {}, with --csv, or in the report.",
        columns.join(", "),
        columns.first().copied().unwrap_or_default(),
    );
    let notes = whole.note.iter().cloned().chain([note]);
    TextTable {
        headers: table.headers[..kept].to_vec(),
        rows: table.rows.iter().map(|row| row[..kept.min(row.len())].to_vec()).collect(),
        note: Some(notes.collect::<Vec<_>>().join("\n")),
        ..table.clone()
    }
}

/// The columns in parts below each other; each part repeats the names of the rows.
fn parts(table: &TextTable, width: usize) -> Vec<TextTable> {
    let widths = widths(table);
    let keys = table.key_columns.min(widths.len());
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for index in keys..widths.len() {
        let with = |part: &Vec<usize>| {
            let columns = (0..keys).chain(part.iter().copied()).chain([index]);
            total(&columns.map(|column| widths[column]).collect::<Vec<_>>()) <= width
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
    fn headings_are_broken_before_anything_is_left_out() {
        let fitted = fit(&table(&METRICS, 20, 2), 60);
        assert_eq!(fitted[0].headers[3], "round\ntrip,\nmean\n(ms)");
        assert_eq!(fitted[0].headers.len(), 5);
    }

    #[test]
    fn what_is_left_out_is_named_with_the_way_to_see_it() {
        let fitted = fit(&table(&METRICS, 20, 2), 30);
        let note = fitted[0].note.as_deref().unwrap();
        assert!(note.contains("fairness_index") && note.contains("--only"), "{note}");
        assert!(fitted[0].headers.len() < 5, "{:?}", fitted[0].headers);
    }

    #[test]
    fn few_rows_are_turned() {
        let many: Vec<_> = (0..12).map(|index| format!("column {index}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        let fitted = fit(&table(&many, 3, 1), 50);
        assert_eq!((fitted.len(), fitted[0].rows.len(), fitted[0].headers.len()), (1, 11, 4));
    }

    #[test]
    fn compared_columns_are_parted_and_none_is_lost() {
        let headers = ["", "metric", "a long label of one", "another", "difference", "verdict"];
        let fitted = fit(&table(&headers, 20, 2), 30);
        assert!(fitted.len() > 1);
        let found: Vec<_> = fitted.iter().flat_map(|part| part.headers[2..].to_vec()).collect();
        assert_eq!(found.len(), 4, "{found:?}");
    }

    proptest! {
        #[test]
        fn every_table_fits(columns in 2_usize..20, rows in 0_usize..30, width in 24_usize..200) {
            let names: Vec<_> = (0..columns).map(|index| format!("a name of column {index}")).collect();
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            for part in fit(&table(&names, rows, 1), width) {
                prop_assert!(is_within(&part, width), "{part:?}");
            }
        }
    }
}
