//! A network interface of the bridge.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use gridhaul_core::wire::VlanTag;
use gridhaul_linux::{
    Checksum, FrameBatch, FrameMetadata, OutgoingFrame, PacketSocket, ReceivedFrame, Segmentation,
    SegmentationKind, SendRejection, interface_index, interface_mtu,
};

use crate::packet::joining::CHECKSUM;
use crate::packet::{BridgeCounters, ChecksumState, ComposedFrame, Frame, FrameDropCause, Offload};
use crate::runtime::RunError;
use crate::runtime::listener::{START_ATTEMPTS, pause};

/// An interface with its packet socket.
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) socket: PacketSocket,
    _claim: UnixDatagram,
}

/// Buffer of the socket: some milliseconds at 10 Gbit/s.
const RECEIVE_BUFFER: usize = 16 << 20;
const SEND_BUFFER: usize = 4 << 20;

impl Interface {
    /// Opens the interface for frames to all addresses.
    pub(super) fn open(name: &str) -> Result<Self, RunError> {
        let claim = claim(name)?;
        let socket = PacketSocket::open_with_metadata(name, PacketSocket::ALL_PROTOCOLS)?;
        socket.set_promiscuous(name)?;
        let sized = socket
            .set_receive_buffer(RECEIVE_BUFFER)
            .and_then(|()| socket.set_send_buffer(SEND_BUFFER));
        sized.map_err(|source| Self::failed(name, source))?;
        Ok(Self { name: name.to_owned(), socket, _claim: claim })
    }

    /// Receives waiting frames. Returns how many there are; none while the interface is down.
    pub(super) fn receive(&self, batch: &mut FrameBatch) -> Result<usize, RunError> {
        match self.socket.receive(batch) {
            Err(error) if error.raw_os_error() == Some(ENETDOWN) => Ok(0),
            received => received.map_err(|source| Self::failed(&self.name, source)),
        }
    }

    /// Sends frames. Those that the interface does not take are dropped and counted, as a bridge of
    /// the kernel does.
    pub(super) fn send(
        &self,
        mut frames: &[OutgoingFrame<'_>],
        counters: &mut BridgeCounters,
    ) -> Result<(), RunError> {
        while !frames.is_empty() {
            let result = self.socket.send_frames(frames);
            let done = result.map_err(|source| Self::failed(&self.name, source))?;
            let (cause, taken) = match done.rejected {
                None if done.sent >= frames.len() => return Ok(()),
                // The buffer of the socket is full: the interface is slower than its input.
                None => (FrameDropCause::QueueFull, frames.len()),
                Some(SendRejection::QueueFull) => (FrameDropCause::QueueFull, done.sent + 1),
                Some(SendRejection::TooLong) => (FrameDropCause::TooLong, done.sent + 1),
                Some(SendRejection::Malformed) => (FrameDropCause::Malformed, done.sent + 1),
                Some(SendRejection::InterfaceDown) => (FrameDropCause::InterfaceDown, frames.len()),
            };
            counters.add_dropped(cause, (taken - done.sent) as u64);
            frames = &frames[taken..];
        }
        Ok(())
    }

    /// Largest IP packet.
    pub(super) fn mtu(&self) -> Result<u32, RunError> {
        interface_mtu(&self.name).map_err(|error| match error {
            gridhaul_linux::Error::Call { source, .. } => Self::failed(&self.name, source),
            error => error.into(),
        })
    }

    /// Frames that the kernel has dropped since the last call, because the buffer of the socket was
    /// full.
    pub(super) fn take_dropped(&self) -> u64 {
        self.socket.dropped().map_or(0, u64::from)
    }

    fn failed(name: &str, source: io::Error) -> RunError {
        RunError::Interface { interface: name.to_owned(), source }
    }
}

/// Excludes another relay with this interface: each of them would forward all packets. The name is
/// one of the network namespace (unix(7), abstract addresses), and is free when the process ends. A
/// relay that was killed while it started a program leaves it to that process for a moment.
fn claim(name: &str) -> Result<UnixDatagram, RunError> {
    let failed = |source| Interface::failed(name, source);
    let index = interface_index(name)?;
    let address = SocketAddr::from_abstract_name(format!("gridhaul-bridge-{index}"));
    let address = address.map_err(failed)?;
    for attempt in 0..START_ATTEMPTS {
        if attempt > 0 {
            pause();
        }
        match UnixDatagram::bind_addr(&address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            bound => return bound.map_err(failed),
        }
    }
    Err(RunError::Invalid(format!(
        "bridge.interfaces: another relay has the interface {name}\n  help: stop it first; a \
         second one would forward the same packets once more"
    )))
}

/// "Network is down", which the kernel reports once after an interface has gone down.
const ENETDOWN: i32 = 100;

/// A received frame, as the engine takes it.
pub(super) fn frame_of<'a>(received: &ReceivedFrame<'a>) -> Frame<'a> {
    let checksum = match received.checksum {
        Checksum::Complete => ChecksumState::Unverified,
        Checksum::Verified => ChecksumState::Verified,
        Checksum::Pending { .. } => ChecksumState::Pending,
    };
    let is_tcp = |kind| matches!(kind, SegmentationKind::Tcp4 | SegmentationKind::Tcp6);
    let segmentation = received.segmentation.filter(|found| is_tcp(found.kind));
    Frame {
        bytes: received.bytes,
        tag: received.vlan.map(|tag| VlanTag {
            id: tag.control & 0xfff,
            priority: (tag.control >> 13) as u8,
            drop_eligible: tag.control & 0x1000 != 0,
            service: tag.protocol == SERVICE_TAG,
        }),
        checksum,
        segment_size: segmentation.map(|found| found.size),
    }
}

/// A frame of the engine with its metadata.
pub(super) fn outgoing_frame<'a>(frame: &ComposedFrame<'a>) -> OutgoingFrame<'a> {
    let Some(Offload { transport, payload, is_v6, segment_size }) = frame.offload else {
        return OutgoingFrame { bytes: frame.bytes, metadata: FrameMetadata::default() };
    };
    let kind = if is_v6 { SegmentationKind::Tcp6 } else { SegmentationKind::Tcp4 };
    let segmentation = |size| Segmentation { kind, size, header_len: payload as u16, ecn: false };
    let metadata = FrameMetadata {
        vlan: None,
        checksum: Checksum::Pending { start: transport as u16, offset: CHECKSUM as u16 },
        segmentation: segment_size.map(segmentation),
    };
    OutgoingFrame { bytes: frame.bytes, metadata }
}

/// Tag protocol identifier of a service tag (IEEE 802.1ad).
const SERVICE_TAG: u16 = 0x88a8;
