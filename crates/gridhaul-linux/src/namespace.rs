//! Network namespaces without names.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::Error;

/// A network namespace. It and its contents exist as long as this handle.
#[derive(Debug)]
pub struct Namespace {
    handle: OwnedFd,
}

impl Namespace {
    /// A new namespace; its only device is the loopback device, which is down.
    ///
    /// # Errors
    /// The process is not permitted to create a network namespace.
    pub fn new() -> Result<Self, Error> {
        let made = thread::scope(|scope| scope.spawn(make).join());
        let handle = made
            .map_err(|_| Error::Panicked)?
            .map_err(Error::call("making a network namespace"))?;
        Ok(Self { handle })
    }

    /// A path by which other programs find the namespace, as `ip link set ... netns <path>`. Valid
    /// as long as this handle.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.handle.as_raw_fd()).into()
    }

    /// Runs `work` in the namespace, on a new thread, because each thread has its own namespace.
    ///
    /// # Errors
    /// The namespace cannot be entered, or `work` panicked.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        let inside = || {
            let network = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(self.handle.as_fd(), network)?;
            Ok::<T, rustix::io::Errno>(work())
        };
        let done = thread::scope(|scope| scope.spawn(inside).join());
        done.map_err(|_| Error::Panicked)?.map_err(Error::call("entering a network namespace"))
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
