//! The segment size of a connection whose path carries only smaller packets.

use std::sync::Arc;

use gridhaul_scenario::units::Instant;

use super::features::Feature;
use super::{Connection, State};
use crate::tcp::segment::expand;
use crate::tcp::segment_size::CLOCK_OPTION;

impl Connection {
    /// Handles the report of a router that the packet with the segment of this sequence number is
    /// larger than `mtu` (RFC 1191, section 4). Reports about other data are ignored (RFC 5927,
    /// section 4.1), and later ones about packets of the same flight: they state the same MTU.
    pub fn handle_packet_too_big(&mut self, now: Instant, seq: u32, mtu: u32) {
        let (next, una) = self.sent_and_acknowledged();
        let is_outstanding =
            expand(seq, self.isn, una).is_some_and(|start| una <= start && start < next);
        if matches!(self.state, State::Listen | State::Closed) || !is_outstanding {
            return;
        }
        let has_clock = self.features.has(Feature::Timestamps);
        let options = if has_clock { CLOCK_OPTION } else { 0 };
        let mss = mtu.saturating_sub(self.params.header + options).max(1);
        if self.lower_mss(mss) {
            self.sending.retransmit_divided(now, &self.params);
        }
    }

    /// Lowers the segment size if the retransmission timer expires now and packets of this size
    /// seem to vanish.
    #[cold]
    pub(super) fn probe_after_timeout(&mut self, now: Instant) {
        let sender = self.sending.sender();
        if let Some(mss) = sender.and_then(|sender| sender.mss_after_timeout(now, &self.params)) {
            self.lower_mss(mss);
        }
    }

    /// Lowers the segment size to `mss`, unless it is smaller. The parameters become those of this
    /// connection alone, so that only connections with such a path pay for a size of their own.
    fn lower_mss(&mut self, mss: u32) -> bool {
        if mss >= self.params.mss {
            return false;
        }
        Arc::make_mut(&mut self.params).lower_mss(mss);
        self.sending.divide_segments(&self.params);
        true
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::{Profile, Stack};
    use gridhaul_scenario::units::Bytes;

    use super::*;
    use crate::coverage_mark::covers;
    use crate::tcp::StackParams;

    /// A sender with ten segments of 1,448 B outstanding, and its parameters.
    fn sender(profile: Profile) -> (Connection, Arc<StackParams>) {
        let mss = Some(Bytes::new(1_448));
        let stack = Stack { profile, mss, ..Stack::default() };
        let params = Arc::new(StackParams::resolve(&stack));
        let mut sender = Connection::established(Arc::clone(&params), 1_000, &params, 5_000);
        sender.write(u64::MAX);
        let sent = std::iter::from_fn(|| sender.poll_transmit(Instant::ZERO));
        assert_eq!(sent.map(|segment| segment.len).collect::<Vec<_>>(), [1_448; 10]);
        (sender, params)
    }

    fn sizes(sender: &mut Connection) -> Vec<u32> {
        let sent = std::iter::from_fn(|| sender.poll_transmit(Instant::from_nanos(1)));
        sent.map(|segment| segment.len).collect()
    }

    /// Linux fills the window; RFC 1191, section 6.4, sends one segment first.
    #[test]
    fn the_window_stays_when_a_router_reports_large_packets() {
        covers!(report_of_router_lowers_mss);
        let parts = [1_348, 100].repeat(9);
        for (profile, expected) in [(Profile::Linux, parts), (Profile::Rfc, vec![1_348])] {
            let (mut sender, params) = sender(profile);
            sender.handle_packet_too_big(Instant::from_nanos(1), 1_001, 1_400);
            assert_eq!(sizes(&mut sender), expected, "{profile:?}");
            let in_segments = if profile == Profile::Linux { 13_480 } else { 14_480 };
            assert_eq!(sender.sender().unwrap().cwnd(), in_segments);
            // The others of the flight are reported as well.
            sender.handle_packet_too_big(Instant::from_nanos(1), 2_449, 1_400);
            assert_eq!(sizes(&mut sender), Vec::<u32>::new());
            assert_eq!((params.mss, sender.params().mss), (1_448, 1_348), "shared parameters stay");
        }
    }

    #[test]
    fn reports_about_other_data_are_ignored() {
        let (mut sender, _) = sender(Profile::Linux);
        for (seq, mtu) in [(900, 1_400), (1_001 + 14_480, 1_400), (1_001, 1_500)] {
            sender.handle_packet_too_big(Instant::from_nanos(1), seq, mtu);
            assert_eq!(sender.params().mss, 1_448);
        }
    }

    /// With a round trip of 44 ms the timeout is 244 ms: the timer expires 0.5, 1.5 and 3.4 s after
    /// the first retransmission, and then with twice the interval.
    #[test]
    fn timeouts_lower_the_segment_size_after_three_seconds() {
        covers!(black_hole_lowers_mss);
        let stack = Stack { mtu_probing: Some(true), ..Stack::default() };
        let mut params = StackParams::resolve(&stack);
        params.policy.timer_wheel = false;
        let params = Arc::new(params);
        let mut sender = Connection::established(Arc::clone(&params), 1_000, &params, 5_000);
        sender.write(u64::MAX);
        let mut at = Instant::ZERO;
        let mut sent = Vec::new();
        for _ in 0..8 {
            while let Some(segment) = sender.poll_transmit(at) {
                sent.push(segment.len);
            }
            at = sender.next_deadline();
            sender.handle_timeout(at);
        }
        // Before the first round trip the timeout is 1 s: 2 s and 6 s after the first
        // retransmission. Ten segments, then one for each timeout.
        assert_eq!(sent[9..], [1_460, 1_460, 1_460, 1_024, 512, 256, 128, 64]);
    }
}
