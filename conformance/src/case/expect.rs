//! The expected observation of a case.
//!
//! Rows of `events` are `ms | packet`, in the notation of
//! [`Packet::row`](crate::observation::Packet::row); the time `~` matches any time. Rows of
//! `window` are `ms | quantity range ...` or, for an interval, `ms..ms | quantity range ...`, with
//! windows in segments.

use indexmap::IndexMap;
use serde::Deserialize;

use super::Endpoint;

/// The expected observation of a case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Packets in order, one per line.
    pub events: Option<String>,
    /// Part of the traffic that is shown: directions `sent`, `received`; kinds `data`, `acks`,
    /// `retransmissions`, `states`; columns `ack`, `win`, `echo`, `options`. `each` shows each
    /// segment of a burst in a row of its own.
    #[serde(default)]
    pub show: Vec<String>,
    /// Host at which the traffic is captured.
    #[serde(default = "at_client")]
    pub captured_at: Endpoint,
    /// Interval of the run that is shown, in milliseconds.
    pub interval_ms: Option<[f64; 2]>,
    /// Largest permitted difference between expected and observed times.
    #[serde(default = "tolerance")]
    pub tolerance_ms: f64,
    /// Reason of a tolerance other than the default.
    #[serde(default)]
    pub tolerance_reason: String,
    /// State of the client's window, one time or interval per line.
    pub window: Option<String>,
    /// Quantities of the whole run, each within a range.
    #[serde(default)]
    pub totals: IndexMap<String, String>,
}

const fn at_client() -> Endpoint {
    Endpoint::Client
}
const fn tolerance() -> f64 {
    0.1
}

/// A row of the expected packets.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    /// Time in milliseconds; `None` matches any time.
    pub ms: Option<f64>,
    /// The packet in the notation of [`Packet::row`](crate::observation::Packet::row).
    pub text: String,
}

/// A row of the expected windows.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowRow {
    /// Start and end in milliseconds; equal for a single time.
    pub ms: (f64, f64),
    /// Quantities and their permitted ranges.
    pub quantities: Vec<(String, Range)>,
}

/// A closed range of numbers, or a word.
#[derive(Debug, Clone, PartialEq)]
pub enum Range {
    /// Smallest and largest permitted number.
    Numbers(f64, f64),
    /// The expected word.
    Word(String),
}

impl Range {
    /// Reads `5`, `5..7` or a word.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let (low, high) = text.split_once("..").unwrap_or((text, text));
        match (low.trim().parse(), high.trim().parse()) {
            (Ok(low), Ok(high)) => Self::Numbers(low, high),
            _ => Self::Word(text.to_owned()),
        }
    }
    /// Whether a number is within the range, apart from rounding errors.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        matches!(self, Self::Numbers(low, high) if (low - 1e-3..=high + 1e-3).contains(&value))
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Numbers(low, high) if low == high => write!(f, "{low}"),
            Self::Numbers(low, high) => write!(f, "{low}..{high}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

impl Expectation {
    pub(super) fn check(&self) -> Result<(), String> {
        self.rows()?;
        self.window_rows()?;
        const SHOWN: [&str; 11] = [
            "retransmissions",
            "sent",
            "received",
            "data",
            "acks",
            "states",
            "ack",
            "win",
            "echo",
            "options",
            "each",
        ];
        if let Some(word) = self.show.iter().find(|word| !SHOWN.contains(&word.as_str())) {
            return Err(format!(
                "`show` has the unknown word `{word}`; expected one of: {}",
                SHOWN.join(", ")
            ));
        }
        if self.events.is_none() && self.window.is_none() && self.totals.is_empty() {
            return Err("`expect` is empty; add `events`, `window` or `totals`".to_owned());
        }
        if self.tolerance_ms != tolerance() && self.tolerance_reason.is_empty() {
            return Err("`tolerance_ms` requires `tolerance_reason`".to_owned());
        }
        Ok(())
    }

    /// Whether `show` contains this word.
    #[must_use]
    pub fn shows(&self, wanted: &str) -> bool {
        self.show.iter().any(|word| word == wanted)
    }

    /// The expected packets.
    ///
    /// # Errors
    /// A line that cannot be parsed.
    pub fn rows(&self) -> Result<Vec<EventRow>, String> {
        let lines = lines(self.events.as_deref());
        lines
            .map(|line| {
                row(line).ok_or_else(|| {
                    format!("cannot parse the row `{line}` of `events`; expected `ms | packet`")
                })
            })
            .collect()
    }

    /// The expected windows.
    ///
    /// # Errors
    /// A line that cannot be parsed.
    pub fn window_rows(&self) -> Result<Vec<WindowRow>, String> {
        let lines = lines(self.window.as_deref());
        lines
            .map(|line| {
                window_row(line).ok_or_else(|| {
                    format!(
                        "cannot parse the row `{line}` of `window`; expected `ms | quantity range`"
                    )
                })
            })
            .collect()
    }
}

fn lines(text: Option<&str>) -> impl Iterator<Item = &str> {
    let lines = text.unwrap_or_default().lines();
    let lines = lines.map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty())
}

fn row(line: &str) -> Option<EventRow> {
    let (ms, text) = line.split_once('|')?;
    let ms = if ms.trim() == "~" { None } else { Some(ms.trim().parse().ok()?) };
    Some(EventRow { ms, text: text.split_whitespace().collect::<Vec<_>>().join(" ") })
}

fn window_row(line: &str) -> Option<WindowRow> {
    let (ms, text) = line.split_once('|')?;
    let Range::Numbers(from, to) = Range::parse(ms.trim()) else { return None };
    let words: Vec<&str> = text.split_whitespace().collect();
    let pairs = words.chunks(2).map(|pair| match pair {
        [name @ ("cwnd" | "ssthresh" | "flight" | "rate"), range] => {
            Some(((*name).to_owned(), Range::parse(range)))
        }
        _ => None,
    });
    Some(WindowRow { ms: (from, to), quantities: pairs.collect::<Option<_>>()? })
}
