//! Axes: what they show and which numbers stand at them.

/// How numbers are laid out along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Equal steps.
    #[default]
    Linear,
    /// Equal ratios; zero and negative values cannot be shown and are left out.
    Log,
}

/// An axis of numbers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Axis {
    /// What is measured: `goodput`.
    pub label: String,
    /// Base unit of the values, such as `bit/s`, `s`, `B`; empty for pure numbers. A prefix (`k`, `M`,
    /// `m`, ...) is chosen by magnitude and shown with the label.
    pub unit: String,
    /// Layout.
    pub scale: Scale,
    /// Values that must be inside the axis even where there are no data, such as 0 or 1.
    pub include: Vec<f64>,
}

impl Axis {
    /// A linear axis.
    #[must_use]
    pub fn new(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), ..Self::default() }
    }

    /// The same axis, logarithmic.
    #[must_use]
    pub fn log(mut self) -> Self {
        self.scale = Scale::Log;
        self
    }

    /// The same axis, reaching at least to `value`.
    #[must_use]
    pub fn including(mut self, value: f64) -> Self {
        self.include.push(value);
        self
    }
}
