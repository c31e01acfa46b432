//! Rates, delays and losses in CSV.

use std::sync::Arc;

use gridhaul_scenario::scenario::{LinkStep, LinkSteps, LinkTraceContent};
use gridhaul_scenario::units::{BitRate, Duration};

use crate::link_table::{Column, Columns, Quantity, Row, rows};
use crate::trace::error::{RowError, of_file};

const HEADER: &str = "the first line lists the columns, separated by commas: \
                      time_s,rate_bit_per_s or time_s,rate_bit_per_s,delay_ms,loss_percent";

/// The columns of a trace.
#[derive(Debug)]
struct Header {
    time: Column,
    rate: Column,
    delay: Option<Column>,
    loss: Option<Column>,
}

/// Reads the rows of a trace, which recurs with the period `every`.
pub(super) fn parse(text: &str, every: Option<Duration>) -> Result<LinkTraceContent, RowError> {
    let known = [Quantity::Time, Quantity::Rate, Quantity::Delay, Quantity::Loss];
    let (columns, rows) = rows(text, &known, HEADER)?;
    let header = Header::of(&columns)?;
    let mut steps: Vec<LinkStep> = Vec::new();
    for row in rows {
        let step = header.step(&row)?;
        header.check_time(&row, steps.last(), step.at, every)?;
        steps.push(step);
    }
    let steps = LinkSteps::new(steps, every).ok_or_else(|| {
        of_file("all rates of the trace are 0", "write a rate above 0 in at least one row")
    })?;
    Ok(LinkTraceContent::Steps(Arc::new(steps)))
}

impl Header {
    fn of(columns: &Columns) -> Result<Self, RowError> {
        Ok(Self {
            time: columns.required(Quantity::Time, "time_s", HEADER)?,
            rate: columns.required(Quantity::Rate, "rate_bit_per_s", HEADER)?,
            delay: columns.find(Quantity::Delay),
            loss: columns.find(Quantity::Loss),
        })
    }

    fn step(&self, row: &Row<'_>) -> Result<LinkStep, RowError> {
        let delay = self.delay.map(|column| row.number(column)).transpose()?.unwrap_or_default();
        let loss = self.loss.map(|column| row.probability(column)).transpose()?;
        Ok(LinkStep {
            at: Duration::from_nanos(row.number(self.time)?),
            rate: BitRate::from_bits_per_sec(row.number(self.rate)?),
            delay: Duration::from_nanos(delay),
            loss: loss.unwrap_or_default(),
        })
    }

    /// Checks that the time of a row is 0 in the first row, not before the previous one, and within
    /// the period.
    fn check_time(
        &self,
        row: &Row<'_>,
        before: Option<&LinkStep>,
        at: Duration,
        every: Option<Duration>,
    ) -> Result<(), RowError> {
        let refused = |message: String, remedy: &str| Err(row.refused(self.time, message, remedy));
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
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::{Instant, Probability};

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
