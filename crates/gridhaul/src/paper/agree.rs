//! Whether two backends agree on the points of a figure, and `differs.csv`: where they are known not
//! to, by how much, and why.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use anyhow::{Context, ensure};
use gridhaul_report::{TextTable, format};
use serde::{Deserialize, Serialize};

use super::Paper;
use super::expected::serde_as_text;
use super::figure::{Curve, Figure, Place, smooth, told};

/// How near two values must be: `0.02` apart, or `10 %` of the second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Tolerance {
    /// In the unit of the figure.
    Absolute(f64),
    /// Of the value that the first one is held to, in percent.
    Relative(f64),
}

/// A line of `differs.csv`: points of a curve at which the backends are known to differ.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    /// Name of the figure.
    pub(crate) figure: String,
    /// Name of the line.
    pub(crate) line: String,
    /// First place.
    pub(crate) from: f64,
    /// Last place.
    pub(crate) to: f64,
    /// The largest difference that is known.
    pub(crate) at_most: Tolerance,
    /// Why.
    pub(crate) reason: String,
}

/// A point of a figure, answered twice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Agreement {
    /// Name of the figure.
    pub(crate) figure: String,
    /// Name of the line.
    pub(crate) line: String,
    /// Place on the horizontal axis.
    pub(crate) x: f64,
    /// Who is compared.
    pub(crate) backends: [String; 2],
    /// What they give.
    pub(crate) values: [f64; 2],
    /// Half width of the 95 % interval of the second.
    pub(crate) ci95: Option<f64>,
    /// How near they must be.
    pub(crate) tolerance: Tolerance,
    /// Why they differ, where that is known.
    pub(crate) reason: Option<String>,
    /// What is wrong; nothing when they agree, or differ as it is known.
    pub(crate) problem: Option<String>,
}

/// Reads `differs.csv`.
pub(crate) fn read(text: &str) -> anyhow::Result<Vec<Known>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().collect::<Result<_, _>>().context("not as expected")
}

/// Whether each line names a curve of the paper, and a range.
pub(crate) fn check(known: &[Known], figures: &[Figure]) -> anyhow::Result<()> {
    for entry in known {
        let Known { figure, line, from, to, reason, .. } = entry;
        let found = figures.iter().find(|found| found.name == *figure);
        let found = found.with_context(|| format!("there is no figure {figure:?}"))?;
        let lines: Vec<_> = found.line.iter().map(|line| line.name.as_str()).collect();
        ensure!(
            lines.contains(&line.as_str()),
            "figure {figure} has no line {line:?}\n  help: it has: {}",
            lines.join(", ")
        );
        ensure!(found.agree.is_some(), "figure {figure} does not ask for agreement");
        ensure!(from <= to, "figure {figure}, line {line}: from {from} to {to} is no range");
        ensure!(!reason.trim().is_empty(), "figure {figure}, line {line}: there is no reason");
    }
    Ok(())
}

/// Compares the curves of every figure that asks for it: what was measured with the first backend.
pub(crate) fn agreements(paper: &Paper, curves: &[Curve]) -> Vec<Agreement> {
    let mut all = Vec::new();
    for figure in &paper.about.figure {
        let Some(tolerance) = figure.agree else { continue };
        for line in &figure.line {
            let mut own = curves.iter().filter(|c| c.figure == figure.name && c.line == line.name);
            let Some(first) = own.next() else { continue };
            for other in own.filter(|curve| !smooth(&curve.backend)) {
                let both = other.points.iter().filter_map(|at| Some((first.at(at.x)?, *at)));
                all.extend(both.map(|pair| judge(first, other, pair, tolerance, &paper.differs)));
            }
        }
    }
    all
}

fn judge(
    first: &Curve,
    other: &Curve,
    (ours, theirs): (Place, Place),
    tolerance: Tolerance,
    known: &[Known],
) -> Agreement {
    let x = theirs.x;
    let listed = known.iter().find(|known| {
        known.figure == other.figure
            && known.line == other.line
            && (known.from..=known.to).contains(&x)
    });
    let within = tolerance.holds(ours.y, theirs.y);
    let problem = match listed {
        None if within => None,
        None => Some("they differ".to_owned()),
        Some(_) if within => Some("listed in differs.csv, but they agree".to_owned()),
        Some(known) if known.at_most.holds(ours.y, theirs.y) => None,
        Some(known) => Some(format!("they differ by more than the {} listed", known.at_most)),
    };
    Agreement {
        figure: other.figure.clone(),
        line: other.line.clone(),
        x,
        backends: [first.backend.clone(), other.backend.clone()],
        values: [ours.y, theirs.y],
        ci95: theirs.ci95,
        tolerance,
        reason: listed.map(|known| known.reason.clone()),
        problem,
    }
}

/// How many points of each curve agree, and each that does not.
pub(crate) fn tables(paper: &Paper, all: &[Agreement]) -> Vec<TextTable> {
    if all.is_empty() {
        return Vec::new();
    }
    let mut groups: BTreeMap<(usize, &str, &str), Vec<&Agreement>> = BTreeMap::new();
    for one in all {
        let place = paper.about.figure.iter().position(|figure| figure.name == one.figure);
        let key = (place.unwrap_or(usize::MAX), one.line.as_str(), one.backends[1].as_str());
        groups.entry(key).or_default().push(one);
    }
    let summary = groups.values().map(|group| {
        let count = |test: fn(&&&Agreement) -> bool| group.iter().filter(test).count();
        let agree = count(|one| one.problem.is_none() && one.reason.is_none());
        let listed = count(|one| one.problem.is_none() && one.reason.is_some());
        let largest =
            group.iter().map(|one| one.tolerance.difference(one.values)).fold(0.0, f64::max);
        let one = group[0];
        vec![
            one.figure.clone(),
            one.line.clone(),
            format!("{} and {}", told(&one.backends[0]), told(&one.backends[1])),
            one.tolerance.to_string(),
            group.len().to_string(),
            agree.to_string(),
            listed.to_string(),
            (group.len() - agree - listed).to_string(),
            one.tolerance.with(largest).to_string(),
        ]
    });
    let headers =
        ["figure", "line", "between", "held to", "points", "agree", "listed", "FAIL", "largest"];
    let summary = TextTable {
        title: "Agreement of the backends".into(),
        headers: headers.map(String::from).to_vec(),
        rows: summary.collect(),
        key_columns: 4,
        note: Some("listed: known to differ; differs.csv says by how much and why".into()),
    };
    let apart = all.iter().filter(|one| one.problem.is_some() || one.reason.is_some());
    let rows: Vec<_> = apart.map(row).collect();
    let mut tables = vec![summary];
    if !rows.is_empty() {
        let headers = ["figure", "line", "at", "first", "second", "difference", "", "reason"];
        tables.push(TextTable {
            title: "Points at which they differ".into(),
            headers: headers.map(String::from).to_vec(),
            rows,
            key_columns: 2,
            note: None,
        });
    }
    tables
}

fn row(one: &Agreement) -> Vec<String> {
    let difference = one.tolerance.with(one.tolerance.difference(one.values));
    let problem =
        one.problem.as_ref().map_or("listed".into(), |problem| format!("FAIL: {problem}"));
    vec![
        one.figure.clone(),
        one.line.clone(),
        format::number(one.x),
        format::number(one.values[0]),
        format::number(one.values[1]),
        difference.to_string(),
        problem,
        one.reason.clone().unwrap_or_default(),
    ]
}

impl Tolerance {
    /// How far two values are apart, in the measure of this tolerance.
    fn difference(self, [ours, theirs]: [f64; 2]) -> f64 {
        let apart = (ours - theirs).abs();
        match self {
            Self::Absolute(_) => apart,
            Self::Relative(_) if apart == 0.0 => 0.0,
            Self::Relative(_) => apart / theirs.abs() * 100.0,
        }
    }

    fn holds(self, ours: f64, theirs: f64) -> bool {
        let (Self::Absolute(limit) | Self::Relative(limit)) = self;
        self.difference([ours, theirs]) <= limit
    }

    /// The same measure with another number.
    fn with(self, number: f64) -> Self {
        match self {
            Self::Absolute(_) => Self::Absolute(number),
            Self::Relative(_) => Self::Relative(number),
        }
    }
}

impl FromStr for Tolerance {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is neither like \"0.02\" nor like \"10 %\"");
        let number = |text: &str| text.trim().parse().ok().filter(|number: &f64| *number >= 0.0);
        match text.split_once('%') {
            Some((percent, "")) => number(percent).map(Self::Relative).ok_or_else(wrong),
            Some(_) => Err(wrong()),
            None => number(text).map(Self::Absolute).ok_or_else(wrong),
        }
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absolute(number) => f.write_str(&format::number(*number)),
            Self::Relative(percent) => write!(f, "{} %", format::number(*percent)),
        }
    }
}

serde_as_text!(Tolerance);

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(backend: &str, y: f64) -> Curve {
        let points = vec![Place { x: 50.0, y, ci95: None }];
        Curve { figure: "1".into(), line: "reno".into(), backend: backend.into(), points }
    }

    fn judged(tolerance: &str, values: [f64; 2], differs: &str) -> Option<String> {
        let [first, other] = [curve("model", values[0]), curve("sim", values[1])];
        let known = read(&format!("figure,line,from,to,at_most,reason\n{differs}")).unwrap();
        let pair = (first.points[0], other.points[0]);
        judge(&first, &other, pair, tolerance.parse().unwrap(), &known).problem
    }

    #[test]
    fn values_agree_absolutely_or_relatively() {
        assert_eq!(judged("0.02", [0.52, 0.501], ""), None);
        assert!(judged("0.02", [0.53, 0.501], "").is_some());
        assert_eq!(judged("10 %", [0.109, 0.1], ""), None);
        assert!(judged("10 %", [0.111, 0.1], "").is_some());
        assert_eq!(judged("10 %", [0.0, 0.0], ""), None);
        assert!(judged("10 %", [0.1, 0.0], "").is_some());
        assert!("ten".parse::<Tolerance>().is_err());
        assert!("-1".parse::<Tolerance>().is_err());
    }

    #[test]
    fn a_listed_point_must_differ_and_not_by_more() {
        let listed = "1,reno,40,60,0.1,the timer\n";
        assert_eq!(judged("0.02", [0.55, 0.5], listed), None);
        assert!(judged("0.02", [0.65, 0.5], listed).unwrap().contains("more"));
        assert!(judged("0.02", [0.51, 0.5], listed).unwrap().contains("agree"));
        // Of another place.
        assert!(judged("0.02", [0.55, 0.5], "1,reno,60,70,0.1,the timer\n").is_some());
    }
}
