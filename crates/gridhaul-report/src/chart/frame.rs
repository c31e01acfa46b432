//! The frame of all charts: background, heading, legend, grid, axes.

use svg::Document;
use svg::node::element::{Group, Rectangle};

use super::axis_layout::{AxisLayout, Fit};
use super::drawing::Drawing;
use super::legend::{self, Legend};
use super::style::{GRID, GROUND, INK, WEAK};
use super::svg_primitives::{self, FONT, line, px, role, text, width};
use super::{Axis, Scale};

/// Width of every chart: labels remain legible on a page of 400 px.
pub(super) const WIDTH: f64 = 480.0;
const PLOT_HEIGHT: f64 = 232.0;
const RIGHT: f64 = WIDTH - 18.0;
const TITLE: f64 = 15.0;
const TITLE_ROW: f64 = 19.0;
/// Largest number of rows of a heading: more than 200 characters.
const TITLE_ROWS_MAX: usize = 4;
/// Font stack.
pub(super) const FONT_FAMILY: &str = "Helvetica Neue,Helvetica,Arial,Liberation Sans,sans-serif";

/// The plot area and everything around it.
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) y: AxisLayout,
    title: String,
    heading: Vec<String>,
    legend: Legend,
}

impl Frame {
    /// Lays out heading, legend and the labels of the vertical axis.
    pub(super) fn new(
        title: &str,
        legend: &[(&str, legend::Sample, usize)],
        y: &Axis,
        values: &[f64],
        fit: Fit,
    ) -> Self {
        let heading = if title.is_empty() {
            Vec::new()
        } else {
            svg_primitives::wrapped(title, TITLE * 1.06, WIDTH - 32.0, TITLE_ROWS_MAX)
        };
        let legend = Legend::new(legend, WIDTH - 32.0);
        let mut top = 12.0 + heading.len() as f64 * TITLE_ROW;
        if legend.rows > 0 {
            top += 6.0 + legend.rows as f64 * legend::ROW;
        }
        // Bar labels are above the highest tick.
        top += if fit == Fit::Zero { 18.0 } else { 12.0 };
        let bottom = top + PLOT_HEIGHT;
        let y = AxisLayout::new(y, values, fit, bottom, top);
        let left =
            (if y.title.is_empty() { 14.0 } else { 36.0 }) + y.label_width().min(110.0) + 8.0;
        Self { left, right: RIGHT, top, bottom, y, title: title.to_owned(), heading, legend }
    }

    /// The grid and labels of the vertical axis, below the data.
    pub(super) fn vertical(&self) -> Group {
        let mut grid = role("grid", GRID).set("stroke", "currentColor");
        for at in &self.y.minor {
            let y = self.y.place(*at);
            grid = grid.add(line(self.left, y, self.right, y).set("stroke-width", 0.5));
        }
        let mut labels = role("ink", INK).set("fill", "currentColor");
        for tick in &self.y.ticks {
            let y = self.y.place(tick.at);
            grid = grid.add(line(self.left, y, self.right, y));
            labels = labels.add(text(self.left - 8.0, y + 4.2, "end", &tick.label));
        }
        let (x, y) = (18.0, f64::midpoint(self.top, self.bottom));
        let shown = svg_primitives::shortened(&self.y.title, FONT, PLOT_HEIGHT + 30.0);
        let name = text(x, y, "middle", &shown)
            .set("transform", format!("rotate(-90 {} {})", px(x), px(y)));
        Group::new().add(grid).add(svg_primitives::add_label(labels, name, &shown, &self.y.title))
    }

    /// The grid and labels of a horizontal axis of numbers, below the data.
    pub(super) fn horizontal(&self, x: &AxisLayout, scale: Scale) -> Group {
        let mut grid = role("grid", GRID).set("stroke", "currentColor");
        if scale == Scale::Log {
            for at in &x.minor {
                let at = x.place(*at);
                grid = grid.add(line(at, self.top, at, self.bottom).set("stroke-width", 0.5));
            }
        }
        let mut marks = role("weak", WEAK).set("stroke", "currentColor");
        let mut labels = role("ink", INK).set("fill", "currentColor");
        for tick in &x.ticks {
            let at = x.place(tick.at);
            grid = grid.add(line(at, self.top, at, self.bottom));
            marks = marks.add(line(at, self.bottom, at, self.bottom + 4.0));
            // The last label may exceed the margin.
            let half = width(&tick.label, FONT) / 2.0;
            let middle = at.min(WIDTH - 2.0 - half);
            labels = labels.add(text(middle, self.bottom + 18.0, "middle", &tick.label));
        }
        Group::new().add(grid).add(marks).add(labels).add(self.horizontal_name(&x.title, 38.0))
    }

    /// Title of the horizontal axis, `below` pixels under the plot.
    pub(super) fn horizontal_name(&self, name: &str, below: f64) -> Group {
        let shown = svg_primitives::shortened(name, FONT, WIDTH - 40.0);
        let half = width(&shown, FONT) / 2.0;
        let middle =
            f64::midpoint(self.left, self.right).clamp(half.min(WIDTH / 2.0), WIDTH - half);
        let label = text(middle, self.bottom + below, "middle", &shown).set("fill", "currentColor");
        svg_primitives::add_label(role("ink", INK), label, &shown, name)
    }

    /// The base line below the data, or at zero if the axis includes it.
    pub(super) fn base(&self) -> Group {
        let zero =
            if self.y.low < 0.0 && self.y.high > 0.0 { self.y.place(0.0) } else { self.bottom };
        role("weak", WEAK)
            .add(line(self.left, zero, self.right, zero).set("stroke", "currentColor"))
    }

    /// The placeholder for missing data.
    pub(super) fn no_data(&self) -> Group {
        let (x, y) = (f64::midpoint(self.left, self.right), f64::midpoint(self.top, self.bottom));
        role("weak", WEAK).add(text(x, y, "middle", "no data").set("fill", "currentColor"))
    }

    /// Assembles the drawing, with `below` pixels under the plot.
    pub(super) fn finish(&self, parts: Vec<Group>, below: f64, about: &str) -> Drawing {
        let height = self.bottom + below;
        let about = match self.title.as_str() {
            "" => about.to_owned(),
            title => format!("{title}: {about}"),
        };
        let mut document = Document::new()
            .set("viewBox", format!("0 0 {} {}", px(WIDTH), px(height)))
            .set("width", px(WIDTH))
            .set("height", px(height))
            .set("class", "gh-chart")
            .set("role", "img")
            .set("aria-label", svg_primitives::clean(&about))
            .set("font-family", FONT_FAMILY)
            .set("font-size", FONT);
        let ground = Rectangle::new().set("width", px(WIDTH)).set("height", px(height));
        document = document.add(ground.set("class", "gh-bg").set("fill", GROUND));
        let mut heading = role("ink", INK).set("font-weight", 600).set("font-size", TITLE);
        for (index, row) in self.heading.iter().enumerate() {
            let y = 24.0 + index as f64 * TITLE_ROW;
            heading = heading.add(text(16.0, y, "start", row).set("fill", "currentColor"));
        }
        if self.heading.iter().any(|row| row.ends_with('…')) {
            heading = heading.add(svg_primitives::tooltip(&self.title));
        }
        let legend_top = 16.0 + self.heading.len() as f64 * TITLE_ROW;
        document = document.add(heading).add(self.legend.draw(16.0, legend_top));
        for part in parts {
            document = document.add(part);
        }
        Drawing { document, height }
    }
}
