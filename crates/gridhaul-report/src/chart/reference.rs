//! References across a chart: lines at a value, and shaded times.

use std::ops::Range;

use svg::node::element::{Group, Rectangle};

use super::axis_layout::AxisLayout;
use super::decimate::Pixel;
use super::frame::Frame;
use super::style::{GROUND, WEAK};
use super::svg_primitives::{FONT, line, px, role, text, tooltip, width};

/// A reference line across the chart.
#[derive(Debug, Clone, PartialEq)]
pub enum Reference {
    /// A vertical line at a position on the horizontal axis.
    X(f64, String),
    /// A horizontal line at a value.
    Y(f64, String),
    /// A shaded part of the horizontal axis, such as an outage: its start, its end, and its name.
    Span(f64, f64, String),
}

/// The shaded parts of the horizontal axis, below everything else; `None` without any.
pub(super) fn spans(references: &[Reference], frame: &Frame, x: &AxisLayout) -> Option<Group> {
    let spans = references.iter().filter_map(|reference| match reference {
        Reference::Span(start, end, label) => {
            Some((x.shown(*start)?, x.shown(*end)?, label.as_str()))
        }
        _ => None,
    });
    let shaded = spans.map(|(start, end, label)| {
        let (left, right) = (x.place(start), x.place(end));
        let area = Rectangle::new()
            .set("x", px(left))
            .set("y", px(frame.top))
            .set("width", px((right - left).max(0.5)))
            .set("height", px(frame.bottom - frame.top))
            .set("fill", "currentColor")
            .set("fill-opacity", 0.16);
        let name = text(f64::midpoint(left, right), frame.top + 13.0, "middle", label);
        Group::new().add(tooltip(label)).add(area).add(name.set("fill", "currentColor"))
    });
    let shaded: Vec<_> = shaded.collect();
    (!shaded.is_empty()).then(|| shaded.into_iter().fold(role("weak", WEAK), Group::add))
}

/// Reference lines with their labels, above everything else. `lines` are those of the chart, in
/// pixels.
pub(super) fn references(
    references: &[Reference],
    frame: &Frame,
    x: &AxisLayout,
    lines: &[&[Pixel]],
) -> Group {
    let mut group = role("weak", WEAK);
    let mut verticals = 0.0;
    for reference in references {
        let (stroke, label) = match reference {
            Reference::Y(at, label) => {
                let Some(at) = frame.y.shown(*at) else { continue };
                let y = frame.y.place(at);
                let base = if y - frame.top < 16.0 { y + 14.0 } else { y - 5.0 };
                let (start, end) = (frame.left + 4.0, frame.right - 4.0);
                let is_free = |xs: Range<f64>| {
                    let ys = base - FONT..base;
                    !lines.iter().any(|line| passes(line, &xs, &ys))
                };
                // A distribution reaches its highest values at the right end.
                let length = width(label, FONT);
                let at_start = !is_free(end - length..end) && is_free(start..start + length);
                let (place, anchor) = if at_start { (start, "start") } else { (end, "end") };
                (line(frame.left, y, frame.right, y), text(place, base, anchor, label))
            }
            Reference::Span(..) => continue,
            Reference::X(at, label) => {
                let Some(at) = x.shown(*at) else { continue };
                let at = x.place(at);
                // Labels of adjacent lines are staggered.
                let y = frame.top + 13.0 + verticals * 15.0;
                verticals = (verticals + 1.0) % 4.0;
                let left = at + width(label, FONT) + 8.0 > frame.right;
                let (place, anchor) = if left { (at - 5.0, "end") } else { (at + 5.0, "start") };
                (line(at, frame.top, at, frame.bottom), text(place, y, anchor, label))
            }
        };
        let stroke = stroke.set("stroke", "currentColor").set("stroke-dasharray", "4 3");
        let label = label
            .set("fill", "currentColor")
            .set("class", "gh-halo")
            .set("stroke", GROUND)
            .set("stroke-width", 3)
            .set("paint-order", "stroke");
        group = group.add(stroke).add(label);
    }
    group
}

/// Whether a line passes an area.
fn passes(line: &[Pixel], xs: &Range<f64>, ys: &Range<f64>) -> bool {
    line.windows(2).any(|ends| {
        let [Some(a), Some(b)] = *ends else { return false };
        let (from, to) = (a.x.min(b.x).max(xs.start), a.x.max(b.x).min(xs.end));
        if from > to {
            return false;
        }
        let [first, last] = if a.x == b.x {
            [a.y, b.y]
        } else {
            [from, to].map(|x| a.y + (b.y - a.y) * (x - a.x) / (b.x - a.x))
        };
        first.min(last) <= ys.end && first.max(last) >= ys.start
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::decimate::Position;

    #[test]
    fn a_line_passes_an_area_between_two_points() {
        let line = [(0.0, 0.0), (100.0, 50.0), (100.0, 90.0)].map(|(x, y)| Some(Position { x, y }));
        assert!(passes(&line, &(40.0..60.0), &(28.0..40.0)));
        assert!(!passes(&line, &(40.0..60.0), &(31.0..40.0)));
        assert!(passes(&line, &(90.0..110.0), &(70.0..80.0)), "a vertical line");
        assert!(!passes(&line, &(101.0..110.0), &(0.0..100.0)));
        let gap = [line[0], None, line[1]];
        assert!(!passes(&gap, &(40.0..60.0), &(0.0..100.0)));
    }
}
