//! Metadata of frames (`struct virtio_net_hdr`, `<linux/virtio_net.h>`): work that the sender of a
//! frame has left to the network device, such as its checksum and its segmentation.

/// Information about a frame that is not in its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameMetadata {
    /// The outermost VLAN tag.
    pub vlan: Option<VlanTag>,
    /// State of the checksum of TCP or UDP.
    pub checksum: Checksum,
    /// A large frame that stands for several packets.
    pub segmentation: Option<Segmentation>,
}

/// A VLAN tag (IEEE 802.1Q).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VlanTag {
    /// Tag protocol identifier: 0x8100, or 0x88a8 for the outer of two tags.
    pub protocol: u16,
    /// Tag control information: priority (3 bits), drop eligible (1 bit), VLAN identifier (12
    /// bits).
    pub control: u16,
}

/// State of the checksum of TCP or UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checksum {
    /// The checksum is in the frame and may be wrong.
    #[default]
    Complete,
    /// The network device has verified the checksum.
    Verified,
    /// The checksum is to be computed: over all bytes from `start` on, and written `offset` bytes
    /// after `start`, where the sum of the pseudo header is.
    Pending {
        /// Position of the transport header in the frame without VLAN tag.
        start: u16,
        /// Position of the checksum in the transport header.
        offset: u16,
    },
}

/// A large frame that stands for several packets, made by segmentation offload (GSO, TSO) of the
/// sender or by receive offload (GRO) of the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segmentation {
    /// Protocol of the packets.
    pub kind: SegmentationKind,
    /// Bytes of payload of each packet but the last.
    pub size: u16,
    /// Bytes of all headers. Some drivers leave it 0.
    pub header_len: u16,
    /// The first packet alone reports a reduced congestion window (CWR, RFC 3168).
    pub ecn: bool,
}

/// Protocol of the packets of a large frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentationKind {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP, each packet with a header of its own.
    Udp,
}

/// A frame to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutgoingFrame<'a> {
    /// From the destination address on, without the tag of the metadata.
    pub bytes: &'a [u8],
    /// Metadata, as they were received.
    pub metadata: FrameMetadata,
}

/// `struct virtio_net_hdr`, in the byte order of this machine, as packet sockets use it.
pub(crate) type Header = [u8; HEADER_LEN];
pub(crate) const HEADER_LEN: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const DATA_VALID: u8 = 2;
const NO_SEGMENTATION: u8 = 0;
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
const UDP_L4: u8 = 5;
const ECN: u8 = 0x80;

/// Bytes of a VLAN tag.
const VLAN_LEN: u16 = 4;

/// Checksum and segmentation of a received frame. A kind of segmentation that is not listed here
/// does not occur: the kernel rejects a frame that `struct virtio_net_hdr` cannot describe.
pub(crate) fn decode(header: &Header) -> (Checksum, Option<Segmentation>) {
    let half = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
    let checksum = match header[0] {
        flags if flags & NEEDS_CHECKSUM != 0 => {
            Checksum::Pending { start: half(6), offset: half(8) }
        }
        flags if flags & DATA_VALID != 0 => Checksum::Verified,
        _ => Checksum::Complete,
    };
    let kind = match header[1] & !ECN {
        TCP_V4 => Some(SegmentationKind::Tcp4),
        TCP_V6 => Some(SegmentationKind::Tcp6),
        UDP_L4 => Some(SegmentationKind::Udp),
        _ => None,
    };
    let segmentation = kind.map(|kind| Segmentation {
        kind,
        size: half(4),
        header_len: half(2),
        ecn: header[1] & ECN != 0,
    });
    (checksum, segmentation)
}

/// The header of a frame to send. Its positions include the VLAN tag, which is inserted into the
/// frame.
pub(crate) fn encode(metadata: &FrameMetadata) -> Header {
    let tag = if metadata.vlan.is_some() { VLAN_LEN } else { 0 };
    let mut header = [0; HEADER_LEN];
    let mut write = |at: usize, value: u16| {
        header[at..at + 2].copy_from_slice(&value.to_ne_bytes());
    };
    if let Some(Segmentation { size, header_len, .. }) = metadata.segmentation {
        write(2, if header_len == 0 { 0 } else { header_len.saturating_add(tag) });
        write(4, size);
    }
    if let Checksum::Pending { start, offset } = metadata.checksum {
        write(6, start.saturating_add(tag));
        write(8, offset);
        header[0] = NEEDS_CHECKSUM;
    }
    header[1] = metadata.segmentation.map_or(NO_SEGMENTATION, |segmentation| {
        let kind = match segmentation.kind {
            SegmentationKind::Tcp4 => TCP_V4,
            SegmentationKind::Tcp6 => TCP_V6,
            SegmentationKind::Udp => UDP_L4,
        };
        kind | if segmentation.ecn { ECN } else { 0 }
    });
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_are_the_same_after_encoding_and_decoding() {
        for checksum in [Checksum::Complete, Checksum::Pending { start: 34, offset: 16 }] {
            for kind in [SegmentationKind::Tcp4, SegmentationKind::Tcp6, SegmentationKind::Udp] {
                for ecn in [false, true] {
                    let large = Segmentation { kind, size: 1_448, header_len: 66, ecn };
                    for segmentation in [None, Some(large)] {
                        let metadata = FrameMetadata { vlan: None, checksum, segmentation };
                        assert_eq!(decode(&encode(&metadata)), (checksum, segmentation));
                    }
                }
            }
        }
    }

    #[test]
    fn positions_include_a_vlan_tag() {
        let metadata = FrameMetadata {
            vlan: Some(VlanTag { protocol: 0x8100, control: 7 }),
            checksum: Checksum::Pending { start: 34, offset: 16 },
            segmentation: None,
        };
        let checksum = decode(&encode(&metadata)).0;
        assert_eq!(checksum, Checksum::Pending { start: 38, offset: 16 });
    }

    #[test]
    fn a_verified_checksum_is_sent_as_a_complete_one() {
        let metadata = FrameMetadata { checksum: Checksum::Verified, ..FrameMetadata::default() };
        assert_eq!(encode(&metadata), [0; HEADER_LEN]);
        let mut header = [0; HEADER_LEN];
        header[0] = DATA_VALID;
        assert_eq!(decode(&header), (Checksum::Verified, None));
    }
}
