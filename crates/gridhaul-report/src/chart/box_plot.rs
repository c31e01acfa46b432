//! Grouped box plots: quartiles, mean, whiskers at chosen percentiles, and the tail.

use svg::node::element::{Group, Rectangle};

use super::axis_layout::{self, Fit};
use super::bar::group_labels;
use super::drawing::Drawing;
use super::frame::Frame;
use super::legend::{Sample, marker};
use super::style::SERIES_MAX;
use super::svg_primitives::{coloured, line, px, tooltip};
use super::{Axis, Scale};
use crate::format;

/// The numbers of a box.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoxStatistics {
    /// Ends of the whiskers, such as the 2nd and the 98th percentile.
    pub whiskers: [f64; 2],
    /// First and third quartile: the ends of the box.
    pub quartiles: [f64; 2],
    /// Mean: the line in the box.
    pub mean: f64,
    /// A percentile in the tail, such as the 99.9th: a filled marker. `None` if there are too few values.
    pub tail: Option<f64>,
    /// Largest value: a hollow marker.
    pub max: f64,
}

/// A series with one box in each group.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BoxSeries {
    /// Name in the legend.
    pub name: String,
    /// One for each group; `None` without values.
    pub boxes: Vec<Option<BoxStatistics>>,
}

/// Groups of boxes side by side.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BoxPlot {
    /// Heading.
    pub title: String,
    /// Label of the groups; may be empty.
    pub group_label: String,
    /// Axis of the values.
    pub y: Axis,
    /// Names of the groups, left to right.
    pub groups: Vec<String>,
    /// Series, distinguished by colour and order; up to eight.
    pub series: Vec<BoxSeries>,
}

/// Widest box in pixels.
const WIDEST: f64 = 34.0;

impl BoxPlot {
    /// A chart with these groups, without boxes.
    pub fn new<G: Into<String>>(
        title: impl Into<String>,
        y: Axis,
        groups: impl IntoIterator<Item = G>,
    ) -> Self {
        let groups = groups.into_iter().map(Into::into).collect();
        Self { title: title.into(), y, groups, ..Self::default() }
    }

    /// Adds a series.
    #[must_use]
    pub fn with(
        mut self,
        name: impl Into<String>,
        boxes: impl IntoIterator<Item = Option<BoxStatistics>>,
    ) -> Self {
        self.series.push(BoxSeries { name: name.into(), boxes: boxes.into_iter().collect() });
        self
    }

    pub(super) fn drawing(&self) -> Drawing {
        let series = &self.series[..self.series.len().min(SERIES_MAX)];
        let named = series.iter().enumerate();
        let names: Vec<_> = named.map(|(at, it)| (it.name.as_str(), Sample::Bar, at)).collect();
        let shown =
            |series: &BoxSeries| series.boxes[..series.boxes.len().min(self.groups.len())].to_vec();
        let values = series.iter().flat_map(shown).flatten().flat_map(|it| it.values());
        let values: Vec<_> =
            values.filter_map(|value| axis_layout::shown(value, self.y.scale)).collect();
        let fit = if self.y.scale == Scale::Log { Fit::Loose } else { Fit::Zero };
        let frame = Frame::new(&self.title, &names, &self.y, &values, fit);
        let mut parts = vec![frame.vertical()];
        if values.is_empty() {
            parts.push(frame.no_data());
        }
        parts.extend(series.iter().enumerate().map(|(at, it)| self.boxes(at, it, &frame)));
        parts.push(frame.base());
        let (labels, mut below) = group_labels(&self.groups, &frame);
        parts.push(labels);
        if !self.group_label.is_empty() {
            parts.push(frame.horizontal_name(&self.group_label, below + 14.0));
            below += 18.0;
        }
        let (groups, count) = (self.groups.len(), series.len());
        let about = format!("{}, {groups} groups of {count} boxes", frame.y.title);
        frame.finish(parts, below + 8.0, &about)
    }

    fn boxes(&self, index: usize, series: &BoxSeries, frame: &Frame) -> Group {
        let band = (frame.right - frame.left) / self.groups.len().max(1) as f64;
        let count = self.series.len().clamp(1, SERIES_MAX) as f64;
        let step = (band * 0.82 / count).min(WIDEST + 6.0);
        let wide = (step - 4.0).clamp(1.5, WIDEST);
        let mut group = coloured(index);
        for (place, (name, known)) in self.groups.iter().zip(&series.boxes).enumerate() {
            let Some(statistics) = known else { continue };
            let middle = frame.left
                + band * (place as f64 + 0.5)
                + step * (index as f64 - (count - 1.0) / 2.0);
            let about = format!("{name}, {}: {}", series.name, self.about(statistics));
            let one = Group::new().add(tooltip(&about));
            group = group.add(drawn(one, index, statistics, (middle, wide), frame));
        }
        group
    }

    fn about(&self, it: &BoxStatistics) -> String {
        let value = |value| format::value(value, &self.y.unit);
        let [low, high] = it.whiskers.map(value);
        let [first, third] = it.quartiles.map(value);
        let tail = it.tail.map_or_else(String::new, |tail| format!(", tail {}", value(tail)));
        let (mean, max) = (value(it.mean), value(it.max));
        format!(
            "mean {mean}, quartiles {first} to {third}, whiskers {low} to {high}{tail}, max {max}"
        )
    }
}

impl BoxStatistics {
    /// All values that the axis must show.
    fn values(self) -> impl Iterator<Item = f64> {
        let Self { whiskers, quartiles, mean, tail, max } = self;
        whiskers.into_iter().chain(quartiles).chain([mean, max]).chain(tail)
    }
}

/// One box with its whiskers and markers.
fn drawn(
    group: Group,
    index: usize,
    it: &BoxStatistics,
    (middle, wide): (f64, f64),
    frame: &Frame,
) -> Group {
    let place = |value: f64| frame.y.place(value);
    let [low, high] = it.whiskers.map(place);
    let [first, third] = it.quartiles.map(place);
    let (left, right) = (middle - wide / 2.0, middle + wide / 2.0);
    let stroke = |x1, y1, x2, y2, width: f64| {
        line(x1, y1, x2, y2).set("stroke", "currentColor").set("stroke-width", width)
    };
    let cap = wide / 4.0;
    let body = Rectangle::new()
        .set("x", px(left))
        .set("y", px(third.min(first)))
        .set("width", px(wide))
        .set("height", px((first - third).abs().max(0.8)))
        .set("fill", "currentColor")
        .set("fill-opacity", 0.3)
        .set("stroke", "currentColor");
    // The mean can be outside of the box.
    let mean = stroke(left, place(it.mean), right, place(it.mean), 2.4);
    let mut group = group
        .add(stroke(middle, low, middle, first, 1.1))
        .add(stroke(middle, third, middle, high, 1.1))
        .add(stroke(middle - cap, low, middle + cap, low, 1.1))
        .add(stroke(middle - cap, high, middle + cap, high, 1.1))
        .add(body)
        .add(mean);
    if let Some(tail) = it.tail {
        group = group.add(marker(index, middle, place(tail), false));
    }
    group.add(marker(index, middle, place(it.max), true))
}
