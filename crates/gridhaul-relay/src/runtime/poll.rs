//! Waiting for sockets (epoll).

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use gridhaul_linux::{Error, EventFlags};
use rustix::event::epoll::{self, Event, EventData};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;

/// Largest number of events that are returned at once.
const EVENTS: usize = 256;

/// An epoll instance.
pub(crate) struct Poll<T> {
    epoll: OwnedFd,
    events: Vec<Event>,
    tokens: PhantomData<T>,
}

/// A source of events, by which an event loop recognises them. Each role has its own type.
pub(crate) trait Token: Copy {
    /// The token as the kernel stores it.
    fn to_key(self) -> Key;

    /// The token that the kernel has stored.
    fn from_key(key: Key) -> Option<Self>;
}

/// Content of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    /// Kind of the source.
    pub kind: u8,
    /// Row in the table of sources of this kind.
    pub row: u32,
    /// Number of the connection in the row, of which [`NUMBER_MASK`] is stored: a row is reused,
    /// and an event of the former connection may still be among those of a turn.
    pub number: u32,
}

/// Bits of a number that a token has.
pub(crate) const NUMBER_MASK: u32 = 0xff_ffff;

/// Kind of the waker, which no token has.
const WAKER: u8 = u8::MAX;

/// Cause of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source<T> {
    /// Another thread has used the waker.
    Waker,
    /// A socket with this token.
    Socket(T),
}

impl Key {
    fn to_number(self) -> u64 {
        u64::from(self.kind) << 56
            | u64::from(self.number & NUMBER_MASK) << 32
            | u64::from(self.row)
    }

    const fn from_number(number: u64) -> Self {
        Self {
            kind: (number >> 56) as u8,
            row: number as u32,
            number: (number >> 32) as u32 & NUMBER_MASK,
        }
    }
}

impl<T: Token> Poll<T> {
    /// Other threads end [`Self::wait`] by `waker`, which is the event [`Source::Waker`].
    pub(crate) fn new(waker: &Waker) -> Result<Self, Error> {
        let epoll =
            epoll::create(epoll::CreateFlags::CLOEXEC).map_err(Error::call("making an epoll"))?;
        let none = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let poll = Self { epoll, events: vec![none; EVENTS], tokens: PhantomData };
        let key = Key { kind: WAKER, row: 0, number: 0 };
        epoll::add(&poll.epoll, waker, EventData::new_u64(key.to_number()), EventFlags::IN)
            .map_err(io::Error::from)
            .map_err(Error::call("watching the other threads"))?;
        Ok(poll)
    }

    pub(crate) fn add(&self, file: impl AsFd, token: T, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, file, EventData::new_u64(token.to_key().to_number()), flags)?)
    }

    pub(crate) fn modify(&self, file: impl AsFd, token: T, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, file, EventData::new_u64(token.to_key().to_number()), flags)?)
    }

    /// Waits for events, at most for this time, and appends them to `found`.
    pub(crate) fn wait(
        &mut self,
        timeout: Duration,
        found: &mut Vec<(Source<T>, EventFlags)>,
    ) -> Result<(), Error> {
        // epoll_wait(2) counts milliseconds in old kernels: an hour is long enough.
        let timeout = Timespec::try_from(timeout.min(Duration::from_secs(3_600)))
            .expect("an hour can be represented");
        let count = match epoll::wait(&self.epoll, &mut self.events[..], Some(&timeout)) {
            Ok(count) => count,
            Err(Errno::INTR) => 0,
            Err(error) => return Err(Error::call("waiting for sockets")(error)),
        };
        let events = self.events[..count].iter();
        found.extend(events.filter_map(|event| {
            // The fields are not aligned.
            let (data, flags) = (event.data, event.flags);
            let key = Key::from_number(data.u64());
            let source = match key.kind {
                WAKER => Source::Waker,
                _ => Source::Socket(T::from_key(key)?),
            };
            Some((source, flags))
        }));
        Ok(())
    }
}

/// Wakes a thread that waits in [`Poll::wait`].
#[derive(Debug)]
pub(crate) struct Waker(OwnedFd);

impl Waker {
    pub(crate) fn new() -> Result<Self, Error> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        eventfd(0, flags).map(Self).map_err(Error::call("making an eventfd"))
    }

    pub(crate) fn wake(&self) {
        // A full counter wakes as well.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Forgets all wake-ups so far.
    pub(crate) fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_keeps_kind_row_and_the_low_bits_of_the_number() {
        let key = Key { kind: 7, row: u32::MAX, number: NUMBER_MASK };
        assert_eq!(Key::from_number(key.to_number()), key);
        let longer = Key { number: u32::MAX, ..key };
        assert_eq!(Key::from_number(longer.to_number()), key, "other bits of the number are cut");
    }
}
