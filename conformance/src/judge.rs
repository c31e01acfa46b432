//! Compares what was seen with what was expected, and says where they part.

use std::fmt::Write as _;

use gridhaul_scenario::units::Instant;

use crate::case::{Case, Range, Row, WindowRow};
use crate::observe::{Observation, Value};

/// What an arm cannot show more exactly, in all cases alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allowance {
    /// By how many milliseconds something may come before its time.
    pub early_ms: f64,
    /// By how many it may come after.
    pub late_ms: f64,
    /// What is added to that: this share of the time for which nothing has happened before.
    pub late_share: f64,
    /// Whether windows are whole segments there, fractions left out.
    pub whole_windows: bool,
}

impl Allowance {
    /// A virtual clock shows everything.
    pub const EXACT: Self =
        Self { early_ms: 0.0, late_ms: 0.0, late_share: 0.0, whole_windows: false };

    /// A Linux kernel with 250 ticks in a second.
    ///
    /// - Its timers count ticks of 4 ms. A time is rounded to ticks when it is worked out, when the timer is
    ///   set, and when the wheel takes it: three ticks late at most, one early, and half a millisecond for
    ///   the round trips that it comes from, which were measured on a real clock.
    /// - Its timer wheel (`kernel/time/timer.c`) is the coarser the longer a timer runs: an eighth of the
    ///   time at most, and never early.
    /// - What answers a segment or the application comes at once, and has none of this.
    /// - It keeps windows in whole segments, and the shares of one apart (`snd_cwnd_cnt`).
    pub const KERNEL: Self =
        Self { early_ms: 4.5, late_ms: 12.5, late_share: 0.125, whole_windows: true };

    fn holds(&self, range: &Range, value: f64) -> bool {
        match *range {
            Range::Numbers(low, high) if self.whole_windows => {
                Range::Numbers(low.floor(), high).holds(value)
            }
            _ => range.holds(value),
        }
    }
}

/// Compares, with what the arm cannot show more exactly; an empty text means agreement.
///
/// # Errors
/// The difference, for people.
pub fn judge(case: &Case, seen: &Observation, allowance: &Allowance) -> Result<(), String> {
    let mut report = String::new();
    if case.expect.events.is_some() {
        compare_rows(&mut report, case, seen, allowance);
    }
    for row in case.expect.window_rows()? {
        compare_window(&mut report, &row, seen, allowance);
    }
    for (name, range) in &case.expect.totals {
        let range = match Range::parse(range) {
            Range::Numbers(low, high) if name.ends_with("_ms") => {
                Range::Numbers(low - allowance.early_ms, high + allowance.late_ms)
            }
            range => range,
        };
        compare_total(&mut report, name, &range, seen.totals.get(name));
    }
    for violation in &seen.violations {
        let _ = writeln!(report, "never allowed: {violation}");
    }
    if report.is_empty() {
        return Ok(());
    }
    Err(format!("{}\n{}: {}\n\n{report}", case.title, case.source, case.says.trim()))
}

fn compare_rows(report: &mut String, case: &Case, seen: &Observation, allowance: &Allowance) {
    let expected = case.expect.rows().unwrap_or_default();
    let observed = seen.rows(&case.expect);
    let mut punctual = Punctual::new(case, seen, allowance);
    let mut same = |expected: &Row, observed: &(f64, String)| {
        let near = expected.ms.is_none_or(|ms| punctual.holds(ms, observed.0));
        near && expected.text == observed.1
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
        let _ = writeln!(report, "  ... {} rows more", count - first - 30);
    }
}

/// Whether times are near enough, from the first row on.
struct Punctual<'a> {
    allowance: &'a Allowance,
    seen: &'a Observation,
    tolerance_ms: f64,
    /// What came late lets what follows from it come late.
    behind_ms: f64,
    /// Times of the input: what is expected or seen then is its answer, and no timer's.
    steps_ms: Vec<f64>,
    /// Times of arrivals: what is expected then is their answer. They may be late themselves.
    arrivals_ms: Vec<f64>,
}

impl<'a> Punctual<'a> {
    fn new(case: &Case, seen: &'a Observation, allowance: &'a Allowance) -> Self {
        let ms = |at: Instant| at.as_secs_f64() * 1e3;
        let arrivals = seen.packets.iter().filter(|packet| packet.seen_at != packet.from);
        Self {
            allowance,
            seen,
            tolerance_ms: case.expect.tolerance_ms,
            behind_ms: 0.0,
            steps_ms: case.steps().unwrap_or_default().iter().map(|step| ms(step.at)).collect(),
            arrivals_ms: arrivals.map(|packet| ms(packet.at)).collect(),
        }
    }

    fn holds(&mut self, expected_ms: f64, observed_ms: f64) -> bool {
        let tolerance_ms = self.tolerance_ms;
        let expected = |ms: &f64| (ms - expected_ms).abs() <= tolerance_ms;
        let mut done = self.steps_ms.iter().chain(&self.arrivals_ms);
        if done.any(expected) || self.steps_ms.contains(&observed_ms) {
            return (observed_ms - expected_ms).abs() <= tolerance_ms;
        }
        let before = |ms: f64| (ms < observed_ms - 0.01).then_some(ms);
        let earlier = self.seen.packets.iter().map(|packet| packet.at.as_secs_f64() * 1e3);
        let last = earlier.filter_map(before).fold(0.0, f64::max);
        let share = self.allowance.late_share * (observed_ms - last);
        let off = observed_ms - expected_ms;
        let late = self.tolerance_ms + self.allowance.late_ms + share + self.behind_ms;
        self.behind_ms =
            if self.allowance.late_share > 0.0 { self.behind_ms.max(off) } else { 0.0 };
        (-(self.tolerance_ms + self.allowance.early_ms)..=late).contains(&off)
    }
}

fn compare_window(report: &mut String, row: &WindowRow, seen: &Observation, allowance: &Allowance) {
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
        if values.is_empty() || !allowance.holds(range, least) || !allowance.holds(range, most) {
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
