//! Network devices and their carrier, by events of the kernel (rtnetlink(7), group `RTMGRP_LINK`).

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::{read, write};

use crate::Error;
use crate::netlink::{attributes, message, messages, word};

/// A socket that receives an event whenever a device of the namespace is added, changed or deleted.
/// Reading never blocks.
#[derive(Debug)]
pub struct LinkEvents {
    socket: OwnedFd,
}

/// The state of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkEvent {
    /// Number of the device in the kernel. A device that is deleted and added has another one.
    pub index: u32,
    /// Name of the device.
    pub name: String,
    /// Whether the device is up and has carrier (`IFF_UP` and `IFF_LOWER_UP`, netdevice(7)). A
    /// device that was deleted has none.
    pub has_carrier: bool,
}

/// Length of `struct ifinfomsg`.
const INTERFACE: usize = 16;

/// Large enough for any message of a device (`NLMSG_GOODSIZE` and more).
const BUFFER: usize = 64 << 10;

/// `IFF_LOWER_UP` (`<linux/if.h>`).
const LOWER_UP: u32 = 1 << 16;

impl LinkEvents {
    /// Opens a socket in the namespace of the calling thread, and requests the state of all
    /// devices.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn open() -> Result<Self, Error> {
        Self::bound()
            .and_then(|events| events.request_all().map(|()| events))
            .map_err(Error::call("observing network devices (NETLINK_ROUTE)"))
    }

    #[expect(unsafe_code, reason = "socket addresses of netlink(7), which no crate in use wraps")]
    fn bound() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no memory is passed.
        let file = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and has no other owner.
        let socket = unsafe { OwnedFd::from_raw_fd(file) };
        // SAFETY: all bytes zero are a valid `sockaddr_nl`.
        let mut address: libc::sockaddr_nl = unsafe { mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as u16;
        address.nl_groups = libc::RTMGRP_LINK as u32;
        // SAFETY: the kernel reads one `sockaddr_nl`, which outlives the call.
        let bound = unsafe {
            let length = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
            libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length)
        };
        if bound == 0 { Ok(Self { socket }) } else { Err(io::Error::last_os_error()) }
    }

    /// Requests the state of all devices (`RTM_GETLINK` with `NLM_F_DUMP`), which follow as events.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn request_all(&self) -> io::Result<()> {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
        let request = message(libc::RTM_GETLINK, flags, &[0; INTERFACE]);
        write(&self.socket, &request).map(drop).map_err(io::Error::from)
    }

    /// The events that are waiting.
    ///
    /// # Errors
    /// The kernel's error. `ENOBUFS`: events were lost; [`Self::request_all`] must follow.
    pub fn receive(&self) -> io::Result<Vec<LinkEvent>> {
        let mut events = Vec::new();
        let mut buffer = vec![0; BUFFER];
        loop {
            match read(&self.socket, &mut buffer) {
                Ok(length) => append_events(&buffer[..length], &mut events),
                Err(rustix::io::Errno::AGAIN) => return Ok(events),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for LinkEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The events of a datagram of the kernel, which has several messages.
fn append_events(bytes: &[u8], events: &mut Vec<LinkEvent>) {
    for message in messages(bytes) {
        let is_deleted = message.kind == libc::RTM_DELLINK;
        if is_deleted || message.kind == libc::RTM_NEWLINK {
            events.extend(link_event(message.body, is_deleted));
        }
    }
}

/// The event of a `struct ifinfomsg` with its attributes.
fn link_event(bytes: &[u8], is_deleted: bool) -> Option<LinkEvent> {
    let (index, flags) = (word(bytes, 4)?, word(bytes, 8)?);
    let is_up = flags & libc::IFF_UP as u32 != 0 && flags & LOWER_UP != 0;
    let mut all = attributes(bytes.get(INTERFACE..)?);
    let (_, name) = all.find(|(kind, _)| *kind == libc::IFLA_IFNAME)?;
    let name = name.strip_suffix(&[0]).unwrap_or(name);
    let name = String::from_utf8_lossy(name).into_owned();
    Some(LinkEvent { index, name, has_carrier: is_up && !is_deleted })
}

#[cfg(test)]
mod tests {
    use gridhaul_testing::{has_program, has_tool};

    use super::*;
    use crate::netlink::HEADER;
    use crate::{Namespace, run_batch};

    #[expect(clippy::disallowed_methods, reason = "waits for the kernel")]
    fn pause() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }

    /// The newest state of a device that satisfies a condition, within ten seconds.
    fn await_state(events: &LinkEvents, name: &str, is_wanted: fn(&LinkEvent) -> bool) -> u32 {
        for _ in 0..1_000 {
            let found = events.receive().unwrap();
            let newest = found.iter().rfind(|event| event.name == name);
            if let Some(event) = newest.filter(|event| is_wanted(event)) {
                return event.index;
            }
            pause();
        }
        panic!("no such event of {name}");
    }

    #[test]
    fn carrier_is_lost_with_the_other_end_and_returns() {
        if !has_program("ip")
            || !has_tool(Namespace::new().is_ok(), "the right to create namespaces")
        {
            return;
        }
        let namespace = Namespace::new().unwrap();
        let work = || {
            let events = LinkEvents::open().unwrap();
            let ip = |line: &str| run_batch("ip", line, "test").unwrap();
            ip("link add v0 type veth peer name v1\nlink set v0 up\nlink set v1 up\n");
            let index = await_state(&events, "v0", |event| event.has_carrier);
            ip("link set v1 down\n");
            await_state(&events, "v0", |event| !event.has_carrier);
            ip("link set v1 up\n");
            await_state(&events, "v0", |event| event.has_carrier);
            ip("link del v0\n");
            await_state(&events, "v0", |event| !event.has_carrier);
            ip("link add v0 type veth peer name v1\nlink set v0 up\nlink set v1 up\n");
            assert_ne!(await_state(&events, "v0", |event| event.has_carrier), index);
            // A new socket receives the state of devices that do not change.
            let late = LinkEvents::open().unwrap();
            await_state(&late, "v1", |event| event.has_carrier);
        };
        namespace.enter(work).unwrap();
    }

    #[test]
    fn truncated_messages_are_no_events() {
        let mut message = vec![0_u8; HEADER + INTERFACE + 8];
        let length = message.len() as u32;
        message[..4].copy_from_slice(&length.to_ne_bytes());
        message[4..6].copy_from_slice(&libc::RTM_NEWLINK.to_ne_bytes());
        message[HEADER + 4..HEADER + 8].copy_from_slice(&7_u32.to_ne_bytes());
        message[HEADER + INTERFACE..][..2].copy_from_slice(&7_u16.to_ne_bytes());
        message[HEADER + INTERFACE + 2..][..2].copy_from_slice(&libc::IFLA_IFNAME.to_ne_bytes());
        message[HEADER + INTERFACE + 4..][..3].copy_from_slice(b"d0\0");
        let mut events = Vec::new();
        append_events(&message, &mut events);
        let expected = LinkEvent { index: 7, name: "d0".to_owned(), has_carrier: false };
        assert_eq!(events, [expected]);
        for length in 0..message.len() {
            let mut events = Vec::new();
            append_events(&message[..length], &mut events);
            assert_eq!(events, [], "{length} bytes");
        }
    }
}
