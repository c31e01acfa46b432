//! Comparison of gridhaul's values with published figures.

use gridhaul_report::{TextTable, format};
use gridhaul_scenario::answer::{Answer, Estimate};
use indexmap::IndexMap;
use serde::Serialize;

use super::Paper;
use super::expected::{Expected, Tolerance, scaled};

/// A published figure and gridhaul's value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct CheckedCell {
    /// The figure.
    #[serde(flatten)]
    pub(crate) expected: Expected,
    /// gridhaul's value, in the unit of the figure.
    pub(crate) gridhaul: Estimate,
    /// Relative deviation from the paper.
    pub(crate) from_paper: Option<f64>,
    /// Relative deviation from ns-2.
    pub(crate) from_ns2: Option<f64>,
    /// Whether the value lies within the tolerance.
    pub(crate) agrees: bool,
    /// Whether the verdict is the recorded one: the value agrees, or it differs as much as `differs` states.
    pub(crate) ok: bool,
}

/// Indices of the points of a sweep that a cell selects; exactly one in a valid paper.
pub(crate) fn points_of<'a>(
    cell: &Expected,
    points: impl Iterator<Item = &'a IndexMap<String, String>>,
) -> Vec<usize> {
    let fits = |point: &IndexMap<String, String>| {
        cell.settings().all(|(key, value)| point.get(key).is_some_and(|found| found == value))
    };
    points.enumerate().filter(|(_, point)| fits(point)).map(|(index, _)| index).collect()
}

/// Compares a published figure with a point of the answer; `other` is gridhaul's value, in base units, of the cell
/// that it is a multiple of, if any.
pub(crate) fn check_cell(
    expected: &Expected,
    place: Option<(&Answer, usize)>,
    other: Option<f64>,
) -> CheckedCell {
    let found = found(expected, place);
    let gridhaul = scaled(found, 1.0 / expected.unit.in_base());
    let from = |reference: Option<f64>| match (gridhaul.mean, reference) {
        (Some(mean), Some(reference)) if reference != 0.0 => Some(mean / reference - 1.0),
        _ => None,
    };
    let (from_paper, from_ns2) = (from(expected.paper), from(expected.ns2_mean));
    let within = |deviation: Option<f64>, percent: f64| {
        deviation.is_some_and(|deviation| deviation.abs() * 100.0 <= percent)
    };
    let agrees = match &expected.tolerance {
        Tolerance::Paper(percent) => within(from_paper, *percent),
        Tolerance::Ns2(percent) => within(from_ns2, *percent),
        Tolerance::Ns2OrInterval(percent) => {
            within(from_ns2, *percent) || within_interval(&gridhaul, expected)
        }
        Tolerance::Between(low, high) => {
            gridhaul.mean.is_some_and(|mean| (low..=high).contains(&&mean))
        }
        Tolerance::Of(low, high, _) => match (found.mean, other) {
            (Some(mean), Some(other)) => (low * other..=high * other).contains(&mean),
            _ => false,
        },
    };
    let ok = match (&expected.differs, gridhaul.mean) {
        (None, _) => agrees,
        // A known difference that has disappeared or grown is not the recorded verdict.
        (Some(Tolerance::Between(low, high)), Some(mean)) => {
            !agrees && (low..=high).contains(&&mean)
        }
        (Some(_), _) => false,
    };
    CheckedCell { expected: expected.clone(), gridhaul, from_paper, from_ns2, agrees, ok }
}

/// gridhaul's value, in base units.
pub(crate) fn found(expected: &Expected, place: Option<(&Answer, usize)>) -> Estimate {
    place.map(|(answer, point)| expected.select.find(answer, point)).unwrap_or_default()
}

/// Whether the difference of two independent means lies within their joint 95 % confidence interval (root sum of
/// squares of the half widths).
fn within_interval(gridhaul: &Estimate, expected: &Expected) -> bool {
    match (gridhaul.mean, gridhaul.ci95, expected.ns2_mean, expected.ns2_ci95) {
        (Some(mean), Some(ci95), Some(ns2_mean), Some(ns2_ci95)) => {
            (mean - ns2_mean).abs() <= ci95.hypot(ns2_ci95)
        }
        _ => false,
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

const HEADERS: [&str; 9] =
    ["row", "quantity", "paper", "ns-2", "gridhaul", "from paper", "from ns-2", "tolerance", ""];

fn row(cell: &CheckedCell) -> Vec<String> {
    let expected = &cell.expected;
    let unit = expected.unit.text();
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
        expected.paper.map_or_else(
            || "–".into(),
            |paper| format::value(paper * expected.unit.in_base(), base(unit)),
        ),
        format::estimate(&scaled(ns2, expected.unit.in_base()), base(unit)),
        format::estimate(&scaled(cell.gridhaul, expected.unit.in_base()), base(unit)),
        percent(cell.from_paper),
        percent(cell.from_ns2),
        expected.tolerance.to_string(),
        match (cell.ok, cell.agrees, &expected.differs) {
            (true, _, None) => "ok",
            (true, _, Some(_)) => "differs (known)",
            (false, true, _) => "FAIL: agrees, but is recorded as differing",
            (false, false, _) => "FAIL",
        }
        .into(),
    ]
}

/// Name of a quantity in tables and charts.
pub(crate) fn quantity(name: &str) -> String {
    name.replace('_', " ").replace("dvbt", "DVB-T").replace("gprs", "GPRS")
}

/// The unit without prefix; the formatting functions choose the prefix.
fn base(unit: &str) -> &str {
    match unit {
        "kbit/s" | "Mbit/s" => "bit/s",
        "ms" => "s",
        "%" => "",
        unit => unit,
    }
}

#[cfg(test)]
mod tests {
    use super::super::column_select::tests::scenario;
    use super::*;
    use gridhaul_scenario::answer::{Metric, Point, Row};

    const HEADER: &str = "cell,table,row,quantity,unit,paper,ns2_mean,ns2_ci95,seeds,scenario,\
                          parameters,select,tolerance,differs,reason\n";

    fn checked(line: &str, mean: f64, ci95: Option<f64>) -> CheckedCell {
        let cells = super::super::expected::read(&format!("{HEADER}{line}\n")).unwrap();
        let metrics =
            IndexMap::from([(Metric::Goodput, Estimate { ci95, ..Estimate::exact(mean, 5) })]);
        let row = Row { name: "down".into(), count: 1, metrics };
        let mut answer = Answer::without_points(&scenario(), "sim");
        answer.points.push(Point { flows: vec![row], ..Point::default() });
        check_cell(&cells[0], Some((&answer, 0)), Some(700_000.0))
    }

    #[test]
    fn the_paper_within_one_percent() {
        let line = "c,2,r,q,kbit_per_s,750,,,1,t,,flow:down:goodput_bit_per_s,paper 1 %,,";
        assert!(checked(line, 757_400.0, None).ok);
        assert!(!checked(line, 757_600.0, None).ok);
        assert!(!checked(line, 742_400.0, None).ok);
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
        let line = "c,6,r,q,kbit_per_s,6,,,1,t,,flow:down:goodput_bit_per_s,from 4 to 9,from 10 to 13,headers";
        let outcome = |mean| {
            let cell = checked(line, mean, None);
            (cell.ok, row(&cell).pop().unwrap())
        };
        assert_eq!(outcome(11_600.0), (true, "differs (known)".into()));
        let agreeing = "FAIL: agrees, but is recorded as differing";
        assert_eq!(outcome(6_000.0), (false, agreeing.into()));
        assert_eq!(outcome(14_000.0), (false, "FAIL".into()), "a larger difference");
        assert_eq!(outcome(9_500.0), (false, "FAIL".into()), "a smaller difference");
        let missing = line.replace("flow:down:", "flow:up:");
        assert!(!checked(&missing, 11_600.0, None).ok);
    }

    #[test]
    fn a_missing_answer_is_never_ok() {
        let line = "c,2,r,q,kbit_per_s,750,,,1,t,,flow:up:goodput_bit_per_s,paper 1 %,,";
        assert!(!checked(line, 750_000.0, None).ok);
        let line = "c,2,r,q,kbit_per_s,,,,1,t,,flow:up:goodput_bit_per_s,from 0 to 1,,";
        assert!(!checked(line, 750_000.0, None).ok);
    }
}
