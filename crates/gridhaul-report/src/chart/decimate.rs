//! Reduction of long lines without visible changes: first, minimum, maximum and last value of every
//! pixel column.

/// A position on both axes, in pixels or in values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Position {
    pub x: f64,
    pub y: f64,
}

/// A point in pixels; `None` is a gap.
pub(super) type Pixel = Option<Position>;

/// Returns few points unchanged, else at most four for each pixel column.
pub(super) fn decimate(
    points: impl Iterator<Item = Pixel>,
    columns: usize,
    len: usize,
) -> Vec<Pixel> {
    if len <= columns * 4 {
        return points.collect();
    }
    let mut out = Vec::new();
    let mut column: Option<Column> = None;
    let mut gap = false;
    for point in points {
        let Some(point) = point else {
            gap = true;
            continue;
        };
        match &mut column {
            Some(open) if open.contains(point.x) => open.add(point),
            _ => {
                let index = point.x.floor();
                let before = column.take();
                if let Some(open) = &before {
                    open.write(&mut out);
                }
                // A gap narrower than a column is not visible.
                let is_visible = |open: &Column| gap && (index - open.index).abs() > 1.0;
                if before.as_ref().is_some_and(is_visible) {
                    out.push(None);
                }
                column = Some(Column::new(index, point));
            }
        }
        gap = false;
    }
    if let Some(open) = column {
        open.write(&mut out);
    }
    // Points that are not sorted by x defeat the columns: take every n-th point.
    let maximum = columns * 8;
    if out.len() > maximum {
        let stride = out.len().div_ceil(maximum);
        return out.into_iter().step_by(stride).collect();
    }
    out
}

/// Points of a column of pixels.
struct Column {
    index: f64,
    extremes: Extremes,
}

impl Column {
    fn new(index: f64, point: Position) -> Self {
        Self { index, extremes: Extremes::new(point) }
    }

    fn contains(&self, x: f64) -> bool {
        (self.index..self.index + 1.0).contains(&x)
    }

    fn add(&mut self, point: Position) {
        self.extremes.add(point);
    }

    fn write(&self, out: &mut Vec<Pixel>) {
        out.extend(self.extremes.points().map(Some));
    }
}

/// The points that determine the look of a narrow part of a line, each with its number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extremes {
    first: (usize, Position),
    low: (usize, Position),
    high: (usize, Position),
    last: (usize, Position),
}

impl Extremes {
    pub(crate) const fn new(point: Position) -> Self {
        Self { first: (0, point), low: (0, point), high: (0, point), last: (0, point) }
    }

    #[inline]
    pub(crate) fn add(&mut self, point: Position) {
        self.last = (self.last.0 + 1, point);
        if point.y < self.low.1.y {
            self.low = self.last;
        } else if point.y > self.high.1.y {
            self.high = self.last;
        }
    }

    /// Adds the points of some rows, as [`add`](Self::add) does one after the other.
    pub(crate) fn extend(&mut self, rows: &[u32], times: &[f64], values: &[f64]) {
        let Some(&last) = rows.last() else { return };
        let position = |at: usize| {
            let row = rows[at] as usize;
            (self.last.0 + 1 + at, Position { x: times[row], y: values[row] })
        };
        // Comparisons without branches, since values rise and fall: the places of the extremes are
        // searched afterwards, and only if there are new ones.
        let (mut low, mut high) = (self.low.1.y, self.high.1.y);
        for &row in rows {
            let value = values[row as usize];
            low = if value < low { value } else { low };
            high = if value > high { value } else { high };
        }
        let first = |extreme: f64| rows.iter().position(|&row| values[row as usize] == extreme);
        let lowest = if low < self.low.1.y { first(low).map(position) } else { None };
        let highest = if high > self.high.1.y { first(high).map(position) } else { None };
        self.low = lowest.unwrap_or(self.low);
        self.high = highest.unwrap_or(self.high);
        self.last = (
            self.last.0 + rows.len(),
            Position { x: times[last as usize], y: values[last as usize] },
        );
    }

    /// Largest number of [`points`](Self::points).
    pub(crate) const POINTS_MAX: usize = 4;

    /// At most four points, in the order in which they were added.
    pub(crate) fn points(&self) -> impl Iterator<Item = Position> {
        let Self { first, low, high, last } = *self;
        let (second, third) = if low.0 < high.0 { (low, high) } else { (high, low) };
        let mut before = None;
        [first, second, third, last].into_iter().filter_map(move |(number, point)| {
            (before.replace(number) != Some(number)).then_some(point)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_and_gaps_are_preserved() {
        let wave = (0..100_000).map(|i| {
            let x = f64::from(i) / 200.0;
            let y = if i == 50_123 { 999.0 } else { f64::from(i % 7) };
            (!(20_000..30_000).contains(&i)).then_some(Position { x, y })
        });
        let kept = decimate(wave, 500, 100_000);
        assert!(kept.len() <= 2001, "{}", kept.len());
        assert!(kept.iter().flatten().any(|point| point.y == 999.0));
        assert_eq!(kept.iter().filter(|point| point.is_none()).count(), 1);
        assert_eq!(kept[0], Some(Position { x: 0.0, y: 0.0 }));
    }
}
