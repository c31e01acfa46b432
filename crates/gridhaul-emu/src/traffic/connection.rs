//! One member of a flow: two sockets and the application between them.

use std::mem::MaybeUninit;
use std::net::Shutdown;

use gridhaul_core::load::{Application, Arrival, InFlightMessages};
use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::{Duration, Instant};
use socket2::Socket;

use super::socket;
use super::streams::{Carried, Streams, is_wait};
use crate::network::FlowPlan;
use gridhaul_linux::TcpInfo;

/// A connection, or a sender and a receiver of datagrams.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Number of the flow, and of this member.
    pub flow: u16,
    pub member: u32,
    pub application: Application,
    streams: Streams,
    /// Messages from both ends that are under way.
    under_way: InFlightMessages,
    /// When the connection is to open; [`Instant::NEVER`] where a recording opens it.
    opens: Instant,
    /// Whether it has begun to connect, and when.
    pub begun: bool,
    begun_at: Instant,
    /// Retransmissions of SYN, known once the connection is established.
    opened_after: Option<u32>,
}

/// What a connection reports to its row.
pub(crate) trait Observer {
    /// The application has a message ready.
    fn on_ready(&mut self, ready: Instant);
    /// A message has arrived whole.
    fn on_delivered(&mut self, member: u32, ready: Instant, delay: Duration);
    /// A connection is open, this long after it began to connect.
    fn on_opened(&mut self, took: Duration);
    /// The socket did not take a datagram.
    fn on_unsent(&mut self, ready: Instant);
    /// The application did something this long after it was due.
    fn on_late(&mut self, late: Duration);
}

/// By then the kernel has seen full segments.
const FIRST_DATA: u64 = 1 << 16;

impl Connection {
    pub(crate) fn new(
        (flow, member): (u16, u32),
        near: Socket,
        application: Application,
        opens: Instant,
    ) -> Self {
        Self {
            flow,
            member,
            application,
            streams: Streams::new(near),
            under_way: InFlightMessages::default(),
            opens,
            begun: false,
            begun_at: Instant::NEVER,
            opened_after: None,
        }
    }

    /// The socket of the `from` end.
    pub(crate) fn near(&self) -> Option<&Socket> {
        self.streams.sockets[0].as_ref()
    }

    /// Whether the `to` end has accepted the connection.
    pub(crate) fn is_accepted(&self) -> bool {
        self.streams.sockets[1].is_some()
    }

    /// The `to` end has accepted the connection.
    pub(crate) fn accept(&mut self, far: Socket) {
        self.streams.sockets[1] = Some(far);
    }

    /// Bytes delivered at the `to` end.
    pub(crate) fn delivered(&self) -> u64 {
        self.streams.delivered[1]
    }

    /// Why the kernel has given the connection up, if it has.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.streams.failure.as_deref()
    }

    /// When it wants to do something by itself.
    pub(crate) fn due(&self) -> Instant {
        if self.begun { self.application.next_deadline() } else { self.opens }
    }

    /// Connects; the application begins.
    pub(crate) fn begin(&mut self, now: Instant, plan: &FlowPlan, observer: &mut impl Observer) {
        self.begun = true;
        self.begun_at = now;
        let Some(near) = self.near() else { return };
        if let Err(error) = socket::connect(near, plan.family, self.flow, self.member) {
            self.streams.fail(&error);
        }
        self.on_due(now, observer);
    }

    /// Notes that the kernel has opened the connection, if it has.
    pub(crate) fn note_open(&mut self, now: Instant, observer: &mut impl Observer) {
        if self.streams.is_open || !self.begun {
            return;
        }
        let info = self.near().and_then(|socket| TcpInfo::of(socket).ok());
        self.streams.is_open = info.is_some_and(|info| info.is_synchronised());
        if self.streams.is_open {
            observer.on_opened(now.since(self.begun_at));
        }
    }

    /// Whether the connection was given up, or SYN retransmitted without an answer.
    pub(crate) fn has_failed_to_open(&self) -> bool {
        let info = || self.near().and_then(|socket| TcpInfo::of(socket).ok());
        let retransmitted = || info().is_some_and(|info| info.retransmissions > 0);
        let streams = &self.streams;
        self.begun && !streams.is_open && (streams.failure.is_some() || retransmitted())
    }

    /// When the messages were ready that have not been delivered.
    pub(crate) fn undelivered(&self) -> impl Iterator<Item = Instant> {
        self.application.undelivered(&self.under_way)
    }

    /// The application is due: what is ready is written.
    pub(crate) fn on_due(&mut self, now: Instant, observer: &mut impl Observer) {
        let mut carrier = Carried { streams: &mut self.streams, now, observer };
        self.application.handle_timeout(now, &mut carrier, &mut self.under_way);
    }

    /// A recording has a message; the first one opens the connection, if nothing else does.
    pub(crate) fn on_recorded(
        &mut self,
        now: Instant,
        arrival: Arrival,
        (plan, observer): (&FlowPlan, &mut impl Observer),
    ) {
        let mut carrier = Carried { streams: &mut self.streams, now, observer };
        self.application.handle_recorded(arrival, None, &mut carrier, &mut self.under_way);
        if !self.begun && self.opens == Instant::NEVER {
            self.begin(now, plan, observer);
        }
        if self.begun {
            self.write(FlowEnd::From, now, observer);
        }
    }

    /// How often SYN was retransmitted, by what the kernel says now.
    pub(crate) fn syn_retransmissions(&self, info: &TcpInfo) -> u32 {
        // Whatever an unestablished connection has retransmitted is SYN.
        self.opened_after.unwrap_or(info.retransmissions)
    }

    /// Notes the retransmissions of SYN when the connection is established and has sent no data yet.
    fn note_opening(&mut self) {
        if self.opened_after.is_none()
            && let Some(near) = self.near()
            && let Ok(info) = TcpInfo::of(near)
            && info.state == TcpInfo::ESTABLISHED
        {
            self.opened_after = Some(info.retransmissions);
        }
    }

    /// Lets the socket of an end take what is written. In a burst without rate there is a message whenever
    /// the socket takes one, which it does when all before have been sent.
    pub(crate) fn write(&mut self, end: FlowEnd, now: Instant, observer: &mut impl Observer) {
        self.note_opening();
        while self.streams.flush(end) {
            if end == FlowEnd::To {
                return;
            }
            self.application.advance(now);
            let mut carrier = Carried { streams: &mut self.streams, now, observer: &mut *observer };
            if !self.application.poll_write(now, &mut carrier, &mut self.under_way) {
                self.streams.finish();
                return;
            }
        }
    }

    /// Reads what has reached an end. Returns whether the application is due anew.
    pub(crate) fn read(
        &mut self,
        end: FlowEnd,
        plan: &FlowPlan,
        scratch: &mut [MaybeUninit<u8>],
        clock: impl Fn() -> Instant,
        observer: &mut impl Observer,
    ) -> bool {
        let before = self.application.next_deadline();
        let index = end as usize;
        while let Some(socket) = &self.streams.sockets[index] {
            match socket.recv(scratch) {
                Ok(0) => {
                    // Nothing more will come; the socket must not wake the loop again.
                    if end == FlowEnd::To {
                        let _ = socket.shutdown(Shutdown::Write);
                    }
                    break;
                }
                Ok(length) => {
                    if self.streams.delivered[index] < FIRST_DATA {
                        // A socket that does not know the option was refused when it was opened.
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
            let mut carrier = Carried { streams: &mut self.streams, now, observer: &mut *observer };
            let message =
                self.application.poll_delivered(now, end, &mut carrier, &mut self.under_way);
            let Some(message) = message else { return };
            observer.on_delivered(self.member, message.at, now.since(message.at));
        }
    }
}
