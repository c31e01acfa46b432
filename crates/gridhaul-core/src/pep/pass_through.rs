//! The null case: a proxy that forwards every segment unchanged.

use gridhaul_scenario::units::Instant;

use super::outgoing_queue::OutgoingQueue;
use super::{Origin, Outgoing, Proxy, Side};
use crate::tcp::Segment;

/// Forwards every segment unchanged.
#[derive(Debug, Clone, Default)]
pub struct PassThrough {
    queue: OutgoingQueue,
}

impl Proxy for PassThrough {
    fn boxed_clone(&self) -> Box<dyn Proxy> {
        Box::new(self.clone())
    }

    fn handle_segment(&mut self, _now: Instant, from: Side, segment: &Segment) {
        self.queue.push_back(Outgoing {
            to: from.other(),
            segment: *segment,
            origin: Origin::Forwarded,
        });
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Outgoing> {
        self.queue.pop_front()
    }

    fn is_finished(&self) -> bool {
        self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_forwarded_to_the_other_side() {
        let mut proxy = PassThrough::default();
        let segment = Segment { seq: 7, len: 3, ..Segment::default() };
        proxy.handle_segment(Instant::ZERO, Side::Server, &segment);
        let expected = Outgoing { to: Side::Client, segment, origin: Origin::Forwarded };
        assert_eq!(proxy.poll_transmit(Instant::ZERO), Some(expected));
        assert_eq!(proxy.poll_transmit(Instant::ZERO), None);
        assert_eq!(proxy.next_deadline(), Instant::NEVER);
    }
}
