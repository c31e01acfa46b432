//! Rates, delays and losses in CSV.

use std::sync::Arc;

use gridhaul_scenario::scenario::{LinkStep, LinkSteps, LinkTraceContent};
use gridhaul_scenario::units::{BitRate, Decimal, Duration, Probability};

use crate::trace::csv::cells;
use crate::trace::error::{RowError, Unit, of_cell, of_file, shown};

/// A column with a number in each row.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Column {
    quantity: Quantity,
    name: &'static str,
    /// The unit of the column in nanoseconds or bits per second.
    scale: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantity {
    Time,
    Rate,
    Delay,
    Loss,
}

const fn column(quantity: Quantity, name: &'static str, scale: u64) -> Column {
    Column { quantity, name, scale }
}

const COLUMNS: [Column; 11] = [
    column(Quantity::Time, "time_s", 1_000_000_000),
    column(Quantity::Time, "time_ms", 1_000_000),
    column(Quantity::Time, "time_us", 1_000),
    column(Quantity::Time, "time_ns", 1),
    column(Quantity::Rate, "rate_bit_per_s", 1),
    column(Quantity::Rate, "rate_kbit_per_s", 1_000),
    column(Quantity::Rate, "rate_mbit_per_s", 1_000_000),
    column(Quantity::Delay, "delay_ms", 1_000_000),
    column(Quantity::Delay, "delay_s", 1_000_000_000),
    column(Quantity::Loss, "loss_percent", 100),
    column(Quantity::Loss, "loss_ratio", 1),
];

const HEADER: &str = "the first line lists the columns, separated by commas: \
                      time_s,rate_bit_per_s or time_s,rate_bit_per_s,delay_ms,loss_percent";

/// The columns of a file that are used, each with its index.
#[derive(Debug)]
struct Header {
    width: usize,
    time: (usize, Column),
    rate: (usize, Column),
    delay: Option<(usize, Column)>,
    loss: Option<(usize, Column)>,
}

/// Reads the rows of a trace, which recurs with the period `every`.
pub(super) fn parse(text: &str, every: Option<Duration>) -> Result<LinkTraceContent, RowError> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let Some((_, first)) = lines.next() else { return Err(of_file("the file is empty", HEADER)) };
    let header = Header::parse(first.trim_start_matches('\u{feff}'))?;
    let mut steps: Vec<LinkStep> = Vec::new();
    for (number, line) in lines {
        let row = Row { number, line };
        let step = header.step(&row)?;
        row.check_time(&header, steps.last(), step.at, every)?;
        steps.push(step);
    }
    if steps.is_empty() {
        return Err(of_file("the file has no rows", "write at least one row with time 0"));
    }
    let steps = LinkSteps::new(steps, every).ok_or_else(|| {
        of_file("all rates of the trace are 0", "write a rate above 0 in at least one row")
    })?;
    Ok(LinkTraceContent::Steps(Arc::new(steps)))
}

impl Header {
    fn parse(line: &str) -> Result<Self, RowError> {
        let names: Vec<_> = cells(line).map(str::to_ascii_lowercase).collect();
        if names.len() == 1 && line.contains([';', '\t']) {
            return Err(of_file("the columns are not separated by commas", HEADER));
        }
        let mut found: Vec<(usize, Column)> = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let Some(column) = COLUMNS.iter().find(|column| column.name == name) else {
                // A misspelt optional column would be ignored silently.
                let stem = name.split('_').next().unwrap_or_default();
                let is_meant = ["time", "rate", "delay", "loss"].contains(&stem);
                if is_meant {
                    let message = format!("there is no column `{}`", shown(name));
                    return Err(of_file(message, format!("{HEADER}; {}", names_of(stem))));
                }
                continue;
            };
            if let Some((_, other)) = found.iter().find(|(_, c)| c.quantity == column.quantity) {
                let message = format!(
                    "there are two columns of the same kind: `{}` and `{}`",
                    other.name, column.name
                );
                return Err(of_file(message, "remove or rename one of them"));
            }
            found.push((index, *column));
        }
        let find = |quantity| found.iter().find(|(_, column)| column.quantity == quantity).copied();
        let missing = |name: &str| of_file(format!("there is no column `{name}`"), HEADER);
        Ok(Self {
            width: names.len(),
            time: find(Quantity::Time).ok_or_else(|| missing("time_s"))?,
            rate: find(Quantity::Rate).ok_or_else(|| missing("rate_bit_per_s"))?,
            delay: find(Quantity::Delay),
            loss: find(Quantity::Loss),
        })
    }

    fn step(&self, row: &Row<'_>) -> Result<LinkStep, RowError> {
        let cells: Vec<_> = cells(row.line).collect();
        if cells.len() != self.width {
            let (found, width) = (cells.len(), self.width);
            return Err(row.refused(
                "",
                row.line,
                format!("{found} cells, but the first line names {width} columns"),
                "separate cells by commas and write numbers with a decimal point: 0.5,250000",
            ));
        }
        let value = |(index, column): (usize, Column)| row.number(column, cells[index]);
        let delay = self.delay.map(value).transpose()?.unwrap_or_default();
        let loss = self.loss.map(|(index, column)| row.probability(column, cells[index]));
        Ok(LinkStep {
            at: Duration::from_nanos(value(self.time)?),
            rate: BitRate::from_bits_per_sec(value(self.rate)?),
            delay: Duration::from_nanos(delay),
            loss: loss.transpose()?.unwrap_or_default(),
        })
    }
}

/// A line of the file with values.
struct Row<'t> {
    number: u64,
    line: &'t str,
}

impl Row<'_> {
    /// The value of a cell in the base unit.
    fn number(&self, column: Column, cell: &str) -> Result<u64, RowError> {
        let value = Decimal::parse(cell)
            .filter(|decimal| !decimal.negative || decimal.digits == 0)
            .and_then(|decimal| u64::try_from(decimal.times(column.scale)?).ok())
            .filter(|value| *value <= Duration::MAX.as_nanos());
        value.ok_or_else(|| {
            self.refused(
                column.name,
                cell,
                format!("expected a number of at least 0, found `{}`", shown(cell)),
                "write it like 1.25, without unit",
            )
        })
    }

    fn probability(&self, column: Column, cell: &str) -> Result<Probability, RowError> {
        let ratio = cell.parse::<f64>().ok().map(|value| value / column.scale as f64);
        ratio.and_then(Probability::new).ok_or_else(|| {
            let most = column.scale;
            let message = format!("expected a number from 0 to {most}, found `{}`", shown(cell));
            self.refused(column.name, cell, message, "write it like 0.5, without unit")
        })
    }

    /// Checks that the time of this row is 0 in the first row, not before the previous one, and
    /// within the period.
    fn check_time(
        &self,
        header: &Header,
        before: Option<&LinkStep>,
        at: Duration,
        every: Option<Duration>,
    ) -> Result<(), RowError> {
        let (index, column) = header.time;
        let refused = |message: String, remedy: &str| {
            let cell = cells(self.line).nth(index).unwrap_or(self.line);
            Err(self.refused(column.name, cell, message, remedy))
        };
        match before {
            None if !at.is_zero() => {
                let message = format!("the first row has the time {at}");
                refused(message, "begin with a row at time 0: the link needs a rate from then on")
            }
            Some(before) if at < before.at => {
                let message = format!("{at} after {}: the rows are not in order", before.at);
                refused(message, "sort the rows by time")
            }
            _ if every.is_some_and(|every| at >= every) => {
                let every = every.unwrap_or_default();
                let message = format!("{at} is not before the end of the period, {every}");
                refused(message, "lengthen `every` in the scenario, or remove the row")
            }
            _ => Ok(()),
        }
    }

    fn refused(&self, column: &str, cell: &str, message: String, remedy: &str) -> RowError {
        let start = (cell.as_ptr() as usize).saturating_sub(self.line.as_ptr() as usize);
        let span = if cell.is_empty() || start + cell.len() > self.line.len() {
            0..self.line.len()
        } else {
            start..start + cell.len()
        };
        of_cell(Unit::Line, self.number, column, message, remedy).at(self.line, span)
    }
}

/// The names of the columns that begin with a word.
fn names_of(stem: &str) -> String {
    let names = COLUMNS.iter().filter(|column| column.name.starts_with(stem));
    let names: Vec<_> = names.map(|column| column.name).collect();
    format!("columns of this kind: {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::Instant;

    use super::*;

    #[test]
    fn rows_are_steps() {
        let text = "time_ms,rate_kbit_per_s,signal,delay_s,loss_percent\n\
                    0,250.5,-80,0.01,2.5\n\n1500, 0 ,-120,0,100\n";
        let Ok(LinkTraceContent::Steps(steps)) = parse(text, None) else { panic!("a trace") };
        let first = *steps.at(Instant::ZERO);
        assert_eq!(first.rate.as_bits_per_sec(), 250_500);
        assert_eq!(first.delay, Duration::from_millis(10));
        assert_eq!(first.loss, Probability::new(0.025).unwrap());
        let second = *steps.at(Instant::ZERO + Duration::from_millis(1_500));
        assert_eq!(second.at, Duration::from_millis(1_500));
        assert_eq!((second.rate, second.loss), (BitRate::default(), Probability::ONE));
    }

    #[test]
    fn an_invalid_file_is_reported_with_line_and_column() {
        let head = "time_s,rate_bit_per_s\n";
        let of_rows = |rows: &str| format!("{head}{rows}");
        let cases = [
            (String::new(), "the file is empty"),
            (head.to_owned(), "the file has no rows"),
            ("time_s;rate_bit_per_s\n".into(), "the columns are not separated by commas"),
            ("time_s,bytes\n0,1\n".into(), "there is no column `rate_bit_per_s`"),
            ("time_s,rate\n0,1\n".into(), "there is no column `rate`"),
            ("time_s,rate_bit_per_s,delay\n0,1,1\n".into(), "there is no column `delay`"),
            ("time_s,time_ms,rate_bit_per_s\n".into(), "`time_s` and `time_ms`"),
            (of_rows("0,1\n1\n"), ":3:1: 1 cells, but the first line names 2 columns"),
            (of_rows("0,1\n1,fast\n"), ":3:3: column `rate_bit_per_s`: expected a number"),
            (of_rows("0,-1\n"), ":2:3: column `rate_bit_per_s`: expected a number"),
            (of_rows("1,1\n"), ":2:1: column `time_s`: the first row has the time 1 s"),
            (of_rows("0,1\n5,1\n4,1\n"), ":4:1: column `time_s`: 4 s after 5 s"),
            (of_rows("0,1\n9,1\n10,1\n"), "10 s is not before the end of the period, 10 s"),
            (of_rows("0,0\n5,0\n"), "all rates of the trace are 0"),
            (
                "time_s,rate_bit_per_s,loss_ratio\n0,1,1.5\n".into(),
                ":2:5: column `loss_ratio`: expected a number from 0 to 1",
            ),
        ];
        for (text, expected) in cases {
            let error = parse(&text, Some(Duration::from_secs(10))).expect_err(&text);
            let message = error.to_string();
            assert!(message.contains(expected), "{expected:?} is not in {message:?}");
            assert!(message.contains("help: "), "{message}");
        }
    }
}
