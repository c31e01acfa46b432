//! The end of a proxy without loss: data is acknowledged to its sender only after the next hop has
//! acknowledged it, so that no byte remains at risk.

use super::{Coupling, CouplingMode};
use crate::pep::Side;
use crate::tcp::{Connection, Flags, Segment, State};

/// The offer to a side before its data was acknowledged by the next hop only. Neither the
/// acknowledgement nor the right edge of the window moves back (RFC 9293, section 3.8.6).
#[derive(Debug, Clone, Copy)]
pub(super) struct StatedOffer {
    /// Position of the acknowledgement, without a FIN whose acknowledgement is withheld.
    pub acknowledged: u64,
    /// Position of the right edge of the window.
    edge: u64,
}

impl Coupling {
    /// From now on data and FIN are acknowledged when the next hop has acknowledged them.
    pub(in crate::pep) fn drain(&mut self) {
        if self.stated_before_drain.is_some() {
            return;
        }
        let stated = Side::BOTH.map(|side| self.stated_offer(side));
        self.stated_before_drain = Some(Box::new(stated));
        for (connection, direction) in self.connections.iter_mut().zip(&self.directions) {
            connection.acknowledge_on_confirmation();
            if direction.fin_acknowledged {
                connection.confirm(1);
            }
        }
    }

    /// Whether each host has received everything that was acknowledged to the other one since
    /// [`Self::drain`], FIN included.
    pub(in crate::pep) fn is_end_to_end(&self) -> bool {
        let is_open = |connection: &Connection| {
            !matches!(connection.state(), State::Listen | State::SynSent | State::SynReceived)
        };
        let is_delivered = |from: Side| {
            let Some(stated) = self.stated_before_drain(from) else { return false };
            let acknowledged = self.connection(from).last_ack().max(stated.acknowledged);
            let (_, una) = self.connection(from.other()).sent_and_acknowledged();
            // Positions of both connections are equal: SYN is at 0, and FIN follows the data.
            acknowledged <= una
        };
        self.aborted.is_none()
            && self.connections.iter().all(is_open)
            && Side::BOTH.into_iter().all(is_delivered)
    }

    fn stated_offer(&self, side: Side) -> StatedOffer {
        let (connection, direction) = (self.connection(side), &self.directions[side.index()]);
        let acknowledged = match self.withholds_fin_ack(side) {
            true => connection.last_ack().min(direction.transferred + 1),
            false => connection.last_ack(),
        };
        // No window was offered before the first segment to this side.
        let window = if direction.offered == u32::MAX { 0 } else { direction.offered };
        StatedOffer { acknowledged, edge: acknowledged + u64::from(window) }
    }

    /// The offer to a side before [`Self::drain`].
    #[inline]
    pub(super) fn stated_before_drain(&self, side: Side) -> Option<&StatedOffer> {
        self.stated_before_drain.as_ref().map(|stated| &stated[side.index()])
    }

    /// Adjusts acknowledgement number and window of an outgoing segment.
    #[cold]
    pub(super) fn adjust_draining_header(&mut self, to: Side, segment: &mut Segment) {
        let Some(stated) = self.stated_before_drain(to).copied() else { return };
        let acknowledged = self.connection(to).receiver().acknowledged();
        let ahead = stated.acknowledged.saturating_sub(acknowledged);
        segment.ack = segment.ack.wrapping_add(ahead as u32);
        let mut window = self.draining_window(to, &stated, segment.window);
        if self.must_keep_window(to) {
            window = window.min(self.directions[to.index()].offered);
        }
        if segment.flags.has(Flags::SYN) {
            // Windows of SYN are never scaled (RFC 7323, section 2.2).
            window = segment.window;
        }
        segment.window = window;
        self.directions[to.index()].offered = window;
    }

    /// The window to offer to a side after the acknowledgement that is stated to it. `free` is the
    /// free buffer space after the data that the next hop has acknowledged.
    pub(super) fn draining_window(&self, to: Side, stated: &StatedOffer, free: u32) -> u32 {
        let connection = self.connection(to);
        let window = match self.mode {
            CouplingMode::Split => free,
            CouplingMode::EndToEnd => free.min(self.connection(to.other()).peer_window()),
        };
        let acknowledged = connection.receiver().acknowledged();
        let edge = stated.edge.max(acknowledged + u64::from(window));
        let offered = edge.saturating_sub(acknowledged.max(stated.acknowledged));
        connection.scaled_window(u32::try_from(offered).unwrap_or(u32::MAX))
    }
}
