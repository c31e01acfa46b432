//! Frames that the engine takes and gives.

use gridhaul_core::wire::VlanTag;

use super::BridgePort;

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

/// Frames to send over one interface, complete with VLAN tags and checksums, in one buffer that is
/// reused.
#[derive(Debug, Default)]
pub struct FrameQueue {
    bytes: Vec<u8>,
    /// End of each frame in `bytes`.
    ends: Vec<usize>,
}

impl FrameQueue {
    /// The frames in their order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }

    /// Whether there are no frames.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Removes all frames. A buffer that has grown far beyond its usual size is released.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        if self.bytes.capacity() > KEPT {
            self.bytes.shrink_to(KEPT);
        }
    }

    /// Adds the frame that `write` appends, unless it fails.
    pub(super) fn add<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        match write(&mut self.bytes) {
            Ok(()) => {
                self.ends.push(self.bytes.len());
                Ok(())
            }
            Err(error) => {
                self.bytes.truncate(start);
                Err(error)
            }
        }
    }
}

/// Memory that an empty queue keeps.
const KEPT: usize = 1 << 20;

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
