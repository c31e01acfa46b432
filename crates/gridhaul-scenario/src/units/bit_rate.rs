//! Rates in whole bits per second.

use super::quantity::{Quantity, quantity_text};
use super::{Bytes, Duration};

/// A rate in whole bits per second. In files: `"3 Mbit/s"`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(u64);

impl Quantity for BitRate {
    const EXPECTED: &'static str = "a rate such as \"3 Mbit/s\"";
    const UNITS: &'static [(&'static str, f64)] =
        &[("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)];
    const MISTAKES: &'static [(&'static str, &'static str)] = &[
        ("bps", "write \"bit/s\""),
        ("kbps", "write \"kbit/s\""),
        ("Kbps", "write \"kbit/s\""),
        ("Mbps", "write \"Mbit/s\""),
        ("Gbps", "write \"Gbit/s\""),
        ("kb", "write \"kbit/s\""),
        ("Mb", "write \"Mbit/s\""),
        ("Gb", "write \"Gbit/s\""),
        ("kb/s", "write \"kbit/s\""),
        ("Mb/s", "write \"Mbit/s\""),
        ("Gb/s", "write \"Gbit/s\""),
        ("Kbit/s", "write \"kbit/s\""),
        ("mbit/s", "write \"Mbit/s\""),
        ("B/s", "rates are in bits: 1 B/s is \"8 bit/s\""),
        ("kB/s", "rates are in bits: 1 kB/s is \"8 kbit/s\""),
        ("MB/s", "rates are in bits: 1 MB/s is \"8 Mbit/s\""),
        ("GB/s", "rates are in bits: 1 GB/s is \"8 Gbit/s\""),
        ("Tbit/s", "1 Tbit/s is \"1000 Gbit/s\""),
        ("TB/s", "rates are in bits: 1 TB/s is \"8000 Gbit/s\""),
    ];
    fn from_base(base: u64) -> Self {
        Self(base)
    }
}
quantity_text!(BitRate, r"^\s*[0-9][0-9_.eE+-]*\s*(Gbit/s|Mbit/s|kbit/s|bit/s)\s*$");

impl BitRate {
    /// From bits per second.
    #[inline]
    #[must_use]
    pub const fn from_bits_per_sec(bits: u64) -> Self {
        Self(bits)
    }
    /// In bits per second.
    #[inline]
    #[must_use]
    pub const fn as_bits_per_sec(self) -> u64 {
        self.0
    }
    /// Mean rate of `bytes` over `time`, in bits per second; 0 over no time.
    #[inline]
    #[must_use]
    pub fn mean(bytes: Bytes, time: Duration) -> f64 {
        if time.is_zero() { 0.0 } else { bytes.bits() as f64 / time.as_secs_f64() }
    }
}
