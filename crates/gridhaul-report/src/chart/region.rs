//! Region charts: cells over two axes with a value, or with the reason for its absence.

use svg::node::element::{Group, Rectangle};

use super::axis_layout::{AxisLayout, Fit};
use super::drawing::Drawing;
use super::frame::Frame;
use super::legend::Sample;
use super::marks::{hatch, mark};
use super::style::{INK, REASONS};
use super::svg_primitives::{self, coloured, px, role, text, tooltip};
use super::{Axis, Scale};
use crate::format::{self, Prefix};

/// A map of cells over two numeric axes, such as the cost of each combination of two choices.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RegionChart {
    /// Heading.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Quantity and unit of the values.
    pub value: Axis,
    /// Reasons for missing values, as in the legend; up to six.
    pub reasons: Vec<String>,
    /// Cells; each extends to the midpoints between it and its neighbours.
    pub cells: Vec<Cell>,
    /// Marked position, and its name in the legend.
    pub mark: Option<(f64, f64, String)>,
}

/// A cell of a region.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Position on the horizontal axis.
    pub x: f64,
    /// Position on the vertical axis.
    pub y: f64,
    /// State of the cell.
    pub state: CellState,
    /// Tooltip.
    pub tooltip: String,
}

/// State of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CellState {
    /// A value; smaller values have a stronger colour.
    Value(f64),
    /// No value; index of the reason.
    Reason(usize),
}

/// Opacity of the largest and of the smallest value.
const WEAKEST: f64 = 0.16;
const STRONGEST: f64 = 0.92;
/// Height below the plot for the axis title and the colour scale.
const BELOW: f64 = 92.0;
/// Steps of the colour scale.
const STEPS: usize = 24;

impl RegionChart {
    pub(super) fn drawing(&self) -> Drawing {
        let used = |reason: usize| self.cells.iter().any(|c| c.state == CellState::Reason(reason));
        let mut names: Vec<(&str, Sample, usize)> = Vec::new();
        if let Some((_, _, name)) = &self.mark {
            names.push((name, Sample::Mark, 0));
        }
        let reasons = self.reasons.iter().enumerate().filter(|(index, _)| used(*index));
        names.extend(reasons.map(|(index, name)| (name.as_str(), Sample::Cell, colour(index))));
        let (columns, rows) = (edges(self.x.scale, self.positions(|cell| cell.x)), self.rows());
        let outer = |edges: &[(f64, f64, f64)]| -> Vec<f64> {
            edges.iter().flat_map(|(_, low, high)| [*low, *high]).collect()
        };
        let frame = Frame::new(&self.title, &names, &self.y, &outer(&rows), Fit::Tight);
        let x = AxisLayout::new(&self.x, &outer(&columns), Fit::Tight, frame.left, frame.right);
        let mut parts = vec![frame.vertical(), frame.horizontal(&x, self.x.scale)];
        if self.cells.is_empty() {
            parts.push(frame.no_data());
        }
        parts.push(self.draw_cells(&frame, &x, &columns, &rows));
        parts.push(frame.base());
        if let Some((at, up, name)) = &self.mark {
            parts.push(mark(x.place(*at), frame.y.place(*up)).add(tooltip(name)));
        }
        if let Some((low, high)) = self.range() {
            parts.push(self.scale(&frame, low, high));
        }
        let about = format!("{} over {} and {}", self.value.label, x.title, frame.y.title);
        frame.finish(parts, BELOW, &about)
    }

    fn rows(&self) -> Vec<(f64, f64, f64)> {
        edges(self.y.scale, self.positions(|cell| cell.y))
    }

    /// Distinct positions along an axis.
    fn positions(&self, of: impl Fn(&Cell) -> f64) -> Vec<f64> {
        let mut positions: Vec<f64> =
            self.cells.iter().map(of).filter(|at| at.is_finite()).collect();
        positions.sort_by(f64::total_cmp);
        positions.dedup();
        positions
    }

    /// Smallest and largest value.
    fn range(&self) -> Option<(f64, f64)> {
        let values = self.cells.iter().filter_map(|cell| match cell.state {
            CellState::Value(value) if value.is_finite() => Some(value),
            _ => None,
        });
        values.fold(None, |range, value| {
            let (low, high) = range.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        })
    }

    fn draw_cells(
        &self,
        frame: &Frame,
        x: &AxisLayout,
        columns: &[(f64, f64, f64)],
        rows: &[(f64, f64, f64)],
    ) -> Group {
        let (low, high) = self.range().unwrap_or((0.0, 1.0));
        let mut group = Group::new();
        for cell in &self.cells {
            let at = |edges: &[(f64, f64, f64)], place: f64| {
                edges.iter().find(|(middle, _, _)| *middle == place).copied()
            };
            let (Some(column), Some(row)) = (at(columns, cell.x), at(rows, cell.y)) else {
                continue;
            };
            let (left, right) = (x.place(column.1), x.place(column.2));
            let (bottom, top) = (frame.y.place(row.1), frame.y.place(row.2));
            let area = Rectangle::new()
                .set("x", px(left))
                .set("y", px(top))
                .set("width", px((right - left - 0.6).max(0.4)))
                .set("height", px((bottom - top - 0.6).max(0.4)));
            let cell_group = match cell.state {
                CellState::Value(value) => coloured(0).add(
                    area.set("fill", "currentColor")
                        .set("fill-opacity", px(self.opacity(value, low, high))),
                ),
                CellState::Reason(reason) => {
                    let hatch = hatch(colour(reason), left, top, right - 0.6, bottom - 0.6);
                    let area = area.set("fill", "currentColor").set("fill-opacity", 0.13);
                    coloured(colour(reason)).add(area).add(hatch)
                }
            };
            group = group.add(cell_group.add(tooltip(&cell.tooltip)));
        }
        group
    }

    /// Opacity of a value.
    fn opacity(&self, value: f64, low: f64, high: f64) -> f64 {
        let to = |value: f64| if self.value.scale == Scale::Log { value.ln() } else { value };
        let share = (to(value) - to(low)) / (to(high) - to(low));
        // With a single value, or without a logarithm, the opacity is the strongest.
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        STRONGEST - share * (STRONGEST - WEAKEST)
    }

    /// The colour scale below the plot.
    fn scale(&self, frame: &Frame, low: f64, high: f64) -> Group {
        let (left, width, y) = (frame.left, (frame.right - frame.left) * 0.5, frame.bottom + 54.0);
        let prefix = Prefix::for_magnitude(high, &self.value.unit);
        let unit =
            if prefix.unit.is_empty() { String::new() } else { format!(" ({})", prefix.unit) };
        let mut bar = coloured(0);
        for step in 0..STEPS {
            let share = (step as f64 + 0.5) / STEPS as f64;
            let piece = width / STEPS as f64;
            let area = Rectangle::new()
                .set("x", px(left + step as f64 * piece))
                .set("y", px(y))
                .set("width", px(piece))
                .set("height", 10)
                .set("fill", "currentColor");
            bar = bar.add(area.set("fill-opacity", px(STRONGEST - share * (STRONGEST - WEAKEST))));
        }
        let number = |value: f64| {
            let rounded: f64 = format!("{:.2e}", value / prefix.factor).parse().unwrap_or(value);
            format::number(rounded)
        };
        let mut labels = role("ink", INK).set("fill", "currentColor");
        labels = labels.add(text(left, y + 25.0, "start", &number(low)));
        if high > low {
            labels = labels.add(text(left + width, y + 25.0, "end", &number(high)));
        }
        let name = format!("{}{unit}", self.value.label);
        let label_width = frame.right - left - width - 14.0;
        let shown = svg_primitives::shortened(&name, svg_primitives::FONT, label_width);
        let label = text(left + width + 14.0, y + 9.0, "start", &shown);
        Group::new().add(bar).add(svg_primitives::add_label(labels, label, &shown, &name))
    }
}

fn colour(reason: usize) -> usize {
    REASONS[reason % REASONS.len()]
}

/// Each position with the edges of its cell: the midpoints to its neighbours on the axis.
fn edges(scale: Scale, positions: Vec<f64>) -> Vec<(f64, f64, f64)> {
    let log = scale == Scale::Log;
    let positions: Vec<f64> = positions.into_iter().filter(|at| !log || *at > 0.0).collect();
    let to = |value: f64| if log { value.ln() } else { value };
    let from = |value: f64| if log { value.exp() } else { value };
    let at: Vec<f64> = positions.iter().map(|place| to(*place)).collect();
    let last = at.len().saturating_sub(1);
    let gap = |index: usize| at[index + 1] - at[index];
    // A single position gets a cell around it.
    let alone = if log { 0.5 } else { 0.5 * positions.first().map_or(1.0, |p| p.abs().max(1.0)) };
    let cell = |(index, place): (usize, &f64)| {
        let below = if index > 0 {
            gap(index - 1)
        } else if last > 0 {
            gap(0)
        } else {
            alone
        };
        let above = if index < last {
            gap(index)
        } else if last > 0 {
            gap(last - 1)
        } else {
            alone
        };
        let mut low = from(at[index] - below / 2.0);
        if !log && *place >= 0.0 {
            low = low.max(0.0);
        }
        (*place, low, from(at[index] + above / 2.0))
    };
    positions.iter().enumerate().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_extend_to_the_midpoints_of_their_neighbours() {
        let linear = edges(Scale::Linear, vec![1.0, 2.0, 4.0]);
        assert_eq!(linear, [(1.0, 0.5, 1.5), (2.0, 1.5, 3.0), (4.0, 3.0, 5.0)]);
        let log = edges(Scale::Log, vec![0.0, 1.0, 4.0]);
        let is_close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert_eq!(log.len(), 2, "zero has no position on a logarithmic axis");
        assert!(
            is_close(log[0].1, 0.5) && is_close(log[0].2, 2.0) && is_close(log[1].2, 8.0),
            "{log:?}"
        );
    }

    #[test]
    fn smallest_value_is_strongest_and_tooltips_are_escaped() {
        let cell =
            |x: f64, state| Cell { x, y: 1.0, state, tooltip: format!("cell {x} <tooltip>") };
        let chart = RegionChart {
            cells: vec![
                cell(1.0, CellState::Reason(1)),
                cell(2.0, CellState::Value(900.0)),
                cell(3.0, CellState::Value(90.0)),
            ],
            reasons: vec!["fails: loss".into(), "fails: delay".into()],
            mark: Some((3.0, 1.0, "winner".into())),
            ..RegionChart::default()
        };
        assert!(has_expected_range(&chart));
        let svg = chart.to_svg();
        assert!(svg.contains("cell 1 &lt;tooltip&gt;") && svg.contains("winner"), "{svg}");
        // Only reasons that occur are in the legend.
        assert!(svg.contains("fails: delay") && !svg.contains("fails: loss"), "{svg}");
    }

    fn has_expected_range(chart: &RegionChart) -> bool {
        let at = |value| chart.opacity(value, 90.0, 900.0);
        (at(90.0) - STRONGEST).abs() < 1e-12 && (at(900.0) - WEAKEST).abs() < 1e-12
    }
}
