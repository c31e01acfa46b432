//! Compares what was seen with what was expected, and says where they part.

use std::fmt::Write as _;

use gridhaul_scenario::units::Instant;

use crate::case::{Case, Range, Row, WindowRow};
use crate::observe::{Observation, Value};

/// Compares; an empty text means agreement.
///
/// # Errors
/// The difference, for people.
pub fn judge(case: &Case, seen: &Observation) -> Result<(), String> {
    let mut report = String::new();
    if case.expect.events.is_some() {
        compare_rows(&mut report, case, seen);
    }
    for row in case.expect.window_rows()? {
        compare_window(&mut report, &row, seen);
    }
    for (name, range) in &case.expect.totals {
        compare_total(&mut report, name, &Range::parse(range), seen.totals.get(name));
    }
    for violation in &seen.violations {
        let _ = writeln!(report, "never allowed: {violation}");
    }
    if report.is_empty() {
        return Ok(());
    }
    Err(format!("{}\n{}: {}\n\n{report}", case.title, case.source, case.says.trim()))
}

fn compare_rows(report: &mut String, case: &Case, seen: &Observation) {
    let expected = case.expect.rows().unwrap_or_default();
    let observed = seen.rows(&case.expect);
    let same = |expected: &Row, observed: &(f64, String)| {
        let near = expected.ms.is_none_or(|ms| (ms - observed.0).abs() <= case.expect.tolerance_ms);
        near && expected.text == observed.1
    };
    let count = expected.len().max(observed.len());
    let agree = |index: usize| match (expected.get(index), observed.get(index)) {
        (Some(expected), Some(observed)) => same(expected, observed),
        _ => false,
    };
    let Some(first) = (0..count).find(|&index| !agree(index)) else { return };
    let _ = writeln!(report, "  {:<48} | observed", "expected");
    for index in 0..count.min(first + 30) {
        let left = expected.get(index).map_or(String::new(), |row| {
            let ms = row.ms.map_or("~".to_owned(), |ms| format!("{ms:.3}"));
            format!("{ms:>10} | {}", row.text)
        });
        let right =
            observed.get(index).map_or(String::new(), |(ms, text)| format!("{ms:>10.3} | {text}"));
        let mark = if agree(index) { ' ' } else { '!' };
        let _ = writeln!(report, "{mark} {left:<48} | {right}");
    }
    if count > first + 30 {
        let _ = writeln!(report, "  ... {} rows more", count - first - 30);
    }
}

fn compare_window(report: &mut String, row: &WindowRow, seen: &Observation) {
    let (from, to) = row.ms;
    let at = |ms: f64| Instant::from_secs_f64(ms / 1e3);
    let mss = f64::from(seen.mss.max(1));
    for (name, range) in &row.quantities {
        let values: Vec<f64> = if name == "rate" {
            vec![seen.rate_in(at(from), at(to))]
        } else {
            let samples = seen.samples_in(at(from), at(to));
            let bytes = samples.map(|sample| match name.as_str() {
                "cwnd" => f64::from(sample.cwnd),
                "ssthresh" => f64::from(sample.ssthresh),
                _ => sample.flight as f64,
            });
            bytes.map(|bytes| bytes / mss).collect()
        };
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if values.is_empty() || !range.holds(least) || !range.holds(most) {
            let seen = if least == most {
                format!("{least:.3}")
            } else {
                format!("{least:.3} to {most:.3}")
            };
            let _ = writeln!(report, "! {from}..{to} ms: {name} is {seen}, expected {range}");
        }
    }
}

fn compare_total(report: &mut String, name: &str, range: &Range, seen: Option<&Value>) {
    let (agrees, seen) = match (range, seen) {
        (Range::Numbers(..), Some(Value::Number(number))) => {
            (range.holds(*number), number.to_string())
        }
        (Range::Word(word), Some(Value::Word(seen))) => (word == seen, seen.clone()),
        (_, seen) => (false, format!("{seen:?}")),
    };
    if !agrees {
        let _ = writeln!(report, "! {name} is {seen}, expected {range}");
    }
}
