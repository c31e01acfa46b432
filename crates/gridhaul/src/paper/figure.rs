//! `[[figure]]` of `paper.toml`: curves over a swept key, one for each line and backend.

use gridhaul_report::chart::{Axis, DataPoint, LineChart, LineSeries, Stroke};
use gridhaul_report::{NamedChart, quantity};
use gridhaul_scenario::answer::{Answer, Estimate, Point};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::answers::Answers;
use super::backend_agreement::Tolerance;
use super::expected::Expected;
use super::select::Select;

/// A figure of a paper.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figure {
    /// Name, unique in the paper: letters, digits, `_`.
    pub(crate) name: String,
    /// Section of the report: a name in `[table]`.
    pub(crate) table: String,
    /// Title of the chart.
    pub(crate) title: String,
    /// XAxis axis.
    pub(crate) x: XAxis,
    /// YAxis axis.
    pub(crate) y: YAxis,
    /// Tolerance for the agreement of backends, point by point. Absent: not checked.
    #[serde(default)]
    pub(crate) agree: Option<Tolerance>,
    /// Curves.
    pub(crate) line: Vec<Line>,
}

/// Horizontal axis of a figure: either `key` or `select`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct XAxis {
    /// Swept key whose values are numbers or quantities.
    #[serde(default)]
    pub(crate) key: Option<String>,
    /// Row and column of the answers: points are drawn over a result, whose values differ from
    /// curve to curve.
    #[serde(default)]
    pub(crate) select: Option<Select>,
    /// Label of the axis.
    pub(crate) label: String,
    /// Logarithmic axis.
    #[serde(default)]
    pub(crate) log: bool,
}

/// Vertical axis of a figure.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct YAxis {
    /// Row and column of the answers, as in `expected.csv`.
    pub(crate) select: Select,
    /// Label of the axis.
    pub(crate) label: String,
    /// Logarithmic axis.
    #[serde(default)]
    pub(crate) log: bool,
}

/// A curve of a figure, drawn once for each backend of its scenario.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    /// Name, unique in the figure: letters, digits, `_`.
    pub(crate) name: String,
    /// Name in the legend.
    pub(crate) label: String,
    /// Sources of its points. Each backend of a source has a curve.
    pub(crate) from: Vec<Source>,
}

/// Points of an answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Source {
    /// Name of the scenario.
    pub(crate) scenario: String,
    /// Only the points with these values: `key=value; key=value`.
    #[serde(default)]
    pub(crate) parameters: String,
    /// Position on the horizontal axis, if it is not the value of the figure's key.
    #[serde(default)]
    pub(crate) x: Option<f64>,
    /// Row and column, if they differ from those of the figure.
    #[serde(default)]
    pub(crate) select: Option<Select>,
    /// Backends whose answers are drawn. Absent: all that answer the scenario.
    #[serde(default)]
    pub(crate) on: Vec<String>,
}

/// A curve of one backend.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Curve {
    /// Name of the figure.
    pub(crate) figure: String,
    /// Name of the line.
    pub(crate) line: String,
    /// Name of the backend.
    pub(crate) backend: String,
    /// Whether the positions are results: between them the curve is a straight line.
    pub(crate) interpolated: bool,
    /// Known values, in the order of their positions.
    pub(crate) points: Vec<CurvePoint>,
}

/// A point of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct CurvePoint {
    /// Position on the horizontal axis, in base units.
    pub(crate) x: f64,
    /// Mean, in base units.
    pub(crate) y: f64,
    /// Half width of its 95 % confidence interval.
    pub(crate) ci95: Option<f64>,
    /// Whether it was measured while the machine was too busy: it decides nothing.
    pub(crate) disturbed: bool,
}

impl Figure {
    /// All curves of the figure, and those of ns-2 from published values of the same scenarios.
    pub(crate) fn curves(&self, answers: &Answers, cells: &[Expected]) -> Vec<Curve> {
        let mut curves = Vec::new();
        for line in &self.line {
            let mut backends: Vec<&str> = Vec::new();
            for source in &line.from {
                for backend in answers.backends(&source.scenario) {
                    if source.draws(backend) && !backends.contains(&backend) {
                        backends.push(backend);
                    }
                }
            }
            for backend in backends {
                let mut points: Vec<CurvePoint> = Vec::new();
                for source in line.from.iter().filter(|source| source.draws(backend)) {
                    for answer in answers.of(&source.scenario, backend) {
                        points.extend(self.points_of(source, answer));
                    }
                }
                points.sort_by(|a, b| a.x.total_cmp(&b.x));
                // Additional points of smooth curves include the positions of the other backends.
                points.dedup_by(|a, b| same_position(a.x, b.x));
                curves.push(Curve {
                    figure: self.name.clone(),
                    line: line.name.clone(),
                    backend: backend.to_owned(),
                    interpolated: self.x.select.is_some(),
                    points,
                });
            }
            curves.extend(self.ns2_curve(line, cells));
        }
        curves
    }

    /// The curve of ns-2: the published values of the line's scenarios.
    fn ns2_curve(&self, line: &Line, cells: &[Expected]) -> Option<Curve> {
        let key = self.x.key.as_deref()?;
        let mut points = Vec::new();
        for source in line.from.iter().filter(|source| source.draws(NS2)) {
            let select = source.select.as_ref().unwrap_or(&self.y.select);
            let own = cells.iter().filter(|cell| {
                let parameters: IndexMap<_, _> = cell
                    .settings()
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .collect();
                cell.scenario == source.scenario
                    && cell.select == *select
                    && source.selects(&parameters)
            });
            points.extend(own.filter_map(|cell| {
                let (_, position) = cell.settings().find(|(found, _)| *found == key)?;
                let in_base = cell.unit.in_base();
                Some(CurvePoint {
                    x: source.x.or_else(|| quantity(position).map(|(number, _)| number))?,
                    y: cell.ns2_mean? * in_base,
                    ci95: cell.ns2_ci95.map(|ci95| ci95 * in_base),
                    disturbed: false,
                })
            }));
        }
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        (!points.is_empty()).then(|| Curve {
            figure: self.name.clone(),
            line: line.name.clone(),
            backend: NS2.to_owned(),
            interpolated: false,
            points,
        })
    }

    fn points_of<'a>(
        &'a self,
        source: &'a Source,
        answer: &'a Answer,
    ) -> impl Iterator<Item = CurvePoint> + 'a {
        let select = source.select.as_ref().unwrap_or(&self.y.select);
        let points = answer.points.iter().enumerate();
        points.filter(|(_, point)| source.selects(&point.parameters)).filter_map(
            |(index, point)| {
                let x = source.x.or_else(|| self.x.position(answer, index, point))?;
                let Estimate { mean, ci95, .. } = select.find(answer, index);
                let disturbed = point.disturbed > 0;
                mean.map(|y| CurvePoint { x, y, ci95, disturbed })
            },
        )
    }

    /// The chart: smooth curves of the analytical models, and markers of the same colour for the
    /// other backends.
    pub(crate) fn chart(&self, curves: &[Curve]) -> NamedChart {
        let own = curves.iter().filter(|curve| curve.figure == self.name);
        let own: Vec<_> = own.filter(|curve| !curve.points.is_empty()).collect();
        let mut backends: Vec<&str> = own.iter().map(|curve| curve.backend.as_str()).collect();
        backends.sort_by_key(|backend| (!smooth(backend), *backend));
        backends.dedup();
        let axis = |label: &str, unit: &str, log| {
            let axis = Axis::new(label, unit);
            if log { axis.log() } else { axis.including(0.0) }
        };
        let x = axis(&self.x.label, self.x.unit(), self.x.log);
        let y = axis(&self.y.label, self.y.select.unit(), self.y.log);
        let mut chart = LineChart::new(self.title.clone(), x, y);
        for backend in &backends {
            for (place, line) in self.line.iter().enumerate() {
                let fits = |curve: &&&Curve| curve.backend == *backend && curve.line == line.name;
                let Some(curve) = own.iter().find(fits) else { continue };
                let name = match backends.len() {
                    1 => line.label.clone(),
                    _ => format!("{}, {}", line.label, backend_label(backend)),
                };
                let stroke = match (smooth(backend), backends.len()) {
                    (true, _) => Stroke::Curve,
                    (false, 1) => Stroke::Line,
                    // With both simulation and emulation, markers are for the emulation only.
                    (false, _) if *backend == "sim" && backends.contains(&"emu") => Stroke::Line,
                    (false, _) => Stroke::Points,
                };
                // The first model and the measured values, which should agree, share a colour.
                let is_second_model = smooth(backend) && *backend != backends[0];
                let style = match *backend {
                    NS2 => 2 * self.line.len() + place,
                    _ if is_second_model => self.line.len() + place,
                    _ => place,
                };
                let points = curve.points.iter();
                let points = points.map(|at| DataPoint { x: at.x, y: at.y, ci95: at.ci95 });
                chart =
                    chart.with(LineSeries::new(name, points).stroke(stroke).same_style_as(style));
            }
        }
        NamedChart {
            name: format!("figure-{}", self.name),
            section: self.table.clone(),
            chart: chart.into(),
        }
    }
}

impl XAxis {
    fn position(&self, answer: &Answer, index: usize, point: &Point) -> Option<f64> {
        match (&self.key, &self.select) {
            (Some(key), _) => {
                let text = point.parameters.get(key)?;
                quantity(text).map(|(number, _)| number)
            }
            (None, Some(select)) => select.find(answer, index).mean,
            (None, None) => None,
        }
    }

    /// The unit of the swept key, which counts do not have, or of the result.
    fn unit(&self) -> &'static str {
        let Some(key) = &self.key else {
            return self.select.as_ref().map_or("", Select::unit);
        };
        match key.rsplit('.').next() {
            Some("rate") => "bit/s",
            Some("delay" | "every" | "on" | "off" | "spread" | "jitter" | "warmup") => "s",
            _ => "",
        }
    }
}

impl Source {
    /// Whether the answers of a backend are drawn.
    pub(super) fn draws(&self, backend: &str) -> bool {
        self.on.is_empty() || self.on.iter().any(|own| own == backend)
    }

    /// The values of the selected points, key by key.
    fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.parameters.split(';').filter_map(|pair| pair.split_once('='));
        pairs.map(|(key, value)| (key.trim(), value.trim()))
    }

    /// Whether it selects a point with these parameters.
    pub(super) fn selects(&self, parameters: &IndexMap<String, String>) -> bool {
        self.settings().all(|(key, value)| parameters.get(key).is_some_and(|found| found == value))
    }
}

impl Curve {
    /// The point at a position, if it is known.
    pub(crate) fn at(&self, x: f64) -> Option<CurvePoint> {
        let known = self.points.iter().find(|place| same_position(place.x, x)).copied();
        known.or_else(|| if self.interpolated { self.between(x) } else { None })
    }

    /// The point on the straight line between its two neighbours.
    fn between(&self, x: f64) -> Option<CurvePoint> {
        let pair = self.points.windows(2).find(|pair| pair[0].x < x && x < pair[1].x)?;
        let share = (x - pair[0].x) / (pair[1].x - pair[0].x);
        let y = pair[0].y + share * (pair[1].y - pair[0].y);
        Some(CurvePoint { x, y, ci95: None, disturbed: pair.iter().any(|at| at.disturbed) })
    }
}

/// Name of the curves of ns-2, which is no backend of gridhaul.
pub(super) const NS2: &str = "ns-2";

/// Whether a backend is an analytical model, whose curves are smooth.
pub(super) fn smooth(backend: &str) -> bool {
    backend.ends_with("model")
}

/// Positions are parsed from scenario texts and are equal up to rounding.
fn same_position(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// Name of a backend in legends.
pub(super) fn backend_label(backend: &str) -> &str {
    match backend {
        "model" => "gridhaul's model",
        "sim" => "simulation",
        "emu" => "kernel",
        "paper-model" => "paper's equations",
        "printed-model" => "paper's equations as printed",
        other => other,
    }
}
