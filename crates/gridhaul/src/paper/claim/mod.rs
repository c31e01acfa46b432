//! `claims.toml`: statements of a paper's text about its figures, as checks.

mod evaluate;
mod parse;
mod share;
mod uncertain;

use anyhow::{Context, anyhow, bail, ensure};
use gridhaul_report::{TextTable, Verdict};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::comparisons::verdict_of_claim;
use super::figure::{Curve, Figure, NS2, backend_label};
use crate::engine::BackendName;
use evaluate::Curves;
pub(crate) use parse::CurveName;

/// A statement of the text.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    /// Name, unique in the paper.
    pub(crate) name: String,
    /// Section of the paper.
    pub(crate) section: String,
    /// The statement, in our words.
    pub(crate) text: String,
    /// The statement as a comparison of curves, in the language of `claim/parse.rs`.
    pub(crate) holds: String,
    /// Backends for which it does not hold, with the reason.
    #[serde(default)]
    pub(crate) fails: IndexMap<String, String>,
    /// Backends to check. Absent: all that have its curves.
    #[serde(default)]
    pub(crate) on: Option<Vec<String>>,
    /// Backends to check in a quick run. Absent: as in a full run.
    #[serde(default)]
    pub(crate) quick: Option<Vec<String>>,
}

/// Result of a claim for one backend.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ClaimResult {
    /// Name of the claim.
    pub(crate) claim: String,
    /// Section of the paper.
    pub(crate) section: String,
    /// The statement.
    pub(crate) text: String,
    /// The expression.
    pub(crate) expression: String,
    /// Name of the backend.
    pub(crate) backend: String,
    /// Verdict: it holds ("agrees") or not, a measured value is too close to a limit, or there is
    /// no value.
    pub(crate) verdict: Verdict,
    /// The compared values, or why it could not be evaluated.
    pub(crate) detail: String,
    /// Known reason why it does not hold.
    pub(crate) reason: Option<String>,
    /// As recorded: it holds, or fails for a listed reason, or it is undecided.
    pub(crate) ok: bool,
}

/// Reads `claims.toml`.
pub(crate) fn read(text: &str) -> anyhow::Result<Vec<Claim>> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        claim: Vec<Claim>,
    }
    Ok(toml::from_str::<File>(text)?.claim)
}

/// Checks that claims can be parsed and refer to existing curves, and that some backend answers
/// each claim and each of its listed failures: a claim that is never evaluated would look like one
/// that holds. `backends` returns the backends that answer a curve; empty: those of the command
/// line.
pub(crate) fn check(
    claims: &[Claim],
    figures: &[Figure],
    backends: impl Fn(&CurveName) -> Vec<String>,
) -> anyhow::Result<()> {
    for (index, claim) in claims.iter().enumerate() {
        let label = || format!("claim {}", claim.name);
        let parsed =
            parse::parse(&claim.holds).map_err(|error| anyhow!(error)).with_context(label)?;
        for name in parsed.curves() {
            let figure = figures.iter().find(|figure| figure.name == name.figure);
            let line = figure.and_then(|f| f.line.iter().find(|line| line.name == name.line));
            line.with_context(|| format!("there is no curve {name}")).with_context(label)?;
        }
        let known = BackendName::ALL.map(|backend| backend.to_string());
        let judged = parsed.judged();
        let (named, unnamed): (Vec<_>, Vec<_>) =
            parsed.curves().into_iter().partition(|name| name.backend.is_some());
        let answered = |name: &CurveName, backend: &str| {
            let of_curve = backends(name);
            backend == NS2 || of_curve.is_empty() || of_curve.iter().any(|own| own == backend)
        };
        for name in named {
            let backend = name.backend.as_deref().unwrap_or_default();
            ensure!(
                backend == NS2 || known.iter().any(|own| own == backend),
                "claim {}: {name} is of {backend:?}, which is no backend\n  help: use {}, or ns_2",
                claim.name,
                known.join(", ").replace('-', "_")
            );
            ensure!(
                answered(name, backend),
                "claim {}: backend {backend} does not answer {name}",
                claim.name
            );
        }
        let answers = |backend: &str| {
            let chosen = claim.on.as_ref().is_none_or(|on| on.iter().any(|own| own == backend));
            let is_judged = judged.is_none_or(|judged| judged == backend);
            chosen && is_judged && unnamed.iter().all(|name| answered(name, backend))
        };
        ensure!(
            known.iter().any(|backend| answers(backend)),
            "claim {}: no backend answers all of its curves",
            claim.name
        );
        if let Some(backend) = claim.fails.keys().find(|backend| !answers(backend)) {
            bail!("claim {}: `fails.{backend}` is never checked on backend {backend}", claim.name);
        }
        let earlier = claims[..index].iter().find(|earlier| earlier.name == claim.name);
        ensure!(earlier.is_none(), "two claims have the name {}", claim.name);
    }
    Ok(())
}

/// Evaluates every claim for every backend that has all of its curves. A claim that names the
/// backends of all of its curves judges the first of them.
pub(crate) fn claim_results(claims: &[Claim], curves: &[Curve], quick: bool) -> Vec<ClaimResult> {
    let mut backends: Vec<&str> = Vec::new();
    for curve in curves.iter().filter(|curve| curve.backend != NS2) {
        if !backends.contains(&curve.backend.as_str()) {
            backends.push(&curve.backend);
        }
    }
    let mut claim_results = Vec::new();
    for claim in claims {
        // Claims were checked when the paper was read.
        let Ok(parsed) = parse::parse(&claim.holds) else { continue };
        for backend in &backends {
            let answered = parsed.curves().into_iter().all(|name| {
                let backend = name.backend.as_deref().unwrap_or(backend);
                curves.iter().any(|curve| {
                    curve.figure == name.figure
                        && curve.line == name.line
                        && curve.backend == backend
                })
            });
            let names_backend =
                |chosen: &Vec<String>| chosen.iter().any(|chosen| chosen == backend);
            let chosen = parsed.judged().is_none_or(|judged| judged == *backend)
                && claim.on.as_ref().is_none_or(names_backend)
                && (!quick || claim.quick.as_ref().is_none_or(names_backend));
            if answered && chosen {
                let curves = Curves { all: curves, backend };
                claim_results.push(claim.result(backend, evaluate::evaluate(&parsed, &curves)));
            }
        }
    }
    claim_results
}

impl Claim {
    fn result(&self, backend: &str, found: Result<evaluate::Evaluation, String>) -> ClaimResult {
        let reason = self.fails.get(backend).cloned();
        let (verdict, detail) = match found {
            Ok(found) => (found.verdict, found.detail),
            Err(error) => (Verdict::Unknown, error),
        };
        ClaimResult {
            claim: self.name.clone(),
            section: self.section.clone(),
            text: self.text.clone(),
            expression: self.holds.clone(),
            backend: backend.to_owned(),
            verdict,
            detail,
            ok: verdict.is_as_recorded(reason.is_some()),
            reason,
        }
    }
}

/// Table of the claims and their results.
pub(crate) fn table(claim_results: &[ClaimResult]) -> Option<TextTable> {
    let row = |result: &ClaimResult| {
        vec![
            result.text.clone(),
            result.section.clone(),
            backend_label(&result.backend).to_owned(),
            verdict_of_claim(result),
            result.detail.clone(),
        ]
    };
    let mut reasons: Vec<String> = Vec::new();
    for result in claim_results.iter().filter(|result| result.verdict != Verdict::Agrees) {
        if let Some(reason) = &result.reason {
            reasons.push(format!("{}, {}: {reason}", result.claim, backend_label(&result.backend)));
        }
    }
    let table = TextTable {
        title: "Claims of the text".into(),
        headers: ["claim", "section", "judged backend", "verdict", "values"]
            .map(String::from)
            .to_vec(),
        rows: claim_results.iter().map(row).collect(),
        key_columns: 5,
        note: (!reasons.is_empty()).then(|| reasons.join("\n")),
    };
    (!claim_results.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use super::super::figure::CurvePoint;
    use super::*;

    const CLAIMS: &str = r#"
        [[claim]]
        name = "low"
        section = "5"
        text = "The loss is low."
        holds = "a.reno(1) < 0.1"
        fails.sim = "the timer"
    "#;

    fn ok(backend: &str, y: f64) -> Vec<bool> {
        let points = vec![CurvePoint { x: 1.0, y, ci95: None, disturbed: false }];
        let curve = Curve {
            figure: "a".into(),
            line: "reno".into(),
            backend: backend.into(),
            interpolated: false,
            points,
        };
        let found = claim_results(&read(CLAIMS).unwrap(), &[curve], false);
        found.iter().map(|result| result.ok).collect()
    }

    #[test]
    fn a_claim_holds_or_fails_as_listed() {
        assert_eq!(ok("model", 0.05), [true]);
        assert_eq!(ok("model", 0.15), [false]);
        assert_eq!(ok("sim", 0.15), [true]);
        assert_eq!(ok("sim", 0.05), [false]);
    }
}
