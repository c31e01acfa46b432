//! Framing of messages in the streams of meters.

use serde::{Deserialize, Serialize};

use crate::scenario::Diagnostic;
use crate::units::{Bytes, Duration};

/// Framing of messages.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MeterFraming {
    /// No messages: a stream of bytes.
    #[default]
    Stream,
    /// DLMS/COSEM wrapper (IEC 62056-4-7), registered port 4059.
    DlmsWrapper,
    /// IEC 60870-5-104, registered port 2404.
    Iec104,
    /// A length field before each message.
    LengthPrefix(LengthPrefixFraming),
    /// A length field at an offset in the header of each message, as in IEEE C37.118.2, Modbus/TCP
    /// and TPKT (IEC 61850-8-1).
    LengthField(LengthFieldFraming),
    /// A byte after each message.
    Delimiter(DelimiterFraming),
    /// A message ends when no byte has arrived for this time.
    IdleGap(Duration),
}

/// A length field before each message; its value counts the bytes after the field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LengthPrefixFraming {
    /// Bytes of the length field: 2 or 4.
    pub width: u8,
    /// Whether the least significant byte comes first; otherwise network byte order.
    #[serde(default)]
    pub little_endian: bool,
    /// Largest message. A longer one ends the connection.
    #[serde(default = "one_megabyte")]
    pub maximum: Bytes,
}

/// A length field at an offset in the header of each message. A message has as many bytes as the
/// value of the field and `adds` together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LengthFieldFraming {
    /// Bytes of a message before the field.
    pub offset: u16,
    /// Bytes of the field: 1 to 4.
    pub size: u8,
    /// Order of the bytes of the field.
    #[serde(default)]
    pub order: FieldOrder,
    /// Bytes of a message that the value of the field does not count, such as 6 in Modbus/TCP,
    /// whose field counts the bytes after it.
    #[serde(default)]
    pub adds: u32,
    /// Largest message with its header. A longer one ends the connection.
    #[serde(default = "one_megabyte")]
    pub maximum: Bytes,
}

/// Order of the bytes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FieldOrder {
    /// The most significant byte comes first (network byte order).
    #[default]
    BigEndian,
    /// The least significant byte comes first.
    LittleEndian,
}

/// A byte after each message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DelimiterFraming {
    /// Value of the byte; 10 is a newline.
    pub byte: u8,
    /// Largest message. A longer one ends the connection.
    #[serde(default = "one_megabyte")]
    pub maximum: Bytes,
}

impl MeterFraming {
    /// Largest message with its header; `None` if there are no messages or no limit.
    pub(super) const fn largest_message(&self) -> Option<u64> {
        Some(match self {
            Self::Stream | Self::IdleGap(_) => return None,
            // A header of 8 bytes, and a length of 16 bits.
            Self::DlmsWrapper => 8 + 65_535,
            // Start, length, and at most 253 bytes.
            Self::Iec104 => 255,
            Self::LengthPrefix(prefix) => prefix.maximum.get().saturating_add(prefix.width as u64),
            Self::LengthField(field) => field.maximum.get(),
            Self::Delimiter(delimiter) => delimiter.maximum.get(),
        })
    }
}

pub(super) fn check(key: &str, framing: &MeterFraming, found: &mut Vec<Diagnostic>) {
    let maximum = match framing {
        MeterFraming::LengthPrefix(prefix) => {
            if !matches!(prefix.width, 2 | 4) {
                found.push(Diagnostic::new(
                    format!("{key}.length_prefix.width"),
                    format!("expected 2 or 4, found {}", prefix.width),
                    "",
                ));
            }
            prefix.maximum
        }
        MeterFraming::LengthField(field) => {
            if !(1..=4).contains(&field.size) {
                found.push(Diagnostic::new(
                    format!("{key}.length_field.size"),
                    format!("expected 1 to 4 bytes, found {}", field.size),
                    "",
                ));
            }
            let header = u64::from(field.offset) + u64::from(field.size);
            if field.maximum.get() < header || header > u64::from(u16::MAX) {
                found.push(Diagnostic::new(
                    format!("{key}.length_field.maximum"),
                    format!(
                        "the length field ends after {header} bytes, and a message has at most {}",
                        field.maximum
                    ),
                    "decrease offset, or increase maximum",
                ));
            }
            field.maximum
        }
        MeterFraming::Delimiter(delimiter) => delimiter.maximum,
        MeterFraming::IdleGap(gap) if gap.is_zero() => {
            found.push(Diagnostic::new(key, "the gap has no length", "a usual value is \"20 ms\""));
            return;
        }
        _ => return,
    };
    if !(1..=u64::from(u32::MAX)).contains(&maximum.get()) {
        found.push(Diagnostic::new(key, "`maximum` is not between 1 B and 4 GiB", ""));
    }
}

const fn one_megabyte() -> Bytes {
    Bytes::new(1_000_000)
}
