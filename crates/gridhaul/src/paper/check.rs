//! Comparison of gridhaul's values with published figures.

use gridhaul_report::verdict::SINGLE_RUN_MARGIN;
use gridhaul_report::{Reference, TextTable, ValueRange, Verdict, format};
use gridhaul_scenario::answer::{Answer, Estimate};
use indexmap::IndexMap;
use serde::Serialize;

use super::Paper;
use super::backend_agreement::EMULATOR;
use super::column_select::scaled;
use super::comparisons::{base_unit, printed_value, verdict_of_cell};
use super::expected::{Expected, Tolerance};
use super::figure::backend_label;

/// A published figure and gridhaul's value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct CheckedCell {
    /// The figure.
    #[serde(flatten)]
    pub(crate) expected: Expected,
    /// The number that it is compared with.
    pub(crate) reference: Reference,
    /// The backend whose value is judged; `None` without an answer.
    pub(crate) backend: Option<String>,
    /// gridhaul's value, in the unit of the figure.
    pub(crate) gridhaul: Estimate,
    /// Half width of the range of a measured value; 0 for other backends.
    pub(crate) margin: f64,
    /// Relative deviation from the paper.
    pub(crate) from_paper: Option<f64>,
    /// Relative deviation from ns-2.
    pub(crate) from_ns2: Option<f64>,
    /// Verdict on the value for the tolerance.
    pub(crate) verdict: Verdict,
    /// Whether the verdict is the recorded one: the value agrees, or it differs as much as
    /// `differs` states, or a measured value is undecided.
    pub(crate) ok: bool,
}

/// The points of an answer that a figure selects.
pub(crate) struct Place<'a> {
    /// Name of the backend.
    pub(crate) backend: &'a str,
    /// Its answer.
    pub(crate) answer: &'a Answer,
    /// One point, or replications: points that differ in their seed only.
    pub(crate) points: Vec<usize>,
}

impl Place<'_> {
    /// Whether the machine was too busy for one of the points.
    fn is_disturbed(&self) -> bool {
        self.points.iter().any(|&point| self.answer.points[point].disturbed > 0)
    }
}

/// Indices of the points of a sweep that a cell selects; in a valid paper one, or points with
/// different seeds.
pub(crate) fn points_of<'a>(
    cell: &Expected,
    points: impl Iterator<Item = &'a IndexMap<String, String>>,
) -> Vec<usize> {
    let fits = |point: &IndexMap<String, String>| {
        cell.settings().all(|(key, value)| point.get(key).is_some_and(|found| found == value))
    };
    points.enumerate().filter(|(_, point)| fits(point)).map(|(index, _)| index).collect()
}

/// Compares a published figure with a point of the answer; `other` is gridhaul's value, in base
/// units, of the cell that it is a multiple of, if any.
pub(crate) fn check_cell(
    expected: &Expected,
    reference: Reference,
    place: Option<&Place<'_>>,
    other: Option<Estimate>,
) -> CheckedCell {
    let gridhaul = scaled(found(expected, place), 1.0 / expected.unit.in_base());
    let from = |reference: Option<f64>| match (gridhaul.mean, reference) {
        (Some(mean), Some(reference)) if reference != 0.0 => Some(mean / reference - 1.0),
        _ => None,
    };
    let backend = place.map(|place| place.backend.to_owned());
    let is_measured = backend.as_deref() == Some(EMULATOR);
    let other = other.map(|other| scaled(other, 1.0 / expected.unit.in_base()));
    let accepted = accepted_range(expected, &gridhaul, other.and_then(|other| other.mean));
    let (verdict, margin) = match (gridhaul.mean, accepted) {
        (Some(mean), Some((low, high))) if is_measured => {
            let of_limit = match &expected.tolerance {
                Tolerance::Of(_, high, _) => high * other.map_or(0.0, |other| uncertainty(&other)),
                _ => 0.0,
            };
            let is_disturbed = place.is_some_and(Place::is_disturbed);
            let margin = if is_disturbed { f64::INFINITY } else { uncertainty(&gridhaul) };
            let margin = margin.hypot(of_limit);
            (ValueRange::around(mean, margin).measured_within(low, high), margin)
        }
        (Some(mean), Some((low, high))) => (ValueRange::exact(mean).within(low, high), 0.0),
        _ => (Verdict::Unknown, 0.0),
    };
    let mut ok = verdict.is_as_recorded(expected.differs.is_some());
    // A known difference that has grown or shrunk is not the recorded one.
    if let (Verdict::Differs, Some(Tolerance::Between(low, high)), Some(mean)) =
        (verdict, &expected.differs, gridhaul.mean)
    {
        let range = ValueRange::around(mean, margin);
        let recorded = if is_measured {
            range.measured_within(*low, *high)
        } else {
            range.within(*low, *high)
        };
        ok = recorded != Verdict::Differs;
    }
    let (from_paper, from_ns2) = (from(expected.paper), from(expected.ns2_mean));
    let expected = expected.clone();
    CheckedCell {
        expected,
        reference,
        backend,
        gridhaul,
        margin,
        from_paper,
        from_ns2,
        verdict,
        ok,
    }
}

/// The range of values that agree, in the unit of the figure; `None` if its reference has no value.
fn accepted_range(
    expected: &Expected,
    gridhaul: &Estimate,
    other: Option<f64>,
) -> Option<(f64, f64)> {
    let around = |reference: Option<f64>, percent: f64| {
        let reference = reference?;
        let width = reference.abs() * percent / 100.0;
        Some((reference - width, reference + width))
    };
    match &expected.tolerance {
        Tolerance::Paper(percent) => around(expected.paper, *percent),
        Tolerance::Ns2(percent) => around(expected.ns2_mean, *percent),
        Tolerance::Ns2OrInterval(percent) => {
            let (low, high) = around(expected.ns2_mean, *percent)?;
            // Half width of the joint interval of two independent means: root sum of squares.
            let joint = gridhaul.ci95.zip(expected.ns2_ci95).map_or(0.0, |(a, b)| a.hypot(b));
            let mean = expected.ns2_mean?;
            Some((low.min(mean - joint), high.max(mean + joint)))
        }
        Tolerance::Between(low, high) => Some((*low, *high)),
        Tolerance::Of(low, high, _) => other.map(|other| (low * other, high * other)),
    }
}

/// Half width of the range of a measured value: the interval of its replications.
pub(super) fn uncertainty(measured: &Estimate) -> f64 {
    let single = measured.mean.unwrap_or_default().abs() * SINGLE_RUN_MARGIN;
    measured.ci95.unwrap_or(single)
}

/// gridhaul's value of a cell to which others are compared, in base units. Its interval is
/// unlimited if the machine was too busy.
pub(crate) fn reference_value(expected: &Expected, place: Option<&Place<'_>>) -> Estimate {
    let found = found(expected, place);
    let is_disturbed = place.is_some_and(Place::is_disturbed);
    Estimate { ci95: if is_disturbed { Some(f64::INFINITY) } else { found.ci95 }, ..found }
}

/// gridhaul's value, in base units.
fn found(expected: &Expected, place: Option<&Place<'_>>) -> Estimate {
    let Some(place) = place else { return Estimate::default() };
    let find = |point: &usize| expected.select.find(place.answer, *point);
    match &place.points[..] {
        [point] => find(point),
        points => {
            let means: Option<Vec<_>> = points.iter().map(|point| find(point).mean).collect();
            means.map(|means| Estimate::of(&means)).unwrap_or_default()
        }
    }
}

/// One table for each table of the paper.
pub(crate) fn tables(paper: &Paper, checked: &[CheckedCell]) -> Vec<TextTable> {
    let headings = paper.definition.table.iter();
    let tables = headings.map(|(name, heading)| {
        let cells: Vec<_> = checked.iter().filter(|cell| cell.expected.table == *name).collect();
        let reasons = cells.iter().filter_map(|cell| {
            let Expected { row, quantity: name, reason, .. } = &cell.expected;
            Some(format!("{row}, {} differs: {}", quantity(name), reason.as_ref()?))
        });
        let reasons: Vec<_> = reasons.collect();
        TextTable {
            title: heading.clone(),
            headers: HEADERS.map(String::from).to_vec(),
            rows: cells.iter().map(|cell| row(cell)).collect(),
            key_columns: 2,
            note: (!reasons.is_empty()).then(|| reasons.join("\n")),
        }
    });
    tables.filter(|table| !table.rows.is_empty()).collect()
}

const HEADERS: [&str; 10] = [
    "row",
    "quantity",
    "paper",
    "ns-2",
    "gridhaul",
    "backend",
    "from paper",
    "from ns-2",
    "tolerance",
    "verdict",
];

fn row(cell: &CheckedCell) -> Vec<String> {
    let expected = &cell.expected;
    let unit = base_unit(expected.unit);
    let ns2 = Estimate { mean: expected.ns2_mean, ci95: expected.ns2_ci95, ..Estimate::default() };
    let percent = |deviation: Option<f64>| match deviation {
        // No sign before a zero.
        Some(deviation) if deviation.abs() < 0.000_05 => "0 %".into(),
        Some(deviation) => format!("{:+.2} %", deviation * 100.0).replace('-', "−"),
        None => "–".into(),
    };
    vec![
        expected.row.clone(),
        quantity(&expected.quantity),
        printed_value(expected, expected.paper).unwrap_or_else(|| "–".into()),
        format::estimate(&scaled(ns2, expected.unit.in_base()), unit),
        format::estimate(&scaled(cell.gridhaul, expected.unit.in_base()), unit),
        cell.backend.as_deref().map_or("–", backend_label).into(),
        percent(cell.from_paper),
        percent(cell.from_ns2),
        expected.tolerance.to_string(),
        verdict_of_cell(cell),
    ]
}

/// Name of a quantity in tables and charts.
pub(crate) fn quantity(name: &str) -> String {
    name.replace('_', " ").replace("dvbt", "DVB-T").replace("gprs", "GPRS")
}

#[cfg(test)]
mod tests {
    use super::super::column_select::tests::scenario;
    use super::*;
    use gridhaul_scenario::answer::{Metric, Point, Row};

    const HEADER: &str = "cell,table,row,quantity,unit,paper,ns2_mean,ns2_ci95,seeds,scenario,\
                          parameters,select,tolerance,differs,reason\n";

    fn checked(line: &str, mean: f64, ci95: Option<f64>) -> CheckedCell {
        checked_on("sim", line, mean, ci95)
    }

    fn checked_on(backend: &str, line: &str, mean: f64, ci95: Option<f64>) -> CheckedCell {
        checked_while(backend, line, (mean, ci95), 0)
    }

    fn checked_while(
        backend: &str,
        line: &str,
        (mean, ci95): (f64, Option<f64>),
        disturbed: u32,
    ) -> CheckedCell {
        let cells = super::super::expected::read(&format!("{HEADER}{line}\n")).unwrap();
        let metrics =
            IndexMap::from([(Metric::Goodput, Estimate { ci95, ..Estimate::exact(mean, 5) })]);
        let row = Row { name: "down".into(), count: 1, metrics, ..Row::default() };
        let mut answer = Answer::without_points(&scenario(), backend);
        answer.points.push(Point { flows: vec![row], disturbed, ..Point::default() });
        let place = Place { backend, answer: &answer, points: vec![0] };
        let other = Estimate { ci95: ci95.map(|_| 1_000.0), ..Estimate::exact(700_000.0, 5) };
        check_cell(&cells[0], Reference::PrintedNumber, Some(&place), Some(other))
    }

    #[test]
    fn the_paper_within_one_percent() {
        let line = "c,2,r,q,kbit_per_s,750,,,1,t,,flow:down:goodput_bit_per_s,paper 1 %,,";
        assert!(checked(line, 757_400.0, None).ok);
        assert!(!checked(line, 757_600.0, None).ok);
        assert!(!checked(line, 742_400.0, None).ok);
    }

    #[test]
    fn a_value_measured_on_a_busy_machine_is_undecided() {
        let line = "c,2,r,q,kbit_per_s,750,,,1,t,,flow:down:goodput_bit_per_s,paper 1 %,,";
        let outcome = |mean, disturbed| {
            let cell = checked_while("emu", line, (mean, Some(1_000.0)), disturbed);
            (cell.verdict, cell.ok)
        };
        assert_eq!(outcome(900_000.0, 0), (Verdict::Differs, false));
        assert_eq!(outcome(900_000.0, 1), (Verdict::Undecided, true));
        assert_eq!(outcome(750_000.0, 0), (Verdict::Agrees, true));
        assert_eq!(outcome(750_000.0, 1), (Verdict::Undecided, true));
    }

    #[test]
    fn ns2_within_the_joint_interval() {
        let tail = "t,,flow:down:goodput_bit_per_s,ns2 1 % or interval,,";
        let line = format!("c,4,r,q,kbit_per_s,,100,3,40,{tail}");
        // Joint half width: sqrt(3² + 4²) = 5.
        assert!(checked(&line, 104_900.0, Some(4_000.0)).ok);
        assert!(!checked(&line, 105_100.0, Some(4_000.0)).ok);
        assert!(checked(&line, 100_900.0, None).ok);
        assert!(!checked(&line, 104_900.0, None).ok);
    }

    #[test]
    fn as_a_multiple_of_another_cell() {
        let line = "c,5,r,q,kbit_per_s,,,,1,t,,flow:down:goodput_bit_per_s,0.9 to 1.1 of alone,,";
        assert!(checked(line, 640_000.0, None).ok);
        assert!(!checked(line, 620_000.0, None).ok);
        assert!(!checked(line, 780_000.0, None).ok);
    }

    #[test]
    fn a_known_difference_is_recorded_with_its_size() {
        let line = "c,6,r,q,kbit_per_s,6,,,1,t,,flow:down:goodput_bit_per_s,from 4 to 9,from 10 to \
                    13,headers";
        let outcome = |mean| {
            let cell = checked(line, mean, None);
            (cell.ok, row(&cell).pop().unwrap())
        };
        assert_eq!(outcome(11_600.0), (true, "differs".into()));
        let agreeing = "FAIL: agrees, but is recorded as differing";
        assert_eq!(outcome(6_000.0), (false, agreeing.into()));
        let failed = (false, "FAIL: differs, not as recorded".to_owned());
        assert_eq!(outcome(14_000.0), failed, "a larger difference");
        assert_eq!(outcome(9_500.0), failed, "a smaller difference");
        let missing = line.replace("flow:down:", "flow:up:");
        assert!(!checked(&missing, 11_600.0, None).ok);
    }

    #[test]
    fn a_measured_value_at_a_limit_is_undecided_and_does_not_fail() {
        // The peak of paper `hybrid` that was recorded as differing and measured as 696 of at most
        // 700 on another machine.
        let line = "c,6,r,q,kbit_per_s,700,,,1,t,,flow:down:goodput_bit_per_s,from 0 to 700,\
                    from 700.1 to 1500,why";
        let verdict = |mean, ci95| {
            let cell = checked_on("emu", line, mean, ci95);
            (cell.verdict, cell.ok)
        };
        let ci95 = Some(4_000.0);
        assert_eq!(verdict(696_000.0, ci95), (Verdict::Undecided, true));
        assert_eq!(verdict(704_000.0, ci95), (Verdict::Undecided, true));
        assert_eq!(verdict(980_000.0, ci95), (Verdict::Differs, true));
        assert_eq!(verdict(600_000.0, ci95), (Verdict::Agrees, false));
        assert_eq!(verdict(600_000.0, Some(120_000.0)), (Verdict::Undecided, true));
        assert_eq!(verdict(1_700_000.0, ci95), (Verdict::Differs, false), "a larger difference");
        // Without replications the spread is unknown.
        assert_eq!(verdict(650_000.0, None), (Verdict::Undecided, true));
        // A simulation is repeatable, so that its value has no margin.
        assert_eq!(checked(line, 696_000.0, ci95).verdict, Verdict::Agrees);
        // As a multiple of another measured value: 0.9 to 1.1 of 700 ± 1.
        let line = "c,5,r,q,kbit_per_s,,,,1,t,,flow:down:goodput_bit_per_s,0.9 to 1.1 of alone,,";
        assert_eq!(checked_on("emu", line, 626_000.0, ci95).verdict, Verdict::Undecided);
        assert_eq!(checked_on("emu", line, 640_000.0, ci95).verdict, Verdict::Agrees);
    }

    #[test]
    fn points_with_different_seeds_are_replications() {
        let line = "c,2,r,q,kbit_per_s,750,,,1,t,,flow:down:goodput_bit_per_s,paper 1 %,,";
        let cells = super::super::expected::read(&format!("{HEADER}{line}\n")).unwrap();
        let mut answer = Answer::without_points(&scenario(), "emu");
        for mean in [740_000.0, 750_000.0, 760_000.0] {
            let metrics = IndexMap::from([(Metric::Goodput, Estimate::exact(mean, 1))]);
            let row = Row { name: "down".into(), count: 1, metrics, ..Row::default() };
            answer.points.push(Point { flows: vec![row], ..Point::default() });
        }
        let place = Place { backend: "emu", answer: &answer, points: vec![0, 1, 2] };
        let estimate = found(&cells[0], Some(&place));
        assert_eq!((estimate.mean, estimate.n), (Some(750_000.0), 3));
        assert!(estimate.ci95.unwrap() > 20_000.0);
    }

    #[test]
    fn a_missing_answer_is_never_ok() {
        let line = "c,2,r,q,kbit_per_s,750,,,1,t,,flow:up:goodput_bit_per_s,paper 1 %,,";
        assert!(!checked(line, 750_000.0, None).ok);
        let line = "c,2,r,q,kbit_per_s,,,,1,t,,flow:up:goodput_bit_per_s,from 0 to 1,,";
        assert!(!checked(line, 750_000.0, None).ok);
    }
}
