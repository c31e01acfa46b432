//! Input that is not complete, output that is not sent, and messages that are not read.

use std::collections::VecDeque;

/// The queues of one end of a connection.
#[derive(Debug, Default)]
pub struct Queues {
    /// Bytes of the peer that do not form a whole frame yet.
    pub(crate) input: Vec<u8>,
    /// Bytes for the peer.
    pub(crate) output: Vec<u8>,
    /// Messages of the peer.
    pub(crate) messages: VecDeque<Vec<u8>>,
}

impl Queues {
    /// Forgets the bytes of an earlier connection; its messages stay.
    pub(crate) fn clear(&mut self) {
        self.input.clear();
        self.output.clear();
    }

    /// Takes frames off the input as long as `length` reports a whole one, and passes each to
    /// `handle`.
    ///
    /// `length` reads the start of the input and returns the bytes of the frame, or `None` if they
    /// are not known yet.
    pub(crate) fn poll_frame<E>(
        &mut self,
        length: impl FnOnce(&[u8]) -> Result<Option<usize>, E>,
    ) -> Result<Option<Vec<u8>>, E> {
        let Some(length) = length(&self.input)? else { return Ok(None) };
        if self.input.len() < length {
            return Ok(None);
        }
        let rest = self.input.split_off(length);
        Ok(Some(std::mem::replace(&mut self.input, rest)))
    }
}
