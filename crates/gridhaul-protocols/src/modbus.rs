//! Modbus (MODBUS Application Protocol Specification V1.1b3): a message as registers of a request.
//!
//! Registers have two bytes: the first one is the length of the message in bytes.
//!
//! ```
//! use gridhaul_protocols::modbus::{message, registers};
//!
//! assert_eq!(registers(b"abc"), [3, 0x6162, 0x6300]);
//! assert_eq!(message(&[3, 0x6162, 0x6300]).as_deref(), Some(&b"abc"[..]));
//! ```

/// Registers in one request (MODBUS Application Protocol Specification V1.1b3, section 6.12).
pub const REGISTERS_MAX: usize = 123;

/// Longest message: the first register is its length, because registers have two bytes.
pub const MESSAGE_MAX: usize = 2 * (REGISTERS_MAX - 1);

/// A message as registers: its length, then its bytes, of which a last odd one is padded with zero.
#[must_use]
pub fn registers(message: &[u8]) -> Vec<u16> {
    let words = message
        .chunks(2)
        .map(|bytes| u16::from_be_bytes([bytes[0], bytes.get(1).copied().unwrap_or(0)]));
    std::iter::once(message.len() as u16).chain(words).collect()
}

/// The message in registers; `None` if its length does not fit.
#[must_use]
pub fn message(registers: &[u16]) -> Option<Vec<u8>> {
    let (&length, words) = registers.split_first()?;
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    if bytes.len() != usize::from(length).next_multiple_of(2) {
        return None;
    }
    bytes.truncate(usize::from(length));
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_carry_messages_of_every_length() {
        for length in 0..=MESSAGE_MAX {
            let bytes: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let words = registers(&bytes);
            assert!(words.len() <= REGISTERS_MAX);
            assert_eq!(message(&words), Some(bytes));
        }
        assert_eq!(message(&[]), None);
        assert_eq!(message(&[4, 0]), None, "a register is missing");
        assert_eq!(message(&[1, 0, 0]), None, "a register too many");
    }
}
