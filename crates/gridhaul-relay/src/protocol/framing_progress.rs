//! State of a meter's framing within a message, as bytes for another version of the program.

use gridhaul_protocols::framing::{
    FramingProgress, HeaderProgress, MessageFraming, PrefixProgress,
};

use super::codec::{DecodeError, Decoder, put_varint};

/// Marks the state of a message whose header is complete, in place of the number of its bytes.
const BODY: u8 = u8::MAX;

/// Appends the state within the current message.
pub(crate) fn write_progress(framing: &MessageFraming, bytes: &mut Vec<u8>) {
    match framing.progress() {
        FramingProgress::Stateless => {}
        FramingProgress::LengthPrefix(PrefixProgress::Prefix { value, arrived }) => {
            bytes.push(arrived);
            put_varint(bytes, value.into());
        }
        FramingProgress::LengthField { arrived, number } => {
            put_varint(bytes, arrived.into());
            put_varint(bytes, number.into());
        }
        FramingProgress::Delimiter { arrived } => put_varint(bytes, arrived.into()),
        FramingProgress::Header(HeaderProgress::Header { bytes: header, arrived }) => {
            bytes.push(arrived);
            bytes.extend_from_slice(&header[..usize::from(arrived)]);
        }
        FramingProgress::LengthPrefix(PrefixProgress::Body { missing })
        | FramingProgress::Header(HeaderProgress::Body { missing }) => {
            bytes.push(BODY);
            put_varint(bytes, missing.into());
        }
    }
}

/// The framing, within the message whose state [`write_progress`] has written.
pub(crate) fn read_progress(
    framing: MessageFraming,
    decoder: &mut Decoder<'_>,
) -> Result<MessageFraming, DecodeError> {
    let progress = match framing {
        MessageFraming::Stream | MessageFraming::IdleGap => FramingProgress::Stateless,
        MessageFraming::LengthPrefix(_) => FramingProgress::LengthPrefix(match decoder.u8()? {
            BODY => PrefixProgress::Body { missing: number(decoder)? },
            arrived => PrefixProgress::Prefix { value: number(decoder)?, arrived },
        }),
        MessageFraming::LengthField(_) => {
            FramingProgress::LengthField { arrived: number(decoder)?, number: number(decoder)? }
        }
        MessageFraming::Delimiter(_) => FramingProgress::Delimiter { arrived: number(decoder)? },
        MessageFraming::DlmsWrapper(_) | MessageFraming::Iec104(_) => {
            FramingProgress::Header(header_progress(decoder)?)
        }
    };
    framing.resumed(progress).ok_or(DecodeError::Undefined("state of a message"))
}

fn header_progress(decoder: &mut Decoder<'_>) -> Result<HeaderProgress, DecodeError> {
    let arrived = match decoder.u8()? {
        BODY => return Ok(HeaderProgress::Body { missing: number(decoder)? }),
        arrived => arrived,
    };
    let mut bytes = [0; 8];
    let header = bytes.get_mut(..usize::from(arrived));
    let header = header.ok_or(DecodeError::Undefined("state of a message"))?;
    header.copy_from_slice(decoder.take(arrived.into())?);
    Ok(HeaderProgress::Header { bytes, arrived })
}

fn number<T: TryFrom<u64>>(decoder: &mut Decoder<'_>) -> Result<T, DecodeError> {
    T::try_from(decoder.varint()?).map_err(|_| DecodeError::TooLong("message"))
}

#[cfg(test)]
mod tests {
    use gridhaul_protocols::framing::{
        ByteOrder, Delimiter, DlmsWrapper, Framing, Iec104, LengthField, LengthFieldLayout,
        LengthPrefix, LengthWidth,
    };

    use super::*;

    /// A message that arrives in two parts, and the state between them.
    struct Case {
        framing: MessageFraming,
        start: &'static [u8],
        state: &'static [u8],
        rest: Vec<u8>,
    }

    fn case(
        framing: MessageFraming,
        start: &'static [u8],
        state: &'static [u8],
        rest: &[u8],
    ) -> Case {
        Case { framing, start, state, rest: rest.to_vec() }
    }

    fn cases() -> Vec<Case> {
        let order = ByteOrder::BigEndian;
        let layout = LengthFieldLayout { offset: 2, size: 2, order, adds: 0, maximum: 1_000 };
        let field = MessageFraming::LengthField(LengthField::new(layout));
        let prefix = LengthPrefix::new(LengthWidth::FourBytes, order, 1_000);
        let prefix = MessageFraming::LengthPrefix(prefix);
        let delimiter = Delimiter::new(b'\n', 200.try_into().unwrap());
        let dlms = MessageFraming::DlmsWrapper(DlmsWrapper::new(300));
        let iec104 = MessageFraming::Iec104(Iec104::default());
        vec![
            case(MessageFraming::Stream, b"", b"", b"abc"),
            case(prefix.clone(), b"\0\0\x01", &[3, 1], &[&[0], &[7; 256][..]].concat()),
            case(prefix, b"\0\0\0\xcaab", &[255, 200, 1], &[7; 200]),
            case(field.clone(), b"ab\x01", &[3, 1], &[&[6], &[7; 258][..]].concat()),
            case(field, b"ab\0\x06", &[4, 2], b"cd"),
            case(MessageFraming::Delimiter(delimiter), &[b'x'; 130], &[130, 1], b"yz\n"),
            case(dlms.clone(), b"\0\x01\0\x10\0", &[5, 0, 1, 0, 16, 0], b"\x01\0\x01d"),
            case(dlms, b"\0\x01\0\x10\0\x01\x01\0ab", &[255, 254, 1], &[7; 254]),
            case(iec104.clone(), b"\x68", &[1, 0x68], b"\x04abcd"),
            case(iec104, b"\x68\x04a", &[255, 3], b"bcd"),
        ]
    }

    #[test]
    fn the_state_of_every_framing_has_the_bytes_of_earlier_versions() {
        for Case { framing, start, state, rest } in cases() {
            let mut first = framing.clone();
            assert_eq!(first.next_message_end(start), Ok(Framing::Incomplete), "{framing:?}");
            let mut bytes = Vec::new();
            write_progress(&first, &mut bytes);
            assert_eq!(bytes, state, "{framing:?}");
            let mut decoder = Decoder::new(&bytes, "state");
            let mut second = read_progress(framing.clone(), &mut decoder).unwrap();
            assert!(decoder.is_empty());
            let end = second.next_message_end(&rest);
            assert_eq!(end, Ok(Framing::End(rest.len())), "{framing:?}");
        }
    }

    #[test]
    fn a_state_that_a_framing_cannot_have_is_refused() {
        let prefix = LengthPrefix::new(LengthWidth::FourBytes, ByteOrder::BigEndian, 100);
        for new in [
            MessageFraming::LengthPrefix(prefix),
            MessageFraming::DlmsWrapper(DlmsWrapper::new(100)),
            MessageFraming::Iec104(Iec104::default()),
        ] {
            for bytes in [&[][..], &[9], &[9, 0], &[255, 255, 255, 255, 255, 1], &[255, 254, 1]] {
                let mut decoder = Decoder::new(bytes, "state");
                let resumed = read_progress(new.clone(), &mut decoder);
                assert!(resumed.is_err(), "{resumed:?} of {bytes:?}");
            }
        }
    }
}
