//! Markers and hatchings, which distinguish series and reasons without colour.

use svg::node::element::{Group, Path, Rectangle};

use super::style::{self, GROUND, INK, REASONS, SERIES_MAX};
use super::svg_primitives::{coloured, open_path, path_to, px, role};

/// A marker of a series.
pub(super) fn marker(index: usize, x: f64, y: f64, hollow: bool) -> Path {
    let place = format!("translate({} {})", px(x), px(y));
    let path = Path::new().set("d", style::marker(index)).set("transform", place);
    if hollow {
        let path = path.set("class", "gh-hollow").set("fill", GROUND);
        path.set("stroke", "currentColor").set("stroke-width", 1.5)
    } else {
        path.set("fill", "currentColor")
    }
}

/// A bar in the current colour with the hatching of its series, which distinguishes series without
/// colour.
pub(super) fn filled(group: Group, index: usize, x: f64, y: f64, wide: f64, high: f64) -> Group {
    let (wide, high) = (wide.max(0.5), high.max(0.0));
    let shape = Rectangle::new()
        .set("x", px(x))
        .set("y", px(y))
        .set("width", px(wide))
        .set("height", px(high))
        .set("fill", "currentColor");
    let data = hatching(index, x, y, wide, high);
    if data.is_empty() {
        return group.add(shape);
    }
    let hatch = Path::new()
        .set("d", data)
        .set("class", "gh-hatch")
        .set("stroke", GROUND)
        .set("stroke-opacity", 0.75)
        .set("stroke-width", 1.2)
        .set("fill", "none");
    group.add(shape).add(hatch)
}

/// Hatching of a rectangle. The lines are clipped here, since clip paths need identifiers, which
/// would not be unique on a page with several charts.
fn hatching(index: usize, x: f64, y: f64, wide: f64, high: f64) -> String {
    let mut data = String::new();
    let mut stroke = |(x1, y1): (f64, f64), (x2, y2): (f64, f64)| {
        path_to(&mut data, 'M', x + x1, y + y1);
        path_to(&mut data, 'L', x + x2, y + y2);
    };
    let steps = |length: f64, step: f64| {
        (1..).map(move |index| f64::from(index) * step).take_while(move |at| *at < length)
    };
    let (rising, falling, horizontal, vertical) = match index % SERIES_MAX {
        0 => (0.0, 0.0, 0.0, 0.0),
        1 => (7.0, 0.0, 0.0, 0.0),
        2 => (0.0, 0.0, 4.0, 0.0),
        3 => (0.0, 7.0, 0.0, 0.0),
        4 => (0.0, 0.0, 0.0, 4.0),
        5 => (7.0, 7.0, 0.0, 0.0),
        6 => (0.0, 0.0, 5.0, 5.0),
        _ => (4.0, 0.0, 0.0, 0.0),
    };
    // `/` are the points with x + y = at, `\` those with x - y = at - high.
    if rising > 0.0 {
        for at in steps(wide + high, rising) {
            let (right, left) = (at.min(wide), (at - high).max(0.0));
            stroke((right, at - right), (left, at - left));
        }
    }
    if falling > 0.0 {
        for at in steps(wide + high, falling) {
            let (right, left) = (at.min(wide), (at - high).max(0.0));
            stroke((left, left - at + high), (right, right - at + high));
        }
    }
    if horizontal > 0.0 {
        steps(high, horizontal).for_each(|at| stroke((0.0, high - at), (wide, high - at)));
    }
    if vertical > 0.0 {
        steps(wide, vertical).for_each(|at| stroke((at, 0.0), (at, high)));
    }
    data
}

/// Hatching of a cell, which distinguishes reasons without colour.
pub(super) fn hatch(colour: usize, left: f64, top: f64, right: f64, bottom: f64) -> Path {
    let mut data = String::new();
    let mut stroke = |x1: f64, y1: f64, x2: f64, y2: f64| {
        path_to(&mut data, 'M', x1, y1);
        path_to(&mut data, 'L', x2, y2);
    };
    let (middle, centre) = (f64::midpoint(left, right), f64::midpoint(top, bottom));
    match REASONS.iter().position(|known| *known == colour).unwrap_or(0) {
        0 => stroke(left, bottom, right, top),
        1 => stroke(left, top, right, bottom),
        2 => stroke(left, centre, right, centre),
        3 => stroke(middle, top, middle, bottom),
        4 => {
            stroke(left, bottom, right, top);
            stroke(left, top, right, bottom);
        }
        _ => {
            stroke(left, centre, right, centre);
            stroke(middle, top, middle, bottom);
        }
    }
    open_path(data).set("stroke-width", 0.8).set("stroke-opacity", 0.75)
}

/// A star at the marked position.
pub(super) fn mark(x: f64, y: f64) -> Group {
    role("ink", INK).add(marker(7, x, y, true).set("stroke-width", 1.2))
}

/// The sample of a reason in the legend.
pub(super) fn cell_sample(colour: usize, x: f64, y: f64, width: f64) -> Group {
    let area = Rectangle::new()
        .set("x", px(x))
        .set("y", px(y - 6.0))
        .set("width", px(width))
        .set("height", 12)
        .set("fill", "currentColor")
        .set("fill-opacity", 0.13);
    coloured(colour).add(area).add(hatch(colour, x, y - 6.0, x + width, y + 6.0))
}
