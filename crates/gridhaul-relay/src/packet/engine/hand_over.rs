//! Connections that continue in the next version of the program.

use gridhaul_scenario::units::Instant;

use super::super::connection::{Connection, RenumberedConnection};
use super::Engine;
use crate::protocol::{DecodeError, Decoder, put_text};

/// Version of the state. Other versions cannot read it; the hosts are then reset.
const VERSION: u16 = 1;

/// Bytes of the name of a rule.
const NAME_MAX: usize = 1_024;

impl Engine {
    /// Removes the connections that continue in the next version of the program, and returns their
    /// state; `None` if there are none. To be called after [`Self::drain`], and before
    /// [`Self::stop`]. They remain at risk until the next version has called [`Self::adopt`].
    pub fn hand_over(&mut self) -> Option<Vec<u8>> {
        let table = &self.table;
        let continues = |connection: &Connection| connection.to_renumbered().is_some();
        self.at_risk.leave_at_risk(|entry| {
            let is_at_risk =
                |connection: &Connection| continues(connection) && connection.at_risk().is_some();
            table.has(entry.number, entry.generation)
                && table.get(entry.number).is_some_and(is_at_risk)
        });
        let numbers: Vec<_> = table
            .iter()
            .filter(|(_, connection)| continues(connection))
            .map(|(number, _)| number)
            .collect();
        let mut bytes = VERSION.to_le_bytes().to_vec();
        for &number in &numbers {
            let connection = self.table.remove(number);
            let state = connection.as_ref().and_then(|connection| connection.to_renumbered());
            let (Some(connection), Some(state)) = (connection, state) else { continue };
            let rule = connection.rule.checked_sub(self.former_rules);
            let rule = rule.and_then(|rule| self.settings.rules.get(rule));
            put_text(&mut bytes, rule.map_or("", |rule| &rule.name), NAME_MAX);
            state.write(&mut bytes);
        }
        (!numbers.is_empty()).then_some(bytes)
    }

    /// Continues the connections of the previous version of the program, all of them or, with an
    /// error, none. Returns their number.
    ///
    /// # Errors
    /// The state is that of a version that this one does not know.
    pub fn adopt(&mut self, now: Instant, state: &[u8]) -> Result<usize, DecodeError> {
        let mut decoder = Decoder::new(state, "state of connections");
        if decoder.u16()? != VERSION {
            return Err(DecodeError::Undefined("version of the state of connections"));
        }
        let rules = &self.settings.rules;
        let mut connections = Vec::new();
        while !decoder.is_empty() {
            let name = decoder.text(NAME_MAX)?;
            // A rule that the configuration no longer has gets no number of another one.
            let rule = rules.iter().position(|rule| rule.name == name);
            let rule = rule.map_or(usize::MAX, |rule| self.former_rules + rule);
            let state = RenumberedConnection::read(&mut decoder)?;
            connections.push(state.into_connection(now, rule));
        }
        let (count, limits) = (connections.len(), self.limits());
        for connection in connections {
            let number = self.table.insert(connection);
            self.table.update(number, &limits);
        }
        Ok(count)
    }
}
