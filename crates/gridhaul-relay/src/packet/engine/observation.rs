//! Connections that an earlier relay has served, after a restart.

use gridhaul_core::tcp::Flags;
use gridhaul_scenario::units::{Duration, Instant};

use super::super::connection::{Connection, Opening};
use super::super::content::TcpFrame;
use super::super::key::{BridgePort, ConnectionKey};
use super::super::rule::NewConnection;
use super::Engine;

/// Time after the start in which connections of an earlier relay are recognised: five of the
/// largest retransmission timeouts of Linux (`TCP_RTO_MAX`, 120 s). Later, a connection whose SYN
/// was not seen has come over another path.
const TIME: Duration = Duration::from_secs(600);

impl Engine {
    /// Whether an earlier relay may have served a connection whose SYN was not seen.
    pub(super) fn observes(&self, now: Instant) -> bool {
        let is_recent = self.started.is_some_and(|started| now.since(started) < TIME);
        is_recent && self.settings.detects_losses && self.draining.is_none()
    }

    /// Observes a connection that an earlier relay may have served, if a rule selects it: it is
    /// reset if bytes are lost that the earlier relay has acknowledged, or if its hosts have the
    /// sequence numbers of different connections (`split`). Otherwise its segments are forwarded.
    pub(super) fn observe(
        &mut self,
        now: Instant,
        from: BridgePort,
        key: ConnectionKey,
        segment: &TcpFrame<'_>,
    ) -> Option<u32> {
        let flags = segment.tcp.flags();
        let is_plain = !flags.has(Flags::SYN) && !flags.has(Flags::RST);
        let is_full = self.table.len() >= self.settings.connections;
        if !is_plain || is_full || segment.has_ip_options() {
            return None;
        }
        let ends = segment.ends();
        // The host that has opened the connection is unknown.
        let sides =
            [(from, ends.source, ends.destination), (from.other(), ends.destination, ends.source)];
        let client_mss = u32::from(u16::MAX);
        let connections =
            sides.map(|(from, client, server)| NewConnection { from, client, server, client_mss });
        let mut rules = self.settings.rules.iter().enumerate();
        let (number, rule, connection) = rules.find_map(|(number, rule)| {
            let connection = connections.iter().find(|connection| rule.matches(connection))?;
            Some((number, rule, *connection))
        })?;
        let proxy = self.builder.build_observer((number, rule), &connection)?;
        let mode = rule.mode;
        let client = connection.from;
        // An observer stores nothing.
        let rule = self.former_rules + number;
        let opening = Opening { key, rule, mode, client, proxy, buffer: 0, own: None };
        Some(self.table.insert(Connection::new(now, opening).observed()))
    }
}
