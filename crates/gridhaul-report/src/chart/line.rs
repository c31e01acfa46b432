//! Lines or points over a numeric axis.

use gridhaul_scenario::answer::Estimate;
use svg::node::element::{Group, Path};

use super::Axis;
use super::axis_layout::{self, AxisLayout, Extent, Fit};
use super::decimate::{Pixel, Position, decimate};
use super::drawing::Drawing;
use super::frame::Frame;
use super::legend::Sample;
use super::marks::marker;
use super::reference::{Reference, references, spans};
use super::style::{DASHES, SERIES_MAX};
use super::svg_primitives::{coloured, open_path, path_to, tooltip};
use crate::format;

/// A point with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataPoint {
    /// Position on the horizontal axis.
    pub x: f64,
    /// Value; NaN leaves a gap in the line.
    pub y: f64,
    /// Half width of the 95 % confidence interval of the value.
    pub ci95: Option<f64>,
}

/// Connection of the points of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stroke {
    /// Straight lines, with markers if there are few points.
    #[default]
    Line,
    /// Straight lines without markers, for a continuous curve such as an equation.
    Curve,
    /// Steps: a value is held until the next one.
    Step,
    /// None: hollow markers only, for published values.
    Points,
}

/// Representation of the 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Uncertainty {
    /// An error bar at each point.
    #[default]
    Bars,
    /// A band along the line.
    Band,
}

/// A named line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LineSeries {
    /// Name in the legend.
    pub name: String,
    /// Points, in drawing order.
    pub points: Vec<DataPoint>,
    /// Connection of the points.
    pub stroke: Stroke,
    /// Representation of confidence intervals.
    pub uncertainty: Uncertainty,
    /// Index of the series whose colour, marker and dashes this one shares, for the same quantity
    /// from another source. `None` for its own style.
    pub same_style_as: Option<usize>,
}

/// Lines or points over a numeric axis.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LineChart {
    /// Heading.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Series, distinguished by colour, marker and dashes; up to eight.
    pub series: Vec<LineSeries>,
    /// Reference lines.
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

    /// Sets the connection of the points.
    #[must_use]
    pub fn stroke(mut self, stroke: Stroke) -> Self {
        self.stroke = stroke;
        self
    }

    /// Uses the style of the chart's series with this index.
    #[must_use]
    pub const fn same_style_as(mut self, place: usize) -> Self {
        self.same_style_as = Some(place);
        self
    }
}

impl LineChart {
    /// A chart without lines.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self { title: title.into(), x, y, ..Self::default() }
    }

    /// Adds a series.
    #[must_use]
    pub fn with(mut self, series: LineSeries) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a reference line.
    #[must_use]
    pub fn with_reference(mut self, reference: Reference) -> Self {
        self.references.push(reference);
        self
    }

    pub(super) fn drawing(&self) -> Drawing {
        let series = &self.series[..self.series.len().min(SERIES_MAX)];
        let names: Vec<_> = series
            .iter()
            .enumerate()
            .map(|(place, series)| (series.name.as_str(), sample(series), style_of(place, series)))
            .collect();
        let (xs, ys) = self.values(series);
        let frame = Frame::new(&self.title, &names, &self.y, &ys, Fit::Loose);
        let x = AxisLayout::new(&self.x, &xs, Fit::Tight, frame.left, frame.right);
        let shaded = spans(&self.references, &frame, &x);
        let axes = [frame.vertical(), frame.horizontal(&x, self.x.scale), frame.base()];
        let mut parts: Vec<_> = std::iter::once(shaded).flatten().chain(axes).collect();
        if ys.is_empty() {
            parts.push(frame.no_data());
        }
        // Intervals are drawn below all lines, and markers above them.
        let pens: Vec<_> = series
            .iter()
            .enumerate()
            .map(|(index, series)| {
                SeriesRenderer::new(style_of(index, series), series, &frame, &x, self)
            })
            .collect();
        parts.extend(pens.iter().filter_map(SeriesRenderer::intervals));
        parts.extend(pens.iter().filter_map(SeriesRenderer::line));
        parts.extend(pens.iter().map(SeriesRenderer::markers));
        let lines_in_pixels: Vec<&[Pixel]> = pens.iter().map(|pen| &pen.pixels[..]).collect();
        parts.push(references(&self.references, &frame, &x, &lines_in_pixels));
        let lines = if series.len() == 1 { "line" } else { "lines" };
        let about = format!("{} against {}, {} {lines}", frame.y.title, x.title, series.len());
        frame.finish(parts, 48.0, &about)
    }

    /// The values that determine the axes: the extremes of positions, the values with their
    /// intervals, and the references.
    fn values(&self, series: &[LineSeries]) -> (Vec<f64>, Vec<f64>) {
        let (mut xs, mut ys) = (Extent::EMPTY, Extent::EMPTY);
        // Recorded series have many points, and no intervals.
        let mut estimates = Vec::new();
        for point in series.iter().flat_map(|series| &series.points) {
            let Some((x, y)) = self.shown(point) else { continue };
            xs.add(x);
            ys.add(y);
            if point.ci95.is_some() {
                estimates.push((y, point.ci95));
            }
        }
        let (mut xs, mut ys) = (xs.ends(), ys.ends());
        // The extremes, without intervals of their own, decide whether a value is negative.
        estimates.extend(ys.iter().map(|value| (*value, None)));
        ys = axis_layout::values_with_intervals(estimates);
        for reference in &self.references {
            match reference {
                Reference::X(at, _) => xs.push(*at),
                Reference::Y(at, _) => ys.push(*at),
                Reference::Span(start, end, _) => xs.extend([*start, *end]),
            }
        }
        (xs, ys)
    }

    /// The coordinates of a point, if both axes can show it.
    fn shown(&self, point: &DataPoint) -> Option<(f64, f64)> {
        Some((
            axis_layout::shown(point.x, self.x.scale)?,
            axis_layout::shown(point.y, self.y.scale)?,
        ))
    }
}

/// Number of points above which a line has few markers and a band instead of error bars.
const MARKED_POINTS_MAX: usize = 60;

/// Rendering of one series.
struct SeriesRenderer<'a> {
    index: usize,
    series: &'a LineSeries,
    frame: &'a Frame,
    x: &'a AxisLayout,
    chart: &'a LineChart,
    pixels: Vec<Pixel>,
}

impl<'a> SeriesRenderer<'a> {
    fn new(
        index: usize,
        series: &'a LineSeries,
        frame: &'a Frame,
        x: &'a AxisLayout,
        chart: &'a LineChart,
    ) -> Self {
        let pixels = series.points.iter().map(|point| {
            chart.shown(point).map(|(at, y)| Position { x: x.place(at), y: frame.y.place(y) })
        });
        let columns = (frame.right - frame.left) as usize;
        let pixels = decimate(pixels, columns, series.points.len());
        Self { index, series, frame, x, chart, pixels }
    }

    fn is_short(&self) -> bool {
        self.series.points.len() <= MARKED_POINTS_MAX
    }

    fn line(&self) -> Option<Group> {
        if self.series.stroke == Stroke::Points {
            return None;
        }
        let mut data = String::new();
        let mut before: Pixel = None;
        for pixel in &self.pixels {
            if let Some(Position { x, y }) = *pixel {
                match before {
                    Some(Position { y: y0, .. }) if self.series.stroke == Stroke::Step => {
                        path_to(&mut data, 'L', x, y0);
                        path_to(&mut data, 'L', x, y);
                    }
                    Some(_) => path_to(&mut data, 'L', x, y),
                    None => path_to(&mut data, 'M', x, y),
                }
            }
            before = *pixel;
        }
        let dash = DASHES[self.index % DASHES.len()];
        let path = open_path(data)
            .set("stroke-width", if self.is_short() { 1.8 } else { 1.3 })
            .set("stroke-linejoin", "round");
        let path = if dash.is_empty() { path } else { path.set("stroke-dasharray", dash) };
        Some(coloured(self.index).add(tooltip(&self.series.name)).add(path))
    }

    /// A marker on each point of a short series; eight markers on a long one.
    fn markers(&self) -> Group {
        if self.series.stroke == Stroke::Curve {
            return coloured(self.index);
        }
        let hollow = self.series.stroke == Stroke::Points;
        if self.is_short() || hollow {
            let maximum = self.series.points.len().div_ceil(2000).max(1);
            let points = self.series.points.iter().step_by(maximum);
            return points.fold(coloured(self.index), |group, point| {
                let Some((x, y)) = self.chart.shown(point) else { return group };
                let mark = marker(self.index, self.x.place(x), self.frame.y.place(y), hollow);
                group.add(Group::new().add(tooltip(&self.about(point))).add(mark))
            });
        }
        let mut group = coloured(self.index);
        if self.chart.series.len() < 2 {
            return group;
        }
        let step = (self.frame.right - self.frame.left) / 8.0;
        let mut next = self.frame.left + step * (self.index as f64 + 0.5) / SERIES_MAX as f64;
        for Position { x, y } in self.pixels.iter().flatten() {
            if *x >= next {
                group = group.add(marker(self.index, *x, *y, false));
                next = x + step;
            }
        }
        group
    }

    fn intervals(&self) -> Option<Group> {
        let ends = self.series.points.iter().filter_map(|point| {
            let half = point.ci95.filter(|half| half.is_finite() && *half > 0.0)?;
            let (x, y) = self.chart.shown(point)?;
            let (low, high) = (self.frame.y.place(y - half), self.frame.y.place(y + half));
            Some((self.x.place(x), low, high))
        });
        let ends: Vec<_> = ends.collect();
        if ends.is_empty() {
            return None;
        }
        if self.series.uncertainty == Uncertainty::Bars && self.is_short() {
            let bars = whiskers(&ends).set("stroke-width", 1.1);
            return Some(coloured(self.index).add(bars));
        }
        let stride = ends.len().div_ceil((self.frame.right - self.frame.left) as usize).max(1);
        let mut data = String::new();
        let mut command = 'M';
        for (x, low, _) in ends.iter().step_by(stride) {
            path_to(&mut data, command, *x, *low);
            command = 'L';
        }
        for (x, _, high) in ends.iter().step_by(stride).rev() {
            path_to(&mut data, command, *x, *high);
        }
        let band =
            Path::new().set("d", data + "Z").set("fill", "currentColor").set("fill-opacity", 0.18);
        Some(coloured(self.index).add(band))
    }

    fn about(&self, point: &DataPoint) -> String {
        let y = Estimate { ci95: point.ci95, ..Estimate::exact(point.y, 1) };
        let x = format::value(point.x, &self.chart.x.unit);
        let text = format!("{} at {x}", format::estimate(&y, &self.chart.y.unit));
        if self.series.name.is_empty() { text } else { format!("{}: {text}", self.series.name) }
    }
}

/// Error bars with caps, from (x, low, high) in pixels.
pub(super) fn whiskers(ends: &[(f64, f64, f64)]) -> Path {
    let mut data = String::new();
    for (x, low, high) in ends {
        path_to(&mut data, 'M', *x, *low);
        path_to(&mut data, 'L', *x, *high);
        for y in [low, high] {
            path_to(&mut data, 'M', x - 3.0, *y);
            path_to(&mut data, 'L', x + 3.0, *y);
        }
    }
    open_path(data)
}

fn sample(series: &LineSeries) -> Sample {
    match series.stroke {
        Stroke::Points => Sample::Points,
        Stroke::Curve => Sample::Curve,
        Stroke::Line | Stroke::Step => Sample::Line,
    }
}

/// Index of the colour, marker and dashes of a series.
fn style_of(place: usize, series: &LineSeries) -> usize {
    series.same_style_as.unwrap_or(place)
}
