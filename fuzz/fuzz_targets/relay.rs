//! Arbitrary bytes as frames, batches, records, PROXY headers, streams of meters, packets of an
//! MQTT broker, a segment of a record log, an entry of a head's log and the state of a head:
//! parsing never panics and always ends, and what is read is within its limits.

#![no_main]

use std::num::NonZeroU32;

use gridhaul_protocols::framing::{
    ByteOrder, Delimiter, DlmsWrapper, Framing, Iec104, LengthField, LengthFieldLayout,
    LengthPrefix, LengthWidth, MessageFraming,
};
use gridhaul_protocols::mqtt::{PacketReader, Version};
use gridhaul_relay::head::{HeadState, items};
use gridhaul_relay::protocol::{
    Batch, FRAME_MAX, Frame, FrameReader, ProxyHeader, batches, decompress,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    frames(bytes);
    for batch in batches(bytes).map_while(Result::ok) {
        check(&batch);
    }
    if let Ok(Some((header, length))) = ProxyHeader::read(bytes) {
        assert!(length <= bytes.len());
        let mut written = Vec::new();
        header.write(&mut written);
        assert_eq!(ProxyHeader::read(&written), Ok(Some((header, written.len()))));
    }
    streams(bytes);
    packets(bytes);
    if let Ok(findings) = gridhaul_relay::log::verify_segment(bytes) {
        assert!(findings.start <= findings.end);
    }
    for item in items(bytes).map_while(Result::ok) {
        let mut written = Vec::new();
        item.write(&mut written);
        assert!(items(&written).eq([Ok(item)]));
    }
    // An invalid state is read as an empty one.
    let state = HeadState::from_bytes(bytes);
    assert_eq!(HeadState::from_bytes(&state.to_bytes()), state);
});

fn frames(bytes: &[u8]) {
    let mut reader = FrameReader::default();
    for piece in bytes.chunks(7) {
        reader.push(piece);
        while let Ok(Some(frame)) = reader.next_frame() {
            if let Frame::Batch(bytes) = frame
                && let Ok(Some(batch)) = Batch::read(bytes)
            {
                check(&batch);
            }
            if let Frame::Compressed(bytes) = frame
                && let Ok(batch) = decompress(bytes)
            {
                assert!(batch.len() <= FRAME_MAX);
            }
            let mut written = Vec::new();
            frame.write(&mut written);
            let mut again = FrameReader::default();
            again.push(&written);
            assert_eq!(again.next_frame(), Ok(Some(frame)));
        }
    }
}

fn packets(bytes: &[u8]) {
    for version in [Version::V3, Version::V5] {
        let mut reader = PacketReader::new(version, 1_000);
        let mut count = 0;
        for piece in bytes.chunks(3) {
            reader.handle_input(piece);
            while let Ok(Some(_)) = reader.poll_packet() {
                count += 1;
            }
        }
        assert!(count <= bytes.len() / 2, "a packet has at least two bytes");
    }
}

fn check(batch: &Batch<'_>) {
    let count = batch.records().filter(Result::is_ok).count();
    assert!(count <= batch.count as usize);
}

fn length_field(offset: u16, size: u8, order: ByteOrder, adds: u32) -> MessageFraming {
    let layout = LengthFieldLayout { offset, size, order, adds, maximum: 1_000 };
    MessageFraming::LengthField(LengthField::new(layout))
}

fn streams(bytes: &[u8]) {
    let maximum = NonZeroU32::new(1_000).expect("not 0");
    for mut framing in [
        MessageFraming::LengthPrefix(LengthPrefix::new(
            LengthWidth::TwoBytes,
            ByteOrder::BigEndian,
            1_000,
        )),
        MessageFraming::LengthPrefix(LengthPrefix::new(
            LengthWidth::FourBytes,
            ByteOrder::LittleEndian,
            1_000,
        )),
        length_field(2, 2, ByteOrder::BigEndian, 0),
        length_field(1, 3, ByteOrder::LittleEndian, 6),
        MessageFraming::Delimiter(Delimiter::new(b'\n', maximum)),
        MessageFraming::DlmsWrapper(DlmsWrapper::new(1_000)),
        MessageFraming::Iec104(Iec104::default()),
    ] {
        let mut rest = bytes;
        while !rest.is_empty() {
            match framing.next_message_end(rest) {
                Ok(Framing::End(end)) => {
                    assert!((1..=rest.len()).contains(&end));
                    rest = &rest[end..];
                }
                Ok(Framing::Incomplete) | Err(_) => break,
            }
        }
    }
}
