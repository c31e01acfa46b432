//! The purpose of `snoop`: a lossy last hop after a long path.

use std::sync::Arc;

use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Profile, Recovery, Stack};
use gridhaul_scenario::units::{BitRate, Bytes, Duration, Instant, WindowSize};

use super::two_hops::{Hop, Outcome, TwoHops};
use crate::pep::{PassThrough, Proxy, Side, Snoop};
use crate::tcp::StackParams;

const TIME: Duration = Duration::from_secs(60);
const RATE: BitRate = BitRate::from_bits_per_sec(10_000_000);
/// Three bandwidth-delay products. A sender without losses fills its window.
const WINDOW: Bytes = Bytes::new(400_000);

fn stack(congestion_control: CongestionControlAlgorithm, sack: bool) -> Arc<StackParams> {
    let stack = Stack {
        profile: Profile::Linux,
        congestion_control: Some(congestion_control),
        sack: Some(sack),
        recovery: (!sack).then_some(Recovery::NewReno),
        receive_window: Some(WindowSize::Bytes(WINDOW)),
        ..Stack::default()
    };
    Arc::new(StackParams::resolve(&stack))
}

/// A transfer over a path with a round-trip time of 100 ms, followed by a last hop with 10 ms at
/// 10 Mbit/s. Returns the outcome and the number of reductions of the congestion window.
fn run(params: &Arc<StackParams>, proxy: impl Proxy + 'static, hops: [Hop; 2]) -> (Outcome, u32) {
    let upstream = || Hop::new(BitRate::from_bits_per_sec(100_000_000), Duration::from_millis(50));
    let [forward, reverse] = hops;
    let hops = [upstream(), forward, reverse, upstream()];
    let (mut before, mut reductions) = (0, 0);
    let mut path = TwoHops::new(params, Box::new(proxy), hops);
    let outcome = path.run(Instant::ZERO + TIME, |sender| {
        let cwnd = sender.sender().map_or(0, |sender| sender.cwnd());
        reductions += u32::from(cwnd < before);
        before = cwnd;
    });
    (outcome, reductions)
}

/// Both directions of the last hop.
fn last_hop(loss: f64, seed: u64) -> [Hop; 2] {
    [0, 1].map(|direction| Hop::new(RATE, Duration::from_millis(5)).losing(loss, seed, direction))
}

#[test]
fn losses_of_the_last_hop_are_hidden_from_the_sender() {
    let stacks = [
        (CongestionControlAlgorithm::Cubic, true),
        (CongestionControlAlgorithm::Reno, true),
        (CongestionControlAlgorithm::Reno, false),
    ];
    for (congestion_control, sack) in stacks {
        let params = stack(congestion_control, sack);
        let (clean, _) = run(&params, PassThrough::default(), last_hop(0.0, 1));
        // A hop with a loss ratio of 5 % can deliver at most 95 %.
        for seed in 1..=3 {
            let (pass_through, _) = run(&params, PassThrough::default(), last_hop(0.05, seed));
            assert!(
                pass_through.delivered < clean.delivered / 10,
                "{congestion_control:?}: {pass_through:?}"
            );

            let snoop = Snoop::new(Side::Server, Bytes::new(500_000));
            let (outcome, reductions) = run(&params, snoop, last_hop(0.05, seed));
            let case = format!("{congestion_control:?}, SACK {sack}, seed {seed}: {outcome:?}");
            assert!(outcome.delivered * 100 >= clean.delivered * 90, "{case}");
            assert_eq!(reductions, 0, "{case}");
            let stats = outcome.stats;
            let counters = [stats.fast_retransmits, stats.timeouts, stats.retransmissions];
            assert_eq!(counters, [0; 3], "{case}");
            assert!(outcome.max_buffered <= WINDOW.get(), "{case}");
        }
    }
}

#[test]
fn without_loss_the_throughput_is_unchanged() {
    let params = stack(CongestionControlAlgorithm::Cubic, true);
    let (clean, _) = run(&params, PassThrough::default(), last_hop(0.0, 1));
    let snoop = Snoop::new(Side::Server, Bytes::new(500_000));
    let (outcome, reductions) = run(&params, snoop, last_hop(0.0, 1));
    assert!(outcome.delivered.abs_diff(clean.delivered) * 200 <= clean.delivered, "{outcome:?}");
    assert_eq!((outcome.stats.retransmissions, reductions), (0, 0));
}

/// Segments that are not cached and are dropped by the queue of the hop are retransmitted by the
/// sender.
#[test]
fn a_small_cache_leaves_congestion_losses_to_the_sender() {
    let params = stack(CongestionControlAlgorithm::Cubic, true);
    let [forward, reverse] = last_hop(0.0, 1);
    let snoop = Snoop::new(Side::Server, Bytes::new(100_000));
    let hops = [forward.with_queue(RATE, 100_000), reverse];
    let (outcome, reductions) = run(&params, snoop, hops);
    assert!(reductions > 0 && outcome.stats.fast_retransmits > 0, "{outcome:?}");
    // Payload is 1448 of 1500 bytes at 10 Mbit/s.
    let ideal = TIME.as_secs_f64() * 10e6 / 8.0 * 1448.0 / 1500.0;
    assert!(outcome.delivered as f64 >= 0.9 * ideal, "{outcome:?}");
}
