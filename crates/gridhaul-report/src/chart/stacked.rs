//! Stacked bars: parts of a whole.

use svg::node::element::Group;

use super::Axis;
use super::axis_layout::{self, Fit};
use super::bar::{BarSeries, filled, group_labels};
use super::drawing::Drawing;
use super::frame::Frame;
use super::legend::Sample;
use super::style::{INK, SERIES_MAX};
use super::svg_primitives::{coloured, role, text, tooltip};
use crate::format;

/// One bar for each group; the series are its parts, from the bottom.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StackedChart {
    /// Heading.
    pub title: String,
    /// Axis of the values.
    pub y: Axis,
    /// Names of the groups, left to right.
    pub groups: Vec<String>,
    /// Parts, distinguished by colour, hatching and order; up to eight. Unknown and negative values count as zero.
    pub series: Vec<BarSeries>,
}

impl StackedChart {
    /// A chart with these groups, without parts.
    pub fn new<G: Into<String>>(
        title: impl Into<String>,
        y: Axis,
        groups: impl IntoIterator<Item = G>,
    ) -> Self {
        let groups = groups.into_iter().map(Into::into).collect();
        Self { title: title.into(), y, groups, series: Vec::new() }
    }

    /// Adds a part on top.
    #[must_use]
    pub fn with(mut self, series: BarSeries) -> Self {
        self.series.push(series);
        self
    }

    pub(super) fn drawing(&self) -> Drawing {
        let series = &self.series[..self.series.len().min(SERIES_MAX)];
        let named = series.iter().enumerate();
        let names: Vec<_> = named.map(|(at, it)| (it.name.as_str(), Sample::Bar, at)).collect();
        let part = |series: &BarSeries, place: usize| {
            let value = series.bars.get(place).and_then(|bar| bar.value).unwrap_or(0.0);
            axis_layout::shown(value.max(0.0), self.y.scale).unwrap_or(0.0)
        };
        let total = |place: usize| series.iter().map(|it| part(it, place)).sum::<f64>();
        let totals: Vec<f64> = (0..self.groups.len()).map(total).collect();
        let frame = Frame::new(&self.title, &names, &self.y, &totals, Fit::Zero);
        let mut parts = vec![frame.vertical()];
        let band = (frame.right - frame.left) / self.groups.len().max(1) as f64;
        let wide = (band * 0.62).min(64.0);
        let mut below = vec![0.0; self.groups.len()];
        for (index, series) in series.iter().enumerate() {
            let mut group = coloured(index);
            for (place, name) in self.groups.iter().enumerate() {
                let value = part(series, place);
                let (bottom, top) =
                    (frame.y.place(below[place]), frame.y.place(below[place] + value));
                below[place] += value;
                let left = frame.left + band * (place as f64 + 0.5) - wide / 2.0;
                let about =
                    format!("{name}, {}: {}", series.name, format::value(value, &self.y.unit));
                let one = Group::new().add(tooltip(&about));
                group = group.add(filled(one, index, left, top, wide, bottom - top));
            }
            parts.push(group);
        }
        let mut labels = role("ink", INK).set("font-size", 10.5);
        for (place, total) in totals.iter().enumerate() {
            let middle = frame.left + band * (place as f64 + 0.5);
            let label = text(middle, frame.y.place(*total) - 4.0, "middle", &frame.y.short(*total));
            labels = labels.add(label.set("fill", "currentColor"));
        }
        parts.push(labels);
        parts.push(frame.base());
        let (labels, below) = group_labels(&self.groups, &frame);
        parts.push(labels);
        let (groups, count) = (self.groups.len(), series.len());
        let about = format!("{}, {groups} bars of {count} parts", frame.y.title);
        frame.finish(parts, below + 8.0, &about)
    }
}
