//! Ends of messages in the stream of a meter.
//!
//! The relay forwards all bytes, whether or not a message is complete: framing only marks where messages end. The
//! state of a meter's framing is a few bytes.

mod dlms_wrapper;
mod iec104;

use gridhaul_core::pep::aggregation::{
    Delimiter, Framer, Framing, FramingError, LengthPrefix, WholeStream,
};
use thiserror::Error;

pub use dlms_wrapper::DlmsWrapper;
pub use iec104::Iec104;

/// Finds the ends of messages.
#[derive(Debug, Clone)]
pub enum MessageFraming {
    /// No messages: a stream of bytes.
    Stream,
    /// A message ends when no byte has arrived for a time, which the caller measures.
    IdleGap,
    /// A length field before each message.
    LengthPrefix(LengthPrefix),
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
            Self::Delimiter(framer) => framer.next_message_end(bytes)?,
            Self::DlmsWrapper(framer) => framer.next_message_end(bytes)?,
            Self::Iec104(framer) => framer.next_message_end(bytes)?,
        })
    }
}

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
