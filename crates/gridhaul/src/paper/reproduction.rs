//! Reproduction of the experiments of a paper.

use anyhow::Context;
use gridhaul_report::verdict::{count_sentence, count_table, summary_sentence};
use gridhaul_report::{Comparison, NamedChart, TextTable};
use gridhaul_scenario::answer::Answer;
use serde::{Serialize, Serializer};

use super::page::{page, pictures};
use super::{Answers, Findings, Paper, agreement_tables, claim_table, comparisons, tables};
use crate::engine::Engine;
use crate::error::Error;
use crate::observer::Observer;

/// Results of the reproduction of a paper. They are serialised as the file `paper.json`.
#[derive(Debug)]
pub struct Reproduction {
    paper: Paper,
    quick: bool,
    answers: Answers,
    findings: Findings,
}

/// Reproduces the experiments of the paper of this name and checks every published figure; `quick`
/// with fewer replications. The engine runs the scenarios for which the paper names no backends.
/// Emulations that this machine cannot run are skipped with a note.
///
/// # Errors
/// An unknown name, and the errors of [`run`](crate::run()). A failed check is not an error: see
/// [`Reproduction::failed`].
pub fn paper(
    name: &str,
    quick: bool,
    engine: &Engine,
    observer: &dyn Observer,
) -> Result<Reproduction, Error> {
    Paper::named(name)?.reproduce(quick, engine, observer)
}

impl Paper {
    /// The paper of this name.
    ///
    /// # Errors
    /// Unknown name: the message lists all papers.
    pub fn named(name: &str) -> Result<Self, Error> {
        let mut papers = Self::all()?;
        let names: Vec<_> = papers.iter().map(|paper| paper.name).collect();
        let place = names.iter().position(|known| *known == name).with_context(|| {
            format!("unknown paper {name:?}\n  help: choose one of: {}", names.join(", "))
        })?;
        Ok(papers.swap_remove(place))
    }

    /// Reproduces the experiments as [`paper`] does.
    ///
    /// # Errors
    /// Those of [`run`](crate::run()).
    pub fn reproduce(
        self,
        quick: bool,
        engine: &Engine,
        observer: &dyn Observer,
    ) -> Result<Reproduction, Error> {
        let answers = Answers::collect(&self, quick, engine, observer)?;
        let findings = Findings::of(&self, &answers, quick);
        Ok(Reproduction { paper: self, quick, answers, findings })
    }
}

impl Reproduction {
    /// Number of checks.
    #[must_use]
    pub fn checks(&self) -> usize {
        self.findings.checks()
    }

    /// Names of the checks that fail.
    #[must_use]
    pub fn failed(&self) -> Vec<String> {
        self.findings.failed()
    }

    /// All comparisons with the paper, with ns-2 and between backends.
    #[must_use]
    pub fn comparisons(&self) -> Vec<Comparison> {
        comparisons(&self.paper, &self.findings)
    }

    /// The verdicts and the number of compared numbers, in three sentences at most.
    #[must_use]
    pub fn summary(&self) -> String {
        let all = self.comparisons();
        let mut summary = format!("{} {}", summary_sentence(&all), count_sentence(&all));
        if let Some(note) = self.findings.skipped_note() {
            summary = format!("{summary} {note}");
        }
        summary
    }

    /// All answers with a file name: the scenario, and the backend if there are several.
    pub fn answers(&self) -> impl Iterator<Item = (String, &Answer)> {
        self.answers.named()
    }

    /// Tables of the published figures, the agreement of backends, the claims, and the number of
    /// comparisons.
    #[must_use]
    pub fn tables(&self) -> Vec<TextTable> {
        let mut all = tables(&self.paper, &self.findings.cells);
        all.extend(agreement_tables(&self.paper, &self.findings.agreements));
        all.extend(claim_table(&self.findings.claims));
        all.push(count_table(&self.comparisons()));
        all
    }

    /// The charts of all tables and figures.
    #[must_use]
    pub fn charts(&self) -> Vec<NamedChart> {
        pictures(&self.paper, &self.findings, &self.answers)
    }

    /// The report with these charts: one self-contained HTML file.
    #[must_use]
    pub fn html(&self, charts: &[NamedChart]) -> String {
        page(&self.paper, &self.findings, charts)
    }
}

impl Serialize for Reproduction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Outcome<'a> {
            gridhaul: &'a str,
            paper: &'a str,
            quick: bool,
            comparisons: Vec<Comparison>,
            #[serde(flatten)]
            findings: &'a Findings,
        }
        Outcome {
            gridhaul: env!("CARGO_PKG_VERSION"),
            paper: self.paper.name,
            quick: self.quick,
            comparisons: self.comparisons(),
            findings: &self.findings,
        }
        .serialize(serializer)
    }
}
