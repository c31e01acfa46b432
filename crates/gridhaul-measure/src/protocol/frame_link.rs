//! Packet sockets at both ends of an Ethernet link.

use std::io;
use std::time;

use gridhaul_core::wire::VlanTag;
use gridhaul_linux::{
    Clock, EventFlags, FrameBatch, PacketSocket, Poll, SystemTime, wait_for_receive_times,
};
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::units::Instant;
use rustix::io::Errno;

use super::{ProtocolError, RECEIVE_WAIT, Refused};
use crate::method::ReceiveTimes;
use crate::place::{Site, Sites};
use crate::settings::Settings;

/// Longest frame with a VLAN tag (IEEE 802.1Q), without frame check sequence.
const FRAME_MAX: usize = 1_518;

/// Identity of the frames of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameIdentity {
    /// VLAN tag of the frames; `None` for frames without tag.
    pub vlan: Option<VlanTag>,
    /// APPID, by which the subscriber recognises the frames.
    pub application: u16,
}

/// The end that sends frames.
#[derive(Debug)]
pub(super) struct FrameSender {
    socket: PacketSocket,
}

/// The end that receives frames.
#[derive(Debug)]
pub(super) struct FrameReceiver {
    socket: PacketSocket,
    poll: Poll,
    batch: FrameBatch,
    clock: Clock,
    /// Converts the receive times of the kernel, if they are recorded.
    kernel_times: Option<SystemTime>,
}

/// A received frame.
#[derive(Debug)]
pub(super) struct ReceivedFrame<'a> {
    /// When the frame was received.
    pub(super) times: ReceiveTimes,
    /// Its bytes, without the VLAN tag.
    pub(super) bytes: &'a [u8],
    /// The VLAN tag, which the kernel has removed.
    pub(super) vlan: Option<VlanTag>,
}

impl FrameIdentity {
    /// The identity as settings of a run.
    pub(super) fn settings(&self) -> Settings {
        let vlan = self
            .vlan
            .map_or_else(|| "none".into(), |tag| format!("{}, priority {}", tag.id, tag.priority));
        let application = format!("{:#06x}", self.application);
        [("vlan", vlan), ("application_id", application)].into_iter().collect()
    }
}

/// Opens the end that sends.
pub(super) fn sender(site: &Site<'_>) -> Result<FrameSender, ProtocolError> {
    Ok(FrameSender { socket: socket(site)? })
}

/// Place of a receiver: its end, its clock, and whether it records the receive times of the kernel.
pub(super) type ReceiverPlace<'a> = (&'a Site<'a>, Clock, bool);

/// The place of the receiver of a network.
pub(super) const fn receiver_place<'a>(sites: &'a Sites<'a>) -> ReceiverPlace<'a> {
    (&sites.to, sites.clock, sites.kernel_times)
}

/// Opens the end that receives.
pub(super) fn receiver(
    (site, clock, kernel_times): ReceiverPlace<'_>,
) -> Result<FrameReceiver, ProtocolError> {
    let receiver = socket(site)?;
    let poll = Poll::new().map_err(failed("waiting for frames"))?;
    poll.watch(&receiver, 0, EventFlags::IN).map_err(failed("waiting for frames"))?;
    let batch = FrameBatch::new(1, FRAME_MAX);
    let kernel_times = kernel_times.then(|| SystemTime::new(clock));
    if kernel_times.is_some() {
        wait_for_receive_times();
    }
    Ok(FrameReceiver { socket: receiver, poll, batch, clock, kernel_times })
}

/// A packet socket at an end. The kernel reports the VLAN tag to sockets of all protocols only.
fn socket(site: &Site<'_>) -> Result<PacketSocket, ProtocolError> {
    let Some(device) = site.device else {
        let reason = "this protocol needs Ethernet links; the network carries IP packets";
        return Err(ProtocolError::Network(RunError::Invalid(reason.into())));
    };
    let opened = site.enter(|| {
        let socket = PacketSocket::open(device, PacketSocket::ALL_PROTOCOLS)?;
        // Frames have multicast addresses, which the device need not know.
        socket.set_promiscuous(device)?;
        Ok(socket)
    })?;
    opened.map_err(failed(format!("opening a packet socket on device {device}")))
}

fn failed(operation: impl Into<String>) -> impl FnOnce(gridhaul_linux::Error) -> ProtocolError {
    move |error| ProtocolError::socket(operation)(io::Error::other(error))
}

impl FrameSender {
    /// Sends a frame.
    pub(super) fn send(&self, frame: &[u8]) -> Result<(), Refused> {
        match self.socket.send(&[frame])? {
            0 => Err(Refused::QueueFull),
            _ => Ok(()),
        }
    }
}

impl FrameReceiver {
    /// The clock of the receive times.
    pub(super) const fn clock(&self) -> Clock {
        self.clock
    }

    /// Waits for a frame until `until`, at most [`RECEIVE_WAIT`]; `None` without a frame.
    pub(super) fn receive(
        &mut self,
        until: Instant,
    ) -> Result<Option<ReceivedFrame<'_>>, ProtocolError> {
        let mut count = self.read()?;
        if count == 0 {
            let longest = time::Duration::from_nanos(RECEIVE_WAIT.as_nanos());
            let wait = self.clock.until(until).min(longest);
            let _events = self.poll.wait::<1>(wait).map_err(failed("waiting for frames"))?;
            count = self.read()?;
        }
        let read = self.clock.now();
        let frame = self.batch.frames().next().filter(|_| count > 0);
        let received_at = frame.and_then(|frame| frame.received_at);
        let kernel = self.kernel_times.as_mut().zip(received_at).map(|(times, at)| {
            // Somebody may have set the system's clock.
            times.update();
            times.instant(at)
        });
        Ok(frame.map(|frame| ReceivedFrame {
            times: ReceiveTimes { read, kernel },
            bytes: frame.bytes,
            vlan: frame.vlan.map(|tag| VlanTag {
                id: tag.control & 0xfff,
                priority: (tag.control >> 13) as u8,
                drop_eligible: tag.control & 0x1000 != 0,
                service: tag.protocol == 0x88a8,
            }),
        }))
    }

    fn read(&mut self) -> Result<usize, ProtocolError> {
        match self.socket.receive(&mut self.batch) {
            // The device was switched off. The socket receives again when the device is back.
            Err(error) if error.raw_os_error() == Some(Errno::NETDOWN.raw_os_error()) => Ok(0),
            read => read.map_err(ProtocolError::socket("receiving a frame")),
        }
    }
}
