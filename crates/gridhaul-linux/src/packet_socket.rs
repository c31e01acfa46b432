//! Packet sockets (AF_PACKET, packet(7)): Ethernet frames of one device, or packets of all devices,
//! in batches.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::net::sockopt;

use crate::frame_batch::FrameBatch;
use crate::{Error, interface_index};

/// A socket that sends and receives the Ethernet frames of one device. It never blocks; wait with
/// [`Poll`](crate::Poll).
///
/// Frames that this machine sends over the device are not received. The kernel removes the VLAN tag
/// from a received frame and reports it separately
/// ([`ReceivedFrame::vlan`](crate::ReceivedFrame::vlan)); a tag in a sent frame stays there. Switch
/// [offloads](crate::set_offload) off to see frames as they are on the link.
#[derive(Debug)]
pub struct PacketSocket {
    pub(crate) socket: OwnedFd,
    /// A `struct virtio_net_hdr` precedes each frame.
    pub(crate) with_metadata: bool,
}

impl PacketSocket {
    /// EtherType for frames of all protocols (`ETH_P_ALL`).
    pub const ALL_PROTOCOLS: u16 = libc::ETH_P_ALL as u16;

    /// Opens a socket for the frames of a device in the namespace of the calling thread that have
    /// this EtherType, for example 0x88ba (Sampled Values).
    ///
    /// # Errors
    /// There is no such device, or the caller lacks `CAP_NET_RAW`.
    pub fn open(interface: &str, ether_type: u16) -> Result<Self, Error> {
        let operation = || format!("opening a packet socket on device {interface}");
        let index = interface_index(interface)?;
        let opened = Self::new(libc::SOCK_RAW).and_then(|socket| {
            socket.set_option(libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1_i32.to_ne_bytes())?;
            socket.bind(index, ether_type)?;
            Ok(socket)
        });
        opened.map_err(Error::call(operation()))
    }

    /// As [`Self::open`], with metadata: frames with pending checksums and large frames (offloads
    /// of sender and receiver) are received and sent as they are. Then no offload needs to be
    /// switched off.
    ///
    /// # Errors
    /// There is no such device, or the caller lacks `CAP_NET_RAW`.
    pub fn open_with_metadata(interface: &str, ether_type: u16) -> Result<Self, Error> {
        let mut socket = Self::open(interface, ether_type)?;
        socket
            .set_option(libc::SOL_PACKET, PACKET_VNET_HDR, &1_i32.to_ne_bytes())
            .map_err(Error::call(format!("reporting metadata of frames on device {interface}")))?;
        socket.with_metadata = true;
        Ok(socket)
    }

    /// Opens a socket that receives a copy of each packet of all devices in the namespace of the
    /// calling thread, from the network header on. The namespace sends or receives the packet
    /// ([`ReceivedFrame::outgoing`](crate::ReceivedFrame::outgoing)); over the loopback device it
    /// does both, which makes two copies. Copies that do not fit into `buffer` bytes of kernel
    /// memory are [dropped](Self::dropped).
    ///
    /// # Errors
    /// The caller lacks `CAP_NET_RAW`.
    pub fn capture(buffer: u32) -> Result<Self, Error> {
        let opened = Self::new(libc::SOCK_DGRAM).and_then(|socket| {
            let buffer = buffer as usize;
            // Where the limit of the system applies, the buffer stays smaller, and its losses are
            // counted.
            let _ = socket.set_receive_buffer(buffer);
            socket.bind(ANY_DEVICE, Self::ALL_PROTOCOLS)?;
            Ok(socket)
        });
        opened.map_err(Error::call("capturing packets"))
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

    /// Sets the kernel memory for frames that wait to be received. The kernel's default of 208 KiB
    /// holds three large frames. Frames that do not fit are [dropped](Self::dropped).
    ///
    /// # Errors
    /// The kernel's error. A limit of the system (`net.core.rmem_max`) applies silently, unless the
    /// caller has `CAP_NET_ADMIN`.
    pub fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        sockopt::set_socket_recv_buffer_size_force(&self.socket, bytes)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(&self.socket, bytes))
            .map_err(io::Error::from)
    }

    /// Sets the kernel memory for frames that the device has not sent yet.
    ///
    /// # Errors
    /// The kernel's error. A limit of the system (`net.core.wmem_max`) applies silently.
    pub fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        sockopt::set_socket_send_buffer_size(&self.socket, bytes).map_err(io::Error::from)
    }

    /// Lets the socket receive only the frames that a program accepts (`SO_ATTACH_BPF`).
    ///
    /// # Errors
    /// The descriptor is no program that filters sockets.
    pub fn set_filter(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        let program = program.as_raw_fd().to_ne_bytes();
        self.set_option(libc::SOL_SOCKET, libc::SO_ATTACH_BPF, &program)
    }

    /// Receives the frames that are waiting, at most as many as `batch` has space for, with one
    /// call into the kernel. Returns how many there are.
    ///
    /// # Errors
    /// The device is down or was deleted.
    pub fn receive(&self, batch: &mut FrameBatch) -> io::Result<usize> {
        batch.receive(self.socket.as_fd(), self.with_metadata)
    }

    /// Number of frames that the kernel has dropped since the last call, because the buffer of the
    /// socket was full (`PACKET_STATISTICS`).
    ///
    /// # Errors
    /// The kernel's error.
    #[expect(unsafe_code, reason = "options of packet(7), which no crate in use wraps")]
    pub fn dropped(&self) -> io::Result<u32> {
        let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes to `statistics`, which outlives the
        // call.
        let done = unsafe {
            let (level, option) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
            let value = (&raw mut statistics).cast();
            libc::getsockopt(self.socket.as_raw_fd(), level, option, value, &raw mut length)
        };
        if done == 0 { Ok(statistics.tp_drops) } else { Err(io::Error::last_os_error()) }
    }

    /// A socket that is not bound, with VLAN tags and receive times.
    #[expect(unsafe_code, reason = "sockets of packet(7), which no crate in use wraps")]
    fn new(kind: i32) -> io::Result<Self> {
        // Protocol 0: nothing is received before the socket is bound to the device.
        let kind = kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no memory is passed.
        let file = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and has no other owner.
        let socket = Self { socket: unsafe { OwnedFd::from_raw_fd(file) }, with_metadata: false };
        let on = 1_i32.to_ne_bytes();
        socket.set_option(libc::SOL_PACKET, libc::PACKET_AUXDATA, &on)?;
        socket.set_option(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on)?;
        Ok(socket)
    }

    #[expect(unsafe_code, reason = "socket addresses of packet(7), which no crate in use wraps")]
    fn bind(&self, interface: u32, ether_type: u16) -> io::Result<()> {
        // SAFETY: all bytes zero are a valid `sockaddr_ll`.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ether_type.to_be();
        address.sll_ifindex = interface as i32;
        // SAFETY: the kernel reads one `sockaddr_ll`, which outlives the call.
        let bound = unsafe {
            let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            libc::bind(self.socket.as_raw_fd(), (&raw const address).cast(), length)
        };
        if bound == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
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

/// `<linux/if_packet.h>`.
const PACKET_VNET_HDR: i32 = 15;
const PACKET_IGNORE_OUTGOING: i32 = 23;

/// Index of an interface that stands for all of them.
const ANY_DEVICE: u32 = 0;
