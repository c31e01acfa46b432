//! Lines or points over an axis of numbers.

use super::Axis;

/// A value at a place, with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataPoint {
    /// Place on the horizontal axis.
    pub x: f64,
    /// Value; NaN leaves a gap in the line.
    pub y: f64,
    /// Half width of the 95 % interval of the value.
    pub ci95: Option<f64>,
}

/// How the points of a series are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stroke {
    /// By straight lines, with markers while there are few points.
    #[default]
    Line,
    /// By steps: a value holds until the next one.
    Step,
    /// Not at all: hollow markers, for published values beside ours.
    Points,
}

/// How the 95 % interval is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Uncertainty {
    /// As a bar through each point.
    #[default]
    Bars,
    /// As a band along the line.
    Band,
}

/// A named line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LineSeries {
    /// Name in the legend.
    pub name: String,
    /// Points, in the order in which they are joined.
    pub points: Vec<DataPoint>,
    /// How they are joined.
    pub stroke: Stroke,
    /// How intervals are drawn.
    pub uncertainty: Uncertainty,
}

/// A straight line across the chart that marks a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Reference {
    /// A vertical line at a place on the horizontal axis.
    X(f64, String),
    /// A horizontal line at a value.
    Y(f64, String),
}

/// Lines or points over an axis of numbers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LineChart {
    /// Heading.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Lines, told apart by colour, marker and dashes; up to eight.
    pub series: Vec<LineSeries>,
    /// Marked values.
    pub references: Vec<Reference>,
}

impl From<(f64, f64)> for DataPoint {
    fn from((x, y): (f64, f64)) -> Self {
        Self { x, y, ci95: None }
    }
}

impl LineSeries {
    /// A line through points.
    pub fn new<P: Into<DataPoint>>(
        name: impl Into<String>,
        points: impl IntoIterator<Item = P>,
    ) -> Self {
        let points = points.into_iter().map(Into::into).collect();
        Self { name: name.into(), points, ..Self::default() }
    }

    /// The same series, joined differently.
    #[must_use]
    pub fn stroke(mut self, stroke: Stroke) -> Self {
        self.stroke = stroke;
        self
    }
}

impl LineChart {
    /// A chart without lines.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self { title: title.into(), x, y, ..Self::default() }
    }

    /// The same chart with one line more.
    #[must_use]
    pub fn with(mut self, series: LineSeries) -> Self {
        self.series.push(series);
        self
    }

    /// The same chart with a marked value more.
    #[must_use]
    pub fn with_reference(mut self, reference: Reference) -> Self {
        self.references.push(reference);
        self
    }

    /// The chart as a file of its own, which carries its style.
    #[must_use]
    pub fn to_svg(&self) -> String {
        String::new()
    }

    /// The chart as an element for a page that gives [`STYLE`](super::STYLE) once.
    #[must_use]
    pub fn to_inline_svg(&self) -> String {
        String::new()
    }
}
