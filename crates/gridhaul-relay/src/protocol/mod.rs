//! Format of the exchange between collector and head, and of both logs. All parsers limit every
//! length.
//!
//! * [`Record`]: an event of a meter's connection, or its data. [`Batch`]: consecutive records of a
//!   shard, with checksum; the same bytes are in the collector's log, on the network, and in the
//!   head's log.
//! * [`Frame`]: a message on the connection between collector and head.
//! * [`ProxyHeader`]: the PROXY protocol, version 2.

mod ack_number;
mod batch;
mod codec;
mod compression;
mod frame;
mod framing_progress;
#[cfg(test)]
mod log_versions;
mod loss;
mod proxy_header;
mod proxy_header_reader;
mod reception;
mod record;
#[cfg(test)]
mod tests;

pub use ack_number::AckNumber;
pub use batch::{BATCH_HEADER, Batch, BatchBuilder, PAYLOAD_MAX, batches};
pub use codec::DecodeError;
pub(crate) use codec::{Decoder, put_bytes, put_text, put_varint};
pub use compression::{compress, decompress};
pub use frame::{
    Close, DOWN_ENDED, DOWN_MAX, DOWN_WINDOW, FRAME_MAX, Frame, FrameReader, Hello,
    PROTOCOL_VERSION, Refusal, Welcome, write_batch,
};
#[cfg(feature = "daemon")]
pub(crate) use framing_progress::{read_progress, write_progress};
pub(crate) use loss::{LostRecords, RESTART_STEP, lost_before};
pub use proxy_header::{ProxyHeader, ProxyHeaderError};
pub use proxy_header_reader::ProxyHeaderReader;
pub use reception::{ClockState, Reception};
pub use record::{DATA_MAX, Identity, PreviousRecords, Record, ResetCause};
