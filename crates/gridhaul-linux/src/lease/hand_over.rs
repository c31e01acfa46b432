//! A lease that continues in the next version of the program, which replaces this one in the same
//! process.

use std::io;
use std::os::fd::{IntoRawFd, OwnedFd, RawFd};

use rustix::io::{FdFlags, fcntl_setfd};

use crate::inherited::take_inherited_link;

/// A lease between two versions of the program: packets are still withheld from the bridge, until
/// the lease expires, and protected connections are not reset.
#[derive(Debug)]
pub struct LeaseHandOver {
    pub(super) owner: u64,
    /// Attachments of the program that withholds packets.
    pub(super) links: Vec<OwnedFd>,
}

impl LeaseHandOver {
    /// The number by which the programs recognise the connections of this owner.
    #[must_use]
    pub const fn owner(&self) -> u64 {
        self.owner
    }

    /// Leaves the attachments open for the next program, and returns the numbers of their files.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn leave_open(self) -> io::Result<Vec<RawFd>> {
        let leave = |link: OwnedFd| -> io::Result<RawFd> {
            fcntl_setfd(&link, FdFlags::empty())?;
            Ok(link.into_raw_fd())
        };
        self.links.into_iter().map(leave).collect()
    }

    /// The lease that the previous program has left, with the numbers of its files.
    ///
    /// # Errors
    /// A number is not that of an attachment.
    pub fn inherited(owner: u64, numbers: &[RawFd]) -> io::Result<Self> {
        let links = numbers.iter().map(|&number| take_inherited_link(number));
        Ok(Self { owner, links: links.collect::<Result<_, _>>()? })
    }
}
