//! Ends of messages are found at every position, in any pieces, and after a pause at every byte.

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn ends_of_messages_do_not_depend_on_the_pieces(
        sizes in proptest::collection::vec(4_usize..200, 1..12),
        pieces in proptest::collection::vec(1_usize..90, 1..9),
        is_dlms in any::<bool>(),
    ) {
        let mut framing = match is_dlms {
            true => MessageFraming::DlmsWrapper(DlmsWrapper::new(1_000)),
            false => MessageFraming::Iec104(Iec104::default()),
        };
        let (mut stream, mut ends) = (Vec::new(), Vec::new());
        for size in &sizes {
            match is_dlms {
                true => stream.extend_from_slice(&[0, 1, 0, 16, 0, 1, 0, *size as u8]),
                false => stream.extend_from_slice(&[0x68, *size as u8]),
            }
            stream.extend(std::iter::repeat_n(0x42, *size));
            ends.push(stream.len());
        }
        let (mut found, mut at) = (Vec::new(), 0);
        for piece in pieces.iter().cycle() {
            let stop = (at + piece).min(stream.len());
            while at < stop {
                match framing.next_message_end(&stream[at..stop]).unwrap() {
                    Framing::End(end) => { at += end; found.push(at); }
                    Framing::Incomplete => at = stop,
                }
            }
            if at == stream.len() { break; }
        }
        prop_assert_eq!(found, ends);
    }
}

#[test]
fn malformed_streams_are_refused_with_the_reason() {
    let mut framing = MessageFraming::Iec104(Iec104::default());
    let error = framing.next_message_end(b"GET / HTTP/1.1").unwrap_err();
    assert_eq!(error.to_string(), "APDU begins with 0x47, expected 0x68");
    let mut framing = MessageFraming::Iec104(Iec104::default());
    assert!(framing.next_message_end(&[0x68, 254]).is_err());
    let mut framing = MessageFraming::DlmsWrapper(DlmsWrapper::new(100));
    assert!(framing.next_message_end(&[0, 2, 0, 1, 0, 1, 0, 4]).is_err());
    let mut framing = MessageFraming::DlmsWrapper(DlmsWrapper::new(100));
    assert!(framing.next_message_end(&[0, 1, 0, 1, 0, 1, 0, 101]).is_err());
}

/// Ends of messages in a stream, from an offset on.
fn ends(framing: &mut MessageFraming, stream: &[u8], from: usize) -> Vec<usize> {
    let (mut at, mut found) = (from, Vec::new());
    while at < stream.len() {
        match framing.next_message_end(&stream[at..]).unwrap() {
            Framing::End(length) => {
                at += length;
                found.push(at);
            }
            Framing::Incomplete => break,
        }
    }
    found
}

fn length_field(offset: u16, size: u8, order: ByteOrder, adds: u32) -> MessageFraming {
    let layout = LengthFieldLayout { offset, size, order, adds, maximum: 1_000 };
    MessageFraming::LengthField(LengthField::new(layout))
}

/// Name of a protocol, offset, size and addition of its length field, and a message.
type Protocol = (&'static str, (u16, u8, u32), &'static [u8]);

/// Protocols with a length field.
const PROTOCOLS: [Protocol; 5] = [
    // IEEE C37.118.2, figure 3: SYNC, FRAMESIZE (all bytes), IDCODE, SOC, FRACSEC, CMD, CHK.
    ("C37.118", (2, 2, 0), b"\xaa\x41\0\x12\0\x07\x68\x42\0\0\0\0\0\0\0\x02\xce\0"),
    // Modbus Messaging on TCP/IP, section 3.1.3: transaction, protocol, length of the rest, unit,
    // function, register, count.
    ("Modbus/TCP", (4, 2, 6), b"\0\x01\0\0\0\x06\x11\x03\0\x6b\0\x03"),
    // RFC 1006, section 6: version, reserved, length of the packet; a connection request of COTP.
    (
        "TPKT",
        (2, 2, 0),
        b"\x03\0\0\x16\x11\xe0\0\0\0\x01\0\xc1\x02\0\x01\xc2\x02\0\x01\xc0\x01\x0a",
    ),
    // IEC 60870-5-104, a length of one byte: TESTFR act.
    ("IEC 60870-5-104", (1, 1, 2), b"\x68\x04\x43\0\0\0"),
    // The wrapper of DLMS/COSEM.
    ("DLMS", (6, 2, 8), b"\0\x01\0\x10\0\x01\0\x03\xc0\x01\xc1"),
];

#[test]
fn messages_of_protocols_with_a_length_field_are_found() {
    for (name, (offset, size, adds), message) in PROTOCOLS {
        let new = length_field(offset, size, ByteOrder::BigEndian, adds);
        let stream = message.repeat(3);
        let expected: Vec<_> = (1..=3).map(|count| count * message.len()).collect();
        assert_eq!(ends(&mut new.clone(), &stream, 0), expected, "{name}");
        let mut byte_by_byte = new.clone();
        let found: Vec<_> = (0..stream.len())
            .filter(|&at| {
                let end = byte_by_byte.next_message_end(&stream[at..=at]).unwrap();
                end == Framing::End(1)
            })
            .map(|at| at + 1)
            .collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn lengths_that_a_message_cannot_have_are_refused() {
    let mut framing = length_field(2, 2, ByteOrder::BigEndian, 0);
    let error = framing.next_message_end(b"\x03\0\0\x03").unwrap_err().to_string();
    assert_eq!(
        error,
        "message length of 3 bytes is less than the 4 bytes up to the end of the length field"
    );
    let mut framing = length_field(2, 2, ByteOrder::BigEndian, 0);
    assert!(framing.next_message_end(b"\x03\0\x03\xe9").unwrap_err().to_string().contains("1001"));
    // A value and `adds` whose sum exceeds 32 bits.
    let mut framing = length_field(0, 4, ByteOrder::LittleEndian, u32::MAX);
    assert!(framing.next_message_end(&[255; 4]).is_err());
    // The smallest message ends with its length field.
    let mut framing = length_field(2, 2, ByteOrder::BigEndian, 0);
    assert_eq!(framing.next_message_end(b"\x03\0\0\x04\x03"), Ok(Framing::End(4)));
}

#[test]
fn the_framing_of_an_idle_meter_is_small() {
    assert!(size_of::<MessageFraming>() <= 24, "{}", size_of::<MessageFraming>());
}

#[test]
fn framing_continues_at_every_byte_of_a_message() {
    let prefix = LengthPrefix::new(LengthWidth::FourBytes, ByteOrder::BigEndian, 100);
    let delimiter = Delimiter::new(b'\n', 20.try_into().unwrap());
    let streams: [(MessageFraming, &[u8]); 5] = [
        (length_field(2, 2, ByteOrder::LittleEndian, 1), b"ab\x06\0abcab\x03\0ab\x04\0a"),
        (MessageFraming::LengthPrefix(prefix), b"\0\0\0\x03abc\0\0\0\0\0\0\0\x01d"),
        (MessageFraming::Delimiter(delimiter), b"reading 42\n\nreading 43\n"),
        (
            MessageFraming::DlmsWrapper(DlmsWrapper::new(100)),
            b"\0\x01\0\x10\0\x01\0\x03abc\0\x01\0\x10\0\x01\0\x01d",
        ),
        (MessageFraming::Iec104(Iec104::default()), b"\x68\x04abcd\x68\x05abcde"),
    ];
    for (new, stream) in streams {
        let expected = ends(&mut new.clone(), stream, 0);
        assert!(expected.len() > 1 && expected.last() == Some(&stream.len()), "{new:?}");
        for cut in 0..stream.len() {
            let mut first = new.clone();
            let mut found = ends(&mut first, &stream[..cut], 0);
            let mut second = new.clone().resumed(first.progress()).unwrap();
            found.extend(ends(&mut second, stream, cut));
            assert_eq!(found, expected, "{new:?} at {cut}");
        }
    }
}

#[test]
fn a_state_that_a_framing_cannot_have_is_refused() {
    let prefix = LengthPrefix::new(LengthWidth::TwoBytes, ByteOrder::BigEndian, 100);
    let delimiter = Delimiter::new(b'\n', 20.try_into().unwrap());
    let header =
        |arrived| FramingProgress::Header(HeaderProgress::Header { bytes: [0; 8], arrived });
    let body = |missing| FramingProgress::Header(HeaderProgress::Body { missing });
    let prefix_body = |missing| FramingProgress::LengthPrefix(PrefixProgress::Body { missing });
    let at = |arrived| PrefixProgress::Prefix { value: 0, arrived };
    let field = |arrived, number| FramingProgress::LengthField { arrived, number };
    for (new, possible, impossible) in [
        (MessageFraming::Stream, FramingProgress::Stateless, header(0)),
        (MessageFraming::LengthPrefix(prefix), prefix_body(100), prefix_body(101)),
        (
            MessageFraming::LengthPrefix(prefix),
            FramingProgress::LengthPrefix(at(2)),
            FramingProgress::LengthPrefix(at(3)),
        ),
        (length_field(2, 2, ByteOrder::BigEndian, 0), field(4, 1_000), field(4, 1_001)),
        (length_field(2, 2, ByteOrder::BigEndian, 0), field(3, 5), field(5, 5)),
        (
            MessageFraming::Delimiter(delimiter),
            FramingProgress::Delimiter { arrived: 19 },
            FramingProgress::Delimiter { arrived: 20 },
        ),
        (MessageFraming::DlmsWrapper(DlmsWrapper::new(100)), header(7), header(8)),
        (MessageFraming::DlmsWrapper(DlmsWrapper::new(100)), body(100), body(101)),
        (MessageFraming::Iec104(Iec104::default()), header(1), header(2)),
        (MessageFraming::Iec104(Iec104::default()), body(253), body(254)),
    ] {
        assert!(new.clone().resumed(possible).is_some(), "{new:?} {possible:?}");
        assert!(new.clone().resumed(impossible).is_none(), "{new:?} {impossible:?}");
    }
}
