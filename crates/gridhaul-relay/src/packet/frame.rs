//! Frames that the engine receives, and queues of those that it sends.

use gridhaul_core::wire::VlanTag;

use super::BridgePort;
use super::joining::Layout;

/// A frame as an interface has received it.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// The frame from the destination address on, without [`Self::tag`].
    pub bytes: &'a [u8],
    /// The outer VLAN tag, if the kernel has removed it from the frame.
    pub tag: Option<VlanTag>,
    /// Whether the checksum of TCP can be trusted.
    pub checksum: ChecksumState,
    /// Payload of each segment, if the frame contains several of them: their sender leaves the
    /// segmentation to the interface, or the kernel has joined them on reception.
    pub segment_size: Option<u16>,
}

/// State of the TCP checksum of a received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChecksumState {
    /// In the frame, and not verified.
    #[default]
    Unverified,
    /// Verified by the interface.
    Verified,
    /// Not filled in, because the frame has not left this machine.
    Pending,
}

impl<'a> Frame<'a> {
    /// A frame as it is on a link.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, tag: None, checksum: ChecksumState::Unverified, segment_size: None }
    }
}

/// A frame to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComposedFrame<'a> {
    /// The frame with its VLAN tags.
    pub bytes: &'a [u8],
    /// Work that is left to the interface; absent if the frame is complete.
    pub offload: Option<Offload>,
}

/// Work that is left to the interface that sends a TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offload {
    /// Position of the TCP header, whose checksum field has the sum of the pseudo header.
    pub transport: usize,
    /// Position of the payload.
    pub payload: usize,
    /// The packet is one of IPv6.
    pub is_v6: bool,
    /// Payload of each segment, if the frame contains several of them.
    pub segment_size: Option<u16>,
}

/// Frames to send over one interface, in one buffer that is reused.
#[derive(Debug, Default)]
pub struct FrameQueue {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// End of the frame in `bytes`.
    end: usize,
    segments: Option<Segments>,
}

/// Segments of a frame whose checksum is left to the interface.
#[derive(Debug, Clone, Copy)]
struct Segments {
    layout: Layout,
    /// Payload of the first segment, and whether others follow.
    size: usize,
    are_several: bool,
}

impl FrameQueue {
    /// The frames in their order.
    pub fn iter(&self) -> impl Iterator<Item = ComposedFrame<'_>> {
        let starts = std::iter::once(0).chain(self.entries.iter().map(|entry| entry.end));
        starts.zip(&self.entries).map(|(start, entry)| ComposedFrame {
            bytes: &self.bytes[start..entry.end],
            offload: entry.segments.map(|segments| segments.offload()),
        })
    }

    /// Whether there are no frames.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Removes all frames. A buffer that has grown far beyond its usual size is released.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        if self.bytes.capacity() > KEPT {
            self.bytes.shrink_to(KEPT);
        }
    }

    /// Adds a complete frame.
    pub(super) fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.entries.push(Entry { end: self.bytes.len(), segments: None });
    }

    /// Adds a segment, whose checksum is left to the interface, with the headers that `write`
    /// appends, unless it fails, and with `size` bytes of payload. If possible, the segment is
    /// joined with the one before it.
    pub(super) fn add_segment<'p, E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<Layout, E>,
        (size, payload): (usize, impl Iterator<Item = &'p [u8]>),
    ) -> Result<(), E> {
        let (start, last_start) = (self.bytes.len(), self.last_start());
        let layout = match write(&mut self.bytes) {
            Ok(layout) => layout,
            Err(error) => {
                self.bytes.truncate(start);
                return Err(error);
            }
        };
        if let Some(Entry { end, segments: Some(last) }) = self.entries.last_mut() {
            let (frame, next) = self.bytes[last_start..].split_at(start - last_start);
            if last.layout == layout && layout.continues(frame, last.size, next, size) {
                let flags = layout.flags(next);
                self.bytes.truncate(start);
                payload.for_each(|slice| self.bytes.extend_from_slice(slice));
                layout.extend(&mut self.bytes[last_start..], flags);
                (*end, last.are_several) = (self.bytes.len(), true);
                return Ok(());
            }
        }
        payload.for_each(|slice| self.bytes.extend_from_slice(slice));
        let segments = Some(Segments { layout, size, are_several: false });
        self.entries.push(Entry { end: self.bytes.len(), segments });
        Ok(())
    }

    /// Begin of the last frame.
    fn last_start(&self) -> usize {
        let before = self.entries.len().checked_sub(2);
        before.and_then(|index| self.entries.get(index)).map_or(0, |entry| entry.end)
    }
}

impl Segments {
    const fn offload(self) -> Offload {
        let Layout { transport, payload, is_v6, .. } = self.layout;
        let segment_size = if self.are_several { Some(self.size as u16) } else { None };
        Offload { transport, payload, is_v6, segment_size }
    }
}

/// Memory that an empty queue keeps: two batches of large frames.
const KEPT: usize = 1 << 22;

/// Frames to send, by the interface.
#[derive(Debug, Default)]
pub struct OutgoingFrames([FrameQueue; 2]);

impl OutgoingFrames {
    /// Frames to send over an interface.
    #[must_use]
    pub const fn over(&self, port: BridgePort) -> &FrameQueue {
        &self.0[port.index()]
    }

    /// The same, to be changed.
    pub const fn over_mut(&mut self, port: BridgePort) -> &mut FrameQueue {
        &mut self.0[port.index()]
    }

    /// Removes all frames.
    pub fn clear(&mut self) {
        self.0.iter_mut().for_each(FrameQueue::clear);
    }
}
