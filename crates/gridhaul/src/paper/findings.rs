//! Results of the reproduction of a paper.

use serde::Serialize;

use super::{
    Agreement, Answers, CheckedCell, ClaimResult, Curve, Expected, Paper, Place, SkippedScenario,
    agreements, check_cell, claim_results, points_of, reference_value,
};

/// The results of all checks, and the curves that they are based on.
#[derive(Debug, Serialize)]
pub(crate) struct Findings {
    /// Published numbers.
    pub(crate) cells: Vec<CheckedCell>,
    /// Statements of the text.
    pub(crate) claims: Vec<ClaimResult>,
    /// Points of figures with answers of two backends.
    pub(crate) agreements: Vec<Agreement>,
    /// Curves of the figures.
    pub(crate) curves: Vec<Curve>,
    /// Scenarios that were not run on backend `emu`.
    pub(crate) skipped: Vec<SkippedScenario>,
}

impl Findings {
    /// Runs all checks of the paper's folder.
    pub(crate) fn of(paper: &Paper, answers: &Answers, quick: bool) -> Self {
        let place = |cell: &Expected| {
            let (backend, answer) = answers.judged(&cell.scenario)?;
            let points = points_of(cell, answer.points.iter().map(|point| &point.parameters));
            (!points.is_empty()).then_some(Place { backend, answer, points })
        };
        // Cells of skipped scenarios are not checked; a note reports them.
        let skipped = |cell: &&Expected| {
            let passed = answers.skipped().iter().any(|skipped| skipped.scenario == cell.scenario);
            passed && answers.main(&cell.scenario).is_none()
        };
        let cells = paper.cells.iter().filter(|cell| !skipped(cell)).map(|cell| {
            let other =
                paper.cells.iter().find(|other| cell.tolerance.other() == Some(&other.cell));
            let other = other.map(|other| reference_value(other, place(other).as_ref()));
            check_cell(cell, cell.reference(&paper.cells), place(cell).as_ref(), other)
        });
        let figures = paper.definition.figure.iter();
        let curves: Vec<_> =
            figures.flat_map(|figure| figure.curves(answers, &paper.cells)).collect();
        Self {
            cells: cells.collect(),
            claims: claim_results(&paper.claims, &curves, quick),
            agreements: agreements(paper, &curves, quick),
            curves,
            skipped: answers.skipped().to_vec(),
        }
    }

    /// Number of checks.
    pub(crate) fn checks(&self) -> usize {
        self.cells.len() + self.claims.len() + self.agreements.len()
    }

    /// Names of the failed checks.
    pub(crate) fn failed(&self) -> Vec<String> {
        let cells = self.cells.iter().filter(|cell| !cell.ok);
        let claims = self.claims.iter().filter(|claim| !claim.ok);
        let differing = self.agreements.iter().filter(|one| one.deviation.is_some());
        let cells = cells.map(|cell| cell.expected.cell.clone());
        let claims = claims.map(|claim| format!("{} ({})", claim.claim, claim.backend));
        let differing = differing.map(|one| format!("{}.{} at {}", one.figure, one.line, one.x));
        cells.chain(claims).chain(differing).collect()
    }

    /// Scenarios that were not run, as a sentence.
    pub(crate) fn skipped_note(&self) -> Option<String> {
        let names: Vec<_> = self.skipped.iter().map(|skipped| skipped.scenario.as_str()).collect();
        (!names.is_empty())
            .then(|| format!("Not run on backend emu on this machine: {}.", names.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::answer::{Answer, Estimate, Metric, Point, Row};
    use indexmap::IndexMap;

    use gridhaul_report::{Reference, Verdict};

    use super::super::check::Place;
    use super::super::claim;
    use super::super::column_select::tests::scenario;
    use super::super::figure::CurvePoint;
    use super::*;

    /// Results of one cell, recorded as differing from a tolerance of 4 to 9 kbit/s, and of one
    /// claim, recorded as failing in the simulator, from the same value.
    fn findings(bit_per_s: f64) -> Findings {
        let mut answer = Answer::without_points(&scenario(), "sim");
        let metrics = IndexMap::from([(Metric::Goodput, Estimate::exact(bit_per_s, 1))]);
        let row = Row { name: "f".into(), count: 1, metrics, ..Row::default() };
        answer.points.push(Point { flows: vec![row], ..Point::default() });
        let line = "cell,table,row,quantity,unit,paper,ns2_mean,ns2_ci95,seeds,scenario,\
                    parameters,select,tolerance,differs,reason\n\
                    c,1,r,q,kbit_per_s,6,,,,t,,flow:f:goodput_bit_per_s,from 4 to 9,from 10 to \
                    13,why\n";
        let cells = super::super::expected::read(line).unwrap();
        let place = Place { backend: "sim", answer: &answer, points: vec![0] };
        let claims = claim::read(
            "[[claim]]\nname = \"low\"\nsection = \"1\"\ntext = \"t\"\nholds = \"a.b(1) <= \
             9000\"\nfails.sim = \"why\"\n",
        );
        let points = vec![CurvePoint { x: 1.0, y: bit_per_s, ci95: None, disturbed: false }];
        let (figure, line, backend) = ("a".into(), "b".into(), "sim".into());
        let curve = Curve { figure, line, backend, interpolated: false, points };
        Findings {
            cells: vec![check_cell(&cells[0], Reference::PrintedNumber, Some(&place), None)],
            claims: claim_results(&claims.unwrap(), &[curve], false),
            agreements: Vec::new(),
            curves: Vec::new(),
            skipped: Vec::new(),
        }
    }

    #[test]
    fn only_the_recorded_verdicts_pass() {
        let recorded = findings(11_600.0);
        assert_eq!(recorded.failed(), Vec::<String>::new());
        let differing = (recorded.cells[0].verdict, recorded.claims[0].verdict);
        assert_eq!(differing, (Verdict::Differs, Verdict::Differs));
        // The value agrees with the paper and the claim holds, against the record.
        assert_eq!(findings(6_000.0).failed(), ["c", "low (sim)"]);
        // A larger difference than the recorded one.
        assert_eq!(findings(14_000.0).failed(), ["c"]);
    }
}
