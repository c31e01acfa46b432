//! Space for received frames, and what the kernel reports of them (packet(7)).

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use crate::frame_metadata::{
    self as metadata, Checksum, FrameMetadata, OutgoingFrame, Segmentation, VlanTag,
};

/// Space for received frames, which is used again for each batch.
#[derive(Debug)]
pub struct FrameBatch {
    frame_size: usize,
    bytes: Vec<u8>,
    /// Headers with metadata, which precede the frames of sockets that report metadata.
    headers: Vec<metadata::Header>,
    control: Vec<Control>,
    info: Vec<FrameInfo>,
    count: usize,
    unsupported: u64,
}

/// A frame that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedFrame<'a> {
    /// From the destination address on, without the VLAN tag; from the network header on in a
    /// [capture](crate::PacketSocket::capture).
    pub bytes: &'a [u8],
    /// The VLAN tag of the frame.
    pub vlan: Option<VlanTag>,
    /// The TCP or UDP checksum is not filled in: a program of this machine sent the frame, and the
    /// device would have filled it in.
    pub checksum_pending: bool,
    /// State of the TCP or UDP checksum; always [`Checksum::Complete`] unless the socket
    /// [reports metadata](crate::PacketSocket::open_with_metadata).
    pub checksum: Checksum,
    /// The frame stands for several packets; `None` unless the socket
    /// [reports metadata](crate::PacketSocket::open_with_metadata).
    pub segmentation: Option<Segmentation>,
    /// The frame is longer than the space for it.
    pub truncated: bool,
    /// Time at which the kernel received the frame, since 1970 by the system's clock.
    pub received_at: Option<Duration>,
    /// The namespace of the socket sends the frame; otherwise it receives it.
    pub outgoing: bool,
    /// Protocol of the payload, as EtherType.
    pub ether_type: u16,
}

impl ReceivedFrame<'_> {
    /// Metadata for sending the frame as it was received.
    #[must_use]
    pub const fn metadata(&self) -> FrameMetadata {
        FrameMetadata { vlan: self.vlan, checksum: self.checksum, segmentation: self.segmentation }
    }
}

impl<'a> From<ReceivedFrame<'a>> for OutgoingFrame<'a> {
    fn from(frame: ReceivedFrame<'a>) -> Self {
        Self { bytes: frame.bytes, metadata: frame.metadata() }
    }
}

impl FrameBatch {
    /// Space for `frames` frames of at most `frame_size` bytes.
    #[must_use]
    pub fn new(frames: usize, frame_size: usize) -> Self {
        Self {
            frame_size,
            bytes: vec![0; frames * frame_size],
            headers: vec![metadata::Header::default(); frames],
            control: vec![Control([0; CONTROL_SIZE]); frames],
            info: vec![FrameInfo::default(); frames],
            count: 0,
            unsupported: 0,
        }
    }

    /// Frames that were lost since this batch was made, because the kernel has no metadata for
    /// them: large frames of other kinds than [`SegmentationKind`](crate::SegmentationKind) lists,
    /// such as those of a tunnel.
    #[must_use]
    pub const fn unsupported(&self) -> u64 {
        self.unsupported
    }

    /// The frames of the last batch, in the order of their arrival.
    pub fn frames(&self) -> impl Iterator<Item = ReceivedFrame<'_>> {
        let frames = self.bytes.chunks_exact(self.frame_size).zip(&self.info).take(self.count);
        frames.map(|(bytes, info)| ReceivedFrame {
            bytes: &bytes[..info.length.min(bytes.len())],
            vlan: info.vlan,
            checksum_pending: info.checksum_pending,
            checksum: info.checksum,
            segmentation: info.segmentation,
            truncated: info.truncated,
            received_at: info.received_at,
            outgoing: info.outgoing,
            ether_type: info.ether_type,
        })
    }

    /// Replaces the frames by those that are waiting at a packet socket, whose frames follow a
    /// header if `with_metadata`. Returns how many there are.
    #[expect(unsafe_code, reason = "recvmmsg, which no crate in use wraps")]
    pub(crate) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        with_metadata: bool,
    ) -> io::Result<usize> {
        self.count = 0;
        let Self { frame_size, bytes, headers, control, .. } = self;
        // SAFETY: all bytes zero are a valid `sockaddr_ll`.
        let mut addresses = vec![unsafe { mem::zeroed::<libc::sockaddr_ll>() }; control.len()];
        let mut parts: Vec<_> = bytes
            .chunks_exact_mut(*frame_size)
            .zip(headers.iter_mut())
            .map(|(frame, header)| {
                [part(header.as_ptr(), header.len()), part(frame.as_ptr(), frame.len())]
            })
            .collect();
        let mut messages: Vec<_> = parts
            .iter_mut()
            .zip(control.iter_mut())
            .zip(addresses.iter_mut())
            .map(|((parts, control), address)| {
                let parts = if with_metadata { &mut parts[..] } else { &mut parts[1..] };
                let mut message = message(parts, &mut control.0);
                message.msg_hdr.msg_name = (&raw mut *address).cast();
                message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
                message
            })
            .collect();
        // SAFETY: the kernel writes into `messages`, the headers, the frames, the control buffers
        // and the addresses that they point to, all of which outlive the call.
        let received = unsafe {
            let count = messages.len() as libc::c_uint;
            let (no_wait, no_timeout) = (libc::MSG_DONTWAIT, std::ptr::null_mut());
            libc::recvmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), count, no_wait, no_timeout)
        };
        let count = match frame_count(received) {
            // The kernel cannot describe this frame by `struct virtio_net_hdr`, and drops it.
            Err(error) if with_metadata && error.raw_os_error() == Some(libc::EINVAL) => {
                self.unsupported += 1;
                return Ok(0);
            }
            count => count?,
        };
        for (((message, address), header), info) in
            messages.iter().zip(&addresses).zip(&self.headers).take(count).zip(&mut self.info)
        {
            *info = FrameInfo::of(message, address);
            if with_metadata {
                info.length = info.length.saturating_sub(header.len());
                (info.checksum, info.segmentation) = metadata::decode(header);
            }
        }
        self.count = count;
        Ok(count)
    }
}

/// Metadata of a frame from the kernel.
#[derive(Debug, Clone, Copy, Default)]
struct FrameInfo {
    length: usize,
    vlan: Option<VlanTag>,
    checksum_pending: bool,
    checksum: Checksum,
    segmentation: Option<Segmentation>,
    truncated: bool,
    received_at: Option<Duration>,
    outgoing: bool,
    ether_type: u16,
}

impl FrameInfo {
    #[expect(unsafe_code, reason = "control messages are read by libc's macros")]
    fn of(message: &libc::mmsghdr, address: &libc::sockaddr_ll) -> Self {
        let header = &message.msg_hdr;
        let mut info = Self {
            length: message.msg_len as usize,
            truncated: header.msg_flags & libc::MSG_TRUNC != 0,
            outgoing: address.sll_pkttype == libc::PACKET_OUTGOING,
            ether_type: u16::from_be(address.sll_protocol),
            ..Self::default()
        };
        // SAFETY: the kernel has written the control messages of `header`, whose buffer is still
        // there; the data of a message of each type has the type that is read, and may be
        // unaligned.
        unsafe {
            let mut control = libc::CMSG_FIRSTHDR(header);
            while let Some(found) = control.as_ref() {
                let data = libc::CMSG_DATA(control);
                match (found.cmsg_level, found.cmsg_type) {
                    (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                        info.set_auxiliary(&data.cast::<libc::tpacket_auxdata>().read_unaligned());
                    }
                    (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS) => {
                        let time = data.cast::<libc::timespec>().read_unaligned();
                        info.received_at = Some(since_1970(time));
                    }
                    _ => {}
                }
                control = libc::CMSG_NXTHDR(header, control);
            }
        }
        info
    }

    fn set_auxiliary(&mut self, data: &libc::tpacket_auxdata) {
        let has = |flag: u32| data.tp_status & flag != 0;
        self.checksum_pending = has(libc::TP_STATUS_CSUMNOTREADY);
        if has(libc::TP_STATUS_VLAN_VALID) {
            let known = has(libc::TP_STATUS_VLAN_TPID_VALID);
            let protocol = if known { data.tp_vlan_tpid } else { VLAN_PROTOCOL };
            self.vlan = Some(VlanTag { protocol, control: data.tp_vlan_tci });
        }
    }
}

/// Space for the control messages of a frame, aligned as the kernel's headers are.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_SIZE]);

/// `PACKET_AUXDATA` and `SO_TIMESTAMPNS` with their headers take 80 bytes.
const CONTROL_SIZE: usize = 128;

/// `ETH_P_8021Q`.
const VLAN_PROTOCOL: u16 = 0x8100;

/// A time of the system's clock, which the kernel has written into a control message
/// (`SCM_TIMESTAMPNS`).
pub(crate) const fn since_1970(time: libc::timespec) -> Duration {
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

pub(crate) fn part(bytes: *const u8, length: usize) -> libc::iovec {
    libc::iovec { iov_base: bytes.cast_mut().cast(), iov_len: length }
}

#[expect(unsafe_code, reason = "the structure has private padding on some systems")]
pub(crate) fn message(parts: &mut [libc::iovec], control: &mut [u8]) -> libc::mmsghdr {
    // SAFETY: all bytes zero are a valid `mmsghdr`.
    let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
    message.msg_hdr.msg_iov = parts.as_mut_ptr();
    message.msg_hdr.msg_iovlen = parts.len();
    if !control.is_empty() {
        message.msg_hdr.msg_control = control.as_mut_ptr().cast();
        message.msg_hdr.msg_controllen = control.len();
    }
    message
}

/// The result of a call for several messages: none are waiting, or the queue is full, is no error.
pub(crate) fn frame_count(result: i32) -> io::Result<usize> {
    if result >= 0 {
        return Ok(result as usize);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS) => Ok(0),
        _ => Err(error),
    }
}
