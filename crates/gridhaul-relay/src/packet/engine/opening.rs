//! Selection of a proxy for a new connection.

use gridhaul_core::tcp::{Flags, window_shift_of};
use gridhaul_core::wire::TcpHeader;
use gridhaul_scenario::scenario::ProxyMode;
use gridhaul_scenario::units::Instant;

use super::super::connection::{Connection, Opening};
use super::super::content::TcpFrame;
use super::super::counters::{EndCause, UntouchedCause, mode_index};
use super::super::handshake::Syn;
use super::super::key::{BridgePort, ConnectionKey};
use super::super::rule::{NewConnection, Rule};
use super::Engine;

impl Engine {
    /// Opens a connection through a proxy, if a rule selects it.
    pub(super) fn open(
        &mut self,
        now: Instant,
        from: BridgePort,
        key: ConnectionKey,
        segment: &TcpFrame<'_>,
    ) -> Result<u32, UntouchedCause> {
        let header = segment.tcp.header().map_err(|_| UntouchedCause::Malformed)?;
        let addresses = segment.ip.addresses();
        let syn = Syn::of(&header, &addresses);
        let ends = segment.ends();
        let (client, server) = (ends.source, ends.destination);
        let connection =
            NewConnection { from, client, server, client_mss: self.mss(&syn, segment) };
        let mut rules = self.settings.rules.iter().enumerate();
        let found = rules.find(|(_, rule)| rule.matches(&connection));
        let (number, rule) = found.ok_or(UntouchedCause::NoRule)?;
        self.admit(rule, &syn, &header, segment)?;
        self.make_space(now)?;
        let rule = &self.settings.rules[number];
        let isns = [(self.sequence_numbers)(), (self.sequence_numbers)()];
        let proxy = self.builder.build((number, rule), &connection, isns);
        let buffer = usize::try_from(rule.buffer.get()).unwrap_or(usize::MAX);
        let scale = window_shift_of(buffer.min(u32::MAX as usize) as u32);
        let own = (rule.mode == ProxyMode::Split).then_some((isns, scale));
        let mode = rule.mode;
        // The cache of `snoop` counts headers, and does not cache what its store holds as well.
        let buffer = if mode == ProxyMode::Snoop { buffer.saturating_mul(2) } else { buffer };
        let rule = self.former_rules + number;
        let opening = Opening { key, rule, mode, client: from, proxy, buffer, own };
        if let Some(index) = mode_index(mode) {
            self.counters.opened[index] += 1;
        }
        Ok(self.table.insert(Connection::new(now, opening)))
    }

    /// Discards a closed connection if the table is full.
    fn make_space(&mut self, now: Instant) -> Result<(), UntouchedCause> {
        while self.table.len() >= self.settings.connections {
            let closed = self.table.pop_closed();
            let number = closed.ok_or(UntouchedCause::TableFull)?;
            if self.table.get(number).is_some_and(Connection::is_over) {
                self.end(now, number, EndCause::Closed);
            }
        }
        Ok(())
    }

    /// Whether a proxy can serve a connection.
    fn admit(
        &self,
        rule: &Rule,
        syn: &Syn,
        header: &TcpHeader<'_>,
        segment: &TcpFrame<'_>,
    ) -> Result<(), UntouchedCause> {
        if rule.mode == ProxyMode::None {
            return Err(UntouchedCause::ModeNone);
        }
        if self.draining.is_some() {
            return Err(UntouchedCause::Draining);
        }
        if header.flags.has(Flags::FIN) || header.flags.has(Flags::RST) {
            return Err(UntouchedCause::Malformed);
        }
        if segment.has_ip_options() {
            return Err(UntouchedCause::IpOptions);
        }
        let objection = syn.objection(&header.options, !segment.tcp.payload().is_empty());
        objection.map_or(Ok(()), Err)?;
        if self.table.memory() as u64 >= self.settings.memory.get() {
            return Err(UntouchedCause::Memory);
        }
        Ok(())
    }

    /// Largest segment that the client and both interfaces accept.
    fn mss(&self, syn: &Syn, segment: &TcpFrame<'_>) -> u32 {
        let headers = (segment.ip.header().header_len() + TcpHeader::MIN_LEN) as u32;
        let mtu = self.settings.mtus[0].min(self.settings.mtus[1]);
        syn.mss.min(mtu.saturating_sub(headers)).max(1)
    }
}
