//! Definition of axes: quantity, unit and scale.

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Equal steps.
    #[default]
    Linear,
    /// Equal ratios; zero and negative values are omitted.
    Log,
}

/// A numeric axis.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Axis {
    /// Quantity, such as `goodput`.
    pub label: String,
    /// Base unit of the values, such as `bit/s`, `s`, `B`; empty for dimensionless numbers. A
    /// prefix (`k`, `M`, `m`, ...) is chosen by magnitude and added to the label.
    pub unit: String,
    /// Scale.
    pub scale: Scale,
    /// Values that the axis must include even without data, such as 0 or 1.
    pub include: Vec<f64>,
}

impl Axis {
    /// A linear axis.
    #[must_use]
    pub fn new(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), ..Self::default() }
    }

    /// Makes the axis logarithmic.
    #[must_use]
    pub fn log(mut self) -> Self {
        self.scale = Scale::Log;
        self
    }

    /// Extends the axis to include `value`.
    #[must_use]
    pub fn including(mut self, value: f64) -> Self {
        self.include.push(value);
        self
    }
}
