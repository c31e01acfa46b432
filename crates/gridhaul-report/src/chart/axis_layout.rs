//! Layout of axes: range, ticks, labels and the mapping of values to pixels.

use super::svg_primitives::{FONT, width};
use super::{Axis, Scale};
use crate::format::{Prefix, fixed, number, superscript};

/// A labelled tick of an axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) label: String,
}

/// The values that an axis must include: estimates and the ends of their confidence intervals. If
/// no value is negative, the lower ends are clipped at zero, since few replications give wide
/// intervals.
pub(super) fn values_with_intervals(
    estimates: impl IntoIterator<Item = (f64, Option<f64>)>,
) -> Vec<f64> {
    let estimates: Vec<_> = estimates.into_iter().collect();
    let is_signed = estimates.iter().any(|(value, _)| *value < 0.0);
    let minimum = if is_signed { f64::NEG_INFINITY } else { 0.0 };
    let ends = estimates.into_iter().flat_map(|(value, half)| {
        let half = half.filter(|half| half.is_finite()).unwrap_or(0.0);
        [value, (value - half).max(minimum), value + half]
    });
    ends.collect()
}

/// The smallest and the largest of many values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    low: f64,
    high: f64,
}

impl Extent {
    pub(super) const EMPTY: Self = Self { low: f64::INFINITY, high: f64::NEG_INFINITY };

    pub(super) const fn add(&mut self, value: f64) {
        self.low = if value < self.low { value } else { self.low };
        self.high = if value > self.high { value } else { self.high };
    }

    /// Both values, or none.
    pub(super) fn ends(self) -> Vec<f64> {
        if self.low > self.high { Vec::new() } else { vec![self.low, self.high] }
    }
}

/// Fit of an axis around its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// Ends at the data: for the horizontal axis, whose labels must also fit side by side.
    Tight,
    /// Ends at ticks, and at zero if the data are close to it: for the vertical axis.
    Loose,
    /// As `Loose`, always including zero: for bars.
    Zero,
}

/// The layout of an axis between two pixels.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AxisLayout {
    /// Label with its prefixed unit.
    pub(super) title: String,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) ticks: Vec<Tick>,
    /// Minor ticks without labels.
    pub(super) minor: Vec<f64>,
    factor: f64,
    scale: Scale,
    start: f64,
    end: f64,
}

impl AxisLayout {
    /// Lays out `axis` around `values` from pixel `start` to pixel `end`.
    pub(super) fn new(axis: &Axis, values: &[f64], fit: Fit, start: f64, end: f64) -> Self {
        let values =
            values.iter().chain(&axis.include).filter_map(|value| shown(*value, axis.scale));
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let length = (end - start).abs();
        let mut count = (length / if fit == Fit::Tight { 58.0 } else { 38.0 }).floor().max(2.0);
        loop {
            let layout = match axis.scale {
                Scale::Linear => {
                    Self::linear(axis, linear_range(low, high, fit).into(), fit, count)
                }
                Scale::Log => Self::logarithmic(axis, log_range(low, high).into(), fit, count),
            };
            let layout = Self { start, end, ..layout };
            if count <= 2.0 || fit != Fit::Tight || layout.labels_fit() {
                return layout;
            }
            count -= 1.0;
        }
    }

    /// Pixel of a value; values outside are clamped to the axis.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => {
                (value.log10() - self.low.log10()) / (self.high.log10() - self.low.log10())
            }
        };
        // NaN (a logarithm of something negative) goes to the lower end as well.
        let share = if share > 0.0 { share.min(1.0) } else { 0.0 };
        self.start + share * (self.end - self.start)
    }

    /// The value if this axis can show it.
    pub(super) fn shown(&self, value: f64) -> Option<f64> {
        shown(value, self.scale)
    }

    /// The value in the unit of the axis, with three digits.
    pub(super) fn short(&self, value: f64) -> String {
        let scaled = value / self.factor;
        let rounded = if scaled.abs() < 1e-3 || scaled.abs() >= 1e3 {
            scaled
        } else {
            let power = 10f64.powf(2.0 - scaled.abs().log10().floor());
            (scaled * power).round() / power
        };
        number(rounded)
    }

    /// Width of the widest label.
    pub(super) fn label_width(&self) -> f64 {
        self.ticks.iter().map(|tick| width(&tick.label, FONT)).fold(0.0, f64::max)
    }

    fn labels_fit(&self) -> bool {
        self.ticks.windows(2).all(|pair| {
            let distance = (self.place(pair[1].at) - self.place(pair[0].at)).abs();
            distance >= (width(&pair[0].label, FONT) + width(&pair[1].label, FONT)) / 2.0 + 10.0
        })
    }

    fn linear(axis: &Axis, [mut low, mut high]: [f64; 2], fit: Fit, count: f64) -> Self {
        let step = round_step((high - low) / count);
        // A horizontal axis is extended to a tick that is almost reached.
        let margin = if fit == Fit::Tight { 0.03 * (high - low) } else { f64::INFINITY };
        let (below, above) =
            ((low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step);
        low = if low - below <= margin { below } else { low };
        high = if above - high <= margin { above } else { high };
        let prefix = axis_prefix(low.abs().max(high.abs()), &axis.unit);
        let decimals = (-(step / prefix.factor * 1.000_001).log10().floor()).clamp(0.0, 12.0);
        let first = (low / step - 1e-9).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        let ticks = (first..=last).map(|index| {
            let at = (index as f64 * step).clamp(low, high);
            Tick { at, label: fixed(index as f64 * step / prefix.factor, decimals as usize) }
        });
        Self {
            title: titled(axis, &prefix.unit),
            low,
            high,
            ticks: ticks.collect(),
            minor: Vec::new(),
            factor: prefix.factor,
            scale: Scale::Linear,
            start: 0.0,
            end: 1.0,
        }
    }

    fn logarithmic(axis: &Axis, [mut low, mut high]: [f64; 2], fit: Fit, count: f64) -> Self {
        let decades = high.log10() - low.log10();
        let fine: &[f64] = if decades < 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        if fit != Fit::Tight || decades < 0.8 {
            low = grid(low, low, fine, true).first().copied().unwrap_or(low).min(low);
            high = grid(high, high, fine, true).last().copied().unwrap_or(high).max(high);
        }
        let mut places = grid(low, high, fine, false);
        let stride = (places.len() as f64 / count.max(2.0)).ceil().max(1.0) as usize;
        places = places.into_iter().step_by(stride).collect();
        let minor = if decades <= 5.0 {
            grid(low, high, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], false)
        } else {
            grid(low, high, &[1.0], false)
        };
        // Two decades of decimals are as legible as three of thousands: aim above the middle.
        let middle = 10f64.powf(f64::midpoint(low.log10(), high.log10()) + 1.0);
        let prefix = Prefix::for_magnitude(middle, &axis.unit);
        let scaled: Vec<f64> = places.iter().map(|place| place / prefix.factor).collect();
        let plain = scaled.iter().all(|value| (0.000_999..100_001.0).contains(value));
        let label = |value: f64| {
            if plain { number(value) } else { power(value) }
        };
        let ticks = places.iter().zip(&scaled);
        Self {
            title: titled(axis, &prefix.unit),
            low,
            high,
            ticks: ticks.map(|(at, value)| Tick { at: *at, label: label(*value) }).collect(),
            minor,
            factor: prefix.factor,
            scale: Scale::Log,
            start: 0.0,
            end: 1.0,
        }
    }
}

/// The value if an axis of this scale can show it. Extreme magnitudes are omitted so that no sum or
/// ratio of two values overflows.
pub(super) fn shown(value: f64, scale: Scale) -> Option<f64> {
    let value = if value.abs() < 1e-300 { 0.0 } else { value };
    let possible = value.abs() < 1e300 && (scale == Scale::Linear || value > 0.0);
    possible.then_some(value)
}

fn linear_range(mut low: f64, mut high: f64, fit: Fit) -> (f64, f64) {
    if low > high {
        return (0.0, 1.0);
    }
    let size = low.abs().max(high.abs());
    let near_zero = high - low >= 0.12 * size;
    if fit == Fit::Zero
        || near_zero && (fit == Fit::Loose || low.abs().min(high.abs()) < 0.2 * size)
    {
        low = low.min(0.0);
        high = high.max(0.0);
    }
    // Below this range, ticks would have equal labels.
    if high - low <= 1e-6 * size {
        (low, high) = match (low, high) {
            (0.0, 0.0) => (0.0, 1.0),
            _ if low > 0.0 => (0.0, high * 1.25),
            _ => (low * 1.25, 0.0),
        };
    }
    if low == high { (low, low + 1.0) } else { (low, high) }
}

fn log_range(low: f64, high: f64) -> (f64, f64) {
    if low > high {
        return (1.0, 10.0);
    }
    if high / low < 1.001 { (low / 3.0, high * 3.0) } else { (low, high) }
}

/// Prefix of a linear axis; large and small dimensionless numbers get a power of ten.
fn axis_prefix(magnitude: f64, unit: &str) -> Prefix {
    let prefix = Prefix::for_magnitude(magnitude, unit);
    let scaled = magnitude / prefix.factor;
    if scaled == 0.0 || (0.005..1e7).contains(&scaled) {
        return prefix;
    }
    let exponent = (scaled.log10() / 3.0).floor() as i32 * 3;
    let unit = format!("10{} {}", superscript(exponent), prefix.unit);
    Prefix { factor: prefix.factor * 10f64.powi(exponent), unit: unit.trim_end().to_owned() }
}

fn titled(axis: &Axis, unit: &str) -> String {
    match (axis.label.is_empty(), unit.is_empty()) {
        (_, true) => axis.label.clone(),
        (true, false) => unit.to_owned(),
        (false, false) => format!("{} ({unit})", axis.label),
    }
}

/// The next of 1, 2, 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let ratio = step / power;
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| ratio <= factor * 1.000_001);
    factor.unwrap_or(10.0) * power
}

/// Multiples of powers of ten between two values; with `around`, the nearest ones outside as well.
fn grid(low: f64, high: f64, multiples: &[f64], around: bool) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().floor() as i32);
    let all = (first..=last + 1)
        .flat_map(|exponent| multiples.iter().map(move |multiple| multiple * 10f64.powi(exponent)));
    let all: Vec<f64> = all.collect();
    let from = all.partition_point(|value| *value < low * (1.0 - 1e-9));
    let to = all.partition_point(|value| *value <= high * (1.0 + 1e-9));
    if around {
        let exact = |index: usize, edge: f64| {
            all.get(index).is_some_and(|value| (value / edge - 1.0).abs() < 1e-9)
        };
        let from = if exact(from, low) { from } else { from.saturating_sub(1) };
        let to = if to > 0 && exact(to - 1, high) { to } else { (to + 1).min(all.len()) };
        return all[from..to].to_vec();
    }
    all[from..to].iter().map(|value| value.clamp(low, high)).collect()
}

/// A multiple of a power of ten: `10³`, `2×10³`.
fn power(value: f64) -> String {
    let exponent = (value.log10() + 1e-9).floor() as i32;
    let multiple = (value / 10f64.powi(exponent)).round();
    let power = format!("10{}", superscript(exponent));
    if multiple == 1.0 { power } else { format!("{multiple}×{power}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(layout: &AxisLayout) -> String {
        let labels: Vec<_> = layout.ticks.iter().map(|tick| tick.label.as_str()).collect();
        format!("{}: {}", layout.title, labels.join(" | "))
    }

    #[test]
    fn intervals_extend_below_zero_only_if_values_do() {
        assert_eq!(
            values_with_intervals([(2.0, Some(3.0)), (1.0, None)]),
            [2.0, 0.0, 5.0, 1.0, 1.0, 1.0]
        );
        assert_eq!(
            values_with_intervals([(-2.0, Some(3.0)), (1.0, Some(4.0))]),
            [-2.0, -5.0, 1.0, 1.0, -3.0, 5.0]
        );
        assert_eq!(values_with_intervals([(1.0, Some(f64::NAN))]), [1.0; 3]);
    }

    #[test]
    fn ticks_are_round_numbers() {
        let rate = Axis::new("rate", "bit/s");
        let time = Axis::new("time", "s");
        let count = Axis::new("meters", "");
        let cases: [(Axis, &[f64], Fit); 12] = [
            (rate.clone(), &[130e3, 2.9e6], Fit::Loose),
            (rate.clone(), &[2.90e6, 2.99e6], Fit::Loose),
            (rate.clone(), &[], Fit::Loose),
            (rate.clone(), &[5e5, 5e5], Fit::Loose),
            (rate.log(), &[130e3, 1e7], Fit::Tight),
            (time.clone(), &[0.0, 0.3], Fit::Tight),
            (time.log(), &[0.002, 30.0], Fit::Loose),
            (count.clone(), &[1000.0, 400_000.0], Fit::Tight),
            (count.clone().log(), &[1.0, 400_000.0], Fit::Tight),
            (count.clone().log(), &[1e-9, 1.0, -3.0], Fit::Loose),
            (count.clone(), &[-3.0, 4.0], Fit::Zero),
            (count, &[2e-6, 9e-6], Fit::Zero),
        ];
        let lines = cases.map(|(axis, values, fit)| {
            labels(&AxisLayout::new(
                &axis,
                values,
                fit,
                0.0,
                if fit == Fit::Tight { 480.0 } else { 230.0 },
            ))
        });
        insta::assert_snapshot!(lines.join("\n"));
    }

    proptest! {
        #[test]
        fn every_tick_is_inside_the_axis(
            values in prop::collection::vec(any::<f64>(), 0..6),
            log: bool,
            fit in prop::sample::select(vec![Fit::Tight, Fit::Loose, Fit::Zero]),
        ) {
            let axis = Axis::new("x", "s");
            let axis = if log { axis.log() } else { axis };
            let layout = AxisLayout::new(&axis, &values, fit, 10.0, 490.0);
            prop_assert!(layout.low.is_finite() && layout.low < layout.high);
            prop_assert!(layout.ticks.len() < 40 && layout.minor.len() < 2000);
            for tick in &layout.ticks {
                prop_assert!(layout.low <= tick.at && tick.at <= layout.high);
                prop_assert!((10.0..=490.0).contains(&layout.place(tick.at)));
            }
            for value in values {
                prop_assert!((10.0..=490.0).contains(&layout.place(value)));
            }
        }
    }
}
