//! Lengths of lines in whole millimetres.

use super::quantity::{Quantity, quantity_text};

/// A length of line in whole millimetres. In files: `"2 km"`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Distance(u64);

impl Quantity for Distance {
    const EXPECTED: &'static str = "a distance such as \"2 km\" or \"300 m\"";
    const UNITS: &'static [(&'static str, f64)] = &[("km", 1e6), ("m", 1e3), ("mm", 1.0)];
    const ZERO_TEXT: Option<&'static str> = Some("0 m");
    const MISTAKES: &'static [(&'static str, &'static str)] = &[
        ("Km", "write \"km\""),
        ("KM", "write \"km\""),
        ("cm", "1 cm is \"10 mm\""),
        ("metres", "write \"m\""),
        ("meters", "write \"m\""),
        ("mi", "distances are metric: 1 mile is \"1609.344 m\""),
        ("miles", "distances are metric: 1 mile is \"1609.344 m\""),
        ("ft", "distances are metric: 1 ft is \"304.8 mm\""),
    ];
    fn from_base(base: u64) -> Self {
        Self(base)
    }
}
quantity_text!(Distance, r"^\s*[0-9][0-9_.eE+-]*\s*(km|m|mm)\s*$");

impl Distance {
    /// From millimetres.
    #[inline]
    #[must_use]
    pub const fn from_millimetres(millimetres: u64) -> Self {
        Self(millimetres)
    }
    /// From metres.
    #[inline]
    #[must_use]
    pub const fn from_metres(metres: u64) -> Self {
        Self(metres * 1_000)
    }
    /// In millimetres.
    #[inline]
    #[must_use]
    pub const fn as_millimetres(self) -> u64 {
        self.0
    }
    /// In kilometres.
    #[inline]
    #[must_use]
    pub fn as_kilometres(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// True for no distance at all.
    #[inline]
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}
