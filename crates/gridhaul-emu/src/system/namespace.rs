//! Network namespaces without names.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::fault::Fault;

/// A network namespace. It lives as long as this does, and what is in it.
#[derive(Debug)]
pub struct Namespace {
    handle: OwnedFd,
}

impl Namespace {
    /// A new one, with nothing in it but a loopback device that is down.
    pub fn new() -> Result<Self, Fault> {
        let made = thread::scope(|scope| scope.spawn(make).join());
        let handle = made
            .map_err(|_| Fault::Panicked)?
            .map_err(Fault::call("making a network namespace"))?;
        Ok(Self { handle })
    }

    /// Does something inside: on a thread of its own, since a namespace belongs to a thread.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Fault> {
        let inside = || {
            let network = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(self.handle.as_fd(), network)?;
            Ok::<T, rustix::io::Errno>(work())
        };
        let done = thread::scope(|scope| scope.spawn(inside).join());
        done.map_err(|_| Fault::Panicked)?.map_err(Fault::call("entering a network namespace"))
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

#[expect(unsafe_code, reason = "rustix marks every unshare unsafe for the sake of file tables")]
fn make() -> io::Result<OwnedFd> {
    // SAFETY: only UnshareFlags::FILES is dangerous; this separates the network of this thread.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
    Ok(File::open("/proc/thread-self/ns/net")?.into())
}
