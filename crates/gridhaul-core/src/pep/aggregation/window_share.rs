//! The share of an aggregator's buffer that each connection is offered as its receive window.

use gridhaul_scenario::units::BufferLimit;

/// Sizes of the messages that an aggregator receives, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct MessageSizes {
    /// Smallest message.
    pub min: u64,
    /// Largest message.
    pub max: u64,
}

/// The receive window in bytes that an aggregator offers to each of `connections` connections with
/// messages of these sizes, so that senders wait and no message is dropped.
///
/// A receiver should not shrink an offered window (RFC 9293, section 3.8.6). The buffer is
/// therefore divided evenly and in advance, and the window of a connection opens again only when
/// one of its own messages has left the buffer: occupied and offered space together never exceed
/// the limit, and no message is dropped.
///
/// This is impossible with more connections than the buffer has messages, since a connection with a
/// window of zero could send nothing at all. Each connection is then offered one message, and
/// messages that exceed the buffer are dropped.
#[must_use]
pub fn window_share(limit: BufferLimit, connections: u64, sizes: MessageSizes) -> u64 {
    let connections = connections.max(1);
    let share = match limit {
        BufferLimit::Messages(limit) => (u64::from(limit) / connections).saturating_mul(sizes.min),
        // Space is reserved for a whole message that begins within the window, so that the last
        // message may extend beyond the window.
        BufferLimit::Bytes(limit) => match limit.get() / connections {
            share if sizes.min == sizes.max => share - share % sizes.max.max(1),
            share => (share + 1).saturating_sub(sizes.max),
        },
    };
    share.max(sizes.max)
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::Bytes;

    use super::*;

    fn share(limit: BufferLimit, connections: u64, min: u64, max: u64) -> u64 {
        window_share(limit, connections, MessageSizes { min, max })
    }

    #[test]
    fn a_buffer_in_messages_has_a_number_of_the_smallest_messages_for_each_connection() {
        assert_eq!(share(BufferLimit::Messages(10), 3, 100, 250), 3 * 100);
    }

    #[test]
    fn a_buffer_in_bytes_has_whole_messages_for_each_connection() {
        let limit = BufferLimit::Bytes(Bytes::new(10_000));
        assert_eq!(share(limit, 3, 1_000, 1_000), 3_000, "of 3,333 bytes");
        // A message that begins with the last byte of the window extends 999 bytes beyond it.
        assert_eq!(share(limit, 3, 1, 1_000), 3_333 - 999);
        assert_eq!(share(limit, 0, 1_000, 1_000), 10_000);
    }

    #[test]
    fn each_connection_may_send_a_message() {
        assert_eq!(share(BufferLimit::Messages(2), 3, 100, 250), 250);
        assert_eq!(share(BufferLimit::Bytes(Bytes::new(100)), 10, 50, 60), 60);
    }
}
