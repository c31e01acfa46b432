//! Stacked bars: parts of a whole.

use svg::node::element::Group;

use super::Axis;
use super::axis_layout::{self, Fit};
use super::bar::{BarChart, BarSeries};
use super::drawing::Drawing;
use super::marks::filled;
use super::style::INK;
use super::svg_primitives::{coloured, role, text, tooltip};
use crate::format;

/// One bar for each group; the series are its parts, from the bottom. Unknown and negative values
/// count as zero.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StackedChart(pub BarChart);

impl StackedChart {
    /// A chart with these groups, without parts.
    pub fn new<G: Into<String>>(
        title: impl Into<String>,
        y: Axis,
        groups: impl IntoIterator<Item = G>,
    ) -> Self {
        Self(BarChart::new(title, y, groups))
    }

    /// Adds a part on top.
    #[must_use]
    pub fn with(self, part: BarSeries) -> Self {
        Self(self.0.with(part))
    }

    pub(super) fn drawing(&self) -> Drawing {
        let Self(chart) = self;
        let series = chart.drawn_series();
        let part = |series: &BarSeries, place: usize| {
            let value = series.bars.get(place).and_then(|bar| bar.value).unwrap_or(0.0);
            axis_layout::shown(value.max(0.0), chart.y.scale).unwrap_or(0.0)
        };
        let total = |place: usize| series.iter().map(|series| part(series, place)).sum::<f64>();
        let totals: Vec<f64> = (0..chart.groups.len()).map(total).collect();
        let frame = chart.frame(&totals, Fit::Zero);
        let mut parts = vec![frame.vertical()];
        let wide = (chart.band(&frame) * 0.62).min(64.0);
        let mut below = vec![0.0; chart.groups.len()];
        for (index, series) in series.iter().enumerate() {
            let mut group = coloured(index);
            for (place, name) in chart.groups.iter().enumerate() {
                let value = part(series, place);
                let (bottom, top) =
                    (frame.y.place(below[place]), frame.y.place(below[place] + value));
                below[place] += value;
                let left = chart.middle(&frame, place) - wide / 2.0;
                let about =
                    format!("{name}, {}: {}", series.name, format::value(value, &chart.y.unit));
                let one = Group::new().add(tooltip(&about));
                group = group.add(filled(one, index, left, top, wide, bottom - top));
            }
            parts.push(group);
        }
        let mut labels = role("ink", INK).set("font-size", 10.5);
        for (place, total) in totals.iter().enumerate() {
            let middle = chart.middle(&frame, place);
            let label = text(middle, frame.y.place(*total) - 4.0, "middle", &frame.y.short(*total));
            labels = labels.add(label.set("fill", "currentColor"));
        }
        parts.push(labels);
        chart.finish(&frame, parts, "parts")
    }
}
