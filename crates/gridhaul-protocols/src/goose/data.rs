//! Values of a data set: the type Data of MMS (ISO 9506-2).

use crate::iec61850::ber::{
    BerReader, boolean, integer, visible_string, write, write_integer, write_nested,
    write_visible_string,
};
use crate::iec61850::{FrameError, UtcTime};

/// Deepest nesting of structures. Real data sets have two levels; the limit bounds the recursion.
const DEEPEST: usize = 8;

/// Longest text of a value: VisibleString255 (IEC 61850-7-2).
const LONGEST_TEXT: usize = 255;

/// A value of a data set.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// Several values.
    Structure(Vec<Data>),
    /// A Boolean.
    Boolean(bool),
    /// Bits, such as the quality of a value: the number of unused bits of the last byte (0 to 7),
    /// and the bytes.
    BitString(u8, Vec<u8>),
    /// An integer with sign.
    Integer(i64),
    /// An integer without sign.
    Unsigned(u32),
    /// A 32-bit floating-point number.
    Float(f32),
    /// Bytes.
    OctetString(Vec<u8>),
    /// Text.
    VisibleString(String),
    /// A point in time.
    UtcTime(UtcTime),
}

/// First byte of a floating-point number: the width of its exponent. A 32-bit number has 8 bits.
const EXPONENT_WIDTH: u8 = 8;

impl Data {
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), FrameError> {
        self.write_at(out, 1)
    }

    fn write_at(&self, out: &mut Vec<u8>, depth: usize) -> Result<(), FrameError> {
        match self {
            Self::Structure(values) => {
                check_depth(depth)?;
                write_nested(out, 0xa2, |nested| {
                    values.iter().try_for_each(|value| value.write_at(nested, depth + 1))
                })?;
            }
            Self::Boolean(value) => write(out, 0x83, &[u8::from(*value)]),
            Self::BitString(unused, bytes) => {
                check_bits(*unused, bytes)?;
                write(out, 0x84, &[&[*unused][..], bytes].concat());
            }
            Self::Integer(value) => write_integer(out, 0x85, *value),
            Self::Unsigned(value) => write_integer(out, 0x86, i64::from(*value)),
            Self::Float(value) => {
                write(out, 0x87, &[&[EXPONENT_WIDTH][..], &value.to_be_bytes()].concat());
            }
            Self::OctetString(bytes) => write(out, 0x89, bytes),
            Self::VisibleString(text) => {
                write_visible_string(out, 0x8a, text, LONGEST_TEXT, "visible-string")?;
            }
            Self::UtcTime(time) => write(out, 0x91, &time.to_bytes()),
        }
        Ok(())
    }

    pub(super) fn parse(values: &mut BerReader<'_>) -> Result<Self, FrameError> {
        Self::parse_at(values, 1)
    }

    fn parse_at(values: &mut BerReader<'_>, depth: usize) -> Result<Self, FrameError> {
        let (tag, contents) = values.any("Data")?;
        Ok(match tag {
            0xa2 => {
                check_depth(depth)?;
                let mut nested = BerReader::new(contents);
                let mut values = Vec::new();
                while !nested.is_empty() {
                    values.push(Self::parse_at(&mut nested, depth + 1)?);
                }
                Self::Structure(values)
            }
            0x83 => Self::Boolean(boolean(contents, "boolean")?),
            0x84 => {
                let [unused, bytes @ ..] = contents else {
                    return Err(FrameError::value("bit-string", "expected at least one byte"));
                };
                check_bits(*unused, bytes)?;
                Self::BitString(*unused, bytes.to_vec())
            }
            0x85 => Self::Integer(integer(contents, "integer")?),
            0x86 => Self::Unsigned(crate::iec61850::ber::unsigned(contents, "unsigned")?),
            0x87 => match contents {
                [EXPONENT_WIDTH, a, b, c, d] => Self::Float(f32::from_be_bytes([*a, *b, *c, *d])),
                _ => {
                    let reason = "expected a 32-bit number with an exponent of 8 bits";
                    return Err(FrameError::value("floating-point", reason));
                }
            },
            0x89 => Self::OctetString(contents.to_vec()),
            0x8a => Self::VisibleString(visible_string(contents, LONGEST_TEXT, "visible-string")?),
            0x91 => {
                let error = FrameError::value("utc-time", "expected 8 bytes");
                Self::UtcTime(UtcTime::from_bytes(contents.try_into().map_err(|_| error)?))
            }
            _ => return Err(FrameError::value("Data", "the type of a value is not supported")),
        })
    }
}

const fn check_depth(depth: usize) -> Result<(), FrameError> {
    if depth > DEEPEST {
        return Err(FrameError::value("structure", "nested more than 8 levels deep"));
    }
    Ok(())
}

/// X.690, section 8.6.2: 0 to 7 unused bits, and none without a byte.
const fn check_bits(unused: u8, bytes: &[u8]) -> Result<(), FrameError> {
    if unused > 7 || bytes.is_empty() && unused > 0 {
        return Err(FrameError::value("bit-string", "expected 0 to 7 unused bits"));
    }
    Ok(())
}
