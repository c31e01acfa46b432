//! Encodings of a set of values: JSON and Protobuf as VILLASnode writes them, raw floats, XER and
//! DLMS.
//!
//! ```
//! use gridhaul_protocols::payload::{Encoding, Sample};
//!
//! let sample = Sample { sequence: Some(7), values: vec![0.5], ..Sample::default() };
//! let bytes = Encoding::Xer.encode(&sample);
//! assert_eq!(Encoding::Xer.decode(&bytes)?, sample);
//! # Ok::<(), gridhaul_protocols::payload::PayloadError>(())
//! ```

mod dlms;
mod json;
mod protobuf;
mod raw;
mod xer;

use crate::dlms::DlmsError;

pub use protobuf::Schema;
pub use raw::Width;

/// A set of values with the time of its origin and its number.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    /// Time at which the values were produced.
    pub origin: Option<Timestamp>,
    /// Time at which a gateway received the values; only written by the Protobuf schema of 2024.
    pub received: Option<Timestamp>,
    /// Sequence number.
    pub sequence: Option<u64>,
    /// The values.
    pub values: Vec<f64>,
}

impl Sample {
    /// A sample as VILLASnode sends it, with this number of values. Its number and its time have
    /// the usual number of bytes, not the least one.
    #[must_use]
    pub fn typical(values: usize) -> Self {
        let origin = Timestamp { seconds: 1_534_000_000, nanoseconds: 723_456_789 };
        let values = (0..values).map(|number| 230.0 + 0.1 * number as f64).collect();
        Self { origin: Some(origin), received: None, sequence: Some(5_555), values }
    }
}

/// A point in time since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timestamp {
    /// Seconds.
    pub seconds: u32,
    /// Nanoseconds, below 1,000,000,000.
    pub nanoseconds: u32,
}

/// An encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// JSON of VILLASnode.
    Json,
    /// Protobuf of VILLASnode.
    Protobuf(Schema),
    /// Values alone, without time and number.
    Raw(Width),
    /// XML by the XML Encoding Rules of ASN.1.
    Xer,
    /// Data-Notification of DLMS/COSEM.
    Dlms,
}

/// Error in an encoded sample.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// The text is not JSON of this layout.
    #[error("JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The bytes are not a message of the schema.
    #[error("Protobuf: {0}")]
    Protobuf(#[from] prost::DecodeError),
    /// The message has another number of samples than one.
    #[error("expected one sample, found {0}")]
    Samples(usize),
    /// Another XML tag than the expected one.
    #[error("XER: expected {0}")]
    Tag(&'static str),
    /// The bytes are not a Data-Notification of this structure.
    #[error("DLMS: {0}")]
    Dlms(#[from] DlmsError),
    /// A value is not a floating-point number, or the number of bytes is not a multiple of its
    /// width.
    #[error("{0}")]
    Value(&'static str),
}

impl Encoding {
    /// All encodings.
    pub const ALL: [Self; 8] = [
        Self::Json,
        Self::Protobuf(Schema::Float32),
        Self::Protobuf(Schema::Float64),
        Self::Protobuf(Schema::Received),
        Self::Raw(Width::Float32),
        Self::Raw(Width::Float64),
        Self::Xer,
        Self::Dlms,
    ];

    /// Name in commands.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Protobuf(Schema::Float32) => "protobuf-float32",
            Self::Protobuf(Schema::Float64) => "protobuf",
            Self::Protobuf(Schema::Received) => "protobuf-received",
            Self::Raw(Width::Float32) => "float32",
            Self::Raw(Width::Float64) => "float64",
            Self::Xer => "xer",
            Self::Dlms => "dlms",
        }
    }

    /// The encoded sample. Fields that the encoding does not have are omitted.
    #[must_use]
    pub fn encode(self, sample: &Sample) -> Vec<u8> {
        match self {
            Self::Json => json::encode(sample).into_bytes(),
            Self::Protobuf(schema) => protobuf::encode(schema, sample),
            Self::Raw(width) => raw::encode(width, sample),
            Self::Xer => xer::encode(sample).into_bytes(),
            Self::Dlms => dlms::encode(sample),
        }
    }

    /// Reads an encoded sample. A number of JSON has a relative error of at most 1e-15: serde_json
    /// reads it without exact rounding.
    ///
    /// # Errors
    /// The bytes do not have the layout of the encoding.
    pub fn decode(self, bytes: &[u8]) -> Result<Sample, PayloadError> {
        match self {
            Self::Json => json::decode(bytes),
            Self::Protobuf(schema) => protobuf::decode(schema, bytes),
            Self::Raw(width) => raw::decode(width, bytes),
            Self::Xer => xer::decode(bytes),
            Self::Dlms => dlms::decode(bytes).map_err(PayloadError::Dlms),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    /// A message of VILLASnode with a number below 128 and nanoseconds below 2^28.
    fn early(values: usize) -> Sample {
        let origin = Timestamp { seconds: 1_534_000_000, nanoseconds: 123_456_789 };
        let values = (0..values).map(|number| 0.1 + number as f64).collect();
        Sample { origin: Some(origin), received: None, sequence: Some(55), values }
    }

    #[test]
    fn the_payload_of_table_5_is_an_early_message() {
        let bytes = |schema, values| Encoding::Protobuf(schema).encode(&early(values)).len();
        assert_eq!(bytes(Schema::Float64, 10), 129);
        assert_eq!(bytes(Schema::Float32, 10), 89);
        let received = Sample { received: early(0).origin, ..early(10) };
        assert_eq!(Encoding::Protobuf(Schema::Received).encode(&received).len(), 153);
        assert_eq!(Encoding::Raw(Width::Float32).encode(&early(10)).len(), 40);
    }

    #[test]
    fn json_has_the_layout_of_villasnode() {
        let sample = Sample { values: vec![0.1, -2.0, 1e-7], ..early(0) };
        let text = String::from_utf8(Encoding::Json.encode(&sample)).unwrap();
        assert_eq!(
            text,
            "[{\"ts\": {\"origin\": [1534000000, 123456789]}, \"sequence\": 55, \
             \"data\": [0.10000000000000001, -2.0, 9.9999999999999995e-8]}]"
        );
    }

    /// Bits are equal, except that the JSON reader has a relative error in the order of the last
    /// bits.
    fn is_read_as(encoding: Encoding, read: f64, written: f64) -> bool {
        if encoding == Encoding::Json {
            (read - written).abs() <= 1e-15 * written.abs()
        } else {
            read.to_bits() == written.to_bits()
        }
    }

    #[test]
    fn xer_is_read_strictly() {
        let sample = Sample { values: vec![0.5, f64::INFINITY], ..early(0) };
        let text = String::from_utf8(Encoding::Xer.encode(&sample)).unwrap();
        assert_eq!(
            text,
            "<Sample><origin><seconds>1534000000</seconds><nanoseconds>123456789</nanoseconds>\
             </origin><sequence>55</sequence><values><REAL>0.5</REAL>\
             <REAL><PLUS-INFINITY/></REAL></values></Sample>"
        );
        let decode =
            |text: &str| Encoding::Xer.decode(text.as_bytes()).map_err(|error| error.to_string());
        assert_eq!(decode(&text.replace("><", ">\n <")), Ok(sample));
        assert_eq!(decode(&text.replace("0.5", "inf")), Err("XER: expected a number".into()));
        assert_eq!(decode(&text.replace("</values>", "")), Err("XER: expected </values>".into()));
        assert_eq!(decode(&(text + "<")), Err("XER: text after </Sample>".into()));
    }

    #[test]
    fn dlms_is_a_data_notification() {
        let sample = Sample { values: vec![0.5], ..early(0) };
        let bytes = Encoding::Dlms.encode(&sample);
        let header = [15, 0, 0, 0, 55, 0];
        let origin = [2, 2, 6, 0x5b, 0x6e, 0xfb, 0x80, 6, 0x07, 0x5b, 0xcd, 0x15];
        let rest = [0, 21, 0, 0, 0, 0, 0, 0, 0, 55, 1, 1, 24, 0x3f, 0xe0, 0, 0, 0, 0, 0, 0];
        assert_eq!(bytes, [&header[..], &[2, 4], &origin, &rest].concat());
        let decode = |bytes: &[u8]| Encoding::Dlms.decode(bytes).map_err(|error| error.to_string());
        assert_eq!(decode(&bytes), Ok(sample));
        assert_eq!(decode(&bytes[..bytes.len() - 1]), Err("DLMS: the APDU is truncated".into()));
        assert_eq!(decode(&[&bytes[..], &[0]].concat()), Err("DLMS: bytes after the APDU".into()));
        // A length of 128 and more has its own bytes.
        assert_eq!(Encoding::Dlms.encode(&early(300)).len(), 31 + 3 + 9 * 300);
        let huge = [&bytes[..30], &[1, 0x88], &[0xff; 8]].concat();
        assert_eq!(decode(&huge), Err("DLMS: the APDU is truncated".into()));
    }

    proptest! {
        #[test]
        fn decoding_inverts_encoding(
            origin in (any::<u32>(), 0..1_000_000_000_u32),
            sequence in 0..u64::from(u32::MAX),
            received in option::of((any::<u32>(), 0..1_000_000_000_u32)),
            values in vec(any::<f32>().prop_filter("finite", |value| value.is_finite()), 0..40),
        ) {
            let time = |(seconds, nanoseconds)| Timestamp { seconds, nanoseconds };
            let sample = Sample {
                origin: Some(time(origin)),
                received: received.map(time),
                sequence: Some(sequence),
                values: values.into_iter().map(f64::from).collect(),
            };
            for encoding in Encoding::ALL {
                let decoded = encoding.decode(&encoding.encode(&sample)).unwrap();
                prop_assert_eq!(decoded.values.len(), sample.values.len());
                for (read, written) in decoded.values.iter().zip(&sample.values) {
                    prop_assert!(is_read_as(encoding, *read, *written), "{read} {written}");
                }
                if !matches!(encoding, Encoding::Raw(_)) {
                    prop_assert_eq!(decoded.origin, sample.origin);
                    prop_assert_eq!(decoded.sequence, sample.sequence);
                }
            }
        }

        #[test]
        fn numbers_are_kept(
            value in any::<f64>().prop_filter("finite", |value| value.is_finite()),
        ) {
            let sample = Sample { values: vec![value], ..Sample::default() };
            let wide = [Encoding::Protobuf(Schema::Float64), Encoding::Raw(Width::Float64)];
            let texts = [Encoding::Json, Encoding::Xer, Encoding::Dlms];
            for encoding in texts.into_iter().chain(wide) {
                let decoded = encoding.decode(&encoding.encode(&sample)).unwrap();
                prop_assert!(is_read_as(encoding, decoded.values[0], value), "{decoded:?}");
            }
        }

        #[test]
        fn arbitrary_bytes_are_an_error_or_a_sample(bytes in vec(any::<u8>(), 0..200)) {
            for encoding in Encoding::ALL {
                let _ = encoding.decode(&bytes);
            }
        }
    }
}
