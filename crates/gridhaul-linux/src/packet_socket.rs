//! Packet sockets (AF_PACKET, packet(7)): Ethernet frames of one device, in batches.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::{Error, interface_index};

/// A socket that sends and receives the Ethernet frames of one device. It never blocks; wait with
/// [`Poll`](crate::Poll).
///
/// Frames that this machine sends over the device are not received. The kernel removes the VLAN tag from a
/// received frame and reports it separately ([`ReceivedFrame::vlan`]); a tag in a sent frame stays there.
/// Switch [offloads](crate::set_offload) off to see frames as they are on the link.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
}

impl PacketSocket {
    /// EtherType for frames of all protocols (`ETH_P_ALL`).
    pub const ALL_PROTOCOLS: u16 = libc::ETH_P_ALL as u16;

    /// Opens a socket for the frames of a device in the namespace of the calling thread that have this
    /// EtherType, for example 0x88ba (Sampled Values).
    ///
    /// # Errors
    /// There is no such device, or the caller lacks `CAP_NET_RAW`.
    #[expect(unsafe_code, reason = "socket addresses of packet(7), which no crate in use wraps")]
    pub fn open(interface: &str, ether_type: u16) -> Result<Self, Error> {
        let operation = || format!("opening a packet socket on device {interface}");
        let index = interface_index(interface)?;
        // Protocol 0: nothing is received before the socket is bound to the device.
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no memory is passed.
        let file = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if file < 0 {
            return Err(Error::call(operation())(io::Error::last_os_error()));
        }
        // SAFETY: the descriptor is new and has no other owner.
        let socket = Self { socket: unsafe { OwnedFd::from_raw_fd(file) } };
        let set = |level, option| socket.set_option(level, option, &1_i32.to_ne_bytes());
        set(libc::SOL_PACKET, libc::PACKET_AUXDATA).map_err(Error::call(operation()))?;
        set(libc::SOL_PACKET, PACKET_IGNORE_OUTGOING).map_err(Error::call(operation()))?;
        set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS).map_err(Error::call(operation()))?;
        // SAFETY: all bytes zero are a valid `sockaddr_ll`.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ether_type.to_be();
        address.sll_ifindex = index as i32;
        // SAFETY: the kernel reads one `sockaddr_ll`, which outlives the call.
        let bound = unsafe {
            let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            libc::bind(file, (&raw const address).cast(), length)
        };
        if bound == 0 {
            Ok(socket)
        } else {
            Err(Error::call(operation())(io::Error::last_os_error()))
        }
    }

    /// Receives frames to all destination addresses (`PACKET_MR_PROMISC`), as a bridge does.
    ///
    /// # Errors
    /// The device does not support it.
    pub fn set_promiscuous(&self, interface: &str) -> Result<(), Error> {
        let index = interface_index(interface)?;
        // `struct packet_mreq`: device, type, length of the address, address.
        let mut request = [0_u8; 16];
        request[..4].copy_from_slice(&index.to_ne_bytes());
        request[4..6].copy_from_slice(&(libc::PACKET_MR_PROMISC as u16).to_ne_bytes());
        self.set_option(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
            .map_err(Error::call(format!("making device {interface} promiscuous")))
    }

    /// Sends frames with one call into the kernel. Returns how many it took, which are the first of them;
    /// 0 if the device's queue is full.
    ///
    /// # Errors
    /// The first frame was rejected: longer than the MTU allows, or the device is down.
    #[expect(unsafe_code, reason = "sendmmsg, which no crate in use wraps")]
    pub fn send(&self, frames: &[&[u8]]) -> io::Result<usize> {
        let mut parts: Vec<_> =
            frames.iter().map(|frame| part(frame.as_ptr(), frame.len())).collect();
        let mut messages: Vec<_> = parts.iter_mut().map(|part| message(part, &mut [])).collect();
        // SAFETY: the kernel reads `messages` and the frames that they point to, which outlive the call.
        let sent = unsafe {
            let count = messages.len() as libc::c_uint;
            libc::sendmmsg(self.socket.as_raw_fd(), messages.as_mut_ptr(), count, 0)
        };
        frame_count(sent)
    }

    /// Receives the frames that are waiting, at most as many as `batch` has space for, with one call into the
    /// kernel. Returns how many there are.
    ///
    /// # Errors
    /// The device is down or was deleted.
    #[expect(unsafe_code, reason = "recvmmsg, which no crate in use wraps")]
    pub fn receive(&self, batch: &mut FrameBatch) -> io::Result<usize> {
        batch.count = 0;
        let FrameBatch { frame_size, bytes, control, .. } = batch;
        let mut parts: Vec<_> =
            bytes.chunks_exact_mut(*frame_size).map(|it| part(it.as_ptr(), it.len())).collect();
        let mut messages: Vec<_> = parts
            .iter_mut()
            .zip(control.iter_mut())
            .map(|(part, control)| message(part, &mut control.0))
            .collect();
        // SAFETY: the kernel writes into `messages`, the frames and the control buffers that they point to,
        // all of which outlive the call.
        let received = unsafe {
            let count = messages.len() as libc::c_uint;
            let (no_wait, no_timeout) = (libc::MSG_DONTWAIT, std::ptr::null_mut());
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                count,
                no_wait,
                no_timeout,
            )
        };
        let count = frame_count(received)?;
        for (message, info) in messages.iter().take(count).zip(&mut batch.info) {
            *info = FrameInfo::of(message);
        }
        batch.count = count;
        Ok(count)
    }

    #[expect(unsafe_code, reason = "options of packet(7), which no crate in use wraps")]
    fn set_option(&self, level: i32, option: i32, value: &[u8]) -> io::Result<()> {
        // SAFETY: the kernel reads the bytes of `value`, which outlives the call.
        let done = unsafe {
            let length = value.len() as libc::socklen_t;
            libc::setsockopt(self.socket.as_raw_fd(), level, option, value.as_ptr().cast(), length)
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Space for received frames, which is used again for each batch.
#[derive(Debug)]
pub struct FrameBatch {
    frame_size: usize,
    bytes: Vec<u8>,
    control: Vec<Control>,
    info: Vec<FrameInfo>,
    count: usize,
}

impl FrameBatch {
    /// Space for `frames` frames of at most `frame_size` bytes.
    #[must_use]
    pub fn new(frames: usize, frame_size: usize) -> Self {
        Self {
            frame_size,
            bytes: vec![0; frames * frame_size],
            control: vec![Control([0; CONTROL_SIZE]); frames],
            info: vec![FrameInfo::default(); frames],
            count: 0,
        }
    }

    /// The frames of the last batch, in the order of their arrival.
    pub fn frames(&self) -> impl Iterator<Item = ReceivedFrame<'_>> {
        let frames = self.bytes.chunks_exact(self.frame_size).zip(&self.info).take(self.count);
        frames.map(|(bytes, info)| ReceivedFrame {
            bytes: &bytes[..info.length.min(bytes.len())],
            vlan: info.vlan,
            checksum_pending: info.checksum_pending,
            truncated: info.truncated,
            received_at: info.received_at,
        })
    }
}

/// A frame that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedFrame<'a> {
    /// From the destination address on, without the VLAN tag.
    pub bytes: &'a [u8],
    /// The VLAN tag of the frame.
    pub vlan: Option<VlanTag>,
    /// The TCP or UDP checksum is not filled in: a program of this machine sent the frame, and the device
    /// would have filled it in.
    pub checksum_pending: bool,
    /// The frame is longer than the space for it.
    pub truncated: bool,
    /// Time at which the kernel received the frame, since 1970 by the system's clock.
    pub received_at: Option<Duration>,
}

/// A VLAN tag (IEEE 802.1Q).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VlanTag {
    /// Tag protocol identifier: 0x8100, or 0x88a8 for the outer of two tags.
    pub protocol: u16,
    /// Tag control information: priority (3 bits), drop eligible (1 bit), VLAN identifier (12 bits).
    pub control: u16,
}

/// What the kernel reports of a frame beside its bytes.
#[derive(Debug, Clone, Copy, Default)]
struct FrameInfo {
    length: usize,
    vlan: Option<VlanTag>,
    checksum_pending: bool,
    truncated: bool,
    received_at: Option<Duration>,
}

impl FrameInfo {
    #[expect(unsafe_code, reason = "control messages are read by libc's macros")]
    fn of(message: &libc::mmsghdr) -> Self {
        let header = &message.msg_hdr;
        let truncated = header.msg_flags & libc::MSG_TRUNC != 0;
        let mut info = Self { length: message.msg_len as usize, truncated, ..Self::default() };
        // SAFETY: the kernel has written the control messages of `header`, whose buffer is still there; the
        // data of a message of each type has the type that is read, and may be unaligned.
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
                        info.received_at =
                            Some(Duration::new(time.tv_sec as u64, time.tv_nsec as u32));
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

/// `<linux/if_packet.h>`.
const PACKET_IGNORE_OUTGOING: i32 = 23;

/// `ETH_P_8021Q`.
const VLAN_PROTOCOL: u16 = 0x8100;

fn part(bytes: *const u8, length: usize) -> libc::iovec {
    libc::iovec { iov_base: bytes.cast_mut().cast(), iov_len: length }
}

#[expect(unsafe_code, reason = "the structure has private padding on some systems")]
fn message(part: &mut libc::iovec, control: &mut [u8]) -> libc::mmsghdr {
    // SAFETY: all bytes zero are a valid `mmsghdr`.
    let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
    message.msg_hdr.msg_iov = part;
    message.msg_hdr.msg_iovlen = 1;
    if !control.is_empty() {
        message.msg_hdr.msg_control = control.as_mut_ptr().cast();
        message.msg_hdr.msg_controllen = control.len();
    }
    message
}

/// The result of a call for several messages: none are waiting, or the queue is full, is no error.
fn frame_count(result: i32) -> io::Result<usize> {
    if result >= 0 {
        return Ok(result as usize);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS) => Ok(0),
        _ => Err(error),
    }
}
