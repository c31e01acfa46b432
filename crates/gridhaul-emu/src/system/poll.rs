//! Waiting for files to become ready, to the point.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::clock::Patience;
use crate::fault::Fault;

pub use rustix::event::epoll::{Event, EventFlags};

/// Files that are watched, each under a number.
#[derive(Debug)]
pub struct Poll {
    epoll: OwnedFd,
    patience: Patience,
}

/// An event that stands for none.
const NONE: Event = Event { flags: EventFlags::empty(), data: epoll::EventData::new_u64(0) };

impl Poll {
    /// Nothing is watched yet.
    pub fn new() -> Result<Self, Fault> {
        let epoll =
            epoll::create(epoll::CreateFlags::CLOEXEC).map_err(Fault::call("making an epoll"))?;
        Ok(Self { epoll, patience: Patience::default() })
    }

    /// Watches a file.
    pub fn watch(&self, file: impl AsFd, number: u64, flags: EventFlags) -> Result<(), Fault> {
        epoll::add(&self.epoll, file, epoll::EventData::new_u64(number), flags)
            .map_err(Fault::call("watching a file"))
    }

    /// Waits until something is ready or so much time is over. Returns at most `MOST` events.
    pub fn wait<const MOST: usize>(
        &mut self,
        until: Duration,
    ) -> Result<impl Iterator<Item = Event> + use<MOST>, Fault> {
        if let Some(rest) = self.patience.rest() {
            pause(rest);
        }
        let sleep = self.patience.sleep(until);
        let timeout = Timespec::try_from(sleep).expect("at most half a second");
        let mut ready = [NONE; MOST];
        let count = match epoll::wait(&self.epoll, &mut ready[..], Some(&timeout)) {
            Ok(count) => count,
            Err(Errno::INTR) => 0,
            Err(error) => return Err(Fault::call("waiting for files")(error)),
        };
        Ok(ready.into_iter().take(count))
    }
}

#[expect(clippy::disallowed_methods, reason = "a run on real kernels runs in real time")]
fn pause(rest: Duration) {
    std::thread::sleep(rest);
}
