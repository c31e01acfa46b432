//! Sizes in whole bytes.

use std::ops::{Add, AddAssign};

use super::quantity::{Quantity, quantity_text};

/// A size in whole bytes. In files: `"240 B"`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Quantity for Bytes {
    const EXPECTED: &'static str = "a size such as \"240 B\" or \"64 kB\"";
    const UNITS: &'static [(&'static str, f64)] = &[
        ("GiB", 1_073_741_824.0),
        ("GB", 1e9),
        ("MiB", 1_048_576.0),
        ("MB", 1e6),
        ("KiB", 1024.0),
        ("kB", 1e3),
        ("B", 1.0),
    ];
    const MISTAKES: &'static [(&'static str, &'static str)] = &[
        ("b", "sizes are in bytes: write \"B\""),
        ("bit", "sizes are in bytes: 8 bit are \"1 B\""),
        ("byte", "write \"B\""),
        ("bytes", "write \"B\""),
        ("KB", "write \"kB\" for 1000 B or \"KiB\" for 1024 B"),
        ("k", "write \"kB\""),
        ("M", "write \"MB\""),
        ("TB", "1 TB is \"1000 GB\""),
    ];
    fn from_base(base: u64) -> Self {
        Self(base)
    }
}
quantity_text!(Bytes, r"^\s*[0-9][0-9_.eE+-]*\s*(GiB|GB|MiB|MB|KiB|kB|B)\s*$");

impl Bytes {
    /// From a number of bytes.
    #[inline]
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }
    /// As a number of bytes.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
    /// As a number of bits.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0 * 8
    }
}

impl Add for Bytes {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}
impl AddAssign for Bytes {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}
