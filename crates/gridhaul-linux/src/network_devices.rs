//! The network devices of a namespace (rtnetlink(7), `RTM_GETLINK`).

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::Error;

/// A network device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkDevice {
    /// The kernel's number of the device.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Hardware address; `None` for a device that has none of Ethernet.
    pub address: Option<[u8; 6]>,
    /// The device of which this one is a port, such as a bridge.
    pub master: Option<u32>,
    /// Kind of a virtual device, such as "bridge" or "veth"; empty for others.
    pub kind: String,
}

/// The network devices in the namespace of the calling thread.
///
/// # Errors
/// The kernel's error.
pub fn network_devices() -> Result<Vec<NetworkDevice>, Error> {
    list().map_err(Error::call("listing network devices"))
}

fn list() -> io::Result<Vec<NetworkDevice>> {
    let flags = SocketFlags::CLOEXEC;
    // Without a protocol a netlink socket is for routes and devices.
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    // `struct nlmsghdr` and `struct ifinfomsg`, whose fields select all devices if they are zero.
    let mut request = [0_u8; HEADER + DEVICE_HEADER];
    request[..4].copy_from_slice(&((HEADER + DEVICE_HEADER) as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&libc::RTM_GETLINK.to_ne_bytes());
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    request[6..8].copy_from_slice(&flags.to_ne_bytes());
    rustix::net::send(&socket, &request, SendFlags::empty())?;
    receive(&socket)
}

fn receive(socket: &OwnedFd) -> io::Result<Vec<NetworkDevice>> {
    let mut devices = Vec::new();
    let mut buffer = vec![0_u8; 1 << 16];
    loop {
        let (received, _) = rustix::net::recv(socket, &mut buffer[..], RecvFlags::empty())?;
        let mut rest = &buffer[..received];
        while let Some((message, remaining)) = split(rest, 4) {
            rest = remaining;
            match half(message, 4).map(i32::from) {
                Some(libc::NLMSG_DONE) => return Ok(devices),
                Some(libc::NLMSG_ERROR) => {
                    let code = word(message, HEADER).map_or(0, u32::cast_signed);
                    return Err(io::Error::from_raw_os_error(-code));
                }
                Some(_) => devices.extend(device(&message[HEADER..])),
                None => break,
            }
        }
    }
}

/// Parses `struct ifinfomsg` and its attributes.
fn device(message: &[u8]) -> Option<NetworkDevice> {
    let mut device = NetworkDevice { index: word(message, 4)?, ..NetworkDevice::default() };
    for (kind, value) in Attributes(message.get(DEVICE_HEADER..)?) {
        match kind {
            libc::IFLA_IFNAME => device.name = text(value),
            libc::IFLA_ADDRESS => device.address = value.try_into().ok(),
            libc::IFLA_MASTER => device.master = word(value, 0),
            libc::IFLA_LINKINFO => {
                let kind = Attributes(value).find(|(kind, _)| *kind == libc::IFLA_INFO_KIND);
                device.kind = kind.map_or_else(String::new, |(_, value)| text(value));
            }
            _ => {}
        }
    }
    Some(device)
}

/// Attributes (`struct rtattr`): length, kind, value.
struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (attribute, rest) = split(self.0, 2)?;
        self.0 = rest;
        Some((half(attribute, 2)?, attribute.get(4..)?))
    }
}

/// Splits off the first record, whose length is in its first `length_size` bytes. Records are
/// aligned to four bytes.
fn split(bytes: &[u8], length_size: usize) -> Option<(&[u8], &[u8])> {
    let length = match length_size {
        2 => usize::from(half(bytes, 0)?),
        _ => word(bytes, 0)? as usize,
    };
    let record = bytes.get(..length).filter(|record| record.len() >= 4)?;
    Some((record, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A text with a final zero.
fn text(value: &[u8]) -> String {
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

/// Bytes of `struct nlmsghdr` and `struct ifinfomsg`.
const HEADER: usize = 16;
const DEVICE_HEADER: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_is_listed() {
        let devices = network_devices().unwrap();
        let loopback = devices.iter().find(|device| device.name == "lo").unwrap();
        assert_eq!(loopback.address, Some([0; 6]));
        assert_eq!((loopback.master, loopback.kind.as_str()), (None, ""));
    }

    #[test]
    fn truncated_records_end_a_list() {
        let mut attributes = Attributes(&[8, 0, 3, 0, b'e', b't', b'h', 0, 9, 0, 3, 0, 1]);
        assert_eq!(attributes.next(), Some((3, &b"eth\0"[..])));
        assert_eq!(attributes.next(), None);
        assert_eq!(device(&[0; 3]), None);
    }
}
