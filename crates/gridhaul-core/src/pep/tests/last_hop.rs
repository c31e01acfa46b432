//! What `snoop` is for: a lossy last hop behind a long way.

use std::sync::Arc;

use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Profile, Recovery, Stack};
use gridhaul_scenario::units::{BitRate, Bytes, Duration, Instant, WindowSize};

use super::two_hops::{Hop, Outcome, TwoHops};
use crate::pep::{PassThrough, Proxy, Side, Snoop};
use crate::tcp::StackParams;

const TIME: Duration = Duration::from_secs(60);
const RATE: BitRate = BitRate::from_bits_per_sec(10_000_000);
/// Three times what rate and round trip need. A sender that nothing ever cuts fills its window.
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

/// What comes of a transfer over 100 ms of round trip and then 10 ms at 10 Mbit/s, and how often
/// the congestion window was cut.
fn run(params: &Arc<StackParams>, proxy: impl Proxy + 'static, hops: [Hop; 2]) -> (Outcome, u32) {
    let upstream = || Hop::new(BitRate::from_bits_per_sec(100_000_000), Duration::from_millis(50));
    let [forth, back] = hops;
    let hops = [upstream(), forth, back, upstream()];
    let (mut before, mut cuts) = (0, 0);
    let mut path = TwoHops::new(params, Box::new(proxy), hops);
    let outcome = path.run(Instant::ZERO + TIME, |sender| {
        let cwnd = sender.sender().map_or(0, |sender| sender.cwnd());
        cuts += u32::from(cwnd < before);
        before = cwnd;
    });
    (outcome, cuts)
}

/// The last hop, both directions.
fn last_hop(loss: f64, seed: u64) -> [Hop; 2] {
    [0, 1].map(|member| Hop::new(RATE, Duration::from_millis(5)).losing(loss, seed, member))
}

#[test]
fn a_lossy_last_hop_costs_what_it_loses_and_the_sender_hears_nothing_of_it() {
    let stacks = [
        (CongestionControlAlgorithm::Cubic, true),
        (CongestionControlAlgorithm::Reno, true),
        (CongestionControlAlgorithm::Reno, false),
    ];
    for (congestion_control, sack) in stacks {
        let params = stack(congestion_control, sack);
        let (clean, _) = run(&params, PassThrough::default(), last_hop(0.0, 1));
        // All that a hop can carry that loses one segment in twenty is 95 %.
        for seed in 1..=3 {
            let (bare, _) = run(&params, PassThrough::default(), last_hop(0.05, seed));
            assert!(bare.delivered < clean.delivered / 10, "{congestion_control:?}: {bare:?}");

            let snoop = Snoop::new(Side::Server, Bytes::new(500_000));
            let (outcome, cuts) = run(&params, snoop, last_hop(0.05, seed));
            let case = format!("{congestion_control:?}, SACK {sack}, seed {seed}: {outcome:?}");
            assert!(outcome.delivered * 100 >= clean.delivered * 90, "{case}");
            assert_eq!(cuts, 0, "{case}");
            let stats = outcome.stats;
            let heard = [stats.fast_retransmits, stats.timeouts, stats.retransmissions];
            assert_eq!(heard, [0; 3], "{case}");
            assert!(outcome.most_held <= WINDOW.get(), "{case}");
        }
    }
}

#[test]
fn without_loss_a_sender_sends_what_it_would_have_sent() {
    let params = stack(CongestionControlAlgorithm::Cubic, true);
    let (clean, _) = run(&params, PassThrough::default(), last_hop(0.0, 1));
    let snoop = Snoop::new(Side::Server, Bytes::new(500_000));
    let (outcome, cuts) = run(&params, snoop, last_hop(0.0, 1));
    assert!(outcome.delivered.abs_diff(clean.delivered) * 200 <= clean.delivered, "{outcome:?}");
    assert_eq!((outcome.stats.retransmissions, cuts), (0, 0));
}

/// What the queue of the hop drops of the segments that are not kept is the sender's to repair.
#[test]
fn a_small_cache_leaves_congestion_to_the_sender() {
    let params = stack(CongestionControlAlgorithm::Cubic, true);
    let [forth, back] = last_hop(0.0, 1);
    let snoop = Snoop::new(Side::Server, Bytes::new(100_000));
    let hops = [forth.with_queue(RATE, 100_000), back];
    let (outcome, cuts) = run(&params, snoop, hops);
    assert!(cuts > 0 && outcome.stats.fast_retransmits > 0, "{outcome:?}");
    // 10 Mbit/s, of which 1448 of 1500 bytes are payload.
    let ideal = TIME.as_secs_f64() * 10e6 / 8.0 * 1448.0 / 1500.0;
    assert!(outcome.delivered as f64 >= 0.9 * ideal, "{outcome:?}");
}
