//! The MTU of a network device.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::net::{AddressFamily, SocketType, socket};

use crate::Error;

/// `struct ifreq` with the member `ifr_mtu`.
#[repr(C)]
struct MtuRequest {
    name: [u8; libc::IFNAMSIZ],
    mtu: libc::c_int,
    rest: [u8; 20],
}

/// Largest IP packet of a device in the namespace of the calling thread, in bytes.
///
/// # Errors
/// There is no such device.
#[expect(unsafe_code, reason = "an ioctl that no crate in use wraps")]
pub fn interface_mtu(interface: &str) -> Result<u32, Error> {
    let operation = || format!("reading the MTU of device {interface}");
    let file =
        socket(AddressFamily::INET, SocketType::DGRAM, None).map_err(Error::call(operation()))?;
    let mut request = MtuRequest { name: [0; libc::IFNAMSIZ], mtu: 0, rest: [0; 20] };
    if interface.len() >= request.name.len() {
        return Err(Error::call(operation())(io::Error::from(io::ErrorKind::InvalidInput)));
    }
    request.name[..interface.len()].copy_from_slice(interface.as_bytes());
    // SAFETY: SIOCGIFMTU reads and writes one `struct ifreq`, whose layout `MtuRequest` has, and
    // which outlives the call.
    let done = unsafe { libc::ioctl(file.as_fd().as_raw_fd(), libc::SIOCGIFMTU, &raw mut request) };
    if done == 0 {
        Ok(request.mtu.unsigned_abs())
    } else {
        Err(Error::call(operation())(io::Error::last_os_error()))
    }
}
