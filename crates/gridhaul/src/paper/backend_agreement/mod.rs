//! Agreement of two backends on the points of a figure, and `differs.csv`: known differences with
//! their size and reason.

mod tables;
mod tolerance;

use anyhow::{Context, ensure};
use gridhaul_report::Verdict;
use serde::{Deserialize, Serialize};

use super::Paper;
use super::figure::{Curve, CurvePoint, Figure, NS2, smooth};

pub(crate) use tables::tables;
pub(crate) use tolerance::Tolerance;

/// A line of `differs.csv`: a known difference between backends on a part of a curve.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KnownDifference {
    /// Name of the figure.
    pub(crate) figure: String,
    /// Name of the line.
    pub(crate) line: String,
    /// First position.
    pub(crate) from: f64,
    /// Last position.
    pub(crate) to: f64,
    /// The largest known difference.
    pub(crate) at_most: Tolerance,
    /// The two backends, such as `sim emu`. Empty or absent: any two.
    #[serde(default)]
    pub(crate) between: String,
    /// Reason of the difference.
    pub(crate) reason: String,
}

/// A point of a figure with the values of two backends.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Agreement {
    /// Name of the figure.
    pub(crate) figure: String,
    /// Name of the line.
    pub(crate) line: String,
    /// Position on the horizontal axis.
    pub(crate) x: f64,
    /// The compared backends.
    pub(crate) backends: [String; 2],
    /// Their values.
    pub(crate) values: [f64; 2],
    /// Half widths of their 95 % confidence intervals.
    pub(crate) ci95: [Option<f64>; 2],
    /// Largest accepted difference.
    pub(crate) tolerance: Tolerance,
    /// Verdict on the difference.
    pub(crate) verdict: Verdict,
    /// Reason of a known difference.
    pub(crate) reason: Option<String>,
    /// Error; `None` if they agree, have a known difference or are undecided.
    pub(crate) deviation: Option<String>,
}

/// Reads `differs.csv`.
pub(crate) fn read(text: &str) -> anyhow::Result<Vec<KnownDifference>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().collect::<Result<_, _>>().context("invalid CSV")
}

/// Checks that each line names a curve of the paper and a valid range.
pub(crate) fn check(known: &[KnownDifference], figures: &[Figure]) -> anyhow::Result<()> {
    for entry in known {
        let KnownDifference { figure, line, from, to, reason, .. } = entry;
        let found = figures.iter().find(|found| found.name == *figure);
        let found = found.with_context(|| format!("there is no figure {figure:?}"))?;
        let lines: Vec<_> = found.line.iter().map(|line| line.name.as_str()).collect();
        ensure!(
            lines.contains(&line.as_str()),
            "figure {figure} has no line {line:?}\n  help: it has: {}",
            lines.join(", ")
        );
        ensure!(found.agree.is_some(), "figure {figure} has no key `agree`");
        ensure!(from <= to, "figure {figure}, line {line}: from {from} to {to} is not a range");
        ensure!(!reason.trim().is_empty(), "figure {figure}, line {line}: the reason is empty");
        let between = entry.between.split_whitespace().count();
        ensure!(
            [0, 2].contains(&between),
            "figure {figure}, line {line}: between {:?} are not two backends, such as \"sim emu\"",
            entry.between
        );
    }
    Ok(())
}

/// Compares the curves of every figure with key `agree`: measured curves with that of the first
/// backend, and the emulation with the simulation as well. Quick emulations are too short to be
/// compared.
pub(crate) fn agreements(paper: &Paper, curves: &[Curve], quick: bool) -> Vec<Agreement> {
    let mut all = Vec::new();
    for figure in &paper.definition.figure {
        let Some(tolerance) = figure.agree else { continue };
        for line in &figure.line {
            // Values of ns-2 are compared as published numbers.
            let own = curves
                .iter()
                .filter(|c| c.figure == figure.name && c.line == line.name && c.backend != NS2);
            let own: Vec<_> = own.collect();
            for (first, other) in pairs(&own) {
                if quick && [first, other].iter().any(|curve| curve.backend == EMULATOR) {
                    continue;
                }
                let both = other.points.iter().filter_map(|at| Some((first.at(at.x)?, *at)));
                all.extend(both.map(|(ours, theirs)| {
                    compare_points(first, other, ours, theirs, tolerance, &paper.differs)
                }));
            }
        }
    }
    all
}

/// The emulator, whose results vary between runs.
pub(crate) const EMULATOR: &str = "emu";

/// The curves of a line that are compared.
fn pairs<'a>(own: &[&'a Curve]) -> Vec<(&'a Curve, &'a Curve)> {
    let Some((first, others)) = own.split_first() else { return Vec::new() };
    let measured = others.iter().filter(|curve| !smooth(&curve.backend));
    let mut pairs: Vec<_> = measured.map(|other| (*first, *other)).collect();
    let by = |backend: &str| others.iter().find(|curve| curve.backend == backend);
    pairs.extend(by("sim").zip(by(EMULATOR)).map(|(sim, kernel)| (*sim, *kernel)));
    pairs
}

fn compare_points(
    first: &Curve,
    other: &Curve,
    ours: CurvePoint,
    theirs: CurvePoint,
    tolerance: Tolerance,
    known: &[KnownDifference],
) -> Agreement {
    let x = theirs.x;
    let backends = [first.backend.as_str(), other.backend.as_str()];
    let listed = known.iter().find(|known| {
        known.figure == other.figure
            && known.line == other.line
            && known.is_between(backends)
            && (known.from..=known.to).contains(&x)
    });
    let measured = backends.map(|backend| backend == EMULATOR);
    let verdict = tolerance.verdict([ours, theirs], measured);
    // Emulations vary between runs, so a known difference may be absent.
    let listed = listed.filter(|_| !(verdict == Verdict::Agrees && backends.contains(&EMULATOR)));
    let deviation = match (listed, verdict) {
        (_, Verdict::Undecided) | (None, Verdict::Agrees) => None,
        (None, _) => Some("they differ".to_owned()),
        (Some(_), Verdict::Agrees) => Some("listed in differs.csv, but they agree".to_owned()),
        (Some(known), _) => match known.at_most.verdict([ours, theirs], measured) {
            Verdict::Agrees | Verdict::Undecided => None,
            _ => Some(format!("they differ by more than the listed {}", known.at_most)),
        },
    };
    Agreement {
        figure: other.figure.clone(),
        line: other.line.clone(),
        x,
        backends: backends.map(String::from),
        values: [ours.y, theirs.y],
        ci95: [ours.ci95, theirs.ci95],
        tolerance,
        verdict,
        reason: listed.map(|known| known.reason.clone()),
        deviation,
    }
}

impl KnownDifference {
    fn is_between(&self, backends: [&str; 2]) -> bool {
        let mut named = self.between.split_whitespace();
        self.between.trim().is_empty() || named.all(|name| backends.contains(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(backend: &str, y: f64) -> Curve {
        // The replications of the emulator have a smaller spread here.
        let ci95 = if backend == EMULATOR { 0.003 } else { 0.03 };
        let ci95 = Some(if backend == "sim" { 0.004 } else { ci95 });
        let points = vec![CurvePoint { x: 50.0, y, ci95, disturbed: false }];
        Curve {
            figure: "1".into(),
            line: "reno".into(),
            backend: backend.into(),
            interpolated: false,
            points,
        }
    }

    fn deviation_between(
        backends: [&str; 2],
        tolerance: &str,
        values: [f64; 2],
        differs: &str,
    ) -> Option<String> {
        let [first, other] = [curve(backends[0], values[0]), curve(backends[1], values[1])];
        let known =
            read(&format!("figure,line,from,to,at_most,between,reason\n{differs}")).unwrap();
        let (ours, theirs) = (first.points[0], other.points[0]);
        compare_points(&first, &other, ours, theirs, tolerance.parse().unwrap(), &known).deviation
    }

    fn deviation_of(tolerance: &str, values: [f64; 2], differs: &str) -> Option<String> {
        deviation_between(["model", "other"], tolerance, values, differs)
    }

    #[test]
    fn values_measured_on_a_busy_machine_are_undecided() {
        let [first, other] = [curve("sim", 0.5), curve(EMULATOR, 0.9)];
        let verdict = |disturbed| {
            let (ours, theirs) = (first.points[0], CurvePoint { disturbed, ..other.points[0] });
            compare_points(&first, &other, ours, theirs, "0.02 or interval".parse().unwrap(), &[])
                .verdict
        };
        assert_eq!([verdict(false), verdict(true)], [Verdict::Differs, Verdict::Undecided]);
    }

    #[test]
    fn values_agree_absolutely_or_relatively() {
        assert_eq!(deviation_of("0.02", [0.52, 0.501], ""), None);
        assert!(deviation_of("0.02", [0.53, 0.501], "").is_some());
        assert_eq!(deviation_of("10 %", [0.109, 0.1], ""), None);
        assert!(deviation_of("10 %", [0.111, 0.1], "").is_some());
        assert_eq!(deviation_of("10 %", [0.0, 0.0], ""), None);
        assert!(deviation_of("10 %", [0.1, 0.0], "").is_some());
        for invalid in ["ten", "-1", "10 % of it", "or interval"] {
            assert!(invalid.parse::<Tolerance>().is_err(), "{invalid}");
        }
        for text in ["0.02", "10 %", "0.02 or interval", "10 % or interval"] {
            assert_eq!(text.parse::<Tolerance>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn values_may_agree_within_their_joint_interval() {
        // Joint half width: 0.03 * sqrt(2) = 0.0424.
        assert_eq!(deviation_of("1 % or interval", [0.542, 0.5], ""), None);
        assert!(deviation_of("1 % or interval", [0.543, 0.5], "").is_some());
        assert!(deviation_of("1 %", [0.542, 0.5], "").is_some());
    }

    #[test]
    fn a_known_difference_must_exist_and_not_be_exceeded() {
        let listed = "1,reno,40,60,0.1,,the timer\n";
        assert_eq!(deviation_of("0.02", [0.55, 0.5], listed), None);
        assert!(deviation_of("0.02", [0.65, 0.5], listed).unwrap().contains("more"));
        assert!(deviation_of("0.02", [0.51, 0.5], listed).unwrap().contains("agree"));
        // At another position, and of other backends.
        assert!(deviation_of("0.02", [0.55, 0.5], "1,reno,60,70,0.1,,the timer\n").is_some());
        assert!(
            deviation_of("0.02", [0.55, 0.5], "1,reno,40,60,0.1,sim emu,the timer\n").is_some()
        );
        assert_eq!(
            deviation_of("0.02", [0.55, 0.5], "1,reno,40,60,0.1,other model,the timer\n"),
            None
        );
    }

    #[test]
    fn an_emulation_may_agree_despite_a_known_difference() {
        let on_kernel = |value| {
            let listed = "1,reno,40,60,0.1,sim emu,the timer\n";
            deviation_between(["sim", "emu"], "0.02", [value, 0.5], listed)
        };
        assert_eq!((on_kernel(0.51), on_kernel(0.55)), (None, None));
        assert!(on_kernel(0.65).unwrap().contains("more"));
    }

    #[test]
    fn an_emulation_at_a_limit_is_undecided_and_does_not_fail() {
        // Interval of the difference: 0.003 and 0.004 give 0.005; margin: 5 % of the tolerance.
        let verdict = |backends: [&str; 2], value: f64, listed: &str| {
            let [first, other] = [curve(backends[0], value), curve(backends[1], 0.5)];
            let known =
                read(&format!("figure,line,from,to,at_most,between,reason\n{listed}")).unwrap();
            let (ours, theirs) = (first.points[0], other.points[0]);
            let one = compare_points(&first, &other, ours, theirs, "0.1".parse().unwrap(), &known);
            (one.verdict, one.deviation.is_none())
        };
        let kernel = ["sim", "emu"];
        assert_eq!(verdict(kernel, 0.588, ""), (Verdict::Agrees, true));
        assert_eq!(verdict(kernel, 0.595, ""), (Verdict::Undecided, true));
        assert_eq!(verdict(kernel, 0.609, ""), (Verdict::Undecided, true));
        assert_eq!(verdict(kernel, 0.612, ""), (Verdict::Differs, false));
        // A fairness index that differed by 0.414 where 0.4 was listed.
        let listed = "1,reno,40,60,0.4,sim emu,the timer\n";
        assert_eq!(verdict(kernel, 0.914, listed), (Verdict::Differs, true));
        assert_eq!(verdict(kernel, 0.93, listed), (Verdict::Differs, false));
        assert_eq!(verdict(["model", "sim"], 0.601, ""), (Verdict::Differs, false));
    }

    #[test]
    fn an_emulation_is_compared_with_the_model_and_the_simulation() {
        let all = ["model", "paper-model", "sim", "emu"].map(|backend| curve(backend, 0.5));
        let own: Vec<_> = all.iter().collect();
        let named = |own: &[&Curve]| -> Vec<[String; 2]> {
            let pairs = pairs(own).into_iter();
            pairs.map(|(a, b)| [a.backend.clone(), b.backend.clone()]).collect()
        };
        assert_eq!(named(&own), [["model", "sim"], ["model", "emu"], ["sim", "emu"]]);
        assert_eq!(named(&own[2..]), [["sim", "emu"]]);
    }
}
