//! Delivery opportunities in the format of Mahimahi: whole milliseconds, one in each line.

use std::sync::Arc;

use gridhaul_scenario::scenario::{Deliveries, LinkTraceContent};

use crate::trace::error::{RowError, Unit, of_cell, of_file, shown};

/// Reads a trace with the rules of `link_queue.cc`: no empty line, times in order, and a last time
/// above 0.
pub(super) fn parse(text: &str, repeat: bool) -> Result<LinkTraceContent, RowError> {
    let mut millis: Vec<u32> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let value = millis_of(number, line)?;
        if let Some(before) = millis.last().filter(|before| **before > value) {
            let message = format!("{value} ms after {before} ms: the lines are not in order");
            return Err(at_line(number, line, message, "sort the lines by time"));
        }
        millis.push(value);
    }
    if millis.is_empty() {
        let remedy = "write the time of each delivery opportunity in milliseconds, one in a line";
        return Err(of_file("the file has no lines", remedy));
    }
    let deliveries = Deliveries::new(millis, repeat).ok_or_else(|| {
        let remedy = "add the time at which the trace starts again";
        of_file("the trace has no length: its last line is 0", remedy)
    })?;
    Ok(LinkTraceContent::Deliveries(Arc::new(deliveries)))
}

fn millis_of(number: u64, line: &str) -> Result<u32, RowError> {
    let text = line.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number {
        let message = match text {
            "" => "this line is empty".to_owned(),
            text => format!("expected whole milliseconds such as 125, found `{}`", shown(text)),
        };
        let remedy = "remove the line: a trace of Mahimahi has the time of a delivery opportunity \
                      in each line; for columns use trace.steps";
        return Err(at_line(number, line, message, remedy));
    }
    text.parse().map_err(|_| {
        let message = format!("{} ms is too large a time", shown(text));
        at_line(number, line, message, "count from the beginning of the trace: at most 49 days")
    })
}

fn at_line(number: u64, line: &str, message: String, remedy: &str) -> RowError {
    of_cell(Unit::Line, number, "", message, remedy).at(line, 0..line.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_milliseconds() {
        let Ok(LinkTraceContent::Deliveries(trace)) = parse("0\n5\n5\n20\n", false) else {
            panic!("a trace");
        };
        let times: Vec<_> = (0..4).map(|position| trace.time(position).as_nanos()).collect();
        assert_eq!(times, [0, 5_000_000, 5_000_000, 20_000_000]);
    }

    #[test]
    fn an_invalid_line_is_reported_with_its_number() {
        let cases = [
            ("", "the file has no lines"),
            ("0\n0\n", "the trace has no length: its last line is 0"),
            ("1\n\n2\n", ":2:1: this line is empty"),
            ("1\n5 ms\n", ":2:1: expected whole milliseconds such as 125, found `5 ms`"),
            ("1\n1.5\n", ":2:1: expected whole milliseconds such as 125, found `1.5`"),
            ("7\n6\n", ":2:1: 6 ms after 7 ms: the lines are not in order"),
            ("4294967296\n", ":1:1: 4294967296 ms is too large a time"),
        ];
        for (text, expected) in cases {
            let message = parse(text, true).expect_err(text).to_string();
            assert!(message.contains(expected), "{message}");
            assert!(message.contains("help: "), "{message}");
        }
    }
}
