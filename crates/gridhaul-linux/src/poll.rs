//! Waiting for files and deadlines, precisely.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::{Error, SleepBudget};

pub use rustix::event::epoll::{Event, EventFlags};

/// An epoll instance: watches files, each under a number.
#[derive(Debug)]
pub struct Poll {
    epoll: OwnedFd,
    budget: SleepBudget,
}

/// Fills the array that the kernel writes events to.
const NO_EVENT: Event = Event { flags: EventFlags::empty(), data: epoll::EventData::new_u64(0) };

impl Poll {
    /// An instance that watches nothing yet.
    ///
    /// # Errors
    /// The limit of open files is reached.
    pub fn new() -> Result<Self, Error> {
        let epoll =
            epoll::create(epoll::CreateFlags::CLOEXEC).map_err(Error::call("making an epoll"))?;
        Ok(Self { epoll, budget: SleepBudget::default() })
    }

    /// Watches a file under `number`.
    ///
    /// # Errors
    /// The file cannot be watched, or is watched already.
    pub fn watch(&self, file: impl AsFd, number: u64, flags: EventFlags) -> Result<(), Error> {
        epoll::add(&self.epoll, file, epoll::EventData::new_u64(number), flags)
            .map_err(Error::call("watching a file"))
    }

    /// Waits until a file is ready or `remaining` has passed. Returns at most `MAX` events.
    ///
    /// # Errors
    /// The kernel's error. Interruption by a signal (`EINTR`) is not an error.
    pub fn wait<const MAX: usize>(
        &mut self,
        remaining: Duration,
    ) -> Result<impl Iterator<Item = Event> + use<MAX>, Error> {
        if let Some(time) = self.budget.must_yield() {
            sleep(time);
        }
        let timeout = self.budget.sleep_for(remaining);
        let timeout = Timespec::try_from(timeout).expect("the longest sleep fits");
        let mut events = [NO_EVENT; MAX];
        let count = match epoll::wait(&self.epoll, &mut events[..], Some(&timeout)) {
            Ok(count) => count,
            Err(Errno::INTR) => 0,
            Err(error) => return Err(Error::call("waiting for files")(error)),
        };
        Ok(events.into_iter().take(count))
    }
}

#[expect(clippy::disallowed_methods, reason = "a run on real kernels runs in real time")]
fn sleep(time: Duration) {
    std::thread::sleep(time);
}
