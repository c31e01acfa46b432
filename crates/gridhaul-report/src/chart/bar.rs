//! Bar charts with groups of bars.

use gridhaul_scenario::answer::Estimate;
use svg::node::element::Group;

use super::Scale;
use super::axis_layout;
use super::drawing::Drawing;
use super::frame::Frame;
use super::grouped::{GroupedChart, Named};
use super::line::whiskers;
use super::marks::filled;
use super::style::{INK, SERIES_MAX};
use super::svg_primitives::{coloured, role, text, tooltip, width};
use crate::format::{self, UNKNOWN};

/// A bar: a value with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bar {
    /// Value; `None` if unknown, which is shown as a dash.
    pub value: Option<f64>,
    /// Half width of the 95 % confidence interval.
    pub ci95: Option<f64>,
}

/// A series with one bar in each group.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BarSeries {
    /// Name in the legend.
    pub name: String,
    /// One for each group; missing ones count as unknown.
    pub bars: Vec<Bar>,
}

/// Groups of bars side by side.
pub type BarChart = GroupedChart<BarSeries>;

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

impl From<Estimate> for Bar {
    fn from(estimate: Estimate) -> Self {
        Self { value: estimate.mean, ci95: estimate.ci95 }
    }
}

impl BarSeries {
    /// A named series of bars.
    pub fn new<B: Into<Bar>>(name: impl Into<String>, bars: impl IntoIterator<Item = B>) -> Self {
        Self { name: name.into(), bars: bars.into_iter().map(Into::into).collect() }
    }
}

impl Named for BarSeries {
    fn name(&self) -> &str {
        &self.name
    }
}

impl BarChart {
    /// Adds a series.
    #[must_use]
    pub fn with(mut self, series: BarSeries) -> Self {
        self.series.push(series);
        self
    }

    pub(super) fn drawing(&self) -> Drawing {
        let series = self.drawn_series();
        let values = self.values(series);
        let frame = self.frame(&values, self.fit_from_zero());
        let mut parts = vec![frame.vertical()];
        if values.is_empty() {
            parts.push(frame.no_data());
        } else {
            for (index, series) in series.iter().enumerate() {
                parts.push(self.bars(index, series, &frame));
            }
        }
        self.finish(&frame, parts, "bars")
    }

    fn values(&self, series: &[BarSeries]) -> Vec<f64> {
        let bars = series.iter().flat_map(|series| series.bars.iter().take(self.groups.len()));
        let values =
            bars.filter_map(|bar| Some((axis_layout::shown(bar.value?, self.y.scale)?, bar.ci95)));
        axis_layout::values_with_intervals(values)
    }

    fn bars(&self, index: usize, series: &BarSeries, frame: &Frame) -> Group {
        let band = self.band(frame);
        let count = self.series.len().clamp(1, SERIES_MAX) as f64;
        // Limits the width of few bars.
        let wide = (band * 0.78 / count).min(64.0);
        let base = if self.y.scale == Scale::Log { frame.bottom } else { frame.y.place(0.0) };
        // Either all bars have labels or none.
        let all = self.series.iter().flat_map(|series| &series.bars).filter_map(|bar| bar.value);
        let labelled = all.clone().count() <= 64
            && all
                .into_iter()
                .all(|value| width(&self.bar_label(value, frame), 10.5) <= wide - 2.0);
        let mut group = coloured(index);
        let mut labels = role("ink", INK).set("font-size", 10.5);
        for (place, name) in self.groups.iter().enumerate() {
            let middle = self.middle(frame, place) + wide * (index as f64 - (count - 1.0) / 2.0);
            let bar = series.bars.get(place).copied().unwrap_or_default();
            let Some(value) = bar.value.and_then(|value| frame.y.shown(value)) else {
                labels = labels
                    .add(text(middle, base - 4.0, "middle", UNKNOWN).set("fill", "currentColor"));
                continue;
            };
            let y = frame.y.place(value);
            let estimate = Estimate { ci95: bar.ci95, ..Estimate::exact(value, 1) };
            let about =
                format!("{name}, {}: {}", series.name, format::estimate(&estimate, &self.y.unit));
            let one = Group::new().add(tooltip(&about));
            let gap = if wide > 5.0 { 1.0 } else { 0.0 };
            let (left, top) = (middle - wide / 2.0 + gap, y.min(base));
            group = group.add(filled(one, index, left, top, wide - 2.0 * gap, (y - base).abs()));
            let half = bar.ci95.filter(|half| half.is_finite() && *half > 0.0).unwrap_or(0.0);
            let ends = [value - half, value + half].map(|end| frame.y.place(end));
            if half > 0.0 {
                let bars = whiskers(&[(middle, ends[0], ends[1])]).set("stroke-width", 1.1);
                labels = labels.add(bars);
            }
            if labelled {
                let label = self.bar_label(value, frame);
                let above = if value < 0.0 { ends[0] + 12.0 } else { ends[1] - 4.0 };
                labels =
                    labels.add(text(middle, above, "middle", &label).set("fill", "currentColor"));
            }
        }
        Group::new().add(group).add(labels)
    }

    /// The value in the unit of the axis, with three digits.
    fn bar_label(&self, value: f64, frame: &Frame) -> String {
        if self.y.scale == Scale::Log {
            return format::value(value, &self.y.unit);
        }
        frame.y.short(value)
    }
}
