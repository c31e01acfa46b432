//! Frames of the control channel: a preface with the version, then JSON documents, each after its
//! length.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Version of the control channel. Both ends must have the same.
const VERSION: u8 = 2;

/// Longest frame of an authenticated peer, in bytes.
pub const FRAME_MAX: usize = 64 * 1024;

/// Longest frame of a peer that has not presented its token yet.
pub const FRAME_MAX_UNAUTHENTICATED: usize = 1024;

/// First bytes of either end, before the version.
const NAME: &[u8; 7] = b"ghagent";

/// Bytes of the preface: the name and the version.
const PREFACE: usize = NAME.len() + 1;

/// Bytes of a length.
const LENGTH: usize = 4;

/// Why the bytes of a peer are not frames.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The peer is another program.
    #[error("the other end is not a gridhaul agent or its controller; check address and port")]
    OtherProgram,
    /// The peer has another version of the control channel.
    #[error(
        "the other end has version {0} of the control channel, this program has version \
         {VERSION}\n  help: install the same \
         version of gridhaul on both machines"
    )]
    OtherVersion(u8),
    /// A frame is longer than permitted.
    #[error("a frame of {length} B is longer than {max} B, the limit")]
    TooLong {
        /// Length that the peer announced.
        length: usize,
        /// Limit.
        max: usize,
    },
    /// A frame is no message of the control channel.
    #[error("a frame is not a message of the control channel: {0}")]
    Invalid(String),
}

/// Reads frames from pieces of any length. Memory is limited by the longest frame and the longest
/// piece.
#[derive(Debug)]
pub struct FrameReader {
    buffer: Vec<u8>,
    has_preface: bool,
    max: usize,
}

impl FrameReader {
    /// A reader of a peer whose frames have at most `max` bytes.
    #[must_use]
    pub const fn new(max: usize) -> Self {
        Self { buffer: Vec::new(), has_preface: false, max }
    }

    /// Changes the limit, such as after authentication.
    pub const fn set_max(&mut self, max: usize) {
        self.max = max;
    }

    /// Handles bytes of the peer.
    pub fn handle_input(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete message. To be called after each input until it returns `None`.
    ///
    /// # Errors
    /// The bytes violate the protocol; the connection must be closed.
    pub fn poll_message<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        if !self.has_preface && !self.read_preface()? {
            return Ok(None);
        }
        let Some((length, rest)) = self.buffer.split_first_chunk::<LENGTH>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length > self.max {
            return Err(FrameError::TooLong { length, max: self.max });
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let message =
            serde_json::from_slice(body).map_err(|error| FrameError::Invalid(error.to_string()))?;
        self.buffer.drain(..LENGTH + length);
        Ok(Some(message))
    }

    fn read_preface(&mut self) -> Result<bool, FrameError> {
        let known = self.buffer.len().min(NAME.len());
        if self.buffer[..known] != NAME[..known] {
            return Err(FrameError::OtherProgram);
        }
        let Some(&version) = self.buffer.get(NAME.len()) else { return Ok(false) };
        if version != VERSION {
            return Err(FrameError::OtherVersion(version));
        }
        self.buffer.drain(..PREFACE);
        self.has_preface = true;
        Ok(true)
    }
}

/// Writes the preface, the first bytes of either end.
pub fn write_preface(output: &mut Vec<u8>) {
    output.extend_from_slice(NAME);
    output.push(VERSION);
}

/// Writes a message as a frame.
///
/// # Panics
/// The message cannot be represented as JSON, or is longer than [`FRAME_MAX`]: a defect of the
/// caller.
pub fn write_message(message: &impl Serialize, output: &mut Vec<u8>) {
    let body = serde_json::to_vec(message).expect("messages have only strings as keys");
    assert!(body.len() <= FRAME_MAX, "a message of {} B", body.len());
    output.extend_from_slice(&(body.len() as u32).to_be_bytes());
    output.extend_from_slice(&body);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8], max: usize) -> Result<Vec<String>, FrameError> {
        let mut reader = FrameReader::new(max);
        let mut found = Vec::new();
        for piece in bytes.chunks(3) {
            reader.handle_input(piece);
            while let Some(message) = reader.poll_message()? {
                found.push(message);
            }
        }
        Ok(found)
    }

    #[test]
    fn messages_are_read_from_pieces() {
        let mut bytes = Vec::new();
        write_preface(&mut bytes);
        write_message(&"first", &mut bytes);
        write_message(&"second", &mut bytes);
        assert_eq!(read(&bytes, 100).unwrap(), ["first", "second"]);
        assert_eq!(read(&bytes[..bytes.len() - 1], 100).unwrap(), ["first"]);
        assert_eq!(read(&bytes, 7), Err(FrameError::TooLong { length: 8, max: 7 }));
    }

    #[test]
    fn another_program_and_another_version_are_told_apart() {
        assert_eq!(read(b"GET / HTTP/1.1\r\n", 100), Err(FrameError::OtherProgram));
        assert_eq!(read(b"ghagent\x01\0\0\0\x01", 100), Err(FrameError::OtherVersion(1)));
        let error = FrameError::OtherVersion(1).to_string();
        assert!(error.contains("version 1") && error.contains("help: install"), "{error}");
        assert!(matches!(read(b"ghagent\x02\0\0\0\x01{", 100), Err(FrameError::Invalid(_))));
    }

    proptest! {
        #[test]
        fn a_length_is_refused_before_its_bytes_arrive(length in 1_025_u32.., rest: Vec<u8>) {
            let mut bytes = Vec::new();
            write_preface(&mut bytes);
            bytes.extend(length.to_be_bytes());
            bytes.extend(rest);
            let length = length as usize;
            prop_assert_eq!(read(&bytes, 1_024), Err(FrameError::TooLong { length, max: 1_024 }));
        }
    }
}
