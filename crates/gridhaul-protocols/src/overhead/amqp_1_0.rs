//! AMQP 1.0 (OASIS, ISO/IEC 19464): a transfer frame with one data section.
//!
//! The encoding has optional fields and several widths for a number; implementations differ. The
//! formula is that of the shortest encoding with the fields below, without sections for header and
//! properties. A broker adds those that it needs.

/// Fields of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Handle of the link.
    pub handle: u32,
    /// Delivery number: `delivery-id`.
    pub delivery: u32,
    /// Bytes of the `delivery-tag`, at most 32.
    pub tag: u64,
}

impl Transfer {
    /// Bytes that the frame has besides the payload.
    #[must_use]
    pub const fn overhead(&self, payload: u64) -> u64 {
        // Size, data offset, type and channel (AMQP 1.0, part 2, section 2.3.1).
        let frame = 4 + 1 + 1 + 2;
        // A described type: 0x00 and the descriptor as smallulong, 2 bytes (part 1, sections 1.2
        // and 1.6.9).
        let descriptor = 1 + 2;
        // list8: constructor, size, count (part 1, section 1.6.22).
        let list = 3;
        // Handle, delivery-id, delivery-tag as vbin8, message-format 0 as uint0, settled as boolean
        // (part 2, section 2.7.5).
        let fields = uint(self.handle) + uint(self.delivery) + (2 + self.tag) + 1 + 1;
        // Section data (part 3, section 3.2.6): vbin8 to 255 bytes, else vbin32 (part 1, section
        // 1.6.19).
        let data = descriptor + if payload <= 255 { 2 } else { 5 };
        frame + descriptor + list + fields + data
    }
}

/// Bytes of a uint: uint0, smalluint, uint (part 1, section 1.6.5).
const fn uint(value: u32) -> u64 {
    match value {
        0 => 1,
        1..=255 => 2,
        _ => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A settled transfer on link 0, byte by byte.
    fn frame(delivery: u8, payload: &[u8]) -> Vec<u8> {
        let mut fields = vec![0x43, 0x52, delivery, 0xa0, 4, 0, 0, 0, delivery, 0x43, 0x41];
        let count = 5;
        let mut body = vec![0x00, 0x53, 0x14, 0xc0, fields.len() as u8 + 1, count];
        body.append(&mut fields);
        body.extend([0x00, 0x53, 0x75]);
        if payload.len() <= 255 {
            body.extend([0xa0, payload.len() as u8]);
        } else {
            body.push(0xb0);
            body.extend((payload.len() as u32).to_be_bytes());
        }
        body.extend(payload);
        let mut frame = (body.len() as u32 + 8).to_be_bytes().to_vec();
        frame.extend([2, 0, 0, 0]);
        frame.extend(body);
        frame
    }

    #[test]
    fn the_formula_is_the_length_of_a_frame() {
        let transfer = Transfer { handle: 0, delivery: 7, tag: 4 };
        for payload in [1, 132, 255, 256, 296] {
            let expected = frame(7, &vec![0; payload]).len() - payload;
            assert_eq!(transfer.overhead(payload as u64), expected as u64, "{payload} bytes");
        }
        assert_eq!(
            Transfer { delivery: 256, ..transfer }.overhead(100),
            transfer.overhead(100) + 3
        );
    }
}
