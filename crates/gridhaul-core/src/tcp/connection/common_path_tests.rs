//! The common path equals the general path, for all loss patterns and write times.

use std::collections::VecDeque;
use std::sync::Arc;

use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Profile, Stack};
use gridhaul_scenario::units::{Bytes, Duration, Instant, WindowSize};
use proptest::prelude::*;

use super::*;

const MSS: u64 = 1_000;
const ONE_WAY: Duration = Duration::from_millis(20);
const TRANSMISSION: Duration = Duration::from_millis(3);

/// A transfer: writes of the application and losses of the path.
#[derive(Debug, Clone)]
struct Transfer {
    stack: Stack,
    /// Bytes written, and milliseconds since the previous write.
    writes: Vec<(u64, u64)>,
    /// Whether each data segment and each acknowledgement is lost, by number.
    lost: Vec<bool>,
    lost_acks: Vec<bool>,
}

/// A transmitted segment: time, endpoint, segment, and the state of the sender afterwards.
type Event = (Instant, usize, Segment, u32, u32);

impl Transfer {
    /// All segments of a transfer, in chronological order.
    fn run(&self, common_path: bool) -> Vec<Event> {
        let params = Arc::new(StackParams::resolve(&self.stack));
        let end = |own, peer| Connection::established(params.clone(), own, &params, peer);
        let mut ends = [end(0xffff_f000, 7), end(7, 0xffff_f000)];
        if !common_path {
            ends[0].leave_common_path();
        }
        let mut writes = VecDeque::new();
        let mut at = Instant::ZERO;
        for &(bytes, pause_ms) in &self.writes {
            at += Duration::from_millis(pause_ms);
            writes.push_back((at, bytes));
        }
        // Segments in transit to each endpoint, in chronological order.
        let mut paths: [VecDeque<(Instant, Segment)>; 2] = Default::default();
        let (mut free, mut counts, mut events) = (Instant::ZERO, [0, 0], Vec::new());
        let mut now = Instant::ZERO;
        while events.len() < 3_000 {
            for (side, end) in ends.iter_mut().enumerate() {
                while let Some(segment) = end.poll_transmit(now) {
                    let (cwnd, rto_at) = end.sender().map_or((0, Instant::NEVER), |sender| {
                        (sender.cwnd(), sender.next_deadline())
                    });
                    events.push((now, side, segment, cwnd, rto_at.as_nanos() as u32));
                    let lost = if side == 0 { &self.lost } else { &self.lost_acks };
                    counts[side] += 1;
                    if side == 0 {
                        free = free.max(now) + TRANSMISSION;
                    }
                    if !lost.get(counts[side] - 1).copied().unwrap_or(false) {
                        let from = if side == 0 { free } else { now };
                        paths[1 - side].push_back((from + ONE_WAY, segment));
                    }
                }
            }
            let arrival = |path: &VecDeque<(Instant, Segment)>| path.front().map(|first| first.0);
            let next = [
                writes.front().map(|write| write.0),
                arrival(&paths[0]),
                arrival(&paths[1]),
                Some(ends[0].next_deadline()),
                Some(ends[1].next_deadline()),
            ];
            now = next.into_iter().flatten().min().unwrap_or(Instant::NEVER).max(now);
            if now == Instant::NEVER {
                break;
            }
            if let Some((_, bytes)) = pop_due(&mut writes, now) {
                ends[0].write(bytes);
            }
            for (end, path) in ends.iter_mut().zip(&mut paths) {
                while let Some((_, segment)) = pop_due(path, now) {
                    end.handle_segment(now, &segment);
                }
                if end.next_deadline() <= now {
                    end.handle_timeout(now);
                }
            }
        }
        events
    }
}

/// The first entry, if it is due.
fn pop_due<T>(queue: &mut VecDeque<(Instant, T)>, now: Instant) -> Option<(Instant, T)> {
    if queue.front()?.0 <= now { queue.pop_front() } else { None }
}

fn transfers() -> impl Strategy<Value = Transfer> {
    let profiles = prop::sample::select(vec![Profile::Rfc, Profile::Ns2, Profile::Linux]);
    let algorithms = prop::sample::select(CongestionControlAlgorithm::ALL);
    // In small windows, most losses end in a timeout.
    let windows = prop_oneof![1_u32..60, 1_u32..5];
    let stacks = (profiles, algorithms, any::<bool>(), windows);
    let stack = stacks.prop_map(|(profile, congestion_control, timestamps, window)| Stack {
        profile,
        congestion_control: Some(congestion_control),
        timestamps: (profile != Profile::Ns2).then_some(timestamps),
        mss: Some(Bytes::new(MSS)),
        receive_window: Some(WindowSize::Segments(window)),
        ..Stack::default()
    });
    let pauses = prop_oneof![0_u64..300, 0_u64..3_000];
    let sizes = prop_oneof![1_u64..200_000, (1_u64..200).prop_map(|segments| segments * MSS)];
    let writes = prop::collection::vec((sizes, pauses), 1..10);
    let ratios = prop::sample::select(vec![0.03, 0.2]);
    let losses =
        ratios.prop_flat_map(|ratio| prop::collection::vec(prop::bool::weighted(ratio), 400));
    (stack, writes, losses.clone(), losses).prop_map(|(stack, writes, lost, lost_acks)| Transfer {
        stack,
        writes,
        lost,
        lost_acks,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn the_common_path_equals_the_general_path(transfer in transfers()) {
        let (common, general) = (transfer.run(true), transfer.run(false));
        prop_assert!(common.len() > 1);
        prop_assert_eq!(common, general);
    }
}
