//! Charts with axes of our own, drawn as SVG.

mod axis;
mod bar;
mod decimate;
mod draw;
mod frame;
mod legend;
mod line;
mod ruler;
mod style;

pub use axis::{Axis, Scale};
pub use bar::{Bar, BarChart, BarSeries};
pub use line::{DataPoint, LineChart, LineSeries, Reference, Stroke, Uncertainty};
pub use style::STYLE;

/// A chart of any kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Chart {
    /// Lines or points over an axis of numbers.
    Line(LineChart),
    /// Groups of bars.
    Bar(BarChart),
}

impl Chart {
    /// The chart as a file of its own, which carries its style.
    #[must_use]
    pub fn to_svg(&self) -> String {
        match self {
            Self::Line(chart) => chart.to_svg(),
            Self::Bar(chart) => chart.to_svg(),
        }
    }

    /// The chart as an element for a page that gives [`STYLE`] once.
    #[must_use]
    pub fn to_inline_svg(&self) -> String {
        match self {
            Self::Line(chart) => chart.to_inline_svg(),
            Self::Bar(chart) => chart.to_inline_svg(),
        }
    }

    /// Heading of the chart.
    #[must_use]
    pub fn title(&self) -> &str {
        match self {
            Self::Line(chart) => &chart.title,
            Self::Bar(chart) => &chart.title,
        }
    }
}

impl From<LineChart> for Chart {
    fn from(chart: LineChart) -> Self {
        Self::Line(chart)
    }
}

impl From<BarChart> for Chart {
    fn from(chart: BarChart) -> Self {
        Self::Bar(chart)
    }
}
