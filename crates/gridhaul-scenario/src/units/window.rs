//! Limits in packets, messages or segments, or in bytes.

use std::fmt;
use std::str::FromStr;

use super::quantity::{Expected, Quantity, names, text_serde};
use super::{Bytes, Decimal, UnitError, counted, plural, split};

/// Queue limit. In files: `"50 packets"`, `"64 kB"` or `"unlimited"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueLimit {
    /// Packets in the queue, without the packet in transmission.
    Packets(u32),
    /// Bytes in the queue, without the packet in transmission.
    Bytes(Bytes),
    /// No limit: the queue drops no packet.
    Unlimited,
}

/// Limit of a message buffer. In files: `"100 messages"` or `"24 kB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferLimit {
    /// Number of messages.
    Messages(u32),
    /// Number of bytes.
    Bytes(Bytes),
}

/// A TCP window. In files: `"50 segments"` or `"64 kB"`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WindowSize {
    /// In segments of the connection's MSS.
    Segments(u32),
    /// In bytes.
    Bytes(Bytes),
}

impl Expected for QueueLimit {
    const EXPECTED: &'static str =
        "a queue limit such as \"50 packets\", \"64 kB\" or \"unlimited\"";
}
text_serde!(
    QueueLimit,
    r"^\s*(unlimited|[0-9][0-9_.eE+-]*\s*(packets?|GiB|GB|MiB|MB|KiB|kB|B))\s*$"
);

impl Expected for BufferLimit {
    const EXPECTED: &'static str = "a buffer limit such as \"100 messages\" or \"24 kB\"";
}
text_serde!(BufferLimit, r"^\s*[0-9][0-9_.eE+-]*\s*(messages?|GiB|GB|MiB|MB|KiB|kB|B)\s*$");

impl Expected for WindowSize {
    const EXPECTED: &'static str = "a window such as \"50 segments\" or \"64 kB\"";
}
text_serde!(WindowSize, r"^\s*[0-9][0-9_.eE+-]*\s*(segments?|GiB|GB|MiB|MB|KiB|kB|B)\s*$");

impl WindowSize {
    /// In bytes, for segments of `mss` bytes.
    #[inline]
    #[must_use]
    pub fn in_bytes(self, mss: u32) -> u64 {
        match self {
            Self::Segments(segments) => u64::from(segments) * u64::from(mss),
            Self::Bytes(bytes) => bytes.get(),
        }
    }
}

impl FromStr for QueueLimit {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        if text.trim() == "unlimited" {
            return Ok(Self::Unlimited);
        }
        count_or_bytes(text, "packet", Self::EXPECTED, Self::Packets, Self::Bytes)
    }
}

impl FromStr for BufferLimit {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        count_or_bytes(text, "message", Self::EXPECTED, Self::Messages, Self::Bytes)
    }
}

impl FromStr for WindowSize {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        count_or_bytes(text, "segment", Self::EXPECTED, Self::Segments, Self::Bytes)
    }
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(packets) => f.write_str(&counted(*packets, "packet")),
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

impl fmt::Display for BufferLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Messages(messages) => f.write_str(&counted(*messages, "message")),
            Self::Bytes(bytes) => fmt::Display::fmt(bytes, f),
        }
    }
}

impl fmt::Display for WindowSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Segments(segments) => f.write_str(&counted(*segments, "segment")),
            Self::Bytes(bytes) => fmt::Display::fmt(bytes, f),
        }
    }
}

fn count_or_bytes<T>(
    text: &str,
    noun: &str,
    expected: &'static str,
    count: fn(u32) -> T,
    bytes: fn(Bytes) -> T,
) -> Result<T, UnitError> {
    let fail =
        |reason: String| UnitError { text: text.to_owned(), expected, reason: reason.into() };
    let (number, written) = split(text);
    // "50" has no unit, and "50 kilobytes" an unknown one: the remedy names the units of both
    // kinds.
    let known = Bytes::UNITS.iter().any(|(name, _)| *name == written);
    let unit = plural(noun);
    if written != unit && written != noun && !known {
        let reason = match Decimal::parse(number) {
            None => format!("write a number, a space and {unit} or a unit of size"),
            Some(_) if written.is_empty() => {
                format!("the unit is missing; use one of {unit}, {}", names::<Bytes>())
            }
            Some(_) => {
                format!("unknown unit {written:?}; use one of {unit}, {}", names::<Bytes>())
            }
        };
        return Err(fail(reason));
    }
    if known {
        let size = Bytes::parse(text).map_err(|error| fail(error.reason.into_owned()))?;
        return Ok(bytes(size));
    }
    number
        .replace('_', "")
        .parse()
        .map(count)
        .map_err(|_| fail(format!("the number of {unit} must be whole and from 0 to {}", u32::MAX)))
}
