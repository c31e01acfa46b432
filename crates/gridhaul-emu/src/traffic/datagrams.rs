//! One member of a datagram flow: one packet for each message, with an optional echo.

use std::mem::MaybeUninit;

use gridhaul_core::load::{Arrival, Source};
use gridhaul_scenario::units::Instant;
use rustix::net::{RecvFlags, SendFlags, recvfrom, sendto};
use socket2::Socket;

use super::connection::Observer;
use super::socket;
use crate::network::FlowLayout;

/// A sender and a receiver of datagrams.
#[derive(Debug)]
pub(crate) struct Datagrams {
    pub flow: u16,
    pub member: u32,
    /// The `from` and the `to` end.
    pub ends: [Socket; 2],
    /// Source of messages; `None` if a trace provides them.
    pub source: Option<Source>,
    pub start: Instant,
    echo: bool,
    begun: bool,
    packet: Vec<u8>,
    /// Ready time of each message, by its number; removed on arrival.
    ready: Vec<Option<Instant>>,
    /// Payload that has reached the `to` end.
    pub received: u64,
}

/// Each datagram begins with its number.
pub(crate) const NUMBER_BYTES: u64 = 4;

impl Datagrams {
    pub(crate) fn new(
        (flow, member): (u16, u32),
        ends: [Socket; 2],
        source: Option<Source>,
        (start, echo): (Instant, bool),
    ) -> Self {
        Self {
            flow,
            member,
            ends,
            source,
            start,
            echo,
            begun: false,
            packet: Vec::new(),
            ready: Vec::new(),
            received: 0,
        }
    }

    pub(crate) fn due(&self) -> Instant {
        match &self.source {
            _ if !self.begun => self.start,
            Some(source) => source.next_time(),
            None => Instant::NEVER,
        }
    }

    /// Sends the messages that are due.
    pub(crate) fn on_due(&mut self, now: Instant, plan: &FlowLayout, observer: &mut impl Observer) {
        if !std::mem::replace(&mut self.begun, true) {
            // Without a path nothing arrives, which the answer shows.
            let _ = socket::connect(&self.ends[0], plan, self.flow, self.member);
        }
        while let Some(message) =
            self.source.as_mut().and_then(|source| source.next_message_by(now))
        {
            self.send(now, message, observer);
        }
    }

    /// Sends a message, which is ready.
    pub(crate) fn send(&mut self, now: Instant, message: Arrival, observer: &mut impl Observer) {
        observer.on_late(now.since(message.at));
        observer.on_ready(message.at);
        self.packet.clear();
        self.packet.resize(message.bytes.max(NUMBER_BYTES) as usize, 0);
        let number = self.ready.len() as u32;
        self.packet[..NUMBER_BYTES as usize].copy_from_slice(&number.to_le_bytes());
        self.ready.push(Some(message.at));
        // A full socket buffer drops datagrams.
        if self.ends[0].send(&self.packet).is_err() {
            observer.on_unsent(message.at);
        }
    }

    /// Reads the datagrams that have reached an end.
    pub(crate) fn read(
        &mut self,
        end: usize,
        scratch: &mut [MaybeUninit<u8>],
        clock: impl Fn() -> Instant,
        observer: &mut impl Observer,
    ) {
        while let Ok(((datagram, _), length, sender)) =
            recvfrom(&self.ends[end], &mut *scratch, RecvFlags::empty())
        {
            let now = clock();
            let mut number = [0; NUMBER_BYTES as usize];
            for (byte, read) in number.iter_mut().zip(&*datagram) {
                *byte = *read;
            }
            if end == 1 {
                self.received += length as u64;
                if self.echo {
                    if let Some(sender) = sender {
                        let _ = sendto(&self.ends[1], datagram, SendFlags::empty(), &sender);
                    }
                    continue;
                }
            }
            let slot = self.ready.get_mut(u32::from_le_bytes(number) as usize);
            if let Some(ready) = slot.and_then(Option::take) {
                observer.on_delivered(self.member, ready, now.since(ready));
            }
        }
    }
}
