//! Translation between the packets of one TCP connection and the segments of a proxy.

mod close;
mod held;
mod old_syn;
mod renumbered;
mod write;

use std::net::SocketAddr;

use gridhaul_core::pep::{Proxy, Side, Statistics};
use gridhaul_core::tcp::{Flags, Segment};
use gridhaul_core::wire::TcpHeader;
use gridhaul_scenario::scenario::ProxyMode;
use gridhaul_scenario::units::{Duration, Instant};

use super::content::TcpFrame;
use super::direction::{Direction, LowerHeaders};
use super::handshake::{Handshake, Syn};
use super::key::ConnectionKey;
use super::output::{Output, Part};
use super::{BridgePort, ConnectionAtRisk, UntouchedCause};

use self::close::Close;
use self::held::HeldAcknowledgement;
pub(super) use self::old_syn::OldSyn;
pub(super) use self::renumbered::RenumberedConnection;

/// A connection through a proxy.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) key: ConnectionKey,
    /// Number of the rule that has matched, among all since the start.
    pub(super) rule: usize,
    pub(super) mode: ProxyMode,
    /// The interface from which the connection was opened.
    client: BridgePort,
    proxy: Box<dyn Proxy>,
    handshake: Handshake,
    /// By the side that sends the data.
    directions: [Direction; 2],
    close: Close,
    /// `ack`: the packet of the acknowledgement that waits.
    held: Option<Box<HeldAcknowledgement>>,
    opened_at: Instant,
    last_segment: Instant,
    /// The client has answered SYN-ACK.
    is_open: bool,
    /// `split`: the client has answered SYN-ACK of the proxy.
    is_confirmed: bool,
    /// The connection was opened through an earlier relay: its segments are forwarded.
    is_observed: bool,
    /// The proxy only translates the sequence numbers of `split`.
    is_renumbered: bool,
    /// The connection is in the list of those at risk.
    pub(super) is_reported: bool,
}

/// Memory of an idle connection matters: a table has up to a million of them.
const _: () = assert!(size_of::<Connection>() <= 336);

/// Parameters of a new connection.
pub(super) struct Opening {
    pub(super) key: ConnectionKey,
    pub(super) rule: usize,
    pub(super) mode: ProxyMode,
    pub(super) client: BridgePort,
    pub(super) proxy: Box<dyn Proxy>,
    /// Bytes that the proxy stores in each direction.
    pub(super) buffer: usize,
    /// `split`: initial sequence numbers of the proxy toward both sides, and its window scale.
    pub(super) own: Option<([u32; 2], u8)>,
}

/// A segment that has arrived.
pub(super) struct Arrival<'a> {
    pub(super) from: Side,
    pub(super) frame: TcpFrame<'a>,
    /// The TCP header of the segment.
    pub(super) header: TcpHeader<'a>,
    /// Absent if the packet is complete and has one segment.
    pub(super) part: Option<Part<'a>>,
}

impl<'a> Arrival<'a> {
    /// Payload of the segment.
    pub(super) fn payload(&self) -> &'a [u8] {
        match &self.part {
            Some(part) => part.segmenter.payload(part.index),
            None => self.frame.tcp.payload(),
        }
    }

    /// Writes the segment unchanged.
    pub(super) fn forward(&self, over: BridgePort, output: &mut Output<'_>) {
        match &self.part {
            Some(part) => output.forward_part(over, &self.frame, part),
            None => output.forward(over, &self.frame.ethernet, self.frame.packet),
        }
    }
}

/// State of a connection, for a list.
#[derive(Debug, Clone)]
pub struct ConnectionStatus {
    /// Number of the rule; `None` if the rules were replaced since the connection was opened.
    pub rule: Option<usize>,
    /// Mode of its proxy.
    pub mode: ProxyMode,
    /// Host that has opened the connection, and the other host.
    pub hosts: [SocketAddr; 2],
    /// VLAN identifiers, the outer one first.
    pub vlans: [Option<u16>; 2],
    /// The interface from which the connection was opened.
    pub opened_from: BridgePort,
    /// Payload in the proxy, by the side that sends it: of the client and of the server.
    pub stored: [u64; 2],
    /// Counters of the proxy.
    pub statistics: Statistics,
    /// Time since the connection was opened.
    pub age: Duration,
    /// Time since the last segment.
    pub idle: Duration,
}

/// Time limits, after which the state of a connection is discarded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Longest time without segments of an open connection.
    pub(super) idle: Duration,
}

/// Longest time until a handshake is complete: SYN of Linux is retransmitted for 131 s.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(135);

/// Time without segments after which an observed connection is forgotten: longer than the largest
/// retransmission timeout of Linux (`TCP_RTO_MAX`, 120 s).
const OBSERVATION_LIMIT: Duration = Duration::from_secs(130);

/// Time for which a closed connection is kept: if the acknowledgement of FIN is lost, the proxy
/// answers the next FIN. A host that has already forgotten the connection would reset it.
const LINGER: Duration = Duration::from_secs(15);

/// Time for which segments of a connection with lost bytes are answered by resets.
const LINGER_AFTER_LOSS: Duration = Duration::from_secs(60);

impl Connection {
    pub(super) fn new(now: Instant, opening: Opening) -> Self {
        let Opening { key, rule, mode, client, proxy, buffer, own } = opening;
        let direction = || Direction::new(buffer);
        let mut connection = Self {
            key,
            rule,
            mode,
            client,
            proxy,
            handshake: Handshake::new(own.map(|(_, scale)| scale)),
            directions: [direction(), direction()],
            close: Close::default(),
            held: None,
            opened_at: now,
            last_segment: now,
            is_open: false,
            is_confirmed: false,
            is_observed: false,
            is_renumbered: false,
            is_reported: false,
        };
        if let Some((isns, _)) = own {
            // Completed with the sequence number of each host when its SYN arrives.
            for from in Side::BOTH {
                let first = isns[from.other().index()].wrapping_add(1);
                connection.directions[from.index()].renumbering = 0_u32.wrapping_sub(first);
            }
        }
        connection
    }

    /// The same connection, opened through an earlier relay. Its proxy only forwards.
    pub(super) const fn observed(mut self) -> Self {
        (self.is_open, self.is_observed) = (true, true);
        self
    }

    /// Whether SYN begins another connection with another proxy.
    pub(super) fn may_be_replaced(&self) -> bool {
        self.is_over() || self.is_observed
    }

    /// The side of the host from which packets arrive at an interface.
    pub(super) fn side_of(&self, port: BridgePort) -> Side {
        if port == self.client { Side::Client } else { Side::Server }
    }

    /// Whether both directions are closed or reset: SYN begins another connection.
    pub(super) fn is_over(&self) -> bool {
        if self.forwards() { self.close.is_closed() } else { self.proxy.is_over() }
    }

    /// Why the proxy cannot serve the connection after this segment.
    pub(super) fn objection(&self, arrival: &Arrival<'_>) -> Option<UntouchedCause> {
        let Arrival { from, frame, header, .. } = arrival;
        let is_answer = *from == Side::Server && header.flags.has(Flags::SYN.with(Flags::ACK));
        if !is_answer || self.mode == ProxyMode::Split || self.is_open {
            return None;
        }
        if frame.tcp.header().is_err() {
            return Some(UntouchedCause::Malformed);
        }
        let syn = Syn::of(header, &frame.ip.addresses());
        syn.objection(&header.options, !arrival.payload().is_empty())
    }

    /// Handles a segment.
    pub(super) fn handle(&mut self, now: Instant, arrival: &Arrival<'_>, output: &mut Output<'_>) {
        let Arrival { from, frame, header, .. } = arrival;
        let index = from.index();
        let payload = arrival.payload();
        let mut segment = frame.tcp.segment_of(header, frame.ip.header_len());
        segment.len = payload.len() as u32;
        self.directions[index].headers = Some(LowerHeaders::of(frame));
        if !self.is_answered_probe(*from, &segment) {
            self.last_segment = now;
        }
        if header.flags.has(Flags::SYN) {
            self.on_syn(arrival);
            if self.acknowledges() {
                // The proxy has no answer to congestion marks (RFC 3168, section 6.1.1: without
                // both flags in SYN, the hosts use no ECN).
                segment.flags = segment.flags.without(Flags::ECE.with(Flags::CWR));
            }
        } else {
            segment.window <<= self.handshake.shift_from(*from);
            self.is_confirmed |= *from == Side::Client && self.confirms(header);
            self.is_open |= *from == Side::Client && self.handshake.is_complete();
        }
        let renumbering = self.directions[from.other().index()].renumbering;
        self.close.observe(*from, &segment, segment.ack.wrapping_add(renumbering));
        if let Some((seq, len)) = self.proxy.accepts(*from, &segment) {
            let start = seq.wrapping_sub(first_number(&segment)) as usize;
            if let Some(accepted) = payload.get(start..start.saturating_add(len as usize)) {
                self.directions[index].insert(seq, accepted);
            }
        }
        self.proxy.handle_segment(now, *from, &segment);
        let is_forwarded = self.transmit(now, Some((arrival, &segment)), output);
        if self.mode == ProxyMode::Ack && !is_forwarded {
            self.held = Some(Box::new(HeldAcknowledgement::of(&segment, arrival)));
        }
    }

    /// Whether a segment is a keep-alive probe (RFC 9293, section 3.8.4) that the proxy answers in
    /// place of the other host. Such probes do not show that the other host exists; without the
    /// proxy, they do. Hosts that it has separated cannot continue without it.
    fn is_answered_probe(&self, from: Side, segment: &Segment) -> bool {
        let is_other =
            [Flags::SYN, Flags::FIN, Flags::RST].iter().any(|flag| segment.flags.has(*flag));
        if segment.len > 1 || is_other {
            return false;
        }
        let Some(first) = self.proxy.first_sequence_number(from) else { return false };
        let received = self.proxy.buffer_status(from).received as u32;
        let is_old = segment.seq == first.wrapping_add(received).wrapping_sub(1);
        is_old && !self.forwards() && !self.is_terminated()
    }

    /// Handles the timers of the proxy that have expired.
    pub(super) fn handle_timeout(&mut self, now: Instant, output: &mut Output<'_>) {
        if self.proxy.next_deadline() <= now {
            self.proxy.handle_timeout(now);
            self.transmit(now, None, output);
        }
    }

    /// Sends what waits, and acknowledges no more data in place of the receiver.
    pub(super) fn drain(&mut self, now: Instant, output: &mut Output<'_>) {
        self.proxy.drain(now);
        self.transmit(now, None, output);
    }

    /// Resets both hosts if bytes are at risk, or if the hosts cannot continue without the proxy.
    pub(super) fn abandon(&mut self, now: Instant, output: &mut Output<'_>) {
        if self.proxy.bytes_at_risk() > 0 || self.is_terminated() && !self.is_over() {
            self.proxy.reset();
            self.transmit(now, None, output);
        }
    }

    /// A router on the path to the receiver of a segment has dropped it. Returns whether the path
    /// has become narrower.
    pub(super) fn limit_packets(&mut self, from: Side, mtu: u32, seq: u32) -> bool {
        // A report about a segment that was not sent in the present window is forged or late
        // (RFC 5927).
        let Some(first) = self.handshake.syn(from).map(|syn| syn.first) else { return false };
        let forwards = self.forwards();
        let direction = &mut self.directions[from.index()];
        let released = first.wrapping_add(self.proxy.buffer_status(from).released as u32);
        let ahead = seq.wrapping_add(direction.renumbering).wrapping_sub(released);
        let is_plausible = forwards || ahead <= PLAUSIBLE;
        let is_narrower = is_plausible && mtu < direction.path_mtu;
        if is_narrower {
            direction.path_mtu = mtu;
        }
        is_narrower
    }

    /// Time of the next timeout of the proxy, or of a time limit.
    pub(super) fn deadline(&self, limits: &Limits) -> Instant {
        self.proxy.next_deadline().min(self.ends_at(limits))
    }

    /// When the state is discarded unless a segment arrives.
    pub(super) fn ends_at(&self, limits: &Limits) -> Instant {
        let limit = match self.is_open {
            _ if self.is_over() && self.proxy.lost() > 0 => LINGER_AFTER_LOSS,
            _ if self.is_over() => LINGER,
            _ if self.is_observed => OBSERVATION_LIMIT.min(limits.idle),
            true => limits.idle,
            false => limits.idle.min(HANDSHAKE_LIMIT),
        };
        self.last_segment + limit
    }

    /// Whether the handshake is complete.
    pub(super) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether the state is not needed any more. The hosts of a closed connection answer each
    /// other, unless the proxy has acknowledged data in their place.
    pub(super) fn has_ended(&self) -> bool {
        self.forwards() && self.close.is_closed() && self.proxy.is_finished()
    }

    /// Payload in memory.
    pub(super) fn memory(&self) -> usize {
        self.directions.iter().map(|direction| direction.store.len()).sum()
    }

    /// Bytes that were acknowledged to their sender and not by the next hop.
    pub(super) fn bytes_at_risk(&self) -> u64 {
        self.proxy.bytes_at_risk()
    }

    /// The connection, if its hosts would lose bytes or be disconnected if the proxy ended now.
    pub(super) fn at_risk(&self) -> Option<ConnectionAtRisk> {
        let is_terminated = self.is_terminated() && self.is_open && !self.is_over();
        if !is_terminated && self.proxy.bytes_at_risk() == 0 {
            return None;
        }
        let template = |side| self.template(side).map(|template| template.ethernet.source);
        let [client, server] = Side::BOTH.map(template);
        let seq = Side::BOTH.map(|side| self.handshake.syn(side).map_or(0, |syn| syn.first));
        Some(ConnectionAtRisk {
            hosts: Side::BOTH.map(|side| self.host(side)),
            opened_from: self.client,
            vlans: self.key.vlans(),
            hardware: [client?, server?],
            seq,
        })
    }

    pub(super) fn lowers_goodput(&self) -> bool {
        self.proxy.lowers_goodput()
    }

    pub(super) fn statistics(&self) -> Statistics {
        self.proxy.statistics()
    }

    /// The state for a list. Rules with numbers below `former_rules` are not in use any more.
    pub(super) fn status(&self, now: Instant, former_rules: usize) -> ConnectionStatus {
        let host = |side| self.host(side);
        ConnectionStatus {
            rule: self.rule.checked_sub(former_rules),
            mode: self.mode,
            hosts: Side::BOTH.map(host),
            vlans: self.key.vlans(),
            opened_from: self.client,
            stored: Side::BOTH.map(|from| self.directions[from.index()].store.len() as u64),
            statistics: self.statistics(),
            age: now.since(self.opened_at),
            idle: now.since(self.last_segment),
        }
    }

    /// Whether both hosts have a connection with the proxy, and cannot continue without it.
    pub(super) fn is_terminated(&self) -> bool {
        self.mode == ProxyMode::Split && !self.is_observed
    }

    /// Whether the proxy acknowledges data in place of the receiver.
    const fn acknowledges(&self) -> bool {
        self.mode.acknowledges_data()
    }

    /// Whether only the hosts acknowledge data.
    const fn forwards(&self) -> bool {
        self.is_renumbered || !self.acknowledges()
    }

    const fn port_of(&self, side: Side) -> BridgePort {
        match side {
            Side::Client => self.client,
            Side::Server => self.client.other(),
        }
    }

    fn host(&self, side: Side) -> SocketAddr {
        self.key.host(self.port_of(side))
    }

    fn on_syn(&mut self, arrival: &Arrival<'_>) {
        let Arrival { from, frame, header, .. } = arrival;
        let is_answer = header.flags.has(Flags::ACK);
        if is_answer != (*from == Side::Server) || self.is_open {
            return;
        }
        let syn = Syn::of(header, &frame.ip.addresses());
        if self.mode == ProxyMode::Split && self.handshake.syn(*from).is_none() {
            let direction = &mut self.directions[from.index()];
            direction.renumbering = direction.renumbering.wrapping_add(syn.first);
        }
        self.handshake.note(*from, syn);
        if self.mode == ProxyMode::Split {
            self.proxy.set_window_shift(*from, self.handshake.shift_toward(*from));
        } else if is_answer {
            self.proxy.limit_mss(self.handshake.mss_limit());
            for toward in Side::BOTH {
                self.proxy.set_window_shift(toward, self.handshake.shift_toward(toward));
            }
        }
    }

    /// Releases the stored payload that the proxy no longer needs.
    fn release(&mut self) {
        if self.is_renumbered {
            // The payload of the segment that has just been forwarded. Retransmissions begin
            // anywhere.
            self.directions.iter_mut().for_each(Direction::clear);
            return;
        }
        for from in Side::BOTH {
            let syn = self.handshake.syn(from).map(|syn| syn.first);
            if let Some(first) = self.proxy.first_sequence_number(from).or(syn) {
                let released = self.proxy.buffer_status(from).released as u32;
                let store = &mut self.directions[from.index()].store;
                store.release_to(first.wrapping_add(released));
            }
        }
    }
}

/// Largest distance of a dropped segment from the first unacknowledged byte: the largest window
/// (RFC 7323, section 2.3).
const PLAUSIBLE: u32 = 1 << 30;

/// Sequence number of the first payload byte of a segment.
fn first_number(segment: &Segment) -> u32 {
    segment.seq.wrapping_add(u32::from(segment.flags.has(Flags::SYN)))
}
