//! One member of a flow whose connections open and close during the run: pairs of sockets, their
//! manager, and the application.

use std::mem::MaybeUninit;

use gridhaul_core::load::{
    Application, ConnectionCounters, ConnectionManager, ConnectionTransport, EndState,
    InFlightMessages, ManagedCarrier, NoLocalPort,
};
use gridhaul_linux::TcpInfo;
use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;
use socket2::Socket;

use super::connection::{FIRST_DATA, Observer};
use super::samples::SenderCounts;
use super::socket;
use super::streams::{Streams, is_wait};
use crate::network::FlowLayout;

/// The connections of one member.
#[derive(Debug)]
pub(crate) struct ManagedConnections {
    /// Index of the flow, and of this member.
    pub flow: u16,
    pub member: u32,
    pub application: Application,
    manager: ConnectionManager,
    in_transit: InFlightMessages,
    /// Connections that are not closed at both ends; the last one is the newest.
    pairs: Vec<SocketPair>,
    /// When the application starts; it has started if `begun`.
    opens: Instant,
    begun: bool,
    /// Counters of the senders of connections that have ended.
    ended: SenderCounts,
    /// The first error of a connection.
    pub failure: Option<String>,
    pub failed: u64,
}

/// The two sockets of a connection.
#[derive(Debug)]
struct SocketPair {
    streams: Streams,
    /// Local port of the `from` end, by which the `to` end recognises the connection.
    port: u16,
    /// Whether each end is to close once its data is accepted, and has read the other's FIN.
    closes: [bool; 2],
    finished: [bool; 2],
    /// Retransmissions of SYN, once the connection is established.
    opened_after: Option<u32>,
    /// Counters of the sender if its socket was aborted, and no longer exists.
    aborted: SenderCounts,
}

/// Opens a socket of the `from` end: already watched, and bound to the address of the member.
pub(crate) trait OpenSocket {
    /// A new socket of this member.
    fn open(&mut self) -> Result<Socket, String>;
}

impl ManagedConnections {
    pub(crate) fn new(
        (flow, member): (u16, u32),
        manager: ConnectionManager,
        application: Application,
        opens: Instant,
    ) -> Self {
        Self {
            flow,
            member,
            application,
            manager,
            in_transit: InFlightMessages::default(),
            pairs: Vec::new(),
            opens,
            begun: false,
            ended: SenderCounts::default(),
            failure: None,
            failed: 0,
        }
    }

    /// The next deadline of the application and of the connections.
    pub(crate) fn due(&self) -> Instant {
        if self.begun {
            self.application.next_deadline().min(self.manager.next_deadline())
        } else {
            self.opens
        }
    }

    /// Payload that both applications have received.
    pub(crate) fn delivered(&self) -> u64 {
        let of_both =
            || self.manager.delivered(FlowEnd::From) + self.manager.delivered(FlowEnd::To);
        self.application.delivered_payload().unwrap_or_else(of_both)
    }

    /// Ready times of the messages that have not been delivered.
    pub(crate) fn undelivered(&self) -> impl Iterator<Item = Instant> {
        self.application.undelivered(&self.in_transit)
    }

    /// Whether the TCP handshake of an attempt is in progress, and its SYN was retransmitted.
    pub(crate) fn has_failed_to_open(&self) -> bool {
        let newest = self.pairs.last().filter(|_| self.manager.is_opening());
        newest.is_some_and(|pair| {
            let sender = pair.streams.sockets[0].as_ref();
            let info = sender.and_then(|socket| TcpInfo::of(socket).ok());
            info.is_some_and(|info| info.retransmissions > 0)
        })
    }

    /// The `to` end has accepted the connection from a port.
    pub(crate) fn accept(&mut self, receiver: Socket, port: u16) {
        if let Some(pair) = self.pairs.iter_mut().rfind(|pair| pair.port == port) {
            pair.streams.sockets[1] = Some(receiver);
        }
    }

    /// Adds the counters of the senders.
    pub(crate) fn add_counts(&self, counts: &mut SenderCounts) {
        counts.add_counts(&self.ended);
        for pair in &self.pairs {
            pair.add_counts(counts);
        }
    }

    /// A deadline has passed, or a socket is ready.
    pub(crate) fn act<O: Observer>(
        &mut self,
        now: Instant,
        (plan, scratch): (&FlowLayout, &mut [MaybeUninit<u8>]),
        opener: &mut impl OpenSocket,
        (observer, counters): (&mut O, &mut ConnectionCounters),
    ) {
        if !self.begun && self.opens > now {
            return;
        }
        self.begun = true;
        self.manager.start();
        for pair in &mut self.pairs {
            pair.read(plan, scratch);
        }
        loop {
            self.advance(now, plan, opener, (&mut *observer, &mut *counters));
            for pair in &mut self.pairs {
                pair.flush();
            }
            if self.due() > now && !self.has_failed_since() {
                break;
            }
        }
        self.retire();
    }

    fn advance<O: Observer>(
        &mut self,
        now: Instant,
        plan: &FlowLayout,
        opener: &mut impl OpenSocket,
        (observer, counters): (&mut O, &mut ConnectionCounters),
    ) {
        let on_ready = |ready| {
            observer.on_late(now.since(ready));
            observer.on_ready(ready);
        };
        let on_event = |ready, event| counters.on_message_event(ready, event);
        let mut carrier = ManagedCarrier { manager: &mut self.manager, on_ready, on_event };
        self.application.handle_timeout(now, &mut carrier, &mut self.in_transit);
        let mut transport = NewestPair {
            pairs: &mut self.pairs,
            opener,
            plan,
            identity: (self.flow, self.member),
            failure: &mut self.failure,
        };
        self.manager.poll(now, &mut transport, counters);
        for end in [FlowEnd::To, FlowEnd::From] {
            let on_event = |ready, event| counters.on_message_event(ready, event);
            let (manager, on_ready) = (&mut self.manager, |_| {});
            let mut carrier = ManagedCarrier { manager, on_ready, on_event };
            while let Some(message) =
                self.application.poll_delivered(now, end, &mut carrier, &mut self.in_transit)
            {
                observer.on_delivered(self.member, message.at, now.since(message.at));
            }
        }
    }

    /// Whether the newest connection has failed, which the manager has not been told.
    fn has_failed_since(&self) -> bool {
        let newest = self.pairs.last().filter(|_| !self.manager.has_no_connection());
        newest.is_some_and(|pair| pair.streams.failure.is_some())
    }

    /// Closes the sockets of connections that have ended.
    fn retire(&mut self) {
        let in_use = if self.manager.has_no_connection() { 0 } else { self.pairs.len() };
        let Self { pairs, ended, failure, failed, .. } = self;
        let mut number = 0;
        pairs.retain_mut(|pair| {
            number += 1;
            let keep = number == in_use || !pair.has_ended();
            if !keep {
                pair.add_counts(ended);
                if let Some(reason) = pair.streams.failure.take() {
                    *failed += 1;
                    failure.get_or_insert(reason);
                }
            }
            keep
        });
    }
}

impl SocketPair {
    /// Reads all data that has arrived at both ends.
    fn read(&mut self, plan: &FlowLayout, scratch: &mut [MaybeUninit<u8>]) {
        for index in 0..2 {
            while let Some(socket) = &self.streams.sockets[index] {
                match socket.recv(scratch) {
                    Ok(0) => {
                        self.finished[index] = true;
                        break;
                    }
                    Ok(length) => {
                        if self.streams.delivered[index] < FIRST_DATA {
                            // Opening the socket has failed already if the option is not supported.
                            let _ = socket::clamp_window(socket, &plan.stacks[index]);
                        }
                        self.streams.delivered[index] += length as u64;
                    }
                    Err(error) => {
                        if !is_wait(&error) {
                            self.streams.fail(&error);
                        }
                        break;
                    }
                }
            }
        }
    }

    /// Passes the written data to the sockets, and closes the ends that have written everything.
    fn flush(&mut self) {
        // Before an end is shut down, which may be in the same call: a connection that closes is
        // established no longer.
        if self.opened_after.is_none()
            && let Some(Ok(info)) = self.streams.sockets[0].as_ref().map(TcpInfo::of)
            && info.state == TcpInfo::ESTABLISHED
        {
            self.opened_after = Some(info.retransmissions);
        }
        for end in [FlowEnd::From, FlowEnd::To] {
            if self.streams.flush(end) && self.closes[end as usize] {
                self.streams.shut_down(end);
            }
        }
    }

    fn has_ended(&self) -> bool {
        let is_gone = self.streams.sockets[0].is_none() && self.streams.sockets[1].is_none();
        is_gone || self.streams.failure.is_some() || self.finished == [true; 2] && self.is_closed()
    }

    fn is_closed(&self) -> bool {
        self.streams.is_shut_down(FlowEnd::From) && self.streams.is_shut_down(FlowEnd::To)
    }

    fn is_open(&self) -> bool {
        let info = self.streams.sockets[0].as_ref().and_then(|socket| TcpInfo::of(socket).ok());
        info.is_some_and(|info| info.is_synchronised())
    }

    fn add_counts(&self, counts: &mut SenderCounts) {
        counts.add_counts(&self.aborted);
        if let Some(Ok(info)) = self.streams.sockets[0].as_ref().map(TcpInfo::of) {
            // All retransmissions of a connection that is not established are of SYN.
            counts.add(&info, self.opened_after.unwrap_or(info.retransmissions));
        }
    }
}

/// The newest connection of a member, and the means to open another.
struct NewestPair<'a, O> {
    pairs: &'a mut Vec<SocketPair>,
    opener: &'a mut O,
    plan: &'a FlowLayout,
    identity: (u16, u32),
    failure: &'a mut Option<String>,
}

impl<O: OpenSocket> ConnectionTransport for NewestPair<'_, O> {
    fn open(&mut self, _now: Instant) -> Result<(), NoLocalPort> {
        let (flow, member) = self.identity;
        let sender = self.opener.open().map_err(|reason| {
            self.failure.get_or_insert(reason);
            NoLocalPort
        })?;
        let port = sender.local_addr().ok().and_then(|address| address.as_socket());
        let mut streams = Streams::new(sender);
        if let Some(sender) = &streams.sockets[0]
            && let Err(error) = socket::connect(sender, self.plan, flow, member)
        {
            streams.fail(&error);
        }
        let port = port.map_or(0, |address| address.port());
        let (closes, finished, opened_after) = ([false; 2], [false; 2], None);
        let aborted = SenderCounts::default();
        self.pairs.push(SocketPair { streams, port, closes, finished, opened_after, aborted });
        Ok(())
    }

    fn state(&self, _now: Instant, end: FlowEnd) -> EndState {
        let Some(pair) = self.pairs.last() else { return EndState::Failed };
        if pair.streams.failure.is_some() {
            return EndState::Failed;
        }
        match end {
            _ if pair.finished[end as usize] => EndState::PeerClosed,
            FlowEnd::From if pair.streams.delivered[0] > 0 || pair.is_open() => EndState::Open,
            FlowEnd::To if pair.streams.sockets[1].is_some() => EndState::Open,
            _ => EndState::Opening,
        }
    }

    fn delivered(&self, end: FlowEnd) -> u64 {
        self.pairs.last().map_or(0, |pair| pair.streams.delivered[end as usize])
    }

    fn write(&mut self, end: FlowEnd, bytes: u64) {
        if let Some(pair) = self.pairs.last_mut() {
            pair.streams.is_open = true;
            pair.streams.push(end, bytes);
        }
    }

    fn close(&mut self, end: FlowEnd) {
        if let Some(pair) = self.pairs.last_mut() {
            pair.closes[end as usize] = true;
        }
    }

    /// Closing a socket without lingering sends RST (socket(7), `SO_LINGER`).
    fn abort(&mut self, _now: Instant, end: FlowEnd) {
        let Some(pair) = self.pairs.last_mut() else { return };
        let mut counts = SenderCounts::default();
        pair.add_counts(&mut counts);
        if let Some(socket) = pair.streams.sockets[end as usize].take() {
            let _ = socket.set_linger(Some(std::time::Duration::ZERO));
        }
        if end == FlowEnd::From {
            pair.aborted = counts;
        }
    }
}
