//! Frames: messages on the connection between collector and head. A frame is its kind (1 byte), the
//! length of its body (4 bytes, little-endian), and the body.

use super::ack_number::AckNumber;
use super::batch::{BATCH_HEADER, PAYLOAD_MAX};
use super::codec::{DecodeError, Decoder, put_bytes, put_text, put_varint};
use super::record::ResetCause;

/// Version of the protocol that a collector speaks. A head answers in the version of the collector,
/// if it is this one or `OLDEST_VERSION`.
pub const PROTOCOL_VERSION: u16 = 3;

/// Oldest version of the protocol that is read.
const OLDEST_VERSION: u16 = 2;

/// Largest number of bytes for a meter in a frame.
pub const DOWN_MAX: usize = 64 * 1024;

/// Largest length of the body of a frame.
pub const FRAME_MAX: usize = BATCH_HEADER + PAYLOAD_MAX;

/// Largest length of the name of a collector, and of the text of a refusal.
const TEXT_MAX: usize = 255;

const HEADER: usize = 5;

/// Offset in [`Frame::DownAck`] of a meter that does not exist any more, or whose [`Frame::Close`]
/// was received.
pub const DOWN_ENDED: u64 = u64::MAX;

/// Largest number of bytes that the head sends to a meter before [`Frame::DownAck`] confirms them.
pub const DOWN_WINDOW: u64 = 16 * 1024;

/// A frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// The collector introduces itself; the first frame of a connection.
    Hello(Hello<'a>),
    /// The head answers [`Frame::Hello`].
    Welcome(Welcome),
    /// The collector's first batch begins with this sequence number. A number other than
    /// [`Welcome::next`] states that records were lost by damage of the collector's log.
    Resume {
        /// Sequence number of the next record.
        next: u64,
    },
    /// A batch of records, for [`Batch::read`](super::Batch::read).
    Batch(&'a [u8]),
    /// A batch in compressed form, for [`decompress`](super::decompress); only if both ends have
    /// agreed.
    Compressed(&'a [u8]),
    /// All records before this sequence number are durable at the head.
    Ack {
        /// Sequence number of the first record that is not durable.
        next: AckNumber,
    },
    /// The collector may send so many bytes of batches on this connection, counted from its
    /// beginning.
    Credit {
        /// Number of bytes.
        limit: u64,
    },
    /// Data of the server for a meter.
    Down {
        /// Number of the meter.
        meter: u64,
        /// Position of the first byte in the server's stream.
        offset: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// The collector has passed so many bytes of the server's stream to the meter's socket.
    DownAck {
        /// Number of the meter.
        meter: u64,
        /// Number of bytes; [`DOWN_ENDED`] if the meter accepts nothing more.
        offset: u64,
    },
    /// The server has closed or reset its connection.
    Close {
        /// Number of the meter.
        meter: u64,
        /// How.
        close: Close,
    },
    /// The head refuses the connection, and closes it.
    Refused(Refusal<'a>),
    /// Requests an answer, to detect a broken connection.
    Ping,
    /// Answers [`Frame::Ping`].
    Pong,
}

/// The first frame of a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello<'a> {
    /// Version of the protocol.
    pub version: u16,
    /// Name of the collector.
    pub collector: &'a str,
    /// Identifies the collector's log.
    pub epoch: u64,
    /// Shard whose records this connection carries.
    pub shard: u16,
    /// Number of shards.
    pub shards: u16,
    /// Sequence number of the oldest record that the collector has.
    pub oldest: u64,
    /// Sequence number after the newest record that the collector may send.
    pub next: u64,
    /// Whether the collector waits for the data of servers before it answers FIN of a meter.
    pub replies: bool,
    /// Whether the collector wants to compress batches.
    pub compression: bool,
}

/// The answer to [`Hello`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Welcome {
    /// Version of the protocol: that of [`Hello`].
    pub version: u16,
    /// Identifies this run of the head: server connections do not outlive it.
    pub instance: u64,
    /// Sequence number of the first record that is not durable at the head.
    pub next: AckNumber,
    /// Bytes of batches that may be sent. Compressed batches count with the length that they have
    /// before compression.
    pub credit: u64,
    /// Whether the head accepts compressed batches.
    pub compression: bool,
}

/// How a server has ended its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// FIN after so many bytes.
    Fin {
        /// Length of the server's stream.
        offset: u64,
    },
    /// RST.
    Reset {
        /// Why.
        cause: ResetCause,
    },
}

/// Why a head refuses a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// Explanation for the log of the collector.
    pub reason: &'a str,
}

const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const RESUME: u8 = 3;
const BATCH: u8 = 4;
const ACK: u8 = 5;
const CREDIT: u8 = 6;
const DOWN: u8 = 7;
const DOWN_ACK: u8 = 8;
const CLOSE: u8 = 9;
const REFUSED: u8 = 10;
const PING: u8 = 11;
const PONG: u8 = 12;
const COMPRESSED: u8 = 13;

/// Appends a batch as a frame.
pub fn write_batch(bytes: &mut Vec<u8>, batch: &[u8]) {
    Frame::Batch(batch).write(bytes);
}

impl<'a> Frame<'a> {
    /// Appends the frame to `bytes`.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.extend_from_slice(&[self.kind(), 0, 0, 0, 0]);
        match *self {
            Self::Hello(hello) => {
                bytes.extend_from_slice(&hello.version.to_le_bytes());
                put_text(bytes, hello.collector, TEXT_MAX);
                bytes.extend_from_slice(&hello.epoch.to_le_bytes());
                bytes.extend_from_slice(&hello.shard.to_le_bytes());
                bytes.extend_from_slice(&hello.shards.to_le_bytes());
                put_varint(bytes, hello.oldest);
                put_varint(bytes, hello.next);
                bytes.push(u8::from(hello.replies));
                bytes.push(u8::from(hello.compression));
            }
            Self::Welcome(welcome) => {
                bytes.extend_from_slice(&welcome.version.to_le_bytes());
                bytes.extend_from_slice(&welcome.instance.to_le_bytes());
                put_varint(bytes, welcome.next.get());
                put_varint(bytes, welcome.credit);
                bytes.push(u8::from(welcome.compression));
            }
            Self::Ack { next } => put_varint(bytes, next.get()),
            Self::Resume { next: number } | Self::Credit { limit: number } => {
                put_varint(bytes, number);
            }
            Self::Batch(batch) | Self::Compressed(batch) => bytes.extend_from_slice(batch),
            Self::Down { meter, offset, bytes: data } => {
                put_varint(bytes, meter);
                put_varint(bytes, offset);
                put_bytes(bytes, data);
            }
            Self::DownAck { meter, offset } => {
                put_varint(bytes, meter);
                put_varint(bytes, offset);
            }
            Self::Close { meter, close } => {
                put_varint(bytes, meter);
                match close {
                    Close::Fin { offset } => {
                        bytes.push(0);
                        put_varint(bytes, offset);
                    }
                    Close::Reset { cause } => bytes.push(cause as u8),
                }
            }
            Self::Refused(refusal) => put_text(bytes, refusal.reason, TEXT_MAX),
            Self::Ping | Self::Pong => {}
        }
        let length = (bytes.len() - start - HEADER) as u32;
        bytes[start + 1..start + HEADER].copy_from_slice(&length.to_le_bytes());
    }

    const fn kind(&self) -> u8 {
        match self {
            Self::Hello(_) => HELLO,
            Self::Welcome(_) => WELCOME,
            Self::Resume { .. } => RESUME,
            Self::Batch(_) => BATCH,
            Self::Compressed(_) => COMPRESSED,
            Self::Ack { .. } => ACK,
            Self::Credit { .. } => CREDIT,
            Self::Down { .. } => DOWN,
            Self::DownAck { .. } => DOWN_ACK,
            Self::Close { .. } => CLOSE,
            Self::Refused(_) => REFUSED,
            Self::Ping => PING,
            Self::Pong => PONG,
        }
    }

    fn read(kind: u8, body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(body, "frame");
        let frame = match kind {
            BATCH => return Ok(Self::Batch(body)),
            COMPRESSED => return Ok(Self::Compressed(body)),
            HELLO => {
                let version = version(&mut decoder)?;
                Self::Hello(Hello {
                    version,
                    collector: decoder.text(TEXT_MAX)?,
                    epoch: decoder.u64()?,
                    shard: decoder.u16()?,
                    shards: decoder.u16()?,
                    oldest: decoder.varint()?,
                    next: decoder.varint()?,
                    replies: decoder.u8()? != 0,
                    compression: decoder.u8()? != 0,
                })
            }
            WELCOME => {
                let version = version(&mut decoder)?;
                let instance = decoder.u64()?;
                Self::Welcome(Welcome {
                    version,
                    instance,
                    next: AckNumber::read(&mut decoder)?,
                    credit: decoder.varint()?,
                    compression: decoder.u8()? != 0,
                })
            }
            RESUME => Self::Resume { next: decoder.varint()? },
            ACK => Self::Ack { next: AckNumber::read(&mut decoder)? },
            CREDIT => Self::Credit { limit: decoder.varint()? },
            DOWN => Self::Down {
                meter: decoder.varint()?,
                offset: decoder.varint()?,
                bytes: decoder.bytes(DOWN_MAX)?,
            },
            DOWN_ACK => Self::DownAck { meter: decoder.varint()?, offset: decoder.varint()? },
            CLOSE => Self::Close {
                meter: decoder.varint()?,
                close: match decoder.u8()? {
                    0 => Close::Fin { offset: decoder.varint()? },
                    cause => Close::Reset { cause: ResetCause::read(cause)? },
                },
            },
            REFUSED => Self::Refused(Refusal { reason: decoder.text(TEXT_MAX)? }),
            PING => Self::Ping,
            PONG => Self::Pong,
            _ => return Err(DecodeError::Undefined("kind of a frame")),
        };
        decoder.end()?;
        Ok(frame)
    }
}

fn version(decoder: &mut Decoder<'_>) -> Result<u16, DecodeError> {
    let version = decoder.u16()?;
    let is_known = (OLDEST_VERSION..=PROTOCOL_VERSION).contains(&version);
    if is_known { Ok(version) } else { Err(DecodeError::Undefined("protocol version")) }
}

/// Collects the bytes of a connection and returns its frames.
#[derive(Debug, Default)]
pub struct FrameReader {
    bytes: Vec<u8>,
    /// Bytes of frames that were returned.
    read: usize,
}

impl FrameReader {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.read == self.bytes.len() {
            self.bytes.clear();
            // An idle connection holds no memory.
            self.bytes.shrink_to(KEPT_CAPACITY);
        } else {
            self.bytes.drain(..self.read);
        }
        self.read = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete frame.
    ///
    /// # Errors
    /// The bytes are not a frame. The connection must be closed.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, DecodeError> {
        let rest = &self.bytes[self.read..];
        let Some(header) = rest.get(..HEADER) else { return Ok(None) };
        let length = u32::from_le_bytes(header[1..].try_into().expect("four bytes")) as usize;
        // The length is checked before the body arrives, which the reader would have to collect.
        let is_batch = matches!(header[0], BATCH | COMPRESSED);
        let limit = if is_batch { FRAME_MAX } else { OTHER_MAX };
        if length > limit {
            return Err(DecodeError::TooLong("frame"));
        }
        let kind = header[0];
        if rest.len() < HEADER + length {
            return Ok(None);
        }
        let start = self.read + HEADER;
        self.read = start + length;
        Frame::read(kind, &self.bytes[start..start + length]).map(Some)
    }
}

/// Largest body of a frame other than a batch.
const OTHER_MAX: usize = DOWN_MAX + 64;

/// Capacity of a reader that is kept when all frames were read.
const KEPT_CAPACITY: usize = 4 * 1024;
