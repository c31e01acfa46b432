//! Proof that something is on stable storage.

/// A value that is durable: it survives a crash of the process and a power failure of the machine.
///
/// Only a log creates such a value, when fdatasync(2) has returned:
/// [`LogWriter::commit`](super::LogWriter::commit) and [`open`](super::open). Whatever confirms
/// data to a peer takes it as an argument, so that bytes which are merely appended cannot be
/// confirmed:
///
/// ```compile_fail,E0423
/// let end = gridhaul_relay::log::Durable(4_096_u64); // the field is private
/// ```
///
/// ```compile_fail,E0308
/// # use gridhaul_relay::log::{Folder, LogWriter};
/// # use gridhaul_relay::head::Head;
/// fn confirm(head: &mut Head, log: &mut LogWriter<Folder>, payload: &[u8]) {
///     let end = log.append(payload).unwrap();
///     head.handle_written(end); // appended, but not durable
/// }
/// ```
///
/// ```
/// # use gridhaul_relay::log::{Folder, LogWriter};
/// # use gridhaul_relay::head::Head;
/// fn confirm(head: &mut Head, log: &mut LogWriter<Folder>, payload: &[u8]) {
///     log.append(payload).unwrap();
///     head.handle_written(log.commit().unwrap());
/// }
/// ```
///
/// An acknowledgement cannot be made of a number, either:
///
/// ```compile_fail,E0308
/// use gridhaul_relay::protocol::Frame;
/// let frame = Frame::Ack { next: 7_u64 };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Durable<T>(T);

impl<T> Durable<T> {
    pub(super) const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value.
    pub const fn get(&self) -> &T {
        &self.0
    }

    /// A value whose durability follows from this one, such as the numbers of the records before a
    /// durable position.
    #[must_use]
    pub fn map<U>(&self, follows: impl FnOnce(&T) -> U) -> Durable<U> {
        Durable(follows(&self.0))
    }

    /// A value that a test takes for durable.
    #[cfg(test)]
    pub(crate) const fn assumed(value: T) -> Self {
        Self(value)
    }
}

impl Durable<u64> {
    /// The position.
    #[must_use]
    pub const fn position(self) -> u64 {
        self.0
    }
}

/// The entries of a log that are durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurableRange {
    /// Position of the first entry.
    pub start: u64,
    /// End of the last one.
    pub end: Durable<u64>,
}
