//! Several charts in one drawing.

use svg::Document;
use svg::node::element::Rectangle;

use super::Chart;
use super::drawing::Drawing;
use super::frame::{FONT_FAMILY, WIDTH};
use super::style::GROUND;
use super::svg_primitives::{FONT, clean, px};

/// Charts side by side, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Panels {
    /// Alternative text of the drawing; each panel has its own heading.
    pub label: String,
    /// Panels in a row.
    pub columns: usize,
    /// The charts, left to right and down.
    pub charts: Vec<Chart>,
}

impl Panels {
    pub(super) fn drawing(&self) -> Drawing {
        let columns = self.columns.clamp(1, self.charts.len().max(1));
        let width = WIDTH * columns as f64;
        let mut placed = Vec::new();
        let mut y = 0.0;
        for row in self.charts.chunks(columns) {
            let drawings: Vec<_> = row.iter().map(Chart::drawing).collect();
            let height = drawings.iter().map(|drawing| drawing.height).fold(0.0, f64::max);
            for (column, drawing) in drawings.into_iter().enumerate() {
                // Align the axes of a row, independent of the height of the headings.
                let lower = y + height - drawing.height;
                placed.push(drawing.panel(WIDTH * column as f64, lower));
            }
            y += height;
        }
        let ground = Rectangle::new().set("width", px(width)).set("height", px(y));
        let document = Document::new()
            .set("viewBox", format!("0 0 {} {}", px(width), px(y)))
            .set("width", px(width))
            .set("height", px(y))
            .set("class", "gh-chart")
            .set("role", "img")
            .set("aria-label", clean(&self.label))
            .set("font-family", FONT_FAMILY)
            .set("font-size", FONT)
            .add(ground.set("class", "gh-bg").set("fill", GROUND));
        let document = placed.into_iter().fold(document, Document::add);
        Drawing { document, height: y }
    }
}
