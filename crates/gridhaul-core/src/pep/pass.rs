//! The null case: a proxy that lets everything through.

use std::collections::VecDeque;

use gridhaul_scenario::units::Instant;

use super::{Origin, Outgoing, Proxy, Side};
use crate::tcp::Segment;

/// Lets every segment through as it is.
#[derive(Debug, Clone, Default)]
pub struct Pass {
    waiting: VecDeque<Outgoing>,
}

impl Proxy for Pass {
    fn handle_segment(&mut self, _now: Instant, from: Side, segment: &Segment) {
        self.waiting.push_back(Outgoing {
            to: from.other(),
            segment: *segment,
            origin: Origin::Forwarded,
        });
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Outgoing> {
        self.waiting.pop_front()
    }

    fn is_finished(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_one_end_goes_to_the_other() {
        let mut pass = Pass::default();
        let segment = Segment { seq: 7, len: 3, ..Segment::default() };
        pass.handle_segment(Instant::ZERO, Side::Right, &segment);
        let expected = Outgoing { to: Side::Left, segment, origin: Origin::Forwarded };
        assert_eq!(pass.poll_transmit(Instant::ZERO), Some(expected));
        assert_eq!(pass.poll_transmit(Instant::ZERO), None);
        assert_eq!(pass.next_deadline(), Instant::NEVER);
    }
}
