//! The window that is offered to a meter: the smaller of the free receive buffer and the space for
//! records.

/// Positions in the stream of a meter, in bytes of payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Positions {
    /// Bytes that the next segment acknowledges.
    pub acknowledged: u64,
    /// Bytes that the collector has taken. Records of them are part of the used space.
    pub read: u64,
    /// Right edge that the receive buffer permits.
    pub buffer_edge: u64,
}

/// The offered window.
#[derive(Debug, Clone, Copy)]
pub(super) struct OfferedWindow {
    /// Its right edge.
    edge: u64,
    /// Scale of the window field (RFC 7323, section 2.3).
    shift: u8,
    /// Smallest step of the edge (RFC 9293, 3.8.6.2.2): a segment, or half the buffer.
    step: u64,
}

impl OfferedWindow {
    /// The window of SYN-ACK, which is not scaled.
    pub(super) fn new(receive_window: u32, mss: u32, shift: u8) -> Self {
        let step = u64::from(mss.min(receive_window / 2));
        Self { edge: u64::from(receive_window.min(u32::from(u16::MAX))), shift, step }
    }

    /// The window to offer while there is this space for further records of the meter.
    ///
    /// The right edge does not move to the left (RFC 9293, 3.8.6.2.1, SHLD-14), with one exception.
    /// Without space, it is the end of the data that the collector has taken: what has arrived
    /// beyond it cannot be stored for an unknown time. The retransmissions of the meter are window
    /// probes then, which do not end the connection while they are answered (Linux,
    /// `tcp_retransmit_timer`); RFC 9293 requires senders to be robust against it (MUST-34).
    pub(super) fn offer(&mut self, positions: Positions, space: u64) -> u32 {
        let Positions { acknowledged, read, buffer_edge } = positions;
        if space == 0 {
            self.edge = read;
        } else {
            let wanted = read.saturating_add(space).min(buffer_edge);
            if wanted >= self.edge + self.step {
                self.edge = wanted;
            }
        }
        let window = self.edge.saturating_sub(acknowledged);
        // Rounded up, so that the edge does not move to the left, where the buffer permits it.
        let unit = 1 << self.shift;
        let largest = buffer_edge.saturating_sub(acknowledged);
        let rounded = window.next_multiple_of(unit);
        let rounded = if rounded > largest { window / unit * unit } else { rounded };
        self.edge = self.edge.max(acknowledged + rounded);
        u32::try_from(rounded).unwrap_or(u32::MAX)
    }

    /// Whether the space for records has opened the window by at least a step.
    pub(super) fn has_opened(&self, positions: Positions, space: u64) -> bool {
        let wanted = positions.read.saturating_add(space).min(positions.buffer_edge);
        space > 0 && wanted >= self.edge + self.step
    }

    /// Whether the space for records limits the window, not the buffer.
    pub(super) const fn is_narrow(&self, positions: Positions) -> bool {
        positions.buffer_edge >= self.edge + self.step
    }

    /// Whether data that ends here has used the window up.
    pub(super) const fn is_used_up(&self, end: u64) -> bool {
        end >= self.edge
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn positions(acknowledged: u64, read: u64) -> Positions {
        Positions { acknowledged, read, buffer_edge: acknowledged + 16_000 }
    }

    #[test]
    fn the_window_is_the_smaller_of_buffer_and_space() {
        let mut window = OfferedWindow::new(16_000, 1_448, 0);
        assert_eq!(window.offer(positions(0, 0), 1_000_000), 16_000);
        assert_eq!(window.offer(positions(2_000, 2_000), 15_000), 14_000, "less than a segment");
        assert_eq!(window.offer(positions(4_000, 4_000), 15_000), 15_000);
        assert!(window.is_narrow(Positions { buffer_edge: 30_000, ..positions(4_000, 4_000) }));
    }

    #[test]
    fn the_edge_stays_while_there_is_little_space_and_retreats_without_space() {
        let mut window = OfferedWindow::new(16_000, 1_448, 0);
        assert_eq!(window.offer(positions(10_000, 12_000), 1), 6_000, "the former edge");
        assert_eq!(window.offer(positions(10_000, 12_000), 0), 2_000, "the collector has these");
        assert!(window.is_used_up(12_000) && !window.is_used_up(11_999));
        assert_eq!(window.offer(positions(12_000, 12_000), 0), 0);
        assert!(!window.has_opened(positions(12_000, 12_000), 1_447));
        assert!(window.has_opened(positions(12_000, 12_000), 1_448));
        assert_eq!(window.offer(positions(12_000, 12_000), 5_000), 5_000);
    }

    #[test]
    fn a_scaled_window_has_whole_units() {
        let mut window = OfferedWindow::new(128_000, 1_448, 1);
        let at = |acknowledged| Positions {
            acknowledged,
            read: acknowledged,
            buffer_edge: acknowledged + 128_000,
        };
        assert_eq!(window.offer(at(0), 100_001), 100_002);
        assert_eq!(window.offer(at(1), 100_001), 100_002);
    }
}
