//! No framing: a stream without message boundaries.

use super::{Framer, Framing, FramingError};

/// Forwards bytes as they arrive: the bytes accepted by one offer are forwarded as one message.
///
/// The order of the bytes is kept, and their division into messages depends on how they arrive.
/// Bytes of different connections may therefore alternate anywhere on an upstream connection; the
/// receiver can separate them only if the upstream protocol names the connection of each message.
#[derive(Debug, Clone, Copy, Default)]
pub struct WholeStream;

impl Framer for WholeStream {
    fn next_message_end(&mut self, bytes: &[u8]) -> Result<Framing, FramingError> {
        Ok(if bytes.is_empty() { Framing::Incomplete } else { Framing::End(bytes.len()) })
    }

    /// No message is ever incomplete, so that one byte of buffer space suffices.
    fn largest_message(&self) -> u64 {
        1
    }
}
