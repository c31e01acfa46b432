//! MQTT 3.1.1 and 5.0 (OASIS), packet PUBLISH.

/// Version and quality of service of a PUBLISH packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publish {
    /// Bytes of the topic name.
    pub topic: u64,
    /// Version 5.0, without properties; otherwise 3.1.1.
    pub version_5: bool,
    /// QoS 1 or 2, whose packets have an identifier.
    pub identified: bool,
}

impl Publish {
    /// Bytes that the packet has besides the payload: fixed header, topic name, identifier and
    /// properties.
    #[must_use]
    pub fn overhead(&self, payload: u64) -> u64 {
        // Topic name: length of 2 bytes and text (MQTT 3.1.1, section 1.5.3).
        let topic = 2 + self.topic;
        // Packet identifier: 2 bytes, not with QoS 0 (MQTT 3.1.1, section 2.3.1).
        let identifier = if self.identified { 2 } else { 0 };
        // An empty property list: its length 0 in one byte (MQTT 5.0, section 2.2.2.1).
        let properties = u64::from(self.version_5);
        let variable = topic + identifier + properties;
        // Fixed header: packet type and flags in one byte, and the remaining length (MQTT 3.1.1,
        // section 2.2).
        1 + length_bytes(variable + payload) + variable
    }
}

/// Bytes of the field Remaining Length: 7 bits in each (MQTT 3.1.1, section 2.2.3).
const fn length_bytes(remaining: u64) -> u64 {
    match remaining {
        0..=127 => 1,
        128..=16_383 => 2,
        16_384..=2_097_151 => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A PUBLISH packet of MQTT 3.1.1 with QoS 0, byte by byte.
    fn packet(topic: &str, payload: usize) -> Vec<u8> {
        let mut rest = (topic.len() as u16).to_be_bytes().to_vec();
        rest.extend(topic.as_bytes());
        rest.resize(rest.len() + payload, 0);
        let mut packet = vec![0x30];
        let mut remaining = rest.len();
        loop {
            let more = if remaining > 127 { 0x80 } else { 0 };
            packet.push((remaining % 128) as u8 | more);
            remaining /= 128;
            if remaining == 0 {
                break;
            }
        }
        packet.extend(rest);
        packet
    }

    #[test]
    fn the_formula_is_the_length_of_a_packet() {
        let publish = Publish { topic: 10, version_5: false, identified: false };
        for payload in [0, 115, 116, 296, 16_371, 16_372, 100_000] {
            let expected = packet("test-topic", payload).len() - payload;
            assert_eq!(publish.overhead(payload as u64), expected as u64, "{payload} bytes");
        }
        assert_eq!(publish.overhead(296), 15);
        let publish = Publish { version_5: true, identified: true, ..publish };
        assert_eq!(publish.overhead(296), 18);
    }
}
