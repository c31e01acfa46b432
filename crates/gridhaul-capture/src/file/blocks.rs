//! Blocks of pcapng (draft-ietf-opsawg-pcapng) and records of pcap (draft-ietf-opsawg-pcap), parsed
//! by `pcap-parser`.

use std::io::Read;

use pcap_parser::pcapng::Block;
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{LegacyPcapReader, PcapBlockOwned, PcapError, PcapNGReader};

use super::Skipped;
use super::interface::{Interface, Interfaces, Source};
use super::packet::{Packet, Parsed};
use crate::{CaptureError, CapturedSegment};

/// Size of the buffer. Grows for larger blocks.
const BUFFER: usize = 1 << 20;

/// Largest block: packets of `tcpdump -s 0` have at most 262,144 bytes, and other blocks, such as
/// those of secrets and of names, are not much larger.
const BLOCK_MAX: usize = 64 << 20;

/// Reads the packets of a file.
pub(super) struct BlockReader {
    name: String,
    reader: Box<dyn PcapReaderIterator + Send>,
    /// Byte order of the current section of pcapng; `None` before the first one, and for pcap.
    order: Option<ByteOrder>,
    /// Interfaces of the current section.
    interfaces: Vec<Interface>,
    section: u32,
}

/// A section of a file.
struct Section<'a> {
    file: &'a str,
    number: u32,
}

/// Byte order of a section.
#[derive(Debug, Clone, Copy)]
enum ByteOrder {
    Big,
    Little,
}

/// A step of reading.
enum Step {
    Segment(CapturedSegment),
    /// No TCP segment.
    Skipped,
    /// More bytes are needed.
    Refill,
    /// A block is larger than the buffer.
    Grow,
    End,
}

impl BlockReader {
    pub(super) fn open(
        name: String,
        mut source: Box<dyn Read + Send>,
    ) -> Result<Self, CaptureError> {
        let mut first = Vec::new();
        let found = source.by_ref().take(24).read_to_end(&mut first);
        let error =
            |message: String, help| CaptureError { file: name.clone(), offset: 0, message, help };
        found.map_err(|found| error(format!("cannot read: {found}"), CaptureError::UNREADABLE))?;
        let format = || error(wrong_format(&first), CaptureError::FORMAT);
        let is_pcapng = first.starts_with(SECTION);
        let whole = std::io::Cursor::new(first.clone()).chain(source);
        let reader: Box<dyn PcapReaderIterator + Send> = if is_pcapng {
            let whole = FullReads(Box::new(whole));
            Box::new(PcapNGReader::new(BUFFER, whole).map_err(|found| match found {
                PcapError::Incomplete(_) | PcapError::UnexpectedEof => error(
                    "the file ends within its section header block".to_owned(),
                    CaptureError::TRUNCATED,
                ),
                _ => error(
                    "expected a section header block of pcapng".to_owned(),
                    CaptureError::DAMAGED,
                ),
            })?)
        } else {
            let whole = FullReads(Box::new(whole));
            Box::new(LegacyPcapReader::new(BUFFER, whole).map_err(|_| format())?)
        };
        Ok(Self { name, reader, order: None, interfaces: Vec::new(), section: 0 })
    }

    /// Offset of the next block.
    pub(super) fn offset(&self) -> u64 {
        self.reader.consumed() as u64
    }

    /// The next TCP segment of the file.
    pub(super) fn next_segment(
        &mut self,
        points: &mut Interfaces,
        skipped: &mut Skipped,
    ) -> Result<Option<CapturedSegment>, CaptureError> {
        loop {
            match self.step(points, skipped)? {
                Step::Segment(segment) => return Ok(Some(segment)),
                Step::Skipped => {}
                Step::End => return Ok(None),
                Step::Refill => self.refill()?,
                Step::Grow => {
                    let size = (self.reader.data().len() * 2).max(2 * BUFFER);
                    if size > BLOCK_MAX {
                        let message = format!("a block of more than {} MiB", BLOCK_MAX >> 20);
                        return Err(self.error(message, CaptureError::DAMAGED));
                    }
                    self.reader.grow(size);
                    self.refill()?;
                }
            }
        }
    }

    fn refill(&mut self) -> Result<(), CaptureError> {
        let is_read = self.reader.refill().is_ok();
        let unreadable = || self.error("cannot read the file".into(), CaptureError::UNREADABLE);
        is_read.then_some(()).ok_or_else(unreadable)
    }

    fn step(
        &mut self,
        points: &mut Interfaces,
        skipped: &mut Skipped,
    ) -> Result<Step, CaptureError> {
        let name = &self.name;
        let offset = self.reader.consumed() as u64;
        let error =
            |message: String, help| CaptureError { file: name.clone(), offset, message, help };
        let exhausted = self.reader.reader_exhausted();
        let rest = self.reader.data().len();
        if self.order.is_some_and(|order| order.has_short_block(self.reader.data())) {
            let message = format!("a block of less than {BLOCK_MIN} bytes");
            return Err(error(message, CaptureError::DAMAGED));
        }
        let (consumed, step) = match self.reader.next() {
            Ok((consumed, block)) => {
                if let PcapBlockOwned::NG(Block::SectionHeader(header)) = &block {
                    let is_big = header.big_endian();
                    self.order = Some(if is_big { ByteOrder::Big } else { ByteOrder::Little });
                    self.section += 1;
                    self.interfaces.clear();
                }
                let interfaces = &mut self.interfaces;
                let step = handle_block(
                    &block,
                    interfaces,
                    points,
                    &Section { file: name, number: self.section },
                    skipped,
                );
                (consumed, step.map_err(|(message, help)| error(message, help))?)
            }
            Err(PcapError::Eof) => return Ok(Step::End),
            Err(PcapError::UnexpectedEof | PcapError::Incomplete(_)) if exhausted => {
                return if rest == 0 {
                    Ok(Step::End)
                } else {
                    let message = format!("the file ends within a packet ({rest} bytes of it)");
                    Err(error(message, CaptureError::TRUNCATED))
                };
            }
            Err(PcapError::Incomplete(_)) => return Ok(Step::Refill),
            Err(PcapError::BufferTooSmall) => return Ok(Step::Grow),
            Err(PcapError::ReadError) => {
                return Err(error("cannot read the file".into(), CaptureError::UNREADABLE));
            }
            Err(_) => {
                let message = "expected a block of pcapng or a record of pcap".to_owned();
                return Err(error(message, CaptureError::DAMAGED));
            }
        };
        self.reader.consume(consumed);
        Ok(step)
    }

    fn error(&self, message: String, help: &'static str) -> CaptureError {
        CaptureError { file: self.name.clone(), offset: self.offset(), message, help }
    }
}

/// Interprets a block.
fn handle_block(
    block: &PcapBlockOwned<'_>,
    interfaces: &mut Vec<Interface>,
    points: &mut Interfaces,
    section: &Section<'_>,
    skipped: &mut Skipped,
) -> Result<Step, (String, &'static str)> {
    let missing = |number: u32| {
        let message = format!("a packet of interface {number}, which the file does not describe");
        (message, CaptureError::DAMAGED)
    };
    let source =
        |interface, index| Source { file: section.file, interface, index, section: section.number };
    let (interface, units, data, original) = match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let units = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
            interfaces.push(Interface {
                // The upper half has the length of frame check sequences.
                link_type: header.network.0 & 0xffff,
                units,
                offset_secs: 0,
                point: points.add(&source(None, 0), units),
                snapshot: header.snaplen,
            });
            return Ok(Step::Skipped);
        }
        PcapBlockOwned::Legacy(record) => {
            let interface = interfaces.first().ok_or_else(|| missing(0))?;
            let units = u64::from(record.ts_sec) * interface.units + u64::from(record.ts_usec);
            (interface, units, record.data, record.origlen)
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
            let units = units_in_a_second(description.if_tsresol)?;
            let interface = description.if_name().and_then(Result::ok);
            let source = source(interface, interfaces.len());
            interfaces.push(Interface {
                link_type: description.linktype.0,
                units,
                offset_secs: description.if_tsoffset,
                point: points.add(&source, units),
                snapshot: description.snaplen,
            });
            return Ok(Step::Skipped);
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let interface = interfaces.get(packet.if_id as usize);
            let interface = interface.ok_or_else(|| missing(packet.if_id))?;
            let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            let data = packet.data.get(..packet.caplen as usize).unwrap_or(packet.data);
            (interface, units, data, packet.origlen)
        }
        // Without a time, nothing can be said about a connection.
        PcapBlockOwned::NG(Block::SimplePacket(_)) => {
            skipped.untimed += 1;
            return Ok(Step::Skipped);
        }
        // Statistics, names and secrets are not used.
        PcapBlockOwned::NG(_) => return Ok(Step::Skipped),
    };
    debug_assert!(interface.snapshot == 0 || data.len() <= BLOCK_MAX);
    let packet = Packet { link_type: interface.link_type, data, original };
    Ok(match packet.parse() {
        Parsed::Tcp(tcp) => Step::Segment(tcp.segment(interface.time(units), interface.point)),
        Parsed::Other => {
            skipped.other += 1;
            Step::Skipped
        }
        Parsed::Cut => {
            skipped.cut += 1;
            Step::Skipped
        }
        Parsed::UnknownLinkType => {
            let message = format!("packets of link type {}", interface.link_type);
            return Err((
                message,
                "capture on Ethernet, \"any\" (cooked) or a device of IP packets",
            ));
        }
    })
}

/// Units of times in a second: a negative power of ten, or of two with the highest bit
/// (draft-ietf-opsawg-pcapng, section 4.2, if_tsresol).
fn units_in_a_second(resolution: u8) -> Result<u64, (String, &'static str)> {
    let base = if resolution & 0x80 == 0 { 10_u64 } else { 2 };
    let exponent = u32::from(resolution & 0x7f);
    let too_many = || (format!("times in units of {base}^-{exponent} s"), CaptureError::UNIT);
    base.checked_pow(exponent).ok_or_else(too_many)
}

fn wrong_format(first: &[u8]) -> String {
    if first.is_empty() {
        "the file is empty".to_owned()
    } else if first.starts_with(&[0x1f, 0x8b]) || first.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        "the file is compressed; expected pcap or pcapng".to_owned()
    } else if first.len() < 24 {
        format!("expected pcap or pcapng, found {} bytes", first.len())
    } else {
        "expected pcap or pcapng, found something else".to_owned()
    }
}

/// Smallest block of pcapng: its type and twice its length, of 4 bytes each. The parser subtracts
/// this number from the length.
const BLOCK_MIN: u32 = 12;

/// First bytes of the header of a section, which has its own byte order.
const SECTION: &[u8] = &[0x0a, 0x0d, 0x0d, 0x0a];

impl ByteOrder {
    /// Whether the length of the next block is below [`BLOCK_MIN`].
    fn has_short_block(self, data: &[u8]) -> bool {
        let length = data.get(4..8).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
        let length = length.map(|bytes| match self {
            Self::Big => u32::from_be_bytes(bytes),
            Self::Little => u32::from_le_bytes(bytes),
        });
        !data.starts_with(SECTION) && length.is_some_and(|length| length < BLOCK_MIN)
    }
}

/// Fills the buffer of each read, because the parser needs the whole first block.
struct FullReads(Box<dyn Read + Send>);

impl Read for FullReads {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.0.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_shorter_than_its_frame_is_damaged() {
        let section = |order: &dyn Fn(u32) -> [u8; 4], length: u32| {
            let words = [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28];
            let mut file: Vec<u8> = words.into_iter().flat_map(order).collect();
            // The version is two numbers of 16 bits.
            file[12..16].copy_from_slice(&order(0x0001_0000));
            if order(1) == [1, 0, 0, 0] {
                file[12..16].copy_from_slice(&[1, 0, 0, 0]);
            }
            file.extend([11, length].into_iter().flat_map(order));
            file.extend([0; 24]);
            let source = Box::new(std::io::Cursor::new(file));
            let mut blocks = BlockReader::open("a".to_owned(), source).unwrap();
            blocks.next_segment(&mut Interfaces::default(), &mut Skipped::default())
        };
        for order in [u32::to_le_bytes, u32::to_be_bytes] {
            for length in [0, 8, 11] {
                let error = section(&order, length).unwrap_err();
                assert!(error.message.contains("less than 12 bytes"), "{}", error.message);
            }
        }
    }
}
