//! Verdicts of comparisons with a paper, and the table of comparisons with which the report of a
//! paper begins.

use serde::Serialize;

use crate::TextTable;

/// Verdict of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The value lies within the accepted range, or the statement holds.
    Agrees,
    /// The value lies outside the accepted range, or the statement does not hold.
    Differs,
    /// A measured value lies so close to a limit that another measurement can have the opposite
    /// verdict.
    Undecided,
    /// There is no value.
    Unknown,
}

/// The range in which a value lies; both ends of an exact value are equal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValueRange {
    /// Smallest value.
    pub low: f64,
    /// Largest value.
    pub high: f64,
}

/// Reference of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reference {
    /// A number that the paper prints.
    PrintedNumber,
    /// The mean of ns-2.
    Ns2,
    /// A range that gridhaul states, where neither the paper nor ns-2 has a number.
    OwnRange,
    /// A statement of the paper's text.
    Statement,
    /// Another backend.
    Backend,
}

/// A comparison with its verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The compared statement or quantity, in words.
    pub statement: String,
    /// Reference of the comparison.
    pub reference: Reference,
    /// Value of the reference.
    pub printed: Option<String>,
    /// Value of gridhaul, with its source.
    pub measured: String,
    /// Verdict.
    pub verdict: Verdict,
    /// Whether the verdict is the recorded one.
    pub as_recorded: bool,
    /// Recorded reason of a difference.
    pub reason: Option<String>,
}

/// Margin of a measured value at a limit, as a share of the tolerance: on two machines, the mean of
/// the same measurement differs by more than the interval of its replications states.
pub const TOLERANCE_MARGIN: f64 = 0.05;

/// Margin of a value that was measured once, relative to the value. Its spread is unknown.
pub const SINGLE_RUN_MARGIN: f64 = 0.1;

impl Verdict {
    /// Whether a record of a difference (or of agreement) covers this verdict. An undecided value
    /// contradicts neither.
    #[must_use]
    pub fn is_as_recorded(self, recorded_as_differing: bool) -> bool {
        match self {
            Self::Agrees => !recorded_as_differing,
            Self::Differs => recorded_as_differing,
            Self::Undecided => true,
            Self::Unknown => false,
        }
    }
}

impl ValueRange {
    /// A value without uncertainty.
    #[must_use]
    pub const fn exact(value: f64) -> Self {
        Self { low: value, high: value }
    }

    /// A value with a margin on both sides.
    #[must_use]
    pub const fn around(value: f64, margin: f64) -> Self {
        Self { low: value - margin, high: value + margin }
    }

    /// Verdict on this measured value for an accepted range. Within [`TOLERANCE_MARGIN`] of a limit
    /// it is undecided; the margin is a share of the half width, or of the limit if that is
    /// smaller: a range such as 4 to 1000 is one-sided.
    #[must_use]
    pub fn measured_within(self, low: f64, high: f64) -> Verdict {
        let margins = [low, high].map(|limit| tolerance_margin(low, high, limit));
        self.verdict([low, high], margins)
    }

    /// Verdict on this value for an accepted range, both ends of which are accepted.
    #[must_use]
    pub fn within(self, low: f64, high: f64) -> Verdict {
        self.verdict([low, high], [0.0; 2])
    }

    /// Verdict for a range with a margin at each end.
    fn verdict(self, [low, high]: [f64; 2], [at_low, at_high]: [f64; 2]) -> Verdict {
        if self.low >= low + at_low && self.high <= high - at_high {
            Verdict::Agrees
        } else if self.high < low - at_low || self.low > high + at_high {
            Verdict::Differs
        // A comparison with NaN is false, so that a missing value has neither verdict above.
        } else if self.low.is_nan() || self.high.is_nan() {
            Verdict::Unknown
        } else {
            Verdict::Undecided
        }
    }
}

/// Margin of a measured value at a limit of an accepted range.
#[must_use]
pub fn tolerance_margin(low: f64, high: f64, limit: f64) -> f64 {
    TOLERANCE_MARGIN * ((high - low) / 2.0).min(limit.abs())
}

impl Reference {
    const ALL: [Self; 5] =
        [Self::PrintedNumber, Self::Ns2, Self::OwnRange, Self::Statement, Self::Backend];

    /// Name of the group of comparisons.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::PrintedNumber => "printed numbers",
            Self::Ns2 => "ns-2",
            Self::OwnRange => "own ranges",
            Self::Statement => "statements of the text",
            Self::Backend => "agreement of backends",
        }
    }
}

impl Comparison {
    /// The verdict in words.
    #[must_use]
    pub fn verdict_text(&self) -> String {
        verdict_text(self.reference, self.verdict, self.as_recorded)
    }
}

/// A verdict in words; it begins with "FAIL" if it is not the recorded one.
#[must_use]
pub fn verdict_text(reference: Reference, verdict: Verdict, as_recorded: bool) -> String {
    let is_statement = reference == Reference::Statement;
    let text = match verdict {
        Verdict::Agrees if is_statement => "holds",
        Verdict::Agrees => "agrees",
        Verdict::Differs if is_statement => "does not hold",
        Verdict::Differs => "differs",
        Verdict::Undecided => "undecided",
        Verdict::Unknown => "no value",
    };
    let note = match (as_recorded, verdict) {
        (true, _) => return text.to_owned(),
        (false, Verdict::Agrees) => ", but is recorded as differing",
        (false, Verdict::Differs) => ", not as recorded",
        (false, _) => "",
    };
    format!("FAIL: {text}{note}")
}

/// The result of all comparisons in one sentence.
#[must_use]
pub fn summary_sentence(comparisons: &[Comparison]) -> String {
    let count = |verdict| comparisons.iter().filter(|one| one.verdict == verdict).count();
    let failed = comparisons.iter().filter(|one| !one.as_recorded).count();
    let all = comparisons.len();
    let start = match failed {
        0 => format!("All {all} verdicts are as recorded"),
        _ => format!("{failed} of {all} verdicts are not as recorded"),
    };
    let verb = |number, one, many| format!("{number} {}", if number == 1 { one } else { many });
    let mut parts = vec![
        verb(count(Verdict::Agrees), "agrees", "agree"),
        verb(count(Verdict::Differs), "differs", "differ"),
    ];
    for (verdict, text) in [
        (Verdict::Undecided, "undecided, because a measured value is too close to a limit"),
        (Verdict::Unknown, "without a value"),
    ] {
        let number = count(verdict);
        if number > 0 {
            parts.push(format!("{} {text}", verb(number, "is", "are")));
        }
    }
    let last = parts.pop().unwrap_or_default();
    format!("{start}: {} and {last}.", parts.join(", "))
}

/// All comparisons: those that are not as recorded first, then undecided ones, then differences.
#[must_use]
pub fn comparison_table(comparisons: &[Comparison]) -> TextTable {
    let rank = |one: &&Comparison| match (one.as_recorded, one.verdict) {
        (false, _) => 0,
        (true, Verdict::Undecided) => 1,
        (true, Verdict::Differs) => 2,
        (true, _) => 3,
    };
    let mut sorted: Vec<_> = comparisons.iter().collect();
    sorted.sort_by_key(rank);
    let row = |one: &Comparison| {
        vec![
            one.statement.clone(),
            one.printed.clone().unwrap_or_else(|| "–".into()),
            one.measured.clone(),
            one.verdict_text(),
            one.reason.clone().unwrap_or_default(),
        ]
    };
    let headers = ["statement", "printed", "measured", "verdict", "reason"];
    TextTable {
        title: "Comparisons with the paper".into(),
        headers: headers.map(String::from).to_vec(),
        rows: sorted.into_iter().map(row).collect(),
        key_columns: headers.len(),
        note: None,
    }
}

/// Number of comparisons and verdicts for each reference.
#[must_use]
pub fn count_table(comparisons: &[Comparison]) -> TextTable {
    let rows = Reference::ALL.into_iter().filter_map(|reference| {
        let own: Vec<_> = comparisons.iter().filter(|one| one.reference == reference).collect();
        let count = |verdict| own.iter().filter(|one| one.verdict == verdict).count().to_string();
        let failed = own.iter().filter(|one| !one.as_recorded).count().to_string();
        let verdicts = [Verdict::Agrees, Verdict::Differs, Verdict::Undecided].map(count);
        let [agree, differ, undecided] = verdicts;
        let row =
            [reference.label().to_owned(), own.len().to_string(), agree, differ, undecided, failed];
        (!own.is_empty()).then(|| row.to_vec())
    });
    let headers =
        ["compared with", "comparisons", "agree", "differ", "undecided", "not as recorded"];
    TextTable {
        title: "Number of comparisons".into(),
        headers: headers.map(String::from).to_vec(),
        rows: rows.collect(),
        key_columns: 1,
        note: None,
    }
}

/// The number of comparisons with printed numbers, with ns-2 and with own ranges, as a sentence.
#[must_use]
pub fn count_sentence(comparisons: &[Comparison]) -> String {
    let count = |reference| comparisons.iter().filter(|one| one.reference == reference).count();
    format!(
        "Compared numbers: {} printed numbers, {} of ns-2, {} own ranges.",
        count(Reference::PrintedNumber),
        count(Reference::Ns2),
        count(Reference::OwnRange)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(
        reference: Reference,
        verdict: Verdict,
        recorded_as_differing: bool,
    ) -> Comparison {
        Comparison {
            statement: format!("{verdict:?}"),
            reference,
            printed: None,
            measured: "1".into(),
            verdict,
            as_recorded: verdict.is_as_recorded(recorded_as_differing),
            reason: None,
        }
    }

    #[test]
    fn a_value_inside_its_margin_is_undecided_and_contradicts_no_record() {
        let verdict = |value, margin| ValueRange::around(value, margin).within(0.0, 700.0);
        assert_eq!(verdict(696.0, 17.5), Verdict::Undecided);
        assert_eq!(verdict(704.0, 17.5), Verdict::Undecided);
        assert_eq!(verdict(682.0, 17.5), Verdict::Agrees);
        assert_eq!(verdict(718.0, 17.5), Verdict::Differs);
        assert_eq!(verdict(-18.0, 17.5), Verdict::Differs);
        assert_eq!(ValueRange::exact(700.0).within(0.0, 700.0), Verdict::Agrees);
        assert_eq!(ValueRange::exact(700.1).within(0.0, 700.0), Verdict::Differs);
        assert_eq!(ValueRange::exact(f64::NAN).within(0.0, 700.0), Verdict::Unknown);
        // The margin is 17.5 at 700, and 0.2 at 4.
        let measured = |value: f64| ValueRange::exact(value).measured_within(0.0, 700.0);
        assert_eq!(measured(682.0), Verdict::Agrees);
        assert_eq!(measured(683.0), Verdict::Undecided);
        assert_eq!(measured(717.0), Verdict::Undecided);
        assert_eq!(measured(718.0), Verdict::Differs);
        assert_eq!(measured(0.0), Verdict::Agrees);
        let one_sided = |value: f64| ValueRange::exact(value).measured_within(4.0, 1000.0);
        assert_eq!(one_sided(3.7), Verdict::Differs);
        assert_eq!(one_sided(3.9), Verdict::Undecided);
        assert_eq!(one_sided(4.3), Verdict::Agrees);
        for recorded_as_differing in [false, true] {
            assert!(Verdict::Undecided.is_as_recorded(recorded_as_differing));
            assert!(!Verdict::Unknown.is_as_recorded(recorded_as_differing));
        }
        assert!(Verdict::Agrees.is_as_recorded(false) && !Verdict::Agrees.is_as_recorded(true));
        assert!(Verdict::Differs.is_as_recorded(true) && !Verdict::Differs.is_as_recorded(false));
    }

    #[test]
    fn the_sentence_and_the_counts_name_every_verdict() {
        let mut all = vec![
            comparison(Reference::PrintedNumber, Verdict::Agrees, false),
            comparison(Reference::PrintedNumber, Verdict::Differs, true),
            comparison(Reference::Ns2, Verdict::Agrees, false),
            comparison(Reference::OwnRange, Verdict::Undecided, true),
            comparison(Reference::Statement, Verdict::Agrees, false),
        ];
        let undecided = "1 is undecided, because a measured value is too close to a limit.";
        let sentence =
            format!("All 5 verdicts are as recorded: 3 agree, 1 differs and {undecided}");
        assert_eq!(summary_sentence(&all), sentence);
        let counts = "Compared numbers: 2 printed numbers, 1 of ns-2, 1 own ranges.";
        assert_eq!(count_sentence(&all), counts);
        all.push(comparison(Reference::Statement, Verdict::Agrees, true));
        assert!(summary_sentence(&all).starts_with("1 of 6 verdicts are not as recorded: 4 agree"));
        let table = comparison_table(&all);
        assert_eq!(table.rows[0][3], "FAIL: holds, but is recorded as differing");
        assert_eq!(table.rows[1][3], "undecided");
        assert_eq!(table.rows[2][3], "differs");
        let counts = count_table(&all);
        assert_eq!(counts.rows[3], ["statements of the text", "2", "2", "0", "0", "1"]);
    }
}
