//! The record log: an append-only sequence of entries in segment files, which survives crashes of
//! the process and power failures of the machine.
//!
//! * [`open`] verifies a log, drops a torn tail, sets damaged regions aside, and returns a
//!   [`LogWriter`].
//! * [`LogWriter`] appends entries, makes them durable (group commit), begins new segments, and
//!   removes old ones.
//! * [`LogReader`] reads entries in order while the log is written.
//! * [`verify`] reports the state of a log without changing it.
//!
//! Payloads of entries are opaque here; `protocol` defines their content. File operations go
//! through [`Storage`], so that tests can replace the disk by a model that loses power.

mod durable;
mod error;
mod extent;
mod findings;
mod folder;
mod format;
mod group;
mod reader;
mod recovery;
mod rescue;
mod scan;
mod storage;
#[cfg(test)]
pub(crate) mod tests;
mod writer;

pub use durable::{Durable, DurableRange};
pub use error::LogError;
#[cfg(feature = "daemon")]
pub(crate) use error::disk_remedy;
pub use findings::{Damage, DamageCause, Findings};
pub use folder::Folder;
pub(crate) use format::SEGMENT_FULL;
pub use format::{FormatVersion, PAYLOAD_MAX, SNAPSHOT_MAX, VERSIONS};
#[cfg(test)]
pub(crate) use format::{SEGMENT_HEADER, VERSION};
pub use group::Group;
pub use reader::{Entry, LogReader, Lost};
pub use recovery::{Opened, open};
pub use scan::{verify, verify_segment};
pub use storage::{Storage, StorageFile};
pub use writer::LogWriter;
