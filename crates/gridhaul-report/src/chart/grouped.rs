//! Layout of charts with named groups: bars, boxes and stacks.

use svg::node::element::Group;

use super::axis_layout::Fit;
use super::drawing::Drawing;
use super::frame::Frame;
use super::legend::Sample;
use super::style::{INK, SERIES_MAX};
use super::svg_primitives::{FONT, px, role, shortened, text, tooltip, width, wrapped};
use super::{Axis, Scale};

/// Groups side by side, with one bar or box of each series in each group.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GroupedChart<S> {
    /// Heading.
    pub title: String,
    /// Label of the groups; may be empty.
    pub group_label: String,
    /// Axis of the values.
    pub y: Axis,
    /// Names of the groups, left to right.
    pub groups: Vec<String>,
    /// Series, distinguished by colour, hatching and order; up to eight.
    pub series: Vec<S>,
}

/// A series with a name in the legend. Public, because the trait bounds methods of a public type;
/// its module is private.
pub trait Named {
    fn name(&self) -> &str;
}

impl<S> GroupedChart<S> {
    /// A chart with these groups, without series.
    pub fn new<G: Into<String>>(
        title: impl Into<String>,
        y: Axis,
        groups: impl IntoIterator<Item = G>,
    ) -> Self {
        let groups = groups.into_iter().map(Into::into).collect();
        Self { title: title.into(), group_label: String::new(), y, groups, series: Vec::new() }
    }

    /// The series that are drawn.
    pub(super) fn drawn_series(&self) -> &[S] {
        &self.series[..self.series.len().min(SERIES_MAX)]
    }

    /// How the axis fits values whose marks begin at zero.
    pub(super) fn fit_from_zero(&self) -> Fit {
        if self.y.scale == Scale::Log { Fit::Loose } else { Fit::Zero }
    }

    /// Centre of a group.
    pub(super) fn middle(&self, frame: &Frame, place: usize) -> f64 {
        frame.left + self.band(frame) * (place as f64 + 0.5)
    }

    /// Width of a group.
    pub(super) fn band(&self, frame: &Frame) -> f64 {
        (frame.right - frame.left) / self.groups.len().max(1) as f64
    }

    /// Completes the drawing with the base line and the names of the groups. `marks` names what is
    /// in a group, for readers who cannot see the chart.
    pub(super) fn finish(&self, frame: &Frame, mut parts: Vec<Group>, marks: &str) -> Drawing {
        parts.push(frame.base());
        let (labels, mut below) = group_labels(&self.groups, frame);
        parts.push(labels);
        if !self.group_label.is_empty() {
            parts.push(frame.horizontal_name(&self.group_label, below + 14.0));
            below += 18.0;
        }
        let (groups, count) = (self.groups.len(), self.drawn_series().len());
        let about = format!("{}, {groups} groups of {count} {marks}", frame.y.title);
        frame.finish(parts, below + 8.0, &about)
    }
}

impl<S: Named> GroupedChart<S> {
    /// The frame of the chart, whose axis shows `values`.
    pub(super) fn frame(&self, values: &[f64], fit: Fit) -> Frame {
        self.frame_with_marks(values, fit, &[])
    }

    /// As [`Self::frame`], with `marks` after the series in the legend.
    pub(super) fn frame_with_marks(
        &self,
        values: &[f64],
        fit: Fit,
        marks: &[(&str, Sample)],
    ) -> Frame {
        let series = self.drawn_series().iter().enumerate();
        let named = series.filter(|(_, series)| marks.is_empty() || !series.name().is_empty());
        let mut names: Vec<_> =
            named.map(|(at, series)| (series.name(), Sample::Bar, at)).collect();
        names.extend(marks.iter().map(|(name, sample)| (*name, *sample, 0)));
        Frame::new(&self.title, &names, &self.y, values, fit)
    }
}

/// Group labels: horizontal if they fit, wrapped, else rotated. Also returns their height.
fn group_labels(groups: &[String], frame: &Frame) -> (Group, f64) {
    let band = (frame.right - frame.left) / groups.len().max(1) as f64;
    let middle = |place: usize| frame.left + band * (place as f64 + 0.5);
    let mut labels = role("ink", INK).set("fill", "currentColor");
    let label_width = band - 6.0;
    let rows: Vec<_> = groups.iter().map(|name| wrapped(name, FONT, label_width, 4)).collect();
    let is_complete = |(name, rows): (&String, &Vec<String>)| {
        rows.iter().map(String::len).sum::<usize>() + rows.len() > name.trim().len()
            && !rows.concat().contains('…')
    };
    if groups.iter().zip(&rows).all(is_complete) {
        for (place, rows) in rows.iter().enumerate() {
            for (row, content) in rows.iter().enumerate() {
                let y = frame.bottom + 17.0 + row as f64 * 14.0;
                labels = labels.add(text(middle(place), y, "middle", content));
            }
        }
        let deepest = rows.iter().map(Vec::len).max().unwrap_or(0);
        return (labels, 9.0 + deepest as f64 * 14.0);
    }
    // Of dense labels only every n-th is shown.
    let stride = (15.0 / band).ceil().max(1.0) as usize;
    let shown = || (0..groups.len()).step_by(stride);
    let x = |place: usize| middle(place) + 4.0;
    // Rotated labels extend to the left, where the first one has only the margin; steeper ones have
    // more space there.
    let fits = |slope: &&Slope| {
        shown().all(|place| width(&groups[place], FONT) <= slope.longest_label(x(place)))
    };
    let slope = SLOPES.iter().find(fits).unwrap_or(&UPRIGHT);
    let mut deepest: f64 = 0.0;
    for place in shown() {
        let (x, y) = (x(place), frame.bottom + 14.0);
        let name = &groups[place];
        let shown = shortened(name, FONT, slope.longest_label(x));
        deepest = deepest.max(width(&shown, FONT) * slope.degrees.to_radians().sin());
        let rotation = format!("rotate(-{} {} {})", slope.degrees, px(x), px(y));
        let label = text(x, y, "end", &shown).set("transform", rotation);
        labels = labels.add(Group::new().add(tooltip(name)).add(label));
    }
    (labels, 20.0 + deepest)
}

/// Slope of rotated labels.
struct Slope {
    degrees: f64,
    /// Length in pixels up to which labels are complete.
    length_max: f64,
}

const FLAT: Slope = Slope { degrees: 35.0, length_max: 150.0 };
const STEEP: Slope = Slope { degrees: 55.0, length_max: 260.0 };
/// Some 50 characters; with longer labels the chart would be more label than plot.
const UPRIGHT: Slope = Slope { degrees: 90.0, length_max: 320.0 };
/// From the most to the least legible slope.
const SLOPES: [Slope; 3] = [FLAT, STEEP, UPRIGHT];

impl Slope {
    /// Longest label that ends at `x` and begins within the drawing.
    fn longest_label(&self, x: f64) -> f64 {
        self.length_max.min((x - 4.0) / self.degrees.to_radians().cos())
    }
}
