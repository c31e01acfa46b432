//! One member of a flow: two sockets and the application between them.

use std::io;
use std::mem::MaybeUninit;
use std::net::Shutdown;

use gridhaul_core::load::Message;
use gridhaul_scenario::units::{Duration, Instant};
use socket2::Socket;

use super::application::{Application, Outbox};
use super::socket;
use crate::network::FlowPlan;
use gridhaul_linux::TcpInfo;

/// A connection, or a sender and a receiver of datagrams.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Number of the flow, and of this member.
    pub flow: u16,
    pub member: u32,
    /// The `from` end, and the `to` end once it was accepted.
    pub ends: [Option<Socket>; 2],
    pub application: Application,
    /// When the load begins, and when the connection is to open; [`Instant::NEVER`] where a recording
    /// opens it.
    pub start: Instant,
    opens: Instant,
    /// Whether it has begun to connect, and when; whether it is open.
    pub begun: bool,
    /// Retransmissions of SYN, known once the connection is established.
    opened_after: Option<u32>,
    begun_at: Instant,
    open: bool,
    /// Whether the kernel has given it up, and why.
    pub failure: Option<String>,
    /// Bytes handed to each end by the application, taken by its socket, and received there.
    handed: [u64; 2],
    taken: [u64; 2],
    pub received: [u64; 2],
    /// Messages from each end that are under way.
    outbox: [Outbox; 2],
    /// When a transfer was complete; [`Instant::NEVER`] before.
    pub completed: Instant,
}

/// What a connection tells its row.
pub(crate) trait Told {
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

/// Payload; nobody looks at it.
static ZEROS: [u8; 1 << 17] = [0; 1 << 17];

impl Connection {
    pub(crate) fn new(
        (flow, member): (u16, u32),
        near: Socket,
        application: Application,
        (start, opens): (Instant, Instant),
    ) -> Self {
        Self {
            flow,
            member,
            ends: [Some(near), None],
            application,
            start,
            opens,
            begun: false,
            opened_after: None,
            begun_at: Instant::NEVER,
            open: false,
            failure: None,
            handed: [0; 2],
            taken: [0; 2],
            received: [0; 2],
            outbox: Default::default(),
            completed: Instant::NEVER,
        }
    }

    /// When it wants to do something by itself.
    pub(crate) fn due(&self) -> Instant {
        if self.begun { self.application.due() } else { self.opens }
    }

    /// Connects; the application begins.
    pub(crate) fn begin(&mut self, now: Instant, plan: &FlowPlan, told: &mut impl Told) {
        self.begun = true;
        self.begun_at = now;
        let Some(near) = &self.ends[0] else { return };
        if let Err(error) = socket::connect(near, plan.family, self.flow, self.member) {
            self.fail(&error);
        }
        match &self.application {
            Application::Bulk => self.handed[0] = u64::MAX,
            Application::Transfer { bytes } => self.handed[0] = *bytes,
            Application::Greedy(_) => self.advance_bursts(now, told),
            _ => {}
        }
    }

    /// Notes that the kernel has opened the connection, if it has.
    pub(crate) fn note_open(&mut self, now: Instant, told: &mut impl Told) {
        if self.open || !self.begun {
            return;
        }
        let info = self.ends[0].as_ref().and_then(|socket| TcpInfo::of(socket).ok());
        self.open = info.is_some_and(|info| info.is_synchronised());
        if self.open {
            told.on_opened(now.since(self.begun_at));
        }
    }

    /// Whether the connection was given up, or SYN retransmitted without an answer.
    pub(crate) fn has_failed_to_open(&self) -> bool {
        let info = || self.ends[0].as_ref().and_then(|socket| TcpInfo::of(socket).ok());
        let retransmitted = || info().is_some_and(|info| info.retransmissions > 0);
        self.begun && !self.open && (self.failure.is_some() || retransmitted())
    }

    /// When the messages were ready that have not arrived.
    pub(crate) fn undelivered(&self) -> Vec<Instant> {
        match &self.application {
            Application::Dialogue { machine, next } => {
                let is_pause = matches!(next, Some((0, _)));
                if is_pause { Vec::new() } else { vec![machine.asked()] }
            }
            _ => self.outbox[0].ready().collect(),
        }
    }

    /// The application is due: what it has to say is handed over.
    pub(crate) fn on_due(&mut self, now: Instant, told: &mut impl Told) {
        match &mut self.application {
            Application::Bulk | Application::Transfer { .. } | Application::Recorded => {}
            Application::Messages(source) => {
                while let Some(message) = source.next_message_by(now) {
                    hand_over(message, now, (&mut self.handed[0], &mut self.outbox[0]), told);
                }
            }
            Application::Greedy(_) => self.advance_bursts(now, told),
            Application::Dialogue { machine, next } => {
                let Some((end, message)) = next.take_if(|(_, message)| message.at <= now) else {
                    return;
                };
                told.on_late(now.since(message.at));
                if end == 0 {
                    told.on_ready(message.at);
                }
                self.handed[end] += message.bytes;
                self.outbox[end].push(self.handed[end], machine.asked());
            }
        }
    }

    /// A recording has a message for it; the first one opens the connection, if nothing else does.
    pub(crate) fn on_recorded(
        &mut self,
        now: Instant,
        message: Message,
        (plan, told): (&FlowPlan, &mut impl Told),
    ) {
        hand_over(message, now, (&mut self.handed[0], &mut self.outbox[0]), told);
        if !self.begun && self.opens == Instant::NEVER {
            self.begin(now, plan, told);
        }
        if self.begun {
            self.write(0, now, told);
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
            && let Some(near) = &self.ends[0]
            && let Ok(info) = TcpInfo::of(near)
            && info.state == TcpInfo::ESTABLISHED
        {
            self.opened_after = Some(info.retransmissions);
        }
    }

    /// Bursts without rate begin and end. One that finds the connection closed has a message ready all
    /// the same, which waits; the others come when the socket takes them.
    fn advance_bursts(&mut self, now: Instant, told: &mut impl Told) {
        let Application::Greedy(greedy) = &mut self.application else { return };
        greedy.bursts.advance(now);
        if greedy.bursts.active() && !self.open {
            let message = Message { at: now, bytes: greedy.bytes };
            hand_over(message, now, (&mut self.handed[0], &mut self.outbox[0]), told);
        }
    }

    /// Writes what an end has to write, as far as its socket takes it.
    pub(crate) fn write(&mut self, end: usize, now: Instant, told: &mut impl Told) {
        self.note_opening();
        loop {
            let new_message = end == 0 && self.next_of_burst(now);
            if self.taken[end] >= self.handed[end] {
                break;
            }
            let Some(mut socket) = self.ends[end].as_ref() else { return };
            let rest = self.handed[end] - self.taken[end];
            let length = usize::try_from(rest).map_or(ZEROS.len(), |rest| rest.min(ZEROS.len()));
            match io::Write::write(&mut socket, &ZEROS[..length]) {
                Ok(taken) => self.taken[end] += taken as u64,
                Err(error) => {
                    if new_message {
                        self.handed[0] = self.taken[0];
                    }
                    if !is_wait(&error) {
                        self.fail(&error);
                    }
                    return;
                }
            }
            if new_message {
                self.outbox[0].push(self.handed[0], now);
                told.on_ready(now);
            }
        }
        if let (0, Application::Transfer { bytes }) = (end, &self.application)
            && self.taken[0] == *bytes
            && let Some(socket) = &self.ends[0]
        {
            // The other end may have reset it meanwhile.
            let _ = socket.shutdown(Shutdown::Write);
        }
    }

    /// In a burst without rate there is a message whenever the socket takes one, which it does
    /// when all before have been sent. Returns whether one was handed over now.
    fn next_of_burst(&mut self, now: Instant) -> bool {
        let Application::Greedy(greedy) = &mut self.application else { return false };
        greedy.bursts.advance(now);
        let next = greedy.bursts.active() && self.taken[0] == self.handed[0];
        if next {
            self.handed[0] += greedy.bytes;
        }
        next
    }

    /// Reads what has reached an end. Returns whether the application is due anew.
    pub(crate) fn read(
        &mut self,
        end: usize,
        plan: &FlowPlan,
        scratch: &mut [MaybeUninit<u8>],
        clock: impl Fn() -> Instant,
        told: &mut impl Told,
    ) -> bool {
        let mut woken = false;
        loop {
            let Some(socket) = &self.ends[end] else { return woken };
            match socket.recv(scratch) {
                Ok(0) => {
                    // Nothing more will come; the socket must not wake the loop again.
                    if end == 1 {
                        let _ = socket.shutdown(Shutdown::Write);
                    }
                    return woken;
                }
                Ok(length) => {
                    if self.received[end] < FIRST_DATA {
                        // A socket that does not know the option was refused when it was opened.
                        let _ = socket::clamp_window(socket, &plan.stacks[end]);
                    }
                    self.received[end] += length as u64;
                    woken |= self.on_received(end, clock(), told);
                }
                Err(error) if is_wait(&error) => return woken,
                Err(error) => {
                    self.fail(&error);
                    return woken;
                }
            }
        }
    }

    fn on_received(&mut self, end: usize, now: Instant, told: &mut impl Told) -> bool {
        let received = self.received[end];
        if let Application::Transfer { bytes } = &self.application {
            if end == 1 && received >= *bytes && self.completed == Instant::NEVER {
                self.completed = now;
            }
            return false;
        }
        let mut woken = false;
        while let Some(ready) = self.outbox[1 - end].pop(received) {
            let Application::Dialogue { machine, next } = &mut self.application else {
                told.on_delivered(self.member, ready, now.since(ready));
                continue;
            };
            // The whole message is there: the machine is told of it in one piece.
            let answer = if end == 1 {
                machine.handle_request_bytes(now, u64::MAX / 2)
            } else {
                told.on_delivered(self.member, ready, now.since(ready));
                machine.handle_response_bytes(now, u64::MAX / 2)
            };
            *next = answer.map(|message| (end, message));
            woken = true;
        }
        woken
    }

    fn fail(&mut self, error: &io::Error) {
        // Connecting takes its time; that is no failure.
        if error.raw_os_error() != Some(libc::ENOTCONN) && self.failure.is_none() {
            self.failure = Some(error.to_string());
        }
    }
}

/// The application has a message, which is written behind the `handed` bytes before.
fn hand_over(
    message: Message,
    now: Instant,
    (handed, outbox): (&mut u64, &mut Outbox),
    told: &mut impl Told,
) {
    told.on_late(now.since(message.at));
    told.on_ready(message.at);
    *handed += message.bytes;
    outbox.push(*handed, message.at);
}

fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        || error.raw_os_error() == Some(libc::ENOTCONN)
}
