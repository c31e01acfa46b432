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
        self.queue.pop_front(|| true)
    }

    fn is_finished(&self) -> bool {
        self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pep::Statistics;

    #[test]
    fn segments_are_forwarded_to_the_other_side() {
        let mut proxy = PassThrough::default();
        let segment = Segment { seq: 7, len: 3, ..Segment::default() };
        proxy.handle_segment(Instant::ZERO, Side::Server, &segment);
        let expected = Outgoing { to: Side::Client, segment, origin: Origin::Forwarded };
        assert!(!proxy.is_finished());
        assert_eq!(proxy.poll_transmit(Instant::ZERO), Some(expected));
        assert_eq!(proxy.poll_transmit(Instant::ZERO), None);
        assert!(proxy.is_finished());
        assert_eq!(proxy.next_deadline(), Instant::NEVER);
    }

    /// A proxy that stores nothing keeps the defaults of [`Proxy`].
    #[test]
    fn a_proxy_without_a_buffer_accepts_nothing_and_counts_nothing() {
        let mut proxy = PassThrough::default();
        let segment = Segment { seq: 7, len: 3, ..Segment::default() };
        assert_eq!(proxy.accepts(Side::Client, &segment), None);
        proxy.handle_segment(Instant::ZERO, Side::Client, &segment);
        assert_eq!(proxy.statistics(), Statistics::default());
        assert_eq!(proxy.first_sequence_number(Side::Client), None);
        assert!(!proxy.lowers_goodput() && !proxy.is_over(), "a segment waits");
        proxy.poll_transmit(Instant::ZERO);
        assert!(proxy.is_over());
    }
}
