//! Values that are written read back equal; values that are read are within their limits.

use std::net::SocketAddr;

use proptest::prelude::*;

use super::*;
use crate::log::Durable;

fn address() -> impl Strategy<Value = Option<SocketAddr>> {
    proptest::option::of(prop_oneof![
        any::<([u8; 4], u16)>().prop_map(SocketAddr::from),
        any::<([u8; 16], u16)>().prop_map(SocketAddr::from),
    ])
}

#[derive(Debug, Clone)]
enum Owned {
    Open(u64, Option<SocketAddr>, Option<SocketAddr>, String, String),
    Data(u64, u64, bool, Vec<u8>),
    Eof(u64, u64),
    Reset(u64, usize),
    Restart(u64, PreviousRecords),
    Gap(Option<u64>, Option<u64>),
}

impl Owned {
    fn record(&self) -> Record<'_> {
        match self {
            Self::Open(meter, peer, local, listener, certificate) => Record::Open {
                meter: *meter,
                identity: Identity { peer: *peer, local: *local, listener, certificate },
            },
            Self::Data(meter, offset, ends_message, bytes) => {
                Record::Data { meter: *meter, offset: *offset, ends_message: *ends_message, bytes }
            }
            Self::Eof(meter, offset) => Record::Eof { meter: *meter, offset: *offset },
            Self::Reset(meter, cause) => {
                Record::Reset { meter: *meter, cause: ResetCause::ALL[*cause] }
            }
            Self::Restart(meter, previous) => {
                Record::Restart { first_meter: *meter, previous: *previous }
            }
            Self::Gap(records, bytes) => Record::Gap { records: *records, bytes: *bytes },
        }
    }
}

fn previous() -> impl Strategy<Value = PreviousRecords> {
    prop_oneof![
        Just(PreviousRecords::Unstated),
        Just(PreviousRecords::Unknown),
        (0..u64::MAX).prop_map(PreviousRecords::EndAt),
    ]
}

fn record() -> impl Strategy<Value = Owned> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..300);
    prop_oneof![
        (any::<u64>(), address(), address(), "[a-zä]{0,9}", ".{0,20}")
            .prop_map(|(meter, peer, local, a, b)| Owned::Open(meter, peer, local, a, b)),
        any::<(u64, u64, bool)>().prop_flat_map(move |(a, b, c)| bytes
            .clone()
            .prop_map(move |d| Owned::Data(a, b, c, d))),
        any::<(u64, u64)>().prop_map(|(a, b)| Owned::Eof(a, b)),
        (any::<u64>(), 0..ResetCause::ALL.len()).prop_map(|(a, b)| Owned::Reset(a, b)),
        (any::<u64>(), previous()).prop_map(|(meter, previous)| Owned::Restart(meter, previous)),
        (proptest::option::of(0..u64::MAX), proptest::option::of(0..u64::MAX))
            .prop_map(|(records, bytes)| Owned::Gap(records, bytes)),
    ]
}

proptest! {
    #[test]
    fn times_of_records_read_back(
        records in proptest::collection::vec((record(), any::<u64>()), 1..20),
        error in proptest::option::of(0..u64::MAX / 2),
    ) {
        let clock = error
            .map_or(ClockState::Unsynchronised, |error_us| ClockState::Synchronised { error_us });
        let mut builder = BatchBuilder::new(77, 3, 5);
        for (record, utc_us) in &records {
            let time = Some(Reception { utc_us: *utc_us, clock });
            prop_assert!(builder.accepts(time));
            builder.push_at(&record.record(), time);
        }
        prop_assert!(!builder.accepts(None));
        let other = Reception { utc_us: 0, clock: ClockState::Unknown };
        prop_assert!(!builder.accepts(Some(other)));
        let mut bytes = Vec::new();
        builder.finish(&mut bytes);
        prop_assert!(builder.accepts(None));
        let batch = Batch::read(&bytes).unwrap().unwrap();
        let read: Vec<_> = batch.timed_records().map(Result::unwrap).collect();
        let expected: Vec<_> = records.iter().zip(5..).map(|((record, utc_us), number)| {
            (number, Some(Reception { utc_us: *utc_us, clock }), record.record())
        }).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn batches_read_back(
        records in proptest::collection::vec(record(), 1..20),
        first in 0..u64::MAX / 2,
        flip in any::<prop::sample::Index>(),
    ) {
        let mut builder = BatchBuilder::new(77, 3, first);
        for record in &records {
            builder.push(&record.record());
        }
        let mut bytes = Vec::new();
        builder.finish(&mut bytes);
        prop_assert_eq!(builder.next(), first + records.len() as u64);
        let batch = Batch::read(&bytes).unwrap().unwrap();
        prop_assert_eq!((batch.epoch, batch.shard, batch.first), (77, 3, first));
        for ((number, read), (record, expected)) in
            batch.records().map(Result::unwrap).zip(records.iter().zip(first..))
        {
            prop_assert_eq!((number, read), (expected, record.record()));
        }
        prop_assert_eq!(batch.records().count(), records.len());
        for cut in [0, 1, 35, bytes.len() - 1] {
            prop_assert_eq!(Batch::read(&bytes[..cut]), Ok(None));
        }
        let place = flip.index(bytes.len());
        bytes[place] ^= 0x10;
        prop_assert!(!matches!(Batch::read(&bytes), Ok(Some(_))));
    }

    #[test]
    fn frames_read_back_in_any_pieces(
        numbers in any::<[u64; 4]>(),
        name in ".{0,40}",
        data in proptest::collection::vec(any::<u8>(), 0..500),
        pieces in proptest::collection::vec(1_usize..50, 1..9),
    ) {
        let [a, b, c, d] = numbers;
        let hello =
            Hello {
            version: 2 + (c % 2) as u16,
            collector: &name,
            epoch: a,
            shard: 1,
            shards: 2,
            oldest: c,
            next: d,
            replies: a % 2 == 1,
            compression: b % 2 == 1,
        };
        let frames = [
            Frame::Hello(hello),
            Frame::Welcome(Welcome {
                version: 3,
                instance: a,
                next: Durable::assumed(b).into(),
                credit: c,
                compression: d % 2 == 1,
            }),
            Frame::Resume { next: a },
            Frame::Batch(&data),
            Frame::Ack { next: Durable::assumed(b).into() },
            Frame::Credit { limit: c },
            Frame::Down { meter: a, offset: b, bytes: &data },
            Frame::DownAck { meter: c, offset: d },
            Frame::Close { meter: a, close: Close::Fin { offset: b } },
            Frame::Close { meter: a, close: Close::Reset { cause: ResetCause::Server } },
            Frame::Refused(Refusal { reason: &name }),
            Frame::Ping,
            Frame::Pong,
        ];
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| frame.write(&mut bytes));
        let mut reader = FrameReader::default();
        let mut expected = frames.iter();
        let mut rest = &bytes[..];
        for piece in pieces.iter().cycle() {
            let (now, later) = rest.split_at((*piece).min(rest.len()));
            reader.push(now);
            while let Some(frame) = reader.next_frame().unwrap() {
                prop_assert_eq!(Some(&frame), expected.next());
            }
            rest = later;
            if rest.is_empty() { break; }
        }
        prop_assert_eq!(expected.next(), None);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut reader = FrameReader::default();
        reader.push(&bytes);
        while let Ok(Some(_)) = reader.next_frame() {}
        let _ = Batch::read(&bytes);
        let _ = ProxyHeader::read(&bytes);
    }

    #[test]
    fn proxy_headers_read_back(
        from in address(), to in address(),
        id in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..128)),
        stream_offset in any::<Option<u64>>(),
        time in proptest::option::of(any::<(u64, u64, u8)>()),
    ) {
        let canonical = |a: SocketAddr| SocketAddr::new(a.ip().to_canonical(), a.port());
        let addresses = from.zip(to).map(|(from, to)| (canonical(from), canonical(to)));
        let reception = time.map(|(utc_us, error_us, state)| {
            let synchronised = ClockState::Synchronised { error_us };
            let states = [ClockState::Unknown, ClockState::Unsynchronised, synchronised];
            Reception { utc_us, clock: states[usize::from(state % 3)] }
        });
        let header = ProxyHeader { addresses, unique_id: id, stream_offset, reception };
        let mut bytes = Vec::new();
        header.write(&mut bytes);
        let length = bytes.len();
        bytes.extend_from_slice(b"data of the meter");
        prop_assert_eq!(ProxyHeader::read(&bytes), Ok(Some((header, length))));
        for cut in 0..length {
            prop_assert_eq!(ProxyHeader::read(&bytes[..cut]), Ok(None));
        }
    }
}

#[test]
fn lengths_above_the_limits_are_refused() {
    let mut reader = FrameReader::default();
    reader.push(&[4, 0xff, 0xff, 0xff, 0x7f]);
    assert_eq!(reader.next_frame(), Err(DecodeError::TooLong("frame")));
    let mut reader = FrameReader::default();
    reader.push(&[5, 0, 0, 2, 0]);
    assert_eq!(reader.next_frame(), Err(DecodeError::TooLong("frame")));
}

#[test]
fn the_end_of_a_record_is_within_the_numbers_of_a_stream() {
    for (offset, is_read) in [(u64::MAX - 4, true), (u64::MAX - 3, false), (u64::MAX, false)] {
        let mut builder = BatchBuilder::new(1, 0, 0);
        builder.push(&Record::Data { meter: 0, offset, ends_message: true, bytes: b"four" });
        let mut bytes = Vec::new();
        builder.finish(&mut bytes);
        let batch = Batch::read(&bytes).unwrap().unwrap();
        assert_eq!(batch.records().all(|record| record.is_ok()), is_read, "{offset}");
    }
}

/// A PROXY header with this command, family and rest.
fn proxy_header(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    header.extend_from_slice(&[command, family]);
    header.extend_from_slice(&(rest.len() as u16).to_be_bytes());
    header.extend_from_slice(rest);
    header
}

/// An extension of a PROXY header.
fn extension(kind: u8, value: &[u8]) -> Vec<u8> {
    [&[kind], &(value.len() as u16).to_be_bytes()[..], value].concat()
}

/// 192.0.2.7:5001 to 198.51.100.9:4059.
const ADDRESSES: [u8; 12] = [192, 0, 2, 7, 198, 51, 100, 9, 0x13, 0x89, 0x0f, 0xdb];

#[test]
fn a_proxy_header_of_the_largest_length_is_read_without_its_bytes() {
    let last = extension(5, b"id-1");
    let certificate = vec![b'c'; 65_535 - ADDRESSES.len() - 3 - last.len()];
    let rest = [&ADDRESSES[..], &extension(0x20, &certificate), &last].concat();
    assert_eq!(rest.len(), 65_535);
    let header = proxy_header(0x21, 0x11, &rest);
    for size in [1, 7, 16, 1_000, 70_000] {
        let mut reader = ProxyHeaderReader::default();
        let mut read = 0;
        while reader.wanted() > 0 {
            let end = (read + size.min(reader.wanted())).min(header.len());
            reader.push(&header[read..end]).unwrap();
            read = end;
        }
        assert_eq!(read, header.len());
        let header = reader.header();
        assert_eq!(header.addresses.unwrap().0.to_string(), "192.0.2.7:5001");
        assert_eq!(header.unique_id.as_deref(), Some(&b"id-1"[..]));
    }
    assert!(size_of::<ProxyHeaderReader>() < 400, "{}", size_of::<ProxyHeaderReader>());
    // LOCAL of the largest length.
    let local = proxy_header(0x20, 0, &vec![0xff; 65_535]);
    assert_eq!(ProxyHeader::read(&local), Ok(Some((ProxyHeader::default(), local.len()))));
}

#[test]
fn the_checksum_of_a_proxy_header_is_verified() {
    // The checksum has zeros in its own place (section 2.2.3); another extension follows.
    let id = extension(5, b"id-1");
    let rest = [&ADDRESSES[..], &extension(3, &[0; 4]), &id].concat();
    let mut header = proxy_header(0x21, 0x11, &rest);
    let crc = crc32c::crc32c(&header);
    let at = header.len() - id.len() - 4;
    header[at..at + 4].copy_from_slice(&crc.to_be_bytes());
    let length = header.len();
    let (read, end) = ProxyHeader::read(&header).unwrap().unwrap();
    assert_eq!((read.unique_id.as_deref(), end), (Some(&b"id-1"[..]), length));
    // A change of any byte that leaves the fields in their places.
    for changed in [16, 27, at, at + 3, length - 1] {
        let mut header = header.clone();
        header[changed] ^= 1;
        assert_eq!(ProxyHeader::read(&header), Err(ProxyHeaderError::Checksum), "{changed}");
    }
    for checksums in [extension(3, &[0; 3]), extension(3, &[]), extension(3, &[0; 8])] {
        let header = proxy_header(0x21, 0x11, &[&ADDRESSES[..], &checksums].concat());
        assert_eq!(ProxyHeader::read(&header), Err(ProxyHeaderError::Inconsistent));
    }
    let two = extension(3, &[0; 4]).repeat(2);
    let header = proxy_header(0x21, 0x11, &[&ADDRESSES[..], &two].concat());
    assert_eq!(ProxyHeader::read(&header), Err(ProxyHeaderError::Inconsistent));
}

#[test]
fn a_proxy_header_without_usable_addresses_is_accepted() {
    let unknown = ProxyHeader::default();
    // LOCAL with any family and any rest; UNSPEC, a Unix socket, UDP, and an extension that nobody
    // defines.
    let cases: [(u8, u8, &[u8]); 6] = [
        (0x20, 0x00, b""),
        (0x20, 0xff, b"anything"),
        (0x20, 0x11, &[0; 3]),
        (0x21, 0x00, b""),
        (0x21, 0x31, &[b'x'; 216]),
        (0x21, 0x00, b"\xee\0\x01x"),
    ];
    for (command, family, rest) in cases {
        let header = proxy_header(command, family, rest);
        let expected = Ok(Some((unknown.clone(), header.len())));
        assert_eq!(ProxyHeader::read(&header), expected, "{command:#x} {family:#x}");
    }
    let short = [(0x21, 0x11, 11), (0x21, 0x21, 35), (0x21, 0x31, 215), (0x21, 0x41, 40)];
    for (command, family, length) in short {
        let header = proxy_header(command, family, &vec![0; length]);
        assert_eq!(ProxyHeader::read(&header), Err(ProxyHeaderError::Inconsistent), "{family:#x}");
    }
    assert_eq!(
        ProxyHeader::read(&proxy_header(0x22, 0, b"")),
        Err(ProxyHeaderError::Command(0x22))
    );
}
