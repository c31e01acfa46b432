//! The legend: rows of samples and names between heading and plot.

use svg::node::element::Group;

use super::marks::{cell_sample, filled, mark, marker};
use super::style::DASHES;
use super::svg_primitives::{FONT, coloured, line, shortened, text, tooltip, width};

const SAMPLE: f64 = 26.0;
const GAP: f64 = 18.0;
/// Width of names in DejaVu Sans, which many systems have as their only sans-serif font, relative
/// to the estimate: names of metrics are up to 13 % wider.
const WIDEST: f64 = 1.15;
pub(super) const ROW: f64 = 18.0;

/// The sample before a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sample {
    /// Dashes and a marker.
    Line,
    /// Dashes.
    Curve,
    /// A hollow marker.
    Points,
    /// A filled marker.
    Filled,
    /// A hatched box.
    Bar,
    /// A cell of a region that has no value.
    Cell,
    /// The marker of a region chart.
    Mark,
}

/// Names laid out in rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Legend {
    entries: Vec<Entry>,
    pub(super) rows: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    name: String,
    shown: String,
    sample: Sample,
    /// Which colour, marker and dashes.
    style: usize,
    x: f64,
    row: usize,
}

impl Legend {
    /// Lays out rows of at most `row_width` pixels.
    pub(super) fn new(names: &[(&str, Sample, usize)], row_width: f64) -> Self {
        if names.iter().all(|(name, _, _)| name.is_empty()) {
            return Self { entries: Vec::new(), rows: 0 };
        }
        let (mut x, mut row) = (0.0, 0);
        let entries = names.iter().map(|(name, sample, style)| {
            let font = FONT * WIDEST;
            let shown = shortened(name, font, row_width - SAMPLE - 6.0);
            let wide = SAMPLE + 6.0 + width(&shown, font);
            if x > 0.0 && x + wide > row_width {
                (x, row) = (0.0, row + 1);
            }
            let entry =
                Entry { name: (*name).to_owned(), shown, sample: *sample, style: *style, x, row };
            x += wide + GAP;
            entry
        });
        let entries: Vec<_> = entries.collect();
        let rows = entries.last().map_or(0, |entry| entry.row + 1);
        Self { entries, rows }
    }

    /// Draws the rows from the upper left corner.
    pub(super) fn draw(&self, left: f64, top: f64) -> Group {
        self.entries.iter().fold(Group::new(), |group, entry| {
            let (x, y) = (left + entry.x, top + entry.row as f64 * ROW + ROW / 2.0);
            let label =
                text(x + SAMPLE + 6.0, y + 4.0, "start", &entry.shown).set("fill", "currentColor");
            let label = super::svg_primitives::role("ink", super::style::INK).add(label);
            let label =
                if entry.shown == entry.name { label } else { label.add(tooltip(&entry.name)) };
            group.add(sample(entry.style, entry.sample, x, y)).add(label)
        })
    }
}

fn sample(index: usize, sample: Sample, x: f64, y: f64) -> Group {
    let group = coloured(index);
    let middle = x + SAMPLE / 2.0;
    match sample {
        Sample::Line | Sample::Curve => {
            let dash = DASHES[index % DASHES.len()];
            let stroke =
                line(x, y, x + SAMPLE, y).set("stroke", "currentColor").set("stroke-width", 1.8);
            let stroke =
                if dash.is_empty() { stroke } else { stroke.set("stroke-dasharray", dash) };
            let group = group.add(stroke);
            if sample == Sample::Curve {
                return group;
            }
            group.add(marker(index, middle, y, false))
        }
        Sample::Points => group.add(marker(index, middle, y, true)),
        Sample::Filled => group.add(marker(index, middle, y, false)),
        Sample::Cell => cell_sample(index, x, y, SAMPLE - 4.0),
        Sample::Mark => mark(middle, y),
        Sample::Bar => filled(group, index, x, y - 6.0, SAMPLE - 4.0, 12.0),
    }
}
