//! AMQP 0-9-1: the methods `basic.publish` and `basic.deliver`, each with content header and body.

/// Names in the methods, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    /// Exchange. VILLASnode counts the terminating NUL.
    pub exchange: u64,
    /// Routing key. VILLASnode counts the terminating NUL.
    pub routing_key: u64,
    /// Consumer tag: RabbitMQ assigns `amq.ctag-` and 22 characters if the client sends none.
    pub consumer_tag: u64,
}

/// Type, channel and size before each frame's contents, and the end octet after them (AMQP 0-9-1,
/// section 4.2.3).
const FRAME: u64 = 1 + 2 + 4 + 1;

/// Content header without properties: class, weight, body size, property flags (AMQP 0-9-1, section
/// 4.2.6.1).
const CONTENT_HEADER: u64 = 2 + 2 + 8 + 2;

/// Class and method identifier (AMQP 0-9-1, section 4.2.4).
const METHOD: u64 = 2 + 2;

/// Bytes of a short string: its length and its text (AMQP 0-9-1, section 4.2.5.3).
const fn short_string(text: u64) -> u64 {
    1 + text
}

impl Names {
    /// Bytes that a published message has besides its payload: frames of method, content header and
    /// one body. A payload longer than the negotiated frame size (RabbitMQ: 131,072 bytes) takes
    /// more body frames.
    #[must_use]
    pub const fn publish_overhead(&self) -> u64 {
        // Reserved short, exchange, routing key, bits mandatory and immediate (AMQP 0-9-1, section
        // 1.8.3.7 of the reference).
        let method = METHOD + 2 + short_string(self.exchange) + short_string(self.routing_key) + 1;
        3 * FRAME + method + CONTENT_HEADER
    }

    /// Bytes that a delivered message has besides its payload.
    #[must_use]
    pub const fn deliver_overhead(&self) -> u64 {
        // Consumer tag, delivery tag, bit redelivered, exchange, routing key (section 1.8.3.9 of
        // the reference).
        let names = short_string(self.exchange) + short_string(self.routing_key);
        let method = METHOD + short_string(self.consumer_tag) + 8 + 1 + names;
        3 * FRAME + method + CONTENT_HEADER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, contents: &[u8]) -> Vec<u8> {
        let mut frame = vec![kind, 0, 1];
        frame.extend((contents.len() as u32).to_be_bytes());
        frame.extend(contents);
        frame.push(0xce);
        frame
    }

    fn short(text: &str) -> Vec<u8> {
        [&[text.len() as u8][..], text.as_bytes()].concat()
    }

    /// Frames of a message without properties, byte by byte.
    fn message(method: &[u8], payload: usize) -> Vec<u8> {
        let mut header = vec![0, 60, 0, 0];
        header.extend((payload as u64).to_be_bytes());
        header.extend([0, 0]);
        [frame(1, method), frame(2, &header), frame(3, &vec![0; payload])].concat()
    }

    #[test]
    fn the_formulas_are_the_lengths_of_messages() {
        let (exchange, key, tag) = ("mytestexchange\0", "abc\0", "amq.ctag-0123456789012345678901");
        let names = Names { exchange: 15, routing_key: 4, consumer_tag: 31 };
        let publish = [&[0, 60, 0, 40, 0, 0][..], &short(exchange), &short(key), &[0]].concat();
        assert_eq!(names.publish_overhead() + 296, message(&publish, 296).len() as u64);
        let deliver =
            [&[0, 60, 0, 60][..], &short(tag), &[0; 9], &short(exchange), &short(key)].concat();
        assert_eq!(names.deliver_overhead() + 296, message(&deliver, 296).len() as u64);
        assert_eq!((names.publish_overhead(), names.deliver_overhead()), (66, 104));
    }
}
