//! Framings compared with a specification that reads the whole stream at once.

use std::num::NonZeroU32;

use proptest::prelude::*;

use super::*;

/// A framing, from which the machine and the specification are made.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Whole,
    Delimited(u8, u32),
    Prefixed(LengthWidth, ByteOrder, u32),
}

/// Sizes of the messages of a stream, and the error that ends it, if any.
type Division = (Vec<usize>, Option<FramingError>);

impl Kind {
    fn framing(self) -> MessageFraming {
        match self {
            Self::Whole => MessageFraming::Stream,
            Self::Delimited(delimiter, maximum) => {
                let maximum = NonZeroU32::new(maximum).unwrap();
                MessageFraming::Delimiter(Delimiter::new(delimiter, maximum))
            }
            Self::Prefixed(width, order, maximum) => {
                MessageFraming::LengthPrefix(LengthPrefix::new(width, order, maximum))
            }
        }
    }

    /// Bytes of the longest message.
    fn largest_message(self) -> u64 {
        match self {
            Self::Whole => u64::MAX,
            Self::Delimited(_, maximum) => maximum.into(),
            Self::Prefixed(LengthWidth::TwoBytes, _, maximum) => {
                2 + u64::from(maximum.min(u16::MAX.into()))
            }
            Self::Prefixed(LengthWidth::FourBytes, _, maximum) => 4 + u64::from(maximum),
        }
    }

    /// The specification: the first message of a complete stream. `None` if the stream ends before
    /// the message.
    fn first_message(self, stream: &[u8]) -> Option<Result<usize, FramingError>> {
        match self {
            Self::Whole => (!stream.is_empty()).then_some(Ok(stream.len())),
            Self::Delimited(delimiter, maximum) => {
                let end = stream.iter().position(|&byte| byte == delimiter).map(|at| at + 1);
                let maximum = u64::from(maximum);
                let error = FramingError::DelimiterMissing { delimiter, maximum };
                match end {
                    Some(end) if end as u64 <= maximum => Some(Ok(end)),
                    None if (stream.len() as u64) < maximum => None,
                    _ => Some(Err(error)),
                }
            }
            Self::Prefixed(width, order, maximum) => {
                let (prefix, length) = match (width, order) {
                    (LengthWidth::TwoBytes, ByteOrder::BigEndian) => {
                        (2, u64::from(u16::from_be_bytes(stream.get(..2)?.try_into().unwrap())))
                    }
                    (LengthWidth::TwoBytes, ByteOrder::LittleEndian) => {
                        (2, u64::from(u16::from_le_bytes(stream.get(..2)?.try_into().unwrap())))
                    }
                    (LengthWidth::FourBytes, ByteOrder::BigEndian) => {
                        (4, u64::from(u32::from_be_bytes(stream.get(..4)?.try_into().unwrap())))
                    }
                    (LengthWidth::FourBytes, ByteOrder::LittleEndian) => {
                        (4, u64::from(u32::from_le_bytes(stream.get(..4)?.try_into().unwrap())))
                    }
                };
                let maximum = u64::from(maximum);
                if length > maximum {
                    return Some(Err(FramingError::LengthExceedsMaximum { length, maximum }));
                }
                let end = prefix + length as usize;
                (end <= stream.len()).then_some(Ok(end))
            }
        }
    }

    /// The specification for a whole stream.
    fn divide(self, mut stream: &[u8]) -> Division {
        let mut sizes = Vec::new();
        loop {
            match self.first_message(stream) {
                None => return (sizes, None),
                Some(Err(error)) => return (sizes, Some(error)),
                Some(Ok(size)) => {
                    sizes.push(size);
                    stream = &stream[size..];
                }
            }
        }
    }
}

fn kinds() -> impl Strategy<Value = Kind> {
    let width = prop_oneof![Just(LengthWidth::TwoBytes), Just(LengthWidth::FourBytes)];
    let order = prop_oneof![Just(ByteOrder::BigEndian), Just(ByteOrder::LittleEndian)];
    prop_oneof![
        Just(Kind::Whole),
        (prop_oneof![Just(b'\n'), any::<u8>()], 1..60_u32)
            .prop_map(|(delimiter, maximum)| Kind::Delimited(delimiter, maximum)),
        (width, order, prop_oneof![4 => 0..60_u32, 1 => any::<u32>()])
            .prop_map(|(width, order, maximum)| Kind::Prefixed(width, order, maximum)),
    ]
}

/// Bytes among which small lengths and newlines are frequent.
fn streams(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![4 => Just(0), 3 => 0..12_u8, 1 => Just(b'\n'), 1 => any::<u8>()];
    prop_oneof![
        3 => prop::collection::vec(byte, 0..longest),
        1 => prop::collection::vec(any::<u8>(), 0..longest),
    ]
}

/// Passes a stream in pieces of these sizes, cyclically.
fn divide(kind: Kind, stream: &[u8], pieces: &[usize]) -> Division {
    let mut framing = kind.framing();
    let (mut sizes, mut begun) = (Vec::new(), 0);
    let mut rest = stream;
    for size in pieces.iter().cycle() {
        let (mut piece, after) = rest.split_at((*size).min(rest.len()));
        loop {
            match framing.next_message_end(piece) {
                Err(error) => return (sizes, Some(error)),
                Ok(Framing::Incomplete) => {
                    begun += piece.len();
                    assert!(begun as u64 <= kind.largest_message(), "incomplete and too large");
                    break;
                }
                Ok(Framing::End(end)) => {
                    assert!((1..=piece.len()).contains(&end));
                    sizes.push(begun + end);
                    begun = 0;
                    piece = &piece[end..];
                }
            }
        }
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    (sizes, None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// No bytes make a framing panic, and no division of the stream changes the messages or the
    /// error. Without framing only the sum of the bytes is the same.
    #[test]
    fn framings_agree_with_the_specification_for_any_division(
        kind in kinds(),
        stream in streams(300),
        pieces in prop::collection::vec(1..50_usize, 1..12),
    ) {
        let expected = kind.divide(&stream);
        let (sizes, error) = divide(kind, &stream, &pieces);
        prop_assert_eq!(error, expected.1);
        if matches!(kind, Kind::Whole) {
            prop_assert_eq!(sizes.iter().sum::<usize>(), stream.len());
        } else {
            let largest = kind.largest_message();
            prop_assert!(sizes.iter().all(|&size| size as u64 <= largest));
            prop_assert_eq!(sizes, expected.0);
        }
    }
}

#[test]
fn a_message_may_be_as_large_as_the_maximum_and_no_larger() {
    let four = NonZeroU32::new(4).unwrap();
    let mut lines = Delimiter::new(b'\n', four);
    assert_eq!(lines.next_message_end(b"abc\nd"), Ok(Framing::End(4)));
    assert_eq!(lines.next_message_end(b"abc"), Ok(Framing::Incomplete));
    let error = lines.next_message_end(b"d\n").unwrap_err();
    assert_eq!(error, FramingError::DelimiterMissing { delimiter: b'\n', maximum: 4 });
    assert_eq!(error.to_string(), "no delimiter 0x0a within 4 bytes");

    let mut prefixed = LengthPrefix::new(LengthWidth::TwoBytes, ByteOrder::BigEndian, 3);
    assert_eq!(prefixed.next_message_end(&[0, 3, 1, 1, 1]), Ok(Framing::End(5)));
    assert_eq!(prefixed.next_message_end(&[0, 0, 9]), Ok(Framing::End(2)));
    assert_eq!(prefixed.next_message_end(&[0]), Ok(Framing::Incomplete));
    let error = prefixed.next_message_end(&[4]).unwrap_err();
    assert_eq!(error, FramingError::LengthExceedsMaximum { length: 4, maximum: 3 });
    assert_eq!(error.to_string(), "message length of 4 bytes exceeds the maximum of 3 bytes");
}

#[test]
fn byte_order_and_width_of_a_length_field() {
    let cases: [(_, _, &[u8]); 4] = [
        (LengthWidth::TwoBytes, ByteOrder::BigEndian, &[1, 2]),
        (LengthWidth::TwoBytes, ByteOrder::LittleEndian, &[2, 1]),
        (LengthWidth::FourBytes, ByteOrder::BigEndian, &[0, 0, 1, 2]),
        (LengthWidth::FourBytes, ByteOrder::LittleEndian, &[2, 1, 0, 0]),
    ];
    for (width, order, prefix) in cases {
        let mut framing = LengthPrefix::new(width, order, 1_000);
        let stream = [prefix, &[7; 300]].concat();
        assert_eq!(framing.next_message_end(&stream), Ok(Framing::End(prefix.len() + 258)));
    }
}
