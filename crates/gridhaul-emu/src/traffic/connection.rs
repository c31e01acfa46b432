//! One member of a TCP flow: two sockets and their application.

use std::mem::MaybeUninit;

use gridhaul_core::load::{Application, Arrival, InFlightMessages};
use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::{Duration, Instant};
use socket2::Socket;

use super::socket;
use super::streams::{StreamCarrier, Streams, is_wait};
use crate::network::FlowLayout;
use gridhaul_linux::TcpInfo;

/// A connection, or a sender and a receiver of datagrams.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Index of the flow, and of this member.
    pub flow: u16,
    pub member: u32,
    pub application: Application,
    streams: Streams,
    /// Messages from both ends that are in transit.
    in_transit: InFlightMessages,
    /// Time at which the connection opens; [`Instant::NEVER`] if a trace opens it.
    opens: Instant,
    /// Whether the handshake has started, and its time.
    pub begun: bool,
    begun_at: Instant,
    /// Retransmissions of SYN, once the connection is established.
    opened_after: Option<u32>,
}

/// Receives the events of a connection.
pub(crate) trait Observer {
    /// The application has a message ready.
    fn on_ready(&mut self, ready: Instant);
    /// A message has been delivered completely.
    fn on_delivered(&mut self, member: u32, ready: Instant, delay: Duration);
    /// A connection is established, this long after the start of the handshake.
    fn on_opened(&mut self, took: Duration);
    /// The socket did not accept a datagram.
    fn on_unsent(&mut self, ready: Instant);
    /// The application acted this long after its deadline.
    fn on_late(&mut self, late: Duration);
}

/// Bytes after which the kernel has received full segments.
pub(super) const FIRST_DATA: u64 = 1 << 16;

impl Connection {
    pub(crate) fn new(
        (flow, member): (u16, u32),
        sender: Socket,
        application: Application,
        opens: Instant,
    ) -> Self {
        Self {
            flow,
            member,
            application,
            streams: Streams::new(sender),
            in_transit: InFlightMessages::default(),
            opens,
            begun: false,
            begun_at: Instant::NEVER,
            opened_after: None,
        }
    }

    /// The socket of the `from` end.
    pub(crate) fn sender(&self) -> Option<&Socket> {
        self.streams.sockets[0].as_ref()
    }

    /// Whether the `to` end has accepted the connection.
    pub(crate) fn is_accepted(&self) -> bool {
        self.streams.sockets[1].is_some()
    }

    /// The `to` end has accepted the connection.
    pub(crate) fn accept(&mut self, receiver: Socket) {
        self.streams.sockets[1] = Some(receiver);
    }

    /// Bytes delivered at the `to` end.
    pub(crate) fn delivered(&self) -> u64 {
        let [responses, delivered] = self.streams.delivered;
        delivered + if self.application.is_dialogue() { responses } else { 0 }
    }

    /// Bytes of both directions that are acknowledged to their sender and were not delivered.
    pub(crate) fn acknowledged_undelivered(&self) -> u64 {
        self.streams.acknowledged_undelivered()
    }

    /// The error with which the kernel has aborted the connection, if any.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.streams.failure.as_deref()
    }

    /// The next deadline of the application.
    pub(crate) fn due(&self) -> Instant {
        if self.begun { self.application.next_deadline() } else { self.opens }
    }

    /// Starts the handshake and the application.
    pub(crate) fn begin(&mut self, now: Instant, plan: &FlowLayout, observer: &mut impl Observer) {
        self.begun = true;
        self.begun_at = now;
        let Some(sender) = self.sender() else { return };
        if let Err(error) = socket::connect(sender, plan, self.flow, self.member) {
            self.streams.fail(&error);
        }
        self.on_due(now, observer);
    }

    /// Records that the connection is established, if it is.
    pub(crate) fn record_open(&mut self, now: Instant, observer: &mut impl Observer) {
        if self.streams.is_open || !self.begun {
            return;
        }
        let info = self.sender().and_then(|socket| TcpInfo::of(socket).ok());
        self.streams.is_open = info.is_some_and(|info| info.is_synchronised());
        if self.streams.is_open {
            observer.on_opened(now.since(self.begun_at));
        }
    }

    /// Whether the connection was aborted, or SYN was retransmitted without a reply.
    pub(crate) fn has_failed_to_open(&self) -> bool {
        let info = || self.sender().and_then(|socket| TcpInfo::of(socket).ok());
        let retransmitted = || info().is_some_and(|info| info.retransmissions > 0);
        let streams = &self.streams;
        self.begun && !streams.is_open && (streams.failure.is_some() || retransmitted())
    }

    /// Ready times of the messages that have not been delivered.
    pub(crate) fn undelivered(&self) -> impl Iterator<Item = Instant> {
        self.application.undelivered(&self.in_transit)
    }

    /// The application is due: writes the ready messages.
    pub(crate) fn on_due(&mut self, now: Instant, observer: &mut impl Observer) {
        let mut carrier = StreamCarrier { streams: &mut self.streams, now, observer };
        self.application.handle_timeout(now, &mut carrier, &mut self.in_transit);
    }

    /// A trace has a message; the first one opens the connection, unless it opens by itself.
    pub(crate) fn on_recorded(
        &mut self,
        now: Instant,
        arrival: Arrival,
        (plan, observer): (&FlowLayout, &mut impl Observer),
    ) {
        let mut carrier = StreamCarrier { streams: &mut self.streams, now, observer };
        self.application.handle_recorded(arrival, None, &mut carrier, &mut self.in_transit);
        if !self.begun && self.opens == Instant::NEVER {
            self.begin(now, plan, observer);
        }
        if self.begun {
            self.write(FlowEnd::From, now, observer);
        }
    }

    /// Retransmissions of SYN, according to `info`.
    pub(crate) fn syn_retransmissions(&self, info: &TcpInfo) -> u32 {
        // All retransmissions of a connection that is not established are of SYN.
        self.opened_after.unwrap_or(info.retransmissions)
    }

    /// Records the retransmissions of SYN when the connection is established and has sent no data
    /// yet.
    fn record_handshake(&mut self) {
        if self.opened_after.is_none()
            && let Some(sender) = self.sender()
            && let Ok(info) = TcpInfo::of(sender)
            && info.state == TcpInfo::ESTABLISHED
        {
            self.opened_after = Some(info.retransmissions);
        }
    }

    /// Flushes the written data into the socket of an end. In a burst without a rate, there is a
    /// message whenever the socket accepts one: when all previous data has been sent.
    pub(crate) fn write(&mut self, end: FlowEnd, now: Instant, observer: &mut impl Observer) {
        self.record_handshake();
        while self.streams.flush(end) {
            if end == FlowEnd::To {
                return;
            }
            self.application.advance(now);
            let mut carrier =
                StreamCarrier { streams: &mut self.streams, now, observer: &mut *observer };
            if !self.application.poll_write(now, &mut carrier, &mut self.in_transit) {
                self.streams.finish();
                return;
            }
        }
    }

    /// Reads the data that has reached an end. Returns whether the deadline of the application has
    /// changed.
    pub(crate) fn read(
        &mut self,
        end: FlowEnd,
        plan: &FlowLayout,
        scratch: &mut [MaybeUninit<u8>],
        clock: impl Fn() -> Instant,
        observer: &mut impl Observer,
    ) -> bool {
        let before = self.application.next_deadline();
        let index = end as usize;
        while let Some(socket) = &self.streams.sockets[index] {
            match socket.recv(scratch) {
                Ok(0) => {
                    // The peer has closed; the socket must not wake the loop again.
                    if end == FlowEnd::To {
                        self.streams.shut_down(FlowEnd::To);
                    }
                    break;
                }
                Ok(length) => {
                    if self.streams.delivered[index] < FIRST_DATA && plan.aggregators == 0 {
                        // Opening the socket has failed already if the option is not supported.
                        let _ = socket::clamp_window(socket, &plan.stacks[index]);
                    }
                    self.streams.delivered[index] += length as u64;
                    self.on_delivered(end, clock(), observer);
                }
                Err(error) => {
                    if !is_wait(&error) {
                        self.streams.fail(&error);
                    }
                    break;
                }
            }
        }
        self.application.next_deadline() != before
    }

    fn on_delivered(&mut self, end: FlowEnd, now: Instant, observer: &mut impl Observer) {
        loop {
            let mut carrier =
                StreamCarrier { streams: &mut self.streams, now, observer: &mut *observer };
            let message =
                self.application.poll_delivered(now, end, &mut carrier, &mut self.in_transit);
            let Some(message) = message else { return };
            observer.on_delivered(self.member, message.at, now.since(message.at));
        }
    }
}
