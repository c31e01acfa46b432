//! Capture files: pcap and pcapng, as a stream of TCP segments in the order of time.

mod blocks;
mod interface;
mod packet;

use std::io::{self, Read};

use gridhaul_core::tcp::Flags;
use gridhaul_scenario::answer::Capture;

use crate::{CaptureError, CapturedSegment};

use blocks::BlockReader;
use interface::Interfaces;

/// A capture that has not been read yet.
pub struct CaptureFile {
    name: String,
    source: Box<dyn Read + Send>,
}

/// Reads the TCP segments of one or more files in the order of time.
///
/// Several files are the points of one capture, or the directions of a link as gridhaul writes
/// them.
pub struct SegmentReader {
    files: Vec<OpenFile>,
    interfaces: Interfaces,
    skipped: Skipped,
}

/// Packets that are no TCP segments.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Skipped {
    /// Other protocols, and fragments without a TCP header.
    pub(crate) other: u64,
    /// Packets whose captured bytes end before the TCP header does.
    pub(crate) cut: u64,
    /// Packets without a time (simple packet blocks of pcapng).
    pub(crate) untimed: u64,
}

/// A file, and the segment that is read next.
struct OpenFile {
    blocks: BlockReader,
    next: Option<CapturedSegment>,
}

impl CaptureFile {
    /// A file with its name in errors and its bytes, such as `std::fs::File`.
    #[must_use]
    pub fn new(name: &str, source: impl Read + Send + 'static) -> Self {
        Self { name: name.to_owned(), source: Box::new(source) }
    }

    /// A capture of a run.
    ///
    /// # Errors
    /// The recorded bytes cannot be read.
    pub fn recorded(capture: &Capture) -> io::Result<Self> {
        let mut bytes = Vec::with_capacity(usize::try_from(capture.pcapng.len()).unwrap_or(0));
        capture.pcapng.copy_to(&mut bytes)?;
        Ok(Self::new(&capture.name, io::Cursor::new(bytes)))
    }
}

impl std::fmt::Debug for CaptureFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CaptureFile").field("name", &self.name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for SegmentReader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SegmentReader")
            .field("skipped", &self.skipped)
            .finish_non_exhaustive()
    }
}

impl SegmentReader {
    /// Opens the files.
    ///
    /// # Errors
    /// A file that is neither pcap nor pcapng, or whose first block is damaged.
    pub fn open(files: Vec<CaptureFile>) -> Result<Self, CaptureError> {
        let mut reader = Self {
            files: Vec::new(),
            interfaces: Interfaces::default(),
            skipped: Skipped::default(),
        };
        for CaptureFile { name, source } in files {
            let blocks = BlockReader::open(name, source)?;
            let mut file = OpenFile { blocks, next: None };
            file.advance(&mut reader.interfaces, &mut reader.skipped)?;
            reader.files.push(file);
        }
        Ok(reader)
    }

    /// The next segment, or `None` at the end of all files.
    ///
    /// # Errors
    /// A damaged or incomplete block, with its offset.
    pub fn next_segment(&mut self) -> Result<Option<CapturedSegment>, CaptureError> {
        let waiting = self.files.iter().enumerate();
        let waiting = waiting.filter_map(|(index, file)| file.next.map(|segment| (index, segment)));
        let earliest =
            waiting.reduce(|best, other| if precedes(&other.1, &best.1) { other } else { best });
        let Some((index, _)) = earliest else { return Ok(None) };
        let file = &mut self.files[index];
        let segment = file.next.take();
        file.advance(&mut self.interfaces, &mut self.skipped)?;
        Ok(segment)
    }

    /// Bytes read of all files.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.files.iter().map(|file| file.blocks.offset()).sum()
    }

    pub(crate) const fn skipped(&self) -> Skipped {
        self.skipped
    }

    /// Name of a point of the capture, and unit of its times in nanoseconds.
    pub(crate) fn point(&self, point: u32) -> (&str, u64) {
        self.interfaces.point(point)
    }
}

/// Whether a segment is before another one of another file. The clock of a simulation has equal
/// times in both directions: a segment is after the data that it acknowledges, and data is after
/// the acknowledgement that permitted it.
fn precedes(segment: &CapturedSegment, other: &CapturedSegment) -> bool {
    if segment.at != other.at {
        return segment.at < other.at;
    }
    let is_answer = |answer: &CapturedSegment, data: &CapturedSegment| {
        let length = data.payload + u32::from(data.flags.has(Flags::SYN));
        length > 0 && answer.flags.has(Flags::ACK) && answer.ack == data.seq.wrapping_add(length)
    };
    match (is_answer(segment, other), is_answer(other, segment)) {
        (false, false) => segment.is_pure_ack() && !other.is_pure_ack(),
        (answers, _) => !answers,
    }
}

impl OpenFile {
    fn advance(
        &mut self,
        interfaces: &mut Interfaces,
        skipped: &mut Skipped,
    ) -> Result<(), CaptureError> {
        self.next = self.blocks.next_segment(interfaces, skipped)?;
        Ok(())
    }
}
