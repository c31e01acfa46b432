//! Comparison of an observation with the expectation of its case.

use std::fmt::Write as _;

use gridhaul_scenario::units::Instant;

use crate::case::{Case, EventRow, Range, WindowRow};
use crate::observation::{Observation, Value};

/// Tolerance of a backend, the same for all cases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackendTolerance {
    /// An event may be this many milliseconds early.
    pub early_ms: f64,
    /// An event may be this many milliseconds late.
    pub late_ms: f64,
    /// Additional lateness, as a fraction of the time since the previous packet.
    pub late_fraction: f64,
    /// Whether windows are rounded down to whole segments.
    pub whole_windows: bool,
}

impl BackendTolerance {
    /// No tolerance: the clock is virtual.
    pub const EXACT: Self =
        Self { early_ms: 0.0, late_ms: 0.0, late_fraction: 0.0, whole_windows: false };

    /// A Linux kernel with 250 ticks per second.
    ///
    /// - Timers count ticks of 4 ms. A duration is rounded to ticks when it is calculated, when the
    ///   timer is set, and when the timer wheel accepts it: at most three ticks late and one early.
    ///   Half a millisecond is added for round-trip times, which are measured with a real clock.
    /// - The resolution of the timer wheel (`kernel/time/timer.c`) decreases with the duration of a
    ///   timer: it expires late by at most one eighth of its duration, and never early.
    /// - Replies to a segment or to the application are immediate and have no tolerance.
    /// - Windows are whole segments; fractions are kept in `snd_cwnd_cnt`.
    pub const KERNEL: Self =
        Self { early_ms: 4.5, late_ms: 12.5, late_fraction: 0.125, whole_windows: true };

    fn holds(&self, range: &Range, value: f64) -> bool {
        match *range {
            Range::Numbers(low, high) if self.whole_windows => {
                Range::Numbers(low.floor(), high).holds(value)
            }
            _ => range.holds(value),
        }
    }
}

/// Compares an observation with the expectation of its case, within the tolerance of the backend.
///
/// # Errors
/// A readable report of the differences.
pub fn compare(
    case: &Case,
    observation: &Observation,
    tolerance: &BackendTolerance,
) -> Result<(), String> {
    let mut report = String::new();
    if case.expect.events.is_some() {
        compare_rows(&mut report, case, observation, tolerance);
    }
    for row in case.expect.window_rows()? {
        compare_window(&mut report, &row, observation, tolerance);
    }
    for (name, range) in &case.expect.totals {
        let range = match Range::parse(range) {
            Range::Numbers(low, high) if name.ends_with("_ms") => {
                Range::Numbers(low - tolerance.early_ms, high + tolerance.late_ms)
            }
            range => range,
        };
        compare_total(&mut report, name, &range, observation.totals.get(name));
    }
    for violation in &observation.violations {
        let _ = writeln!(report, "invariant violated: {violation}");
    }
    if report.is_empty() {
        return Ok(());
    }
    Err(format!("{}\n{}: {}\n\n{report}", case.title, case.source, case.requirement.trim()))
}

fn compare_rows(
    report: &mut String,
    case: &Case,
    observation: &Observation,
    tolerance: &BackendTolerance,
) {
    let expected = case.expect.rows().unwrap_or_default();
    let observed = observation.rows(&case.expect);
    let mut punctual = TimingCheck::new(case, observation, tolerance);
    let mut same = |expected: &EventRow, observed: &(f64, String)| {
        let in_time = expected.ms.is_none_or(|ms| punctual.holds(ms, observed.0));
        in_time && expected.text == observed.1
    };
    let count = expected.len().max(observed.len());
    let agree: Vec<bool> = (0..count)
        .map(|index| match (expected.get(index), observed.get(index)) {
            (Some(expected), Some(observed)) => same(expected, observed),
            _ => false,
        })
        .collect();
    let Some(first) = agree.iter().position(|agree| !agree) else { return };
    let _ = writeln!(report, "  {:<48} | observed", "expected");
    for (index, &agree) in agree.iter().enumerate().take(first + 30) {
        let left = expected.get(index).map_or(String::new(), |row| {
            let ms = row.ms.map_or("~".to_owned(), |ms| format!("{ms:.3}"));
            format!("{ms:>10} | {}", row.text)
        });
        let right =
            observed.get(index).map_or(String::new(), |(ms, text)| format!("{ms:>10.3} | {text}"));
        let mark = if agree { ' ' } else { '!' };
        let _ = writeln!(report, "{mark} {left:<48} | {right}");
    }
    if count > first + 30 {
        let _ = writeln!(report, "  ... {} more rows", count - first - 30);
    }
}

/// Checks observed times against expected times, row by row.
struct TimingCheck<'a> {
    tolerance: &'a BackendTolerance,
    observation: &'a Observation,
    tolerance_ms: f64,
    /// Largest lateness so far: events that follow from a late event may be late by the same
    /// amount.
    accumulated_delay_ms: f64,
    /// Times of the input: events at these times are immediate replies, not timer expirations.
    input_ms: Vec<f64>,
    /// Times of arrivals: events at these times are immediate replies. Arrivals may be late
    /// themselves.
    arrivals_ms: Vec<f64>,
}

impl<'a> TimingCheck<'a> {
    fn new(case: &Case, observation: &'a Observation, tolerance: &'a BackendTolerance) -> Self {
        let ms = |at: Instant| at.as_secs_f64() * 1e3;
        let arrivals =
            observation.packets.iter().filter(|packet| packet.captured_at != packet.from);
        Self {
            tolerance,
            observation,
            tolerance_ms: case.expect.tolerance_ms,
            accumulated_delay_ms: 0.0,
            input_ms: case.steps().unwrap_or_default().iter().map(|step| ms(step.at)).collect(),
            arrivals_ms: arrivals.map(|packet| ms(packet.at)).collect(),
        }
    }

    fn holds(&mut self, expected_ms: f64, observed_ms: f64) -> bool {
        let tolerance_ms = self.tolerance_ms;
        let expected = |ms: &f64| (ms - expected_ms).abs() <= tolerance_ms;
        let mut done = self.input_ms.iter().chain(&self.arrivals_ms);
        if done.any(expected) || self.input_ms.contains(&observed_ms) {
            return (observed_ms - expected_ms).abs() <= tolerance_ms;
        }
        let before = |ms: f64| (ms < observed_ms - 0.01).then_some(ms);
        let earlier = self.observation.packets.iter().map(|packet| packet.at.as_secs_f64() * 1e3);
        let last = earlier.filter_map(before).fold(0.0, f64::max);
        let share = self.tolerance.late_fraction * (observed_ms - last);
        let off = observed_ms - expected_ms;
        let late = self.tolerance_ms + self.tolerance.late_ms + share + self.accumulated_delay_ms;
        self.accumulated_delay_ms = if self.tolerance.late_fraction > 0.0 {
            self.accumulated_delay_ms.max(off)
        } else {
            0.0
        };
        (-(self.tolerance_ms + self.tolerance.early_ms)..=late).contains(&off)
    }
}

fn compare_window(
    report: &mut String,
    row: &WindowRow,
    observation: &Observation,
    tolerance: &BackendTolerance,
) {
    let (from, to) = row.ms;
    let at = |ms: f64| Instant::from_secs_f64(ms / 1e3);
    let mss = f64::from(observation.mss.max(1));
    for (name, range) in &row.quantities {
        let values: Vec<f64> = if name == "rate" {
            vec![observation.rate_in(at(from), at(to))]
        } else {
            let samples = observation.samples_in(at(from), at(to));
            let bytes = samples.map(|sample| match name.as_str() {
                "cwnd" => f64::from(sample.cwnd),
                "ssthresh" => f64::from(sample.ssthresh),
                _ => sample.flight as f64,
            });
            bytes.map(|bytes| bytes / mss).collect()
        };
        let minimum = values.iter().copied().fold(f64::INFINITY, f64::min);
        let maximum = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if values.is_empty() || !tolerance.holds(range, minimum) || !tolerance.holds(range, maximum)
        {
            let observation = if minimum == maximum {
                format!("{minimum:.3}")
            } else {
                format!("{minimum:.3} to {maximum:.3}")
            };
            let _ =
                writeln!(report, "! {from}..{to} ms: {name} is {observation}, expected {range}");
        }
    }
}

fn compare_total(report: &mut String, name: &str, range: &Range, observation: Option<&Value>) {
    let (agrees, observation) = match (range, observation) {
        (Range::Numbers(..), Some(Value::Number(number))) => {
            (range.holds(*number), number.to_string())
        }
        (Range::Word(word), Some(Value::Word(observation))) => {
            (word == observation, observation.clone())
        }
        (_, observation) => (false, format!("{observation:?}")),
    };
    if !agrees {
        let _ = writeln!(report, "! {name} is {observation}, expected {range}");
    }
}
