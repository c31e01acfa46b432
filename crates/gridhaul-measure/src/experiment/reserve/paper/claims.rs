//! The statements of the report with their recorded verdicts: `papers/reserve/claims.toml`.

use gridhaul_report::verdict::Verdict;
use gridhaul_scenario::units::Probability;
use serde::{Deserialize, Serialize};

/// Largest deviation that the machine may add to a measured interval, unless a claim states another
/// one.
const MARGIN: f64 = 0.05;

/// The recorded verdict of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum RecordedVerdict {
    /// The measurements agree with the statement.
    #[serde(rename = "holds")]
    Holds,
    /// They contradict it.
    #[serde(rename = "does not hold")]
    DoesNotHold,
    /// They did not decide: intervals overlap.
    #[serde(rename = "undecided")]
    Undecided,
}

/// A statement of the report.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedClaim {
    /// Unique name.
    pub name: String,
    /// Section of the report; `ours` for a finding that the report does not have.
    pub section: String,
    /// Test of Table 3.
    pub test: String,
    /// The statement in our own words.
    pub text: String,
    /// Verdict of the recorded run.
    pub verdict: RecordedVerdict,
    /// The number that the report prints, if it prints one.
    pub printed: Option<String>,
    /// Cause of another verdict than [`RecordedVerdict::Holds`].
    pub reason: Option<String>,
    /// Share by which both bounds of a measured interval are widened.
    margin: Option<Probability>,
}

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    claim: Vec<RecordedClaim>,
}

impl RecordedVerdict {
    /// Text in tables.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
            Self::Undecided => "undecided",
        }
    }

    /// Whether a verdict is the recorded one. An undecided verdict contradicts none, and none
    /// contradicts an undecided record.
    #[must_use]
    pub fn permits(self, verdict: Verdict) -> bool {
        match self {
            Self::Undecided => verdict != Verdict::Unknown,
            Self::Holds | Self::DoesNotHold => verdict.is_as_recorded(self == Self::DoesNotHold),
        }
    }
}

impl RecordedClaim {
    /// All statements.
    #[must_use]
    pub fn published() -> Vec<Self> {
        let text = include_str!("../../../../../../papers/reserve/claims.toml");
        toml::from_str::<File>(text).expect("a test reads the file").claim
    }

    /// Share by which both bounds of a measured interval are widened.
    #[must_use]
    pub fn margin(&self) -> f64 {
        self.margin.map_or(MARGIN, Probability::ratio)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::experiment::reserve::paper::Tables;

    #[test]
    fn each_claim_has_a_name_a_test_and_a_reason_for_a_difference() {
        let claims = RecordedClaim::published();
        let names: BTreeSet<_> = claims.iter().map(|claim| &claim.name).collect();
        assert_eq!(names.len(), claims.len(), "names are unique");
        let tests = Tables::published().test;
        for claim in &claims {
            assert!(tests.iter().any(|test| test.number == claim.test), "{claim:?}");
            let has_reason = claim.reason.as_ref().is_some_and(|reason| !reason.trim().is_empty());
            assert_eq!(has_reason, claim.verdict != RecordedVerdict::Holds, "{}", claim.name);
            assert!(claim.text.ends_with('.') && claim.margin() < 1.0, "{}", claim.name);
        }
    }

    /// The table "sentence, claim, verdict" of the papers, and the page of this one.
    #[test]
    fn the_pages_have_each_claim_with_its_recorded_verdict() {
        let papers = include_str!("../../../../../../papers/README.md");
        let page = include_str!("../../../../../../papers/reserve/README.md");
        let claims = RecordedClaim::published();
        for RecordedClaim { name, section, text, verdict, reason, .. } in &claims {
            let reason = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
            let row = format!("| {text} ({section}) | `{name}` | {}{reason} |\n", verdict.text());
            assert!(papers.contains(&row), "papers/README.md has no row\n{row}");
            assert!(page.contains(text), "papers/reserve/README.md has no sentence\n{text}");
        }
        let own = papers.split("## `reserve`").nth(1).and_then(|rest| rest.split("\n## ").next());
        let rows = own.unwrap_or_default().lines().filter(|line| line.starts_with("| "));
        let claimed = rows.filter(|row| {
            claims.iter().any(|claim| row.contains(&format!("| `{}` |", claim.name)))
        });
        assert_eq!(claimed.count(), claims.len(), "a claim has two rows");
    }

    #[test]
    fn an_undecided_verdict_is_no_contradiction_and_an_unknown_one_is() {
        use RecordedVerdict::{DoesNotHold, Holds, Undecided};
        assert!(Holds.permits(Verdict::Agrees) && !Holds.permits(Verdict::Differs));
        assert!(DoesNotHold.permits(Verdict::Differs) && !DoesNotHold.permits(Verdict::Agrees));
        for recorded in [Holds, DoesNotHold, Undecided] {
            assert!(recorded.permits(Verdict::Undecided) && !recorded.permits(Verdict::Unknown));
        }
        assert!(Undecided.permits(Verdict::Agrees) && Undecided.permits(Verdict::Differs));
    }
}
