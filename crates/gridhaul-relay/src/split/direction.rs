//! One direction of a session: the stream from one leg to the other.

/// Reads in sequence that filled the buffer, after which a direction uses a pipe.
const BULK_AFTER: u8 = 4;

/// Transfers in sequence that moved little, after which a direction with a pipe returns to the
/// shared buffer.
const SMALL_AFTER: u8 = 32;

/// State of a direction. A stream ends with FIN only after all its bytes were written to the other
/// leg (RFC 9293, section 3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Direction {
    transferred: u64,
    pending: u32,
    is_ended: bool,
    is_fin_sent: bool,
    full_reads: u8,
    small_reads: u8,
}

impl Direction {
    /// Bytes that were written to the other leg.
    #[must_use]
    pub const fn transferred(&self) -> u64 {
        self.transferred
    }

    /// Bytes that were read and not yet written.
    #[must_use]
    pub const fn pending(&self) -> u32 {
        self.pending
    }

    /// Whether the source has closed the stream.
    #[must_use]
    pub const fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Whether FIN was forwarded: nothing follows.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.is_fin_sent
    }

    /// Whether the source may have more data.
    #[must_use]
    pub const fn may_read(&self) -> bool {
        !self.is_ended
    }

    /// Whether FIN must be forwarded now.
    #[must_use]
    pub const fn must_send_fin(&self) -> bool {
        self.is_ended && self.pending == 0 && !self.is_fin_sent
    }

    /// Whether the traffic is bulk data, for which a pipe costs less than copying.
    #[must_use]
    pub const fn is_bulk(&self) -> bool {
        self.full_reads >= BULK_AFTER
    }

    /// `length` bytes were read, at most `capacity`.
    pub const fn handle_read(&mut self, length: u32, capacity: u32) {
        self.pending += length;
        if length >= capacity / 2 {
            self.small_reads = 0;
            if length == capacity {
                self.full_reads = self.full_reads.saturating_add(1);
            }
            return;
        }
        self.small_reads = self.small_reads.saturating_add(1);
        if !self.is_bulk() || self.small_reads >= SMALL_AFTER {
            self.full_reads = 0;
        }
    }

    /// No data has moved for some time: the next data counts as small until it fills buffers again.
    pub const fn handle_pause(&mut self) {
        self.full_reads = 0;
    }

    /// `length` bytes of the pending ones were written.
    pub const fn handle_written(&mut self, length: u32) {
        self.pending -= length;
        self.transferred += length as u64;
    }

    /// The source has closed the stream.
    pub const fn handle_end(&mut self) {
        self.is_ended = true;
    }

    /// FIN was forwarded.
    pub const fn handle_fin_sent(&mut self) {
        self.is_fin_sent = true;
    }
}
