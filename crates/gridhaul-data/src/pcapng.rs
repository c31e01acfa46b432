//! Packet captures in pcapng (draft-ietf-opsawg-pcapng), for example for Wireshark.

use std::io;
use std::sync::Arc;

use gridhaul_scenario::answer::{Capture, RecordedBytesWriter, RecordingFile};
use gridhaul_scenario::units::Instant;

/// Writes the packets of one direction of a link.
#[derive(Debug)]
pub struct PcapngWriter {
    name: String,
    out: RecordedBytesWriter,
    /// Packets that were offered.
    offered: u64,
}

impl PcapngWriter {
    /// Largest number of packets in a capture, so that a long run does not fill a disk.
    pub const PACKETS_MAX: u64 = 2_000_000;

    /// A capture without packets, for an interface with this name. Packets are written to a file,
    /// or without a file to memory.
    #[must_use]
    pub fn new(interface: &str, file: Option<Arc<RecordingFile>>) -> Self {
        let out = RecordedBytesWriter::new(file);
        let name = interface.to_owned();
        let mut writer = Self { name, out, offered: 0 };
        writer.section_header();
        writer.interface();
        writer
    }

    /// Counts a packet, and returns whether the capture has space for it.
    pub const fn offer(&mut self) -> bool {
        self.offered += 1;
        self.offered <= Self::PACKETS_MAX
    }

    /// Adds a packet: its bytes from the IP header on, possibly truncated, and its original length.
    pub fn push(&mut self, at: Instant, bytes: &[u8], original_len: u32) {
        self.push_with(at, |buffer| {
            buffer.extend_from_slice(bytes);
            original_len
        });
    }

    /// As [`Self::push`], with the bytes that `write` adds at the end of a buffer. `write` returns
    /// the original length.
    #[inline]
    pub fn push_with(&mut self, at: Instant, write: impl FnOnce(&mut Vec<u8>) -> u32) {
        let nanos = at.as_nanos();
        self.block(ENHANCED_PACKET, |buffer| {
            let [interface, captured, original] = [0; 3];
            let times = [(nanos >> 32) as u32, nanos as u32];
            let fields = [interface, times[0], times[1], captured, original];
            buffer.extend_from_slice(fields.map(u32::to_le_bytes).as_flattened());
            let packet = buffer.len();
            let original = write(buffer);
            let captured = (buffer.len() - packet) as u32;
            set_field(buffer, packet - 8, captured);
            set_field(buffer, packet - 4, original.max(captured));
        });
    }

    /// The capture with all packets.
    ///
    /// # Errors
    /// The file could not be written, such as on a full disk.
    pub fn into_capture(self) -> io::Result<Capture> {
        let omitted_packets = self.offered.saturating_sub(Self::PACKETS_MAX);
        Ok(Capture { name: self.name, pcapng: self.out.finish()?, omitted_packets })
    }

    /// A block of pcapng: type, length, body padded to four bytes, length. `body` adds the body at
    /// the end of a buffer.
    #[inline]
    fn block(&mut self, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
        self.out.append_with(|buffer| {
            let start = buffer.len();
            // The length is not known yet.
            buffer.extend_from_slice([kind, 0].map(u32::to_le_bytes).as_flattened());
            let body_start = buffer.len();
            body(buffer);
            let padded = (buffer.len() - body_start).next_multiple_of(4);
            buffer.resize(body_start + padded, 0);
            let total = (padded + 12) as u32;
            buffer.extend_from_slice(&total.to_le_bytes());
            set_field(buffer, start + 4, total);
        });
    }

    fn section_header(&mut self) {
        let mut body = Vec::new();
        body.extend(0x1a2b_3c4d_u32.to_le_bytes());
        body.extend([1, 0, 0, 0]);
        body.extend(u64::MAX.to_le_bytes());
        self.block(0x0a0d_0d0a, |buffer| buffer.append(&mut body));
    }

    fn interface(&mut self) {
        let mut body = Vec::new();
        body.extend(LINKTYPE_RAW.to_le_bytes());
        // Reserved, and no limit on the length.
        body.extend([0; 6]);
        option(&mut body, 2, self.name.as_bytes());
        // if_tsresol: nanoseconds.
        option(&mut body, 9, &[9]);
        option(&mut body, 0, &[]);
        self.block(1, |buffer| buffer.append(&mut body));
    }
}

/// Type of the block of a packet.
const ENHANCED_PACKET: u32 = 6;

/// Overwrites a field of four bytes at this position.
fn set_field(buffer: &mut [u8], at: usize, value: u32) {
    buffer[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Link type of packets that begin with an IPv4 or IPv6 header.
const LINKTYPE_RAW: u16 = 101;

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types and bodies of the blocks of a file, whose two lengths must be the same.
    fn blocks(mut file: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let number = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap());
        let mut blocks = Vec::new();
        while !file.is_empty() {
            let length = number(&file[4..]) as usize;
            assert_eq!((length % 4, number(&file[length - 4..]) as usize), (0, length));
            blocks.push((number(file), file[8..length - 4].to_vec()));
            file = &file[length..];
        }
        blocks
    }

    #[test]
    fn a_packet_is_a_block_with_its_time_and_both_lengths() {
        let mut writer = PcapngWriter::new("feeder.forward", None);
        writer.push(Instant::from_nanos(5_000_000_007), b"\x45 headers", 1500);
        let capture = writer.into_capture().unwrap();
        assert_eq!(capture.name, "feeder.forward");
        let mut file = Vec::new();
        capture.pcapng.copy_to(&mut file).unwrap();
        let blocks = blocks(&file);
        assert_eq!(blocks.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [0x0a0d_0d0a, 1, 6]);
        // Interface 0, 5,000,000,007 ns in two halves, 9 bytes of 1500, and padding.
        let fields = [0_u32, 1, 705_032_711, 9, 1500].map(u32::to_le_bytes).concat();
        assert_eq!(blocks[2].1, [&fields[..], b"\x45 headers\0\0\0"].concat());
    }
    #[test]
    fn a_full_capture_counts_the_packets_that_it_lacks() {
        let mut writer = PcapngWriter::new("feeder.forward", None);
        let kept = (0..PcapngWriter::PACKETS_MAX + 3).filter(|_| writer.offer()).count();
        assert_eq!(kept as u64, PcapngWriter::PACKETS_MAX);
        assert_eq!(writer.into_capture().unwrap().omitted_packets, 3);
    }
}
