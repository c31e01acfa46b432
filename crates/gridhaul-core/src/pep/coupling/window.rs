//! Receive windows that are offered to both sides.

use super::{Coupling, CouplingMode};
use crate::pep::Side;
use crate::tcp::{Flags, Segment};

impl Coupling {
    /// The window to offer to a side.
    #[inline]
    fn window(&self, to: Side) -> u32 {
        let connection = self.connection(to);
        let own = connection.receiver().window(connection.params());
        if let Some(stated) = self.stated_before_drain(to) {
            return self.draining_window(to, stated, own + connection.unconfirmed());
        }
        match self.mode {
            CouplingMode::Split => connection.scaled_window(own),
            CouplingMode::EndToEnd => {
                connection.scaled_window(own.min(self.connection(to.other()).peer_window()))
            }
        }
    }

    /// Whether the free buffer space permits a window update ([`Self::update_window`]). Most events
    /// free too little for one, whatever the window is.
    #[inline(always)]
    pub(super) fn may_have_opened(&self, side: Side) -> bool {
        let offered = self.directions[side.index()].offered;
        let connection = self.connection(side);
        let params = connection.params();
        let half = params.receive_window / 2;
        let most = connection.receiver().window_limit(params);
        let is_draining = self.stated_before_drain.is_some();
        debug_assert!(is_draining || self.window(side) <= most, "the buffer limits the window");
        offered < params.mss.min(half) || most >= offered.saturating_add(half) || is_draining
    }

    /// Requests a window update for a side whose window has opened: by one segment after less than
    /// one segment, or by half of the buffer (RFC 9293, section 3.8.6.2.2).
    pub(super) fn update_window(&mut self, side: Side) {
        let offered = self.directions[side.index()].offered;
        let params = self.connection(side).params();
        let half = params.receive_window / 2;
        let step = params.mss.min(half);
        let window = self.window(side);
        if window <= offered {
            return;
        }
        let has_opened = offered < step && window >= step || window - offered >= half;
        if has_opened && !self.must_keep_window(side) {
            self.connection_mut(side).request_ack();
        }
    }

    /// Whether the window offered to a side must stay the same. While segments are missing, only an
    /// acknowledgement with an unchanged window counts as a duplicate (RFC 5681, section 2). A
    /// window that grew with the free buffer space would hide duplicates from the sender.
    #[inline]
    pub(super) fn must_keep_window(&self, side: Side) -> bool {
        let (connection, direction) = (self.connection(side), &self.directions[side.index()]);
        let is_acknowledged = connection.last_ack() == connection.receiver().next();
        connection.receiver().out_of_order_bytes() > 0
            && is_acknowledged
            && direction.offered >= connection.params().mss
    }

    /// Adjusts acknowledgement number and window of an outgoing segment.
    #[inline(always)]
    pub(super) fn adjust_header(&mut self, to: Side, segment: &mut Segment) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        if self.stated_before_drain.is_some() {
            self.adjust_draining_header(to, segment);
            return;
        }
        if self.withholds_fin_ack(to) {
            segment.ack = segment.ack.wrapping_sub(1);
        }
        let mut window = segment.window;
        if self.mode == CouplingMode::EndToEnd {
            window = window.min(self.connection(to.other()).peer_window());
        }
        if self.must_keep_window(to) {
            window = window.min(self.directions[to.index()].offered);
        }
        if !segment.flags.has(Flags::SYN) {
            window = self.connection(to).scaled_window(window);
        }
        segment.window = window;
        self.directions[to.index()].offered = window;
    }
}
