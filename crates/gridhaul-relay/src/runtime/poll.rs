//! Waiting for sockets (epoll).

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use gridhaul_linux::{Error, EventFlags};
use rustix::event::epoll::{self, Event, EventData};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;

use crate::split::Leg;

/// Largest number of events that are returned at once.
const EVENTS: usize = 256;

/// An epoll instance.
pub(crate) struct Poll {
    epoll: OwnedFd,
    events: Vec<Event>,
}

/// A source of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    Listener(u32),
    /// Row of the meter, and the low bits of its number.
    Meter(u32, u32),
    Upstream(u32),
    /// Connection of a collector.
    Collector(u32),
    Wake,
    /// Leg of a session of a split proxy: row, and the low bits of its number.
    Leg(Leg, u32, u32),
    /// Connection whose meter is not known yet: row, and the low bits of its number.
    Arrival(u32, u32),
    /// Connection to the server of a head: number of the stream, of which 56 bits suffice for centuries.
    Server(u64),
}

impl Poll {
    /// Other threads end [`Self::wait`] by `waker`, which is the event [`Token::Wake`].
    pub(crate) fn new(waker: &Waker) -> Result<Self, Error> {
        let epoll =
            epoll::create(epoll::CreateFlags::CLOEXEC).map_err(Error::call("making an epoll"))?;
        let none = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let poll = Self { epoll, events: vec![none; EVENTS] };
        poll.add(waker, Token::Wake, EventFlags::IN)
            .map_err(Error::call("watching the other threads"))?;
        Ok(poll)
    }

    pub(crate) fn add(&self, file: impl AsFd, token: Token, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, file, EventData::new_u64(token.to_number()), flags)?)
    }

    pub(crate) fn modify(
        &self,
        file: impl AsFd,
        token: Token,
        flags: EventFlags,
    ) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, file, EventData::new_u64(token.to_number()), flags)?)
    }

    /// Waits for events, at most for this time, and appends them to `found`.
    pub(crate) fn wait(
        &mut self,
        timeout: Duration,
        found: &mut Vec<(Token, EventFlags)>,
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
            Some((Token::from_number(data.u64())?, flags))
        }));
        Ok(())
    }
}

impl Token {
    fn to_number(self) -> u64 {
        let (kind, low, high) = match self {
            Self::Server(number) => (8, number as u32, (number >> 32) as u32 & 0xff_ffff),
            Self::Listener(index) => (0, index, 0),
            Self::Meter(index, number) => (1, index, number & 0xff_ffff),
            Self::Upstream(index) => (2, index, 0),
            Self::Collector(index) => (3, index, 0),
            Self::Wake => (4, 0, 0),
            Self::Leg(Leg::Client, index, number) => (5, index, number & 0xff_ffff),
            Self::Leg(Leg::Server, index, number) => (6, index, number & 0xff_ffff),
            Self::Arrival(index, number) => (7, index, number & 0xff_ffff),
        };
        kind << 56 | u64::from(high) << 32 | u64::from(low)
    }

    fn from_number(number: u64) -> Option<Self> {
        let (index, high) = (number as u32, (number >> 32) as u32 & 0xff_ffff);
        Some(match number >> 56 {
            0 => Self::Listener(index),
            1 => Self::Meter(index, high),
            2 => Self::Upstream(index),
            3 => Self::Collector(index),
            4 => Self::Wake,
            5 => Self::Leg(Leg::Client, index, high),
            6 => Self::Leg(Leg::Server, index, high),
            7 => Self::Arrival(index, high),
            8 => Self::Server(number & 0x00ff_ffff_ffff_ffff),
            _ => return None,
        })
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
