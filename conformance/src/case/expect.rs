//! What must be seen.
//!
//! Rows of `events` are `ms | what`, in the words of [`Packet::row`](crate::observe::Packet::row);
//! a time of `~` is any. Rows of `window` are `ms | quantity range ...` or, for a whole stretch of
//! time, `ms..ms | quantity range ...`, with windows in segments.

use indexmap::IndexMap;
use serde::Deserialize;

use super::End;

/// What must be seen.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Packets, in order, one a line.
    pub events: Option<String>,
    /// What of the traffic is shown: directions `sent`, `received`; kinds `data`, `acks`,
    /// `again` (repeats only), `states`;
    /// columns `ack`, `win`, `echo`, `options`; `each` leaves packets in a row uncollected.
    #[serde(default)]
    pub show: Vec<String>,
    /// Where the traffic is captured.
    #[serde(default = "at_client")]
    pub seen_from: End,
    /// Part of the run that is shown, in milliseconds.
    pub between: Option<[f64; 2]>,
    /// By how much times may differ.
    #[serde(default = "tolerance")]
    pub tolerance_ms: f64,
    /// Why the tolerance is what it is.
    #[serde(default)]
    pub tolerance_reason: String,
    /// State of the client's window, one time a line.
    pub window: Option<String>,
    /// Quantities of the whole run, each within a range.
    #[serde(default)]
    pub totals: IndexMap<String, String>,
}

const fn at_client() -> End {
    End::Client
}
const fn tolerance() -> f64 {
    0.1
}

/// A row of the expected packets.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// When, in milliseconds; any time without.
    pub ms: Option<f64>,
    /// What.
    pub text: String,
}

/// A row of the expected windows.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowRow {
    /// From when to when, in milliseconds; the same for a single time.
    pub ms: (f64, f64),
    /// Quantities and the ranges they must stay in.
    pub quantities: Vec<(String, Range)>,
}

/// A closed range of numbers, or a word.
#[derive(Debug, Clone, PartialEq)]
pub enum Range {
    /// From, to.
    Numbers(f64, f64),
    /// Just this.
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
    /// Whether a number lies inside, but for rounding.
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

impl Expect {
    pub(super) fn check(&self) -> Result<(), String> {
        self.rows()?;
        self.window_rows()?;
        const SHOWN: [&str; 11] = [
            "again", "sent", "received", "data", "acks", "states", "ack", "win", "echo", "options",
            "each",
        ];
        if let Some(word) = self.show.iter().find(|word| !SHOWN.contains(&word.as_str())) {
            return Err(format!("cannot show `{word}`; known: {}", SHOWN.join(", ")));
        }
        if self.events.is_none() && self.window.is_none() && self.totals.is_empty() {
            return Err("nothing is expected".to_owned());
        }
        if self.tolerance_ms != tolerance() && self.tolerance_reason.is_empty() {
            return Err("a tolerance needs its reason".to_owned());
        }
        Ok(())
    }

    /// Whether something is shown.
    #[must_use]
    pub fn shows(&self, what: &str) -> bool {
        self.show.iter().any(|word| word == what)
    }

    /// The expected packets.
    ///
    /// # Errors
    /// The line that makes no sense.
    pub fn rows(&self) -> Result<Vec<Row>, String> {
        let lines = lines(self.events.as_deref());
        lines.map(|line| row(line).ok_or_else(|| format!("cannot read the row `{line}`"))).collect()
    }

    /// The expected windows.
    ///
    /// # Errors
    /// The line that makes no sense.
    pub fn window_rows(&self) -> Result<Vec<WindowRow>, String> {
        let lines = lines(self.window.as_deref());
        lines
            .map(|line| window_row(line).ok_or_else(|| format!("cannot read the window `{line}`")))
            .collect()
    }
}

fn lines(text: Option<&str>) -> impl Iterator<Item = &str> {
    let lines = text.unwrap_or_default().lines();
    let lines = lines.map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty())
}

fn row(line: &str) -> Option<Row> {
    let (ms, text) = line.split_once('|')?;
    let ms = if ms.trim() == "~" { None } else { Some(ms.trim().parse().ok()?) };
    Some(Row { ms, text: text.split_whitespace().collect::<Vec<_>>().join(" ") })
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
