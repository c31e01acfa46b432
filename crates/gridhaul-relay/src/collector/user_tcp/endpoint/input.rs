//! Data of the peer: reading it, and confirming that it is stored.

use gridhaul_scenario::units::Instant;

use super::Endpoint;

/// Result of reading from a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadResult {
    /// So many bytes were read.
    Data(usize),
    /// There is nothing to read now.
    Nothing,
    /// The peer has closed its direction, and all data was read.
    End,
    /// The connection has failed, and all data was read.
    Failed,
}

impl Endpoint {
    /// Reads data of the peer, which the application confirms when it is stored.
    pub(in crate::collector::user_tcp) fn read(&mut self, buffer: &mut [u8]) -> ReadResult {
        let available = self.unread();
        let length = available.min(buffer.len() as u64) as usize;
        if length == 0 {
            return self.read_end(available);
        }
        let seq = self.tcp.sequence_of(self.read);
        let Some(slices) = self.input.read(seq, length) else {
            debug_assert!(false, "all data in order is in the buffer");
            self.tcp.reset();
            return ReadResult::Failed;
        };
        let mut filled = 0;
        for slice in slices {
            buffer[filled..filled + slice.len()].copy_from_slice(slice);
            filled += slice.len();
        }
        self.read += length as u64;
        self.input.release_to(seq.wrapping_add(length as u32));
        ReadResult::Data(length)
    }

    /// Bytes that can be read.
    pub(in crate::collector::user_tcp) fn unread(&self) -> u64 {
        // FIN in the place of a byte that has arrived, of a peer that contradicts itself, ends the
        // stream before it.
        self.tcp.receiver().delivered().saturating_sub(self.read)
    }

    /// Bytes that have arrived in order and are not acknowledged.
    pub(in crate::collector::user_tcp) fn withheld(&self) -> u64 {
        self.tcp.receiver().delivered() - self.tcp.acknowledged_payload()
    }

    /// The application has stored the stream up to this position.
    pub(in crate::collector::user_tcp) fn confirm(&mut self, position: u64) {
        debug_assert!(position <= self.read, "only bytes that were read can be stored");
        self.stored = self.stored.max(position.min(self.read));
    }

    /// The application has stored the whole stream and its end.
    pub(in crate::collector::user_tcp) fn confirm_end(&mut self) {
        if self.unread() == 0 && self.tcp.receiver().finished() {
            self.stored = self.read;
            self.is_end_stored = true;
        }
    }

    /// Acknowledges what is stored. Returns when the oldest of these bytes has arrived.
    pub(in crate::collector::user_tcp) fn acknowledge(&mut self, now: Instant) -> Option<Instant> {
        let new = self.stored.saturating_sub(self.tcp.acknowledged_payload());
        self.tcp.confirm(new);
        if self.is_end_stored && self.tcp.unconfirmed() == 1 {
            self.tcp.confirm(1);
        }
        let since = self.unconfirmed_since.filter(|_| new > 0);
        if self.tcp.unconfirmed() == 0 {
            self.unconfirmed_since = None;
        } else if new > 0 {
            // The rest has arrived not later than the last byte.
            self.unconfirmed_since = Some(self.arrived_at.min(now));
        }
        since
    }

    /// Bytes of the peer's stream that are acknowledged, or will be by the next segment.
    pub(in crate::collector::user_tcp) fn acknowledged(&self) -> u64 {
        self.tcp.acknowledged_payload()
    }

    /// Result of reading without data.
    fn read_end(&self, available: u64) -> ReadResult {
        if available > 0 {
            ReadResult::Nothing
        } else if self.has_failed() {
            ReadResult::Failed
        } else if self.tcp.receiver().finished() {
            ReadResult::End
        } else {
            ReadResult::Nothing
        }
    }
}
