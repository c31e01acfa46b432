//! Right edges of the receive window, and the acknowledgements that advertised them.

use std::collections::VecDeque;

use gridhaul_scenario::units::Instant;

/// Right edges of the receive window in ascending order, with their times at the point of the
/// capture.
#[derive(Debug, Default)]
pub(super) struct WindowEdges {
    edges: VecDeque<Edge>,
}

#[derive(Debug, Clone, Copy)]
struct Edge {
    at: Instant,
    offset: u64,
}

/// Largest number of edges: those of the acknowledgements of a large window.
const EDGES_MAX: usize = 65_536;

impl WindowEdges {
    /// Adds the edge of an acknowledgement.
    pub(super) fn advertise(&mut self, at: Instant, offset: u64) {
        if self.edges.back().is_none_or(|last| last.offset < offset) {
            if self.edges.len() == EDGES_MAX {
                self.edges.pop_front();
            }
            self.edges.push_back(Edge { at, offset });
        }
    }

    /// The receiver has taken back what it permitted after this byte, and closes its window (RFC
    /// 9293, section 3.8.6: it should not).
    pub(super) fn close(&mut self, offset: u64) {
        while self.edges.back().is_some_and(|last| last.offset > offset) {
            self.edges.pop_back();
        }
    }

    /// Time of the first acknowledgement that permits data until this byte. Later calls have later
    /// bytes.
    pub(super) fn permitted_at(&mut self, end: u64) -> Option<Instant> {
        while self.edges.front().is_some_and(|edge| edge.offset < end) {
            self.edges.pop_front();
        }
        self.edges.front().map(|edge| edge.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_edge_after_a_byte_permits_it() {
        let mut edges = WindowEdges::default();
        for (millis, offset) in [(1, 1_000), (2, 2_000), (3, 1_500), (4, 3_000)] {
            edges.advertise(Instant::from_nanos(millis), offset);
        }
        assert_eq!(edges.permitted_at(900), Some(Instant::from_nanos(1)));
        assert_eq!(edges.permitted_at(2_000), Some(Instant::from_nanos(2)));
        // A smaller edge does not take back what was permitted.
        assert_eq!(edges.permitted_at(2_001), Some(Instant::from_nanos(4)));
        assert_eq!(edges.permitted_at(3_001), None);
    }

    #[test]
    fn a_window_that_was_closed_permits_nothing_until_it_opens() {
        let mut edges = WindowEdges::default();
        edges.advertise(Instant::from_nanos(1), 5_000);
        edges.close(2_000);
        edges.advertise(Instant::from_nanos(9), 4_000);
        assert_eq!(edges.permitted_at(3_000), Some(Instant::from_nanos(9)));
    }
}
