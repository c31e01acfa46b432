//! Ends of messages in the stream of a meter.
//!
//! The relay forwards all bytes, whether or not a message is complete: framing only marks where messages end. The
//! state of a meter's framing is a few bytes.

mod dlms_wrapper;
mod iec104;
mod length_field;
#[cfg(test)]
mod tests;

use gridhaul_core::pep::aggregation::{
    Delimiter, Framer, Framing, FramingError, LengthPrefix, PrefixProgress, WholeStream,
};
use thiserror::Error;

use super::codec::{DecodeError, Decoder, put_varint};

pub use dlms_wrapper::DlmsWrapper;
pub use iec104::Iec104;
pub use length_field::{LengthField, LengthFieldLayout};

/// Finds the ends of messages.
#[derive(Debug, Clone)]
pub enum MessageFraming {
    /// No messages: a stream of bytes.
    Stream,
    /// A message ends when no byte has arrived for a time, which the caller measures.
    IdleGap,
    /// A length field before each message.
    LengthPrefix(LengthPrefix),
    /// A length field in the header of each message.
    LengthField(LengthField),
    /// A byte after each message.
    Delimiter(Delimiter),
    /// The wrapper of DLMS/COSEM over TCP.
    DlmsWrapper(DlmsWrapper),
    /// APDUs of IEC 60870-5-104.
    Iec104(Iec104),
}

/// A stream that does not follow its framing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MalformedStream {
    /// A message is too long.
    #[error(transparent)]
    Length(#[from] FramingError),
    /// The length of a message is less than that of its header.
    #[error(
        "message length of {length} bytes is less than the {header} bytes up to the end of the length field"
    )]
    LengthBelowHeader {
        /// Length of the message.
        length: u64,
        /// Bytes up to the end of the length field.
        header: u64,
    },
    /// The version field of a DLMS wrapper is not 1.
    #[error("DLMS wrapper version {found}, expected 1")]
    DlmsVersion {
        /// Value of the field.
        found: u16,
    },
    /// An APDU of IEC 60870-5-104 does not begin with 0x68.
    #[error("APDU begins with 0x{found:02x}, expected 0x68")]
    Iec104Start {
        /// The first byte.
        found: u8,
    },
    /// The length of an APDU is not between 4 and 253.
    #[error("APDU length {found}, expected 4 to 253")]
    Iec104Length {
        /// Value of the field.
        found: u8,
    },
}

impl MessageFraming {
    /// Reads the next bytes of a stream, up to the end of the current message; see [`Framer::next_message_end`].
    ///
    /// # Errors
    /// The stream is malformed. No later end of a message can be found.
    pub fn next_message_end(&mut self, bytes: &[u8]) -> Result<Framing, MalformedStream> {
        Ok(match self {
            Self::Stream => WholeStream.next_message_end(bytes)?,
            Self::IdleGap => Framing::Incomplete,
            Self::LengthPrefix(framer) => framer.next_message_end(bytes)?,
            Self::LengthField(framer) => framer.next_message_end(bytes)?,
            Self::Delimiter(framer) => framer.next_message_end(bytes)?,
            Self::DlmsWrapper(framer) => framer.next_message_end(bytes)?,
            Self::Iec104(framer) => framer.next_message_end(bytes)?,
        })
    }
}

impl MessageFraming {
    /// Appends the state within the current message.
    pub(crate) fn write_progress(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Stream | Self::IdleGap => {}
            Self::LengthPrefix(framer) => match framer.progress() {
                PrefixProgress::Prefix { value, arrived } => {
                    bytes.push(arrived);
                    put_varint(bytes, value.into());
                }
                PrefixProgress::Body { missing } => {
                    bytes.push(BODY);
                    put_varint(bytes, missing.into());
                }
            },
            Self::LengthField(framer) => framer.write_progress(bytes),
            Self::Delimiter(framer) => put_varint(bytes, framer.arrived().into()),
            Self::DlmsWrapper(framer) => framer.write_progress(bytes),
            Self::Iec104(framer) => framer.write_progress(bytes),
        }
    }

    /// Continues within the message whose state [`Self::write_progress`] has written.
    pub(crate) fn resumed(self, decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let impossible = || DecodeError::Undefined("state of a message");
        let number = |decoder: &mut Decoder<'_>| {
            u32::try_from(decoder.varint()?).map_err(|_| DecodeError::TooLong("message"))
        };
        Ok(match self {
            Self::Stream => Self::Stream,
            Self::IdleGap => Self::IdleGap,
            Self::LengthPrefix(framer) => {
                let progress = match decoder.u8()? {
                    BODY => PrefixProgress::Body { missing: number(decoder)? },
                    arrived => PrefixProgress::Prefix { value: number(decoder)?, arrived },
                };
                Self::LengthPrefix(framer.resumed(progress).ok_or_else(impossible)?)
            }
            Self::LengthField(framer) => Self::LengthField(framer.resumed(decoder)?),
            Self::Delimiter(framer) => {
                Self::Delimiter(framer.resumed(number(decoder)?).ok_or_else(impossible)?)
            }
            Self::DlmsWrapper(framer) => Self::DlmsWrapper(framer.resumed(decoder)?),
            Self::Iec104(_) => Self::Iec104(Iec104::resumed(decoder)?),
        })
    }
}

/// Marks the state of a message whose header is complete, in place of the number of its bytes.
const BODY: u8 = u8::MAX;

/// A header of `N` bytes that arrives in pieces.
#[derive(Debug, Clone, Copy, Default)]
struct PartialHeader<const N: usize> {
    bytes: [u8; 8],
    arrived: u8,
}

impl<const N: usize> PartialHeader<N> {
    /// Takes bytes until the header is complete. Returns how many were taken, and the header.
    fn take(&mut self, bytes: &[u8]) -> (usize, Option<[u8; N]>) {
        let missing = N - usize::from(self.arrived);
        let taken = missing.min(bytes.len());
        let start = usize::from(self.arrived);
        self.bytes[start..start + taken].copy_from_slice(&bytes[..taken]);
        self.arrived += taken as u8;
        if usize::from(self.arrived) < N {
            return (taken, None);
        }
        self.arrived = 0;
        (taken, Some(self.bytes[..N].try_into().expect("N bytes")))
    }
}

/// Appends the state of a message with a header: the bytes of the header, or the number of bytes that are missing.
fn write_header_progress<const N: usize>(
    header: &PartialHeader<N>,
    missing: Option<u32>,
    bytes: &mut Vec<u8>,
) {
    match missing {
        Some(missing) => {
            bytes.push(BODY);
            put_varint(bytes, missing.into());
        }
        None => {
            bytes.push(header.arrived);
            bytes.extend_from_slice(&header.bytes[..usize::from(header.arrived)]);
        }
    }
}

/// Reads what [`write_header_progress`] has written. At most `maximum` bytes of a message can be missing.
fn read_header_progress<const N: usize>(
    decoder: &mut Decoder<'_>,
    maximum: u32,
) -> Result<(PartialHeader<N>, Option<u32>), DecodeError> {
    let mut header = PartialHeader::default();
    match decoder.u8()? {
        BODY => match u32::try_from(decoder.varint()?) {
            Ok(missing) if missing <= maximum => Ok((header, Some(missing))),
            _ => Err(DecodeError::TooLong("message")),
        },
        arrived if usize::from(arrived) < N => {
            let bytes = decoder.take(arrived.into())?;
            header.bytes[..bytes.len()].copy_from_slice(bytes);
            header.arrived = arrived;
            Ok((header, None))
        }
        _ => Err(DecodeError::Undefined("state of a message")),
    }
}

/// Counts the bytes of a message body.
fn body(missing: &mut u32, bytes: &[u8], read: usize) -> Framing {
    let rest = bytes.len() - read;
    if rest < *missing as usize {
        *missing -= rest as u32;
        return Framing::Incomplete;
    }
    let end = read + *missing as usize;
    *missing = 0;
    Framing::End(end)
}
