//! The bridge as a state machine: frames in, frames out.

mod drain;
mod hand_over;
mod observation;
mod opening;
mod segments;

use std::fmt;

use gridhaul_core::pep::Statistics;
use gridhaul_core::wire::EthernetHeader;
use gridhaul_scenario::units::{Bytes, Duration, Instant};

use super::at_risk::{ConnectionAtRisk, Entry, RiskList, RiskState};
use super::connection::{Connection, ConnectionStatus, Limits};
use super::content::Content;
use super::counters::{BridgeCounters, EndCause, UntouchedCause};
use super::frame::{Frame, OutgoingFrames};
use super::key::{BridgePort, ConnectionKey};
use super::output::Output;
use super::path_mtu::PacketTooBig;
use super::rule::{ProxyBuilder, Rule};
use super::table::{Table, TableEntry};
use super::untouched::UntouchedConnections;

/// Parameters of the bridge.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// Rules in their order.
    pub rules: Vec<Rule>,
    /// Largest number of connections through proxies.
    pub connections: usize,
    /// Memory for the payload of all connections.
    pub memory: Bytes,
    /// Longest time without segments of a connection.
    pub idle_timeout: Duration,
    /// Largest IP packet of each interface.
    pub mtus: [u32; 2],
    /// Detect the connections that an earlier relay has left without their proxy: to be set if no
    /// other program resets them.
    pub detects_losses: bool,
}

/// Treatment of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handling {
    /// A TCP segment that belongs to no proxy: the caller forwards it unchanged over the other
    /// interface.
    Forward,
    /// No TCP segment: the caller forwards it unchanged, unless the kernel's bridge does.
    Pass,
    /// The frame was handled, or dropped.
    Handled,
}

/// Sums over all connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BridgeTotals {
    /// Connections through proxies.
    pub connections: usize,
    /// Payload in memory.
    pub memory: usize,
    /// Bytes that were acknowledged to their sender and not by the next hop.
    pub at_risk: u64,
    /// Bytes that were acknowledged and are lost, since the start.
    pub lost: u64,
    /// Segments that proxies have retransmitted, since the start.
    pub retransmissions: u64,
    /// Expirations of retransmission timers, since the start.
    pub timeouts: u64,
}

/// A bridge with proxies.
pub struct Engine {
    settings: EngineSettings,
    table: Table,
    untouched: UntouchedConnections,
    builder: ProxyBuilder,
    /// Number of rules that a reload has replaced, before those in use: a connection has the number
    /// of its rule among all of them.
    former_rules: usize,
    outgoing: OutgoingFrames,
    counters: BridgeCounters,
    /// Initial sequence numbers of proxies that terminate connections (RFC 6528: unpredictable).
    sequence_numbers: Box<dyn FnMut() -> u32 + Send>,
    /// Connections that must end before the bridge does; `None` until it is to end.
    draining: Option<Vec<TableEntry>>,
    /// When the first frame was handled.
    started: Option<Instant>,
    at_risk: RiskList,
}

impl Engine {
    /// A bridge without connections. `sequence_numbers` returns random numbers.
    #[must_use]
    pub fn new(
        settings: EngineSettings,
        sequence_numbers: impl FnMut() -> u32 + Send + 'static,
    ) -> Self {
        Self {
            settings,
            table: Table::default(),
            untouched: UntouchedConnections::default(),
            builder: ProxyBuilder::default(),
            former_rules: 0,
            outgoing: OutgoingFrames::default(),
            counters: BridgeCounters::default(),
            sequence_numbers: Box::new(sequence_numbers),
            draining: None,
            started: None,
            at_risk: RiskList::default(),
        }
    }

    /// Handles a frame that an interface has received.
    pub fn handle_frame(&mut self, now: Instant, from: BridgePort, frame: &Frame<'_>) -> Handling {
        self.started.get_or_insert(now);
        let handling = match Content::of(frame) {
            Content::Tcp(segment) => self.handle_tcp(now, from, frame, &segment),
            Content::TcpFragment => {
                self.counters.add_untouched(UntouchedCause::Fragment);
                Handling::Pass
            }
            // The kernel's bridge leaves it to the relay, like all TCP.
            Content::MalformedTcp => Handling::Forward,
            Content::PacketTooBig(ethernet, report) => {
                // The host gets the report as well: after the end of the proxy it needs the path.
                self.limit_path(from, &ethernet, &report);
                Handling::Pass
            }
            Content::Other => Handling::Pass,
        };
        self.counters.passed += u64::from(handling != Handling::Handled);
        handling
    }

    /// Handles all timers that have expired.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(number) = self.table.pop_due(now) {
            let limits = self.limits();
            let Some(connection) = self.table.get_mut(number) else { continue };
            if connection.ends_at(&limits) <= now {
                let cause = match connection.is_open() {
                    _ if connection.is_over() => EndCause::Closed,
                    true => EndCause::Idle,
                    false => EndCause::Handshake,
                };
                self.end(now, number, cause);
                continue;
            }
            let mut output = Output {
                frames: &mut self.outgoing,
                counters: &mut self.counters,
                mtus: self.settings.mtus,
            };
            connection.handle_timeout(now, &mut output);
            self.finish_event(now, number);
        }
    }

    /// Time of the next timeout.
    #[must_use]
    pub fn next_deadline(&self) -> Instant {
        self.table.next_deadline()
    }

    /// Frames to send, which the caller clears.
    pub const fn outgoing(&mut self) -> &mut OutgoingFrames {
        &mut self.outgoing
    }

    /// Counters of all connections and frames.
    #[must_use]
    pub const fn counters(&self) -> &BridgeCounters {
        &self.counters
    }

    /// The same, to count frames that the caller has dropped.
    pub const fn counters_mut(&mut self) -> &mut BridgeCounters {
        &mut self.counters
    }

    /// The parameters in use.
    #[must_use]
    pub const fn settings(&self) -> &EngineSettings {
        &self.settings
    }

    /// Changes parameters. Present connections keep their proxies.
    pub fn set_settings(&mut self, settings: EngineSettings) {
        if settings.rules != self.settings.rules {
            self.former_rules += self.settings.rules.len();
        }
        self.settings = settings;
        self.builder = ProxyBuilder::default();
    }

    /// An interface has another MTU.
    pub const fn set_mtu(&mut self, port: BridgePort, mtu: u32) {
        self.settings.mtus[port.index()] = mtu;
    }

    /// Sums over all connections.
    #[must_use]
    pub fn totals(&self) -> BridgeTotals {
        let mut totals = BridgeTotals {
            connections: self.table.len(),
            memory: self.table.memory(),
            lost: self.counters.lost,
            retransmissions: self.counters.retransmissions,
            timeouts: self.counters.timeouts,
            ..BridgeTotals::default()
        };
        for (_, connection) in self.table.iter() {
            let statistics = connection.statistics();
            totals.at_risk += statistics.at_risk;
            totals.lost += statistics.lost;
            totals.retransmissions += statistics.retransmissions.iter().sum::<u64>();
            totals.timeouts += statistics.timeouts.iter().sum::<u64>();
        }
        totals
    }

    /// All connections through proxies.
    pub fn connections(&self, now: Instant) -> impl Iterator<Item = ConnectionStatus> {
        let former_rules = self.former_rules;
        self.table.iter().map(move |(_, connection)| connection.status(now, former_rules))
    }

    /// Connections that are at risk since the last call: to be protected before
    /// [`Self::outgoing`] is sent.
    pub fn take_newly_at_risk(&mut self) -> Vec<ConnectionAtRisk> {
        self.at_risk.take_new()
    }

    /// Connections that were at risk and are not any more. To be called at intervals, as a
    /// connection may be at risk again soon.
    pub fn take_no_longer_at_risk(&mut self) -> Vec<ConnectionAtRisk> {
        let table = &mut self.table;
        self.at_risk.take_safe(|entry| {
            let is_present = table.has(entry.number, entry.generation);
            let connection = table.get_mut(entry.number).filter(|_| is_present);
            let Some(connection) = connection else {
                let next = table.find(&entry.connection.key()).and_then(|next| table.get(next));
                let is_replaced = next.is_some_and(|next| next.is_reported);
                return if is_replaced { RiskState::Replaced } else { RiskState::Safe };
            };
            connection.is_reported = connection.at_risk().is_some();
            if connection.is_reported { RiskState::AtRisk } else { RiskState::Safe }
        })
    }

    /// Discards all connections without a segment: their hosts have exchanged segments that the
    /// bridge has not seen, and hosts at risk are reset by another program.
    pub fn forget(&mut self) {
        let numbers: Vec<_> = self.table.iter().map(|(number, _)| number).collect();
        for number in numbers {
            let Some(connection) = self.table.remove(number) else { continue };
            self.counters.lost += connection.bytes_at_risk();
            self.count_ended(&connection, EndCause::LeaseExpired);
        }
        self.at_risk.clear();
    }

    /// Ends all connections: those with bytes at risk are reset. They remain at risk: a host that
    /// does not accept the reset, because segments before it were lost, is reset by another
    /// program.
    pub fn stop(&mut self, now: Instant) {
        let table = &self.table;
        self.at_risk.leave_at_risk(|entry| {
            table.has(entry.number, entry.generation)
                && table.get(entry.number).is_some_and(|one| one.at_risk().is_some())
        });
        let numbers: Vec<_> = self.table.iter().map(|(number, _)| number).collect();
        for number in numbers {
            self.end(now, number, EndCause::Stopped);
        }
    }

    /// A router has dropped a packet of a connection: the report arrives at the interface over
    /// which the packet was sent.
    fn limit_path(&mut self, from: BridgePort, ethernet: &EthernetHeader, report: &PacketTooBig) {
        let key = ConnectionKey::new(from.other(), ethernet.tags, &report.ends);
        let Some(number) = self.table.find(&key) else { return };
        let Some(connection) = self.table.get_mut(number) else { return };
        let sender = connection.side_of(from.other());
        let is_narrower = connection.limit_packets(sender, report.mtu, report.seq);
        self.counters.path_mtu_lowered += u64::from(is_narrower);
    }

    /// After each event of a connection: discards its state if the connection has ended.
    fn finish_event(&mut self, now: Instant, number: u32) {
        let limits = self.limits();
        match self.table.get(number) {
            Some(connection) if connection.has_ended() => self.end(now, number, EndCause::Closed),
            Some(connection) if connection.lowers_goodput() => {
                self.end(now, number, EndCause::Goodput);
            }
            _ => {
                self.report_risk(number);
                self.table.update(number, &limits);
            }
        }
    }

    /// Adds a connection to the list of those at risk, once.
    fn report_risk(&mut self, number: u32) {
        let Some(generation) = self.table.generation(number) else { return };
        let Some(connection) = self.table.get_mut(number).filter(|one| !one.is_reported) else {
            return;
        };
        if let Some(at_risk) = connection.at_risk() {
            connection.is_reported = true;
            self.at_risk.add(Entry { number, generation, connection: at_risk });
        }
    }

    /// Discards the state of a connection.
    fn end(&mut self, now: Instant, number: u32, cause: EndCause) {
        let Some(mut connection) = self.table.remove(number) else { return };
        let mut output = self.output();
        connection.abandon(now, &mut output);
        self.count_ended(&connection, cause);
    }

    /// Discards the proxy of a connection that its hosts have without it.
    fn discard(&mut self, number: u32) {
        let Some(connection) = self.table.remove(number) else { return };
        self.counters.add_untouched(UntouchedCause::SynNotSeen);
        self.count_ended(&connection, EndCause::Handshake);
    }

    fn count_ended(&mut self, connection: &Connection, cause: EndCause) {
        self.add_statistics(&connection.statistics());
        self.counters.add_ended(cause);
        // Its hosts may continue without the proxy.
        self.untouched.note(&connection.key);
    }

    /// Adds the counters of a proxy that is discarded.
    fn add_statistics(&mut self, statistics: &Statistics) {
        self.counters.lost += statistics.lost;
        self.counters.retransmissions += statistics.retransmissions.iter().sum::<u64>();
        self.counters.timeouts += statistics.timeouts.iter().sum::<u64>();
    }

    const fn output(&mut self) -> Output<'_> {
        Output {
            frames: &mut self.outgoing,
            counters: &mut self.counters,
            mtus: self.settings.mtus,
        }
    }

    const fn limits(&self) -> Limits {
        Limits { idle: self.settings.idle_timeout }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("settings", &self.settings)
            .field("table", &self.table)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
