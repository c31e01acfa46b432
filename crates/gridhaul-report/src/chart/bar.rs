//! Groups of bars.

use super::Axis;

/// A bar: a value with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bar {
    /// Value; `None` where it is not known, which leaves a place marked with a dash.
    pub value: Option<f64>,
    /// Half width of the 95 % interval.
    pub ci95: Option<f64>,
}

/// One bar in each group, under one name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BarSeries {
    /// Name in the legend.
    pub name: String,
    /// One for each group; missing ones count as not known.
    pub bars: Vec<Bar>,
}

/// Groups of bars side by side.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BarChart {
    /// Heading.
    pub title: String,
    /// What the groups are; empty when that is plain.
    pub group_label: String,
    /// Axis of the values.
    pub y: Axis,
    /// Names of the groups, left to right.
    pub groups: Vec<String>,
    /// Bars, told apart by colour, hatching and order; up to eight.
    pub series: Vec<BarSeries>,
}

impl From<f64> for Bar {
    fn from(value: f64) -> Self {
        Self { value: Some(value), ci95: None }
    }
}

impl From<Option<f64>> for Bar {
    fn from(value: Option<f64>) -> Self {
        Self { value, ci95: None }
    }
}

impl From<gridhaul_scenario::answer::Estimate> for Bar {
    fn from(estimate: gridhaul_scenario::answer::Estimate) -> Self {
        Self { value: estimate.mean, ci95: estimate.ci95 }
    }
}

impl BarSeries {
    /// Bars under one name.
    pub fn new<B: Into<Bar>>(name: impl Into<String>, bars: impl IntoIterator<Item = B>) -> Self {
        Self { name: name.into(), bars: bars.into_iter().map(Into::into).collect() }
    }
}

impl BarChart {
    /// A chart of these groups, without bars.
    pub fn new<G: Into<String>>(
        title: impl Into<String>,
        y: Axis,
        groups: impl IntoIterator<Item = G>,
    ) -> Self {
        let groups = groups.into_iter().map(Into::into).collect();
        Self { title: title.into(), y, groups, ..Self::default() }
    }

    /// The same chart with one series more.
    #[must_use]
    pub fn with(mut self, series: BarSeries) -> Self {
        self.series.push(series);
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
