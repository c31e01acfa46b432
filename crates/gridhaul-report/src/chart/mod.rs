//! Charts rendered as SVG.
//!
//! ```
//! use gridhaul_report::chart::{Axis, DataPoint, LineChart, LineSeries, Reference, Stroke};
//!
//! let ours = [1e-4, 1e-3, 1e-2].map(|loss| DataPoint { x: loss, y: 2e6, ci95: Some(1e5) });
//! let chart = LineChart::new(
//!     "Goodput against loss",
//!     Axis::new("loss", "").log(),
//!     Axis::new("goodput", "bit/s").including(0.0),
//! )
//! .with(LineSeries::new("gridhaul", ours))
//! .with(LineSeries::new("paper, Table 3", [(1e-4, 1.9e6), (1e-2, 1.8e6)]).stroke(Stroke::Points))
//! .with_reference(Reference::Y(3e6, "link rate".into()));
//! assert!(chart.to_svg().starts_with("<svg"));
//! ```
//!
//! ```
//! use gridhaul_report::chart::{Axis, Bar, BarChart, BarSeries};
//!
//! let chart = BarChart::new("Table 2", Axis::new("throughput", "bit/s"), ["DVB-T", "GPRS"])
//!     .with(BarSeries::new("paper", [1.21e6, 0.04e6]))
//!     .with(BarSeries::new(
//!         "gridhaul",
//!         [Bar { value: Some(1.2e6), ci95: Some(3e4) }, Bar::default()],
//!     ));
//! assert!(chart.to_svg().contains("Mbit/s"));
//! ```

mod axis;
mod axis_layout;
mod bar;
mod box_plot;
pub(crate) mod decimate;
mod drawing;
mod frame;
mod grouped;
mod legend;
mod line;
mod marks;
mod panels;
mod reference;
mod region;
mod stacked;
mod style;
mod svg_primitives;

pub use axis::{Axis, Scale};
pub use bar::{Bar, BarChart, BarSeries};
pub use box_plot::{BoxPlot, BoxSeries, BoxStatistics};
pub use grouped::GroupedChart;
pub use line::{DataPoint, LineChart, LineSeries, Stroke, Uncertainty};
pub use panels::Panels;
pub use reference::Reference;
pub use region::{Cell, CellState, RegionChart};
pub use stacked::StackedChart;
pub use style::STYLE;

/// A chart of any kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Chart {
    /// Lines or points over an axis of numbers.
    Line(LineChart),
    /// Groups of bars.
    Bar(BarChart),
    /// Groups of boxes.
    Box(BoxPlot),
    /// Bars of several parts.
    Stacked(StackedChart),
    /// A map of cells over two axes of numbers.
    Region(RegionChart),
}

/// Output methods of all kinds of charts.
macro_rules! outputs {
    ($($chart:ty),*) => {$(
        impl $chart {
            /// Renders a standalone SVG file, style sheet included.
            #[must_use]
            pub fn to_svg(&self) -> String {
                self.drawing().standalone()
            }

            /// Renders an SVG element for a page that includes [`STYLE`] once.
            #[must_use]
            pub fn to_inline_svg(&self) -> String {
                self.drawing().inline()
            }
        }
    )*};
}

outputs!(Chart, LineChart, BarChart, BoxPlot, StackedChart, RegionChart, Panels);

impl Chart {
    /// Heading of the chart.
    #[must_use]
    pub fn title(&self) -> &str {
        match self {
            Self::Line(chart) => &chart.title,
            Self::Bar(chart) => &chart.title,
            Self::Box(chart) => &chart.title,
            Self::Stacked(chart) => &chart.0.title,
            Self::Region(chart) => &chart.title,
        }
    }

    fn drawing(&self) -> drawing::Drawing {
        match self {
            Self::Line(chart) => chart.drawing(),
            Self::Bar(chart) => chart.drawing(),
            Self::Box(chart) => chart.drawing(),
            Self::Stacked(chart) => chart.drawing(),
            Self::Region(chart) => chart.drawing(),
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

impl From<BoxPlot> for Chart {
    fn from(chart: BoxPlot) -> Self {
        Self::Box(chart)
    }
}

impl From<StackedChart> for Chart {
    fn from(chart: StackedChart) -> Self {
        Self::Stacked(chart)
    }
}

impl From<RegionChart> for Chart {
    fn from(chart: RegionChart) -> Self {
        Self::Region(chart)
    }
}
