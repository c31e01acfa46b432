//! Offloads of a network device, which make frames on a packet socket differ from those on the
//! link.
//!
//! With segmentation offload a packet socket sees frames larger than the MTU; with checksum offload
//! it sees TCP and UDP checksums that are not filled in yet. A program that forwards or measures
//! frames switches them off, as `ethtool -K` does.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::net::{AddressFamily, SocketType, socket};

use crate::Error;

/// An offload that can be switched (`<linux/ethtool.h>`, commands `ETHTOOL_S…`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Offload {
    /// Checksums of received packets are verified by the device.
    ReceiveChecksum = 0x15,
    /// Checksums of sent packets are filled in by the device.
    TransmitChecksum = 0x17,
    /// TCP segmentation offload (TSO).
    TcpSegmentation = 0x1f,
    /// Generic segmentation offload (GSO).
    GenericSegmentation = 0x24,
    /// Generic receive offload (GRO).
    GenericReceive = 0x2c,
}

impl Offload {
    /// All offloads that change the packets that a packet socket receives.
    pub const ALL: [Self; 5] = [
        Self::TcpSegmentation,
        Self::GenericSegmentation,
        Self::GenericReceive,
        Self::TransmitChecksum,
        Self::ReceiveChecksum,
    ];
}

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    value: u32,
}

/// `struct ifreq` with the member `ifr_data`.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    data: *mut EthtoolValue,
    rest: [u8; 16],
}

/// Switches an offload of a device in the namespace of the calling thread. Returns whether the
/// device has the offload.
///
/// # Errors
/// There is no such device, or this process may not change it.
#[expect(unsafe_code, reason = "an ioctl that no crate in use wraps")]
pub fn set_offload(interface: &str, offload: Offload, on: bool) -> Result<bool, Error> {
    let operation = || format!("setting {offload:?} of device {interface}");
    let file =
        socket(AddressFamily::INET, SocketType::DGRAM, None).map_err(Error::call(operation()))?;
    let mut value = EthtoolValue { command: offload as u32, value: u32::from(on) };
    let mut request = InterfaceRequest {
        name: interface_name(interface).map_err(Error::call(operation()))?,
        data: &raw mut value,
        rest: [0; 16],
    };
    // SAFETY: SIOCETHTOOL reads one `struct ifreq`, whose layout `InterfaceRequest` has, and the
    // `struct ethtool_value` that it points to; both outlive the call.
    let done =
        unsafe { libc::ioctl(file.as_fd().as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    if done == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => Ok(false),
        _ => Err(Error::call(operation())(error)),
    }
}

/// Switches off all offloads of a device that change the packets that a packet socket receives.
///
/// # Errors
/// There is no such device, or this process may not change it.
pub fn disable_offloads(interface: &str) -> Result<(), Error> {
    Offload::ALL
        .into_iter()
        .try_for_each(|offload| set_offload(interface, offload, false).map(drop))
}

/// The kernel's number of a device in the namespace of the calling thread.
///
/// # Errors
/// There is no such device.
#[expect(unsafe_code, reason = "a libc call that no crate in use wraps")]
pub fn interface_index(interface: &str) -> Result<u32, Error> {
    let operation = || format!("looking up device {interface}");
    let name = CString::new(interface).map_err(|error| {
        Error::call(operation())(io::Error::new(io::ErrorKind::InvalidInput, error))
    })?;
    // SAFETY: `name` is a string with a final zero that outlives the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 { Err(Error::call(operation())(io::Error::last_os_error())) } else { Ok(index) }
}

fn interface_name(interface: &str) -> io::Result<[u8; libc::IFNAMSIZ]> {
    let mut name = [0; libc::IFNAMSIZ];
    if interface.len() >= name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    name[..interface.len()].copy_from_slice(interface.as_bytes());
    Ok(name)
}
