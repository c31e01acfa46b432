//! Framing: ends of messages in a stream of bytes.
//!
//! Framing only marks where messages end: a caller can forward all bytes, whether or not a message
//! is complete. It keeps its position in the current message, so that each byte is passed once and
//! a message may arrive in any number of pieces. This position is a few bytes, and a value
//! ([`FramingProgress`]) with which another process can continue.
//!
//! ```
//! use gridhaul_protocols::framing::{Framing, Iec104, MessageFraming};
//!
//! let mut framing = MessageFraming::Iec104(Iec104::default());
//! assert_eq!(framing.next_message_end(&[0x68, 4, 1]), Ok(Framing::Incomplete));
//! // The rest of an S frame, and the start of another frame.
//! assert_eq!(framing.next_message_end(&[0, 2, 0, 0x68]), Ok(Framing::End(3)));
//! ```

mod delimiter;
mod dlms_wrapper;
mod error;
mod iec104;
mod length_field;
mod length_prefix;
mod partial_header;
mod progress;
#[cfg(test)]
mod specification_tests;
#[cfg(test)]
mod tests;

pub use delimiter::Delimiter;
pub use dlms_wrapper::DlmsWrapper;
pub use error::FramingError;
pub use iec104::Iec104;
pub use length_field::{LengthField, LengthFieldLayout};
pub use length_prefix::{LengthPrefix, LengthWidth};
pub use progress::{FramingProgress, HeaderProgress, PrefixProgress};

/// Finds the ends of messages.
#[derive(Debug, Clone)]
pub enum MessageFraming {
    /// No messages: a stream of bytes. The bytes of each call are taken as one message, so that
    /// their division depends on how they arrive.
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

/// Result of one call of [`MessageFraming::next_message_end`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// The current message ends after this many of the bytes, at least 1. The rest was not read.
    End(usize),
    /// All bytes belong to the current message, which does not end in them.
    Incomplete,
}

/// Order of the bytes of a length field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// The most significant byte first (network byte order).
    BigEndian,
    /// The least significant byte first.
    LittleEndian,
}

impl ByteOrder {
    /// The value of a field with one more byte, of which `arrived` have been read.
    fn with_byte(self, value: u32, arrived: u16, byte: u8) -> u32 {
        match self {
            Self::BigEndian => value << 8 | u32::from(byte),
            Self::LittleEndian => value | u32::from(byte) << (8 * arrived),
        }
    }
}

impl MessageFraming {
    /// Reads the next bytes of the stream, up to the end of the current message at most.
    ///
    /// `bytes` begins where the previous call stopped: after the end of a message that was reported
    /// as [`Framing::End`], or after all bytes of a call that returned [`Framing::Incomplete`]. The
    /// result does not depend on how the stream is divided into calls, except with
    /// [`Self::Stream`].
    ///
    /// # Errors
    /// The stream is malformed. No later end of a message can be found: the caller ends the
    /// connection.
    pub fn next_message_end(&mut self, bytes: &[u8]) -> Result<Framing, FramingError> {
        match self {
            Self::Stream if bytes.is_empty() => Ok(Framing::Incomplete),
            Self::Stream => Ok(Framing::End(bytes.len())),
            Self::IdleGap => Ok(Framing::Incomplete),
            Self::LengthPrefix(framing) => framing.next_message_end(bytes),
            Self::LengthField(framing) => framing.next_message_end(bytes),
            Self::Delimiter(framing) => framing.next_message_end(bytes),
            Self::DlmsWrapper(framing) => framing.next_message_end(bytes),
            Self::Iec104(framing) => framing.next_message_end(bytes),
        }
    }

    /// The state within the current message.
    #[must_use]
    pub const fn progress(&self) -> FramingProgress {
        match self {
            Self::Stream | Self::IdleGap => FramingProgress::Stateless,
            Self::LengthPrefix(framing) => FramingProgress::LengthPrefix(framing.progress()),
            Self::LengthField(framing) => {
                let (arrived, number) = framing.progress();
                FramingProgress::LengthField { arrived, number }
            }
            Self::Delimiter(framing) => FramingProgress::Delimiter { arrived: framing.arrived() },
            Self::DlmsWrapper(framing) => FramingProgress::Header(framing.progress()),
            Self::Iec104(framing) => FramingProgress::Header(framing.progress()),
        }
    }

    /// Continues within a message; `None` if no message of this framing can have this state.
    #[must_use]
    pub fn resumed(self, progress: FramingProgress) -> Option<Self> {
        match (self, progress) {
            (framing @ (Self::Stream | Self::IdleGap), FramingProgress::Stateless) => Some(framing),
            (Self::LengthPrefix(framing), FramingProgress::LengthPrefix(progress)) => {
                framing.resumed(progress).map(Self::LengthPrefix)
            }
            (Self::LengthField(framing), FramingProgress::LengthField { arrived, number }) => {
                framing.resumed(arrived, number).map(Self::LengthField)
            }
            (Self::Delimiter(framing), FramingProgress::Delimiter { arrived }) => {
                framing.resumed(arrived).map(Self::Delimiter)
            }
            (Self::DlmsWrapper(framing), FramingProgress::Header(progress)) => {
                framing.resumed(progress).map(Self::DlmsWrapper)
            }
            (Self::Iec104(_), FramingProgress::Header(progress)) => {
                Iec104::resumed(progress).map(Self::Iec104)
            }
            _ => None,
        }
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
