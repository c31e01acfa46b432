//! Grouped box plots: quartiles, mean, whiskers at chosen percentiles, and the tail.

use svg::node::element::{Group, Rectangle};

use super::axis_layout;
use super::drawing::Drawing;
use super::frame::Frame;
use super::grouped::{GroupedChart, Named};
use super::legend::Sample;
use super::marks::marker;
use super::style::SERIES_MAX;
use super::svg_primitives::{coloured, line, px, tooltip};
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
    /// The 99.9th percentile: a filled marker. `None` if there are too few values.
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
pub type BoxPlot = GroupedChart<BoxSeries>;

/// Widest box in pixels.
const WIDEST: f64 = 34.0;

impl Named for BoxSeries {
    fn name(&self) -> &str {
        &self.name
    }
}

impl BoxPlot {
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
        let series = self.drawn_series();
        let shown =
            |series: &BoxSeries| series.boxes[..series.boxes.len().min(self.groups.len())].to_vec();
        let values = series.iter().flat_map(shown).flatten().flat_map(|drawn| drawn.values());
        let values: Vec<_> =
            values.filter_map(|value| axis_layout::shown(value, self.y.scale)).collect();
        let has_tail = series.iter().flat_map(shown).flatten().any(|drawn| drawn.tail.is_some());
        let marks = [("99.9th percentile", Sample::Filled), ("largest value", Sample::Points)];
        let marks = match (values.is_empty(), has_tail) {
            (true, _) => &[],
            (false, true) => &marks[..],
            (false, false) => &marks[1..],
        };
        let frame = self.frame_with_marks(&values, self.fit_from_zero(), marks);
        let mut parts = vec![frame.vertical()];
        if values.is_empty() {
            parts.push(frame.no_data());
        }
        parts.extend(series.iter().enumerate().map(|(at, series)| self.boxes(at, series, &frame)));
        self.finish(&frame, parts, "boxes")
    }

    fn boxes(&self, index: usize, series: &BoxSeries, frame: &Frame) -> Group {
        let band = self.band(frame);
        let count = self.series.len().clamp(1, SERIES_MAX) as f64;
        let step = (band * 0.82 / count).min(WIDEST + 6.0);
        let wide = (step - 4.0).clamp(1.5, WIDEST);
        let mut group = coloured(index);
        for (place, (name, known)) in self.groups.iter().zip(&series.boxes).enumerate() {
            let Some(statistics) = known else { continue };
            let middle = self.middle(frame, place) + step * (index as f64 - (count - 1.0) / 2.0);
            let about = format!("{name}, {}: {}", series.name, self.about(statistics));
            let one = Group::new().add(tooltip(&about));
            group = group.add(drawn(one, index, statistics, middle, wide, frame));
        }
        group
    }

    fn about(&self, statistics: &BoxStatistics) -> String {
        let value = |value| format::value(value, &self.y.unit);
        let [low, high] = statistics.whiskers.map(value);
        let [first, third] = statistics.quartiles.map(value);
        let tail =
            statistics.tail.map_or_else(String::new, |tail| format!(", tail {}", value(tail)));
        let (mean, max) = (value(statistics.mean), value(statistics.max));
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
    statistics: &BoxStatistics,
    middle: f64,
    wide: f64,
    frame: &Frame,
) -> Group {
    let place = |value: f64| frame.y.place(value);
    let [low, high] = statistics.whiskers.map(place);
    let [first, third] = statistics.quartiles.map(place);
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
    let mean = stroke(left, place(statistics.mean), right, place(statistics.mean), 2.4);
    let mut group = group
        .add(stroke(middle, low, middle, first, 1.1))
        .add(stroke(middle, third, middle, high, 1.1))
        .add(stroke(middle - cap, low, middle + cap, low, 1.1))
        .add(stroke(middle - cap, high, middle + cap, high, 1.1))
        .add(body)
        .add(mean);
    if let Some(tail) = statistics.tail {
        group = group.add(marker(index, middle, place(tail), false));
    }
    group.add(marker(index, middle, place(statistics.max), true))
}
