//! Effect of bit errors: above the checksums of a network, where a decoder sees them, and below,
//! where the checksums do.
//!
//! Errors in memory, in a gateway, or in a network card are above the checksums: only the encoding
//! itself can detect them.
//!
//! ```
//! use gridhaul_protocols::corruption::{ErrorPattern, above_checksums};
//! use gridhaul_protocols::payload::{Encoding, Width};
//!
//! // No bit of raw floats is protected.
//! let fates = above_checksums(Encoding::Raw(Width::Float32), 10, ErrorPattern::EveryBit, 1);
//! assert_eq!((fates.silently_wrong, fates.rejected), (320, 0));
//! ```

mod checksums;
mod frames;
mod patterns;

use crate::payload::{Encoding, Sample, Schema, Width};

pub use checksums::{Checksum, below_checksums};
pub use frames::{goose_events, sampled_values};
pub use patterns::ErrorPattern;

/// Fates of messages with bit errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Fates {
    /// The receiver detects the error.
    pub rejected: u64,
    /// The receiver reads what was sent: the changed bits have no meaning.
    pub unchanged: u64,
    /// The receiver reads something else, without an error.
    pub silently_wrong: u64,
}

/// Result of a message at a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The error is detected.
    Rejected,
    /// The message is read as it was sent.
    Unchanged,
    /// Another message is read.
    SilentlyWrong,
}

impl Fates {
    /// Number of messages.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.rejected + self.unchanged + self.silently_wrong
    }

    /// Adds a message.
    pub const fn add(&mut self, fate: Fate) {
        match fate {
            Fate::Rejected => self.rejected += 1,
            Fate::Unchanged => self.unchanged += 1,
            Fate::SilentlyWrong => self.silently_wrong += 1,
        }
    }
}

/// The encodings with their names.
pub const ENCODINGS: [(&str, Encoding); 6] = [
    ("JSON", Encoding::Json),
    ("Protobuf (64-bit floats)", Encoding::Protobuf(Schema::Float64)),
    ("raw 32-bit floats", Encoding::Raw(Width::Float32)),
    ("raw 64-bit floats", Encoding::Raw(Width::Float64)),
    ("XER", Encoding::Xer),
    ("DLMS", Encoding::Dlms),
];

/// Fates of one sample in an encoding. The receiver knows how many values it expects, and rejects
/// another number.
#[must_use]
pub fn above_checksums(
    encoding: Encoding,
    values: usize,
    pattern: ErrorPattern,
    seed: u64,
) -> Fates {
    let bytes = encoding.encode(&Sample::typical(values));
    // What the encoding itself loses, such as the time in raw floats, is no error.
    let sent = encoding.decode(&bytes);
    let Ok(sent) = sent else { return Fates::default() };
    fates(&bytes, pattern, seed, |corrupt| match encoding.decode(corrupt) {
        Err(_) => Fate::Rejected,
        Ok(read) if read.values.len() != sent.values.len() => Fate::Rejected,
        Ok(read) if is_equal(&read, &sent) => Fate::Unchanged,
        Ok(_) => Fate::SilentlyWrong,
    })
}

/// Fates of a message with each error of a pattern.
fn fates(
    message: &[u8],
    pattern: ErrorPattern,
    seed: u64,
    mut receive: impl FnMut(&[u8]) -> Fate,
) -> Fates {
    let mut fates = Fates::default();
    pattern.apply(message, seed, &mut |corrupt| fates.add(receive(corrupt)));
    fates
}

/// Equality of all fields; floating-point numbers are compared bit by bit.
fn is_equal(read: &Sample, sent: &Sample) -> bool {
    let bits =
        |sample: &Sample| sample.values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    (read.origin, read.received, read.sequence) == (sent.origin, sent.received, sent.sequence)
        && bits(read) == bits(sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single(name: &str) -> Fates {
        let (_, encoding) = ENCODINGS.into_iter().find(|(known, _)| *known == name).unwrap();
        above_checksums(encoding, 10, ErrorPattern::EveryBit, 1)
    }

    #[test]
    fn raw_floats_detect_nothing() {
        let fates = single("raw 32-bit floats");
        assert_eq!(fates, Fates { silently_wrong: 10 * 32, ..Fates::default() });
    }

    #[test]
    fn texts_detect_more_than_binary_encodings() {
        let share = |fates: Fates| fates.rejected as f64 / fates.total() as f64;
        let (json, protobuf) = (share(single("JSON")), share(single("Protobuf (64-bit floats)")));
        assert!(json > 0.4 && protobuf < 0.4, "{json} {protobuf}");
        assert!(share(single("XER")) > json);
        // No encoding detects all errors.
        for (name, _) in ENCODINGS {
            assert!(single(name).silently_wrong > 0, "{name}");
        }
    }

    #[test]
    fn every_bit_of_the_message_is_tried() {
        let bytes = Encoding::Json.encode(&Sample::typical(10)).len() as u64;
        assert_eq!(single("JSON").total(), 8 * bytes);
    }
}
