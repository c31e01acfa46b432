//! The window that each side is offered.

use super::{Coupling, Manner};
use crate::pep::Side;
use crate::tcp::{Flags, Segment};

impl Coupling {
    /// The window for a side.
    #[inline]
    fn window(&self, to: Side) -> u32 {
        let end = self.end(to);
        let own = end.receiver().window(end.params());
        match self.manner {
            Manner::Apart => end.scaled_window(own),
            Manner::AsOne => end.scaled_window(own.min(self.end(to.other()).peer_window())),
        }
    }

    /// Tells a side that its window is open again: a segment after less than one, or half the
    /// buffer more (RFC 9293, 3.8.6.2.2).
    #[inline]
    pub(super) fn reopen(&mut self, side: Side) {
        let offered = self.ways[side.index()].offered;
        let window = self.window(side);
        if window <= offered {
            return;
        }
        let params = self.end(side).params();
        let half = params.receive_window / 2;
        let step = params.mss.min(half);
        let wider = offered < step && window >= step || window - offered >= half;
        if wider && !self.keeps_window(side) {
            self.end_mut(side).request_ack();
        }
    }

    /// Whether a side has to be told the same window again. While something is missing, only an
    /// acknowledgement that repeats the window counts as a duplicate (RFC 5681, section 2), and room
    /// that becomes free meanwhile would make each of them look like news.
    #[inline]
    fn keeps_window(&self, side: Side) -> bool {
        let (end, way) = (self.end(side), &self.ways[side.index()]);
        let told = end.last_ack() == end.receiver().next();
        end.receiver().out_of_order_bytes() > 0 && told && way.offered >= end.params().mss
    }

    /// Makes of a segment what its receiver is to see.
    #[inline(always)]
    pub(super) fn adapt(&mut self, to: Side, segment: &mut Segment) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        if self.withholds_close(to) {
            segment.ack = segment.ack.wrapping_sub(1);
        }
        let mut window = segment.window;
        if self.manner == Manner::AsOne {
            window = window.min(self.end(to.other()).peer_window());
        }
        if self.keeps_window(to) {
            window = window.min(self.ways[to.index()].offered);
        }
        if !segment.flags.has(Flags::SYN) {
            window = self.end(to).scaled_window(window);
        }
        segment.window = window;
        self.ways[to.index()].offered = window;
    }
}
