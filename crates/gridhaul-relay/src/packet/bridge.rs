//! Forwarding of Ethernet frames between two interfaces.

use std::fmt;
use std::io;
use std::os::fd::AsFd;

use bytes::Bytes;
use gridhaul_core::pep::{Proxy, Side};
use gridhaul_core::wire::{EtherType, EthernetFrame, EthernetHeader};
use gridhaul_linux::{Clock, EventFlags, FrameBatch, PacketSocket, Poll};
use gridhaul_scenario::units::Instant;

use super::{Error, PacketProxy};

/// A network interface that receives and sends Ethernet frames without blocking.
pub trait Interface: AsFd + fmt::Debug {
    /// Receives waiting frames, at most as many as fit into `batch`.
    ///
    /// # Errors
    /// The interface is down or was removed.
    fn receive(&self, batch: &mut FrameBatch) -> io::Result<usize>;

    /// Sends a frame, or drops it if the queue of the interface is full.
    ///
    /// # Errors
    /// The interface is down or was removed, or the frame is too long.
    fn send(&self, frame: &[u8]) -> io::Result<()>;
}

impl Interface for PacketSocket {
    fn receive(&self, batch: &mut FrameBatch) -> io::Result<usize> {
        PacketSocket::receive(self, batch)
    }

    fn send(&self, frame: &[u8]) -> io::Result<()> {
        PacketSocket::send(self, &[frame]).map(drop)
    }
}

/// A transparent bridge (IEEE 802.1D) of two interfaces with a proxy for one connection. All other
/// frames are forwarded unchanged, ARP and neighbour discovery included, so that hosts and routers
/// need no configuration.
///
/// Frames with a VLAN tag are not forwarded yet: the kernel reports the tag separately from the
/// frame.
#[derive(Debug)]
pub struct Bridge<P> {
    /// By the side to which they lead.
    interfaces: [Box<dyn Interface>; 2],
    /// Ethernet header of the last packet from each side, which packets of the proxy use as well.
    headers: [Option<EthernetHeader>; 2],
    proxy: PacketProxy<P>,
    poll: Poll,
    /// Buffer for the next frame, which is reused.
    frame: Vec<u8>,
}

impl<P: Proxy> Bridge<P> {
    /// A bridge between the interfaces toward the client and the server.
    ///
    /// # Errors
    /// The limit of open file descriptors is reached.
    pub fn new(interfaces: [Box<dyn Interface>; 2], proxy: PacketProxy<P>) -> Result<Self, Error> {
        let poll = Poll::new()?;
        for (interface, number) in interfaces.iter().zip(0..) {
            poll.watch(interface, number, EventFlags::IN)?;
        }
        Ok(Self { interfaces, headers: [None; 2], proxy, poll, frame: Vec::new() })
    }

    /// The proxy, for its counters.
    #[must_use]
    pub const fn proxy(&self) -> &PacketProxy<P> {
        &self.proxy
    }

    /// Forwards until `stop` returns true, which is called at least every 100 ms.
    ///
    /// # Errors
    /// An interface is down or was removed.
    pub fn run(
        &mut self,
        clock: &Clock,
        stop: impl Fn(&PacketProxy<P>) -> bool,
    ) -> Result<(), Error> {
        let mut batch = FrameBatch::new(BATCH, FRAME_SIZE);
        while !stop(&self.proxy) {
            let remaining = clock.until(self.proxy.next_deadline());
            for event in self.poll.wait::<2>(remaining)? {
                let from = Side::BOTH[event.data.u64() as usize];
                self.receive(clock, from, &mut batch)?;
            }
            let now = clock.now();
            if self.proxy.next_deadline() <= now {
                self.proxy.handle_timeout(now);
                self.transmit(now)?;
            }
        }
        Ok(())
    }

    fn receive(&mut self, clock: &Clock, from: Side, batch: &mut FrameBatch) -> Result<(), Error> {
        let failed = |source| Error::Interface { side: from, source };
        self.interfaces[from.index()].receive(batch).map_err(failed)?;
        for frame in batch.frames().filter(|frame| frame.vlan.is_none() && !frame.truncated) {
            let Ok(EthernetFrame { header, payload }) = EthernetFrame::parse(frame.bytes) else {
                continue;
            };
            let is_ip = matches!(header.ether_type, EtherType::IPV4 | EtherType::IPV6);
            let now = clock.now();
            let packet = if is_ip { Bytes::copy_from_slice(payload) } else { Bytes::new() };
            match self.proxy.handle_packet(now, from, &packet) {
                Ok(true) => {
                    self.headers[from.index()] = Some(header);
                    self.transmit(now)?;
                }
                Ok(false) => self.send(from.other(), frame.bytes)?,
                // A corrupt packet is dropped, as a host would do.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Sends all segments of the proxy.
    fn transmit(&mut self, now: Instant) -> Result<(), Error> {
        while let Some(outgoing) = self.proxy.poll_transmit(now) {
            // A proxy sends nothing for a host before a packet of that host has arrived.
            let Some(header) = self.headers[outgoing.to.other().index()] else { continue };
            self.frame.clear();
            header.write(&mut self.frame);
            self.proxy.write_packet(&outgoing, &mut self.frame)?;
            self.send(outgoing.to, &self.frame)?;
        }
        Ok(())
    }

    fn send(&self, to: Side, frame: &[u8]) -> Result<(), Error> {
        self.interfaces[to.index()]
            .send(frame)
            .map_err(|source| Error::Interface { side: to, source })
    }
}

/// Number of frames received per system call.
const BATCH: usize = 32;

/// Bytes of the largest frame: an MTU of 1500 with header, and space for tags.
const FRAME_SIZE: usize = 2_048;
