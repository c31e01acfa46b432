//! Properties of the proxies that acknowledge data themselves: `Split`, `Reflect` and `Spoof`.

use std::sync::Arc;

use gridhaul_scenario::units::{Bytes, Duration, Instant};
use proptest::prelude::*;

use super::chain::{Chain, ISNS};
use super::hop::{Impairments, schedules};
use super::host::{Application, Close};
use super::stack;
use crate::pep::coupling::proxy_params;
use crate::pep::{MssLimit, Proxy, Reflect, Side, Split, Spoof};
use crate::tcp::StackParams;

const MSS: u32 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Split,
    Reflect,
    Spoof,
}

pub(super) const MODES: [Mode; 3] = [Mode::Split, Mode::Reflect, Mode::Spoof];
/// Modes that keep the sequence numbers of the hosts.
pub(super) const TRANSPARENT_MODES: [Mode; 2] = [Mode::Reflect, Mode::Spoof];

/// A new proxy.
pub(super) fn proxy(mode: Mode, buffer: u32) -> Box<dyn Proxy> {
    proxy_with_mss(mode, MSS, buffer)
}

/// A new proxy with segments of `mss` bytes.
fn proxy_with_mss(mode: Mode, mss: u32, buffer: u32) -> Box<dyn Proxy> {
    let (params, buffer) = (stack(mss, 1), Bytes::new(u64::from(buffer)));
    let hosts = MssLimit::of_hosts([mss; 2]);
    match mode {
        Mode::Split => Box::new(Split::new(params, buffer, [u32::MAX - 40, u32::MAX - 80])),
        Mode::Reflect => Box::new(Reflect::new(params, hosts, buffer)),
        Mode::Spoof => Box::new(Spoof::new(params, hosts, buffer)),
    }
}

/// A connection through a chain of proxies, with a handshake or established from the start.
pub(super) fn chain(
    mode: Mode,
    buffers: &[u32],
    hosts: &Arc<StackParams>,
    applications: [Application; 2],
    handshake: bool,
    impairments: Impairments,
) -> Chain {
    let limit = u64::from(*buffers.iter().max().expect("a chain has proxies"));
    let mss = hosts.mss;
    if handshake {
        let proxies = buffers.iter().map(|&buffer| proxy_with_mss(mode, mss, buffer)).collect();
        return Chain::opening(hosts, applications, proxies, limit, impairments);
    }
    let hosts = Arc::new(StackParams { timestamps: false, ..(**hosts).clone() });
    let stacks: Vec<_> = buffers.iter().map(|&buffer| stack(mss, buffer)).collect();
    let proxies = (0..buffers.len()).map(|index| {
        let client_side = if index == 0 { &hosts } else { &stacks[index - 1] };
        let server_side = stacks.get(index + 1).unwrap_or(&hosts);
        let (params, buffer) = (stacks[index].clone(), Bytes::new(u64::from(buffers[index])));
        let next: [&StackParams; 2] = [client_side, server_side];
        let limit = MssLimit::of_hosts([mss; 2]);
        match mode {
            Mode::Split => {
                Box::new(Split::established(params, buffer, ISNS, next)) as Box<dyn Proxy>
            }
            Mode::Reflect => Box::new(Reflect::engaged(params, limit, buffer, ISNS, next)),
            Mode::Spoof => Box::new(Spoof::engaged(params, limit, buffer, ISNS, next)),
        }
    });
    Chain::established(&hosts, applications, proxies.collect(), limit, impairments)
}

pub(super) fn chains() -> impl Strategy<Value = Vec<u32>> {
    prop::sample::select(vec![1_usize, 2, 3, 7])
        .prop_flat_map(|proxies| prop::collection::vec(150..1_500_u32, proxies))
}

/// Combinations of closes of client and server.
pub(super) const CLOSES: [[Close; 2]; 6] = [
    [Close::AtOnce, Close::AtOnce],
    [Close::AtOnce, Close::AfterPeer],
    [Close::AfterPeer, Close::AtOnce],
    [Close::AtOnce, Close::Never],
    [Close::Never, Close::AtOnce],
    [Close::Never, Close::Never],
];

fn closes() -> impl Strategy<Value = [Close; 2]> {
    prop::sample::select(&CLOSES[..])
}

pub(super) fn applications() -> impl Strategy<Value = [Application; 2]> {
    let reads = || prop::option::weighted(0.2, (60..400_u64, 100..900_u64));
    let size = || 0..3_000_u64;
    (closes(), [size(), size()], [reads(), reads()]).prop_map(|(close, write, reads)| {
        [0, 1].map(|side| Application {
            reads: reads[side].map(|(bytes, millis)| (bytes, Duration::from_millis(millis))),
            ..Application::new(write[side], close[side])
        })
    })
}

/// A quarter of the configured number of cases, because whole chains are slow.
pub(super) fn quarter_of_cases() -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig { cases: config.cases.div_ceil(4), ..config }
}

#[test]
fn the_buffer_is_the_receive_window_of_a_proxy() {
    let host = Arc::new(StackParams { nagle: false, ..(*stack(MSS, 5_000)).clone() });
    for buffer in [700, 5_000] {
        let params = proxy_params(Arc::clone(&host), Bytes::new(buffer));
        assert_eq!(u64::from(params.receive_window), buffer);
    }
}

proptest! {
    #![proptest_config(quarter_of_cases())]

    #[test]
    fn no_data_is_lost_duplicated_or_blocked_in_a_chain(
        mode in prop::sample::select(&MODES[..]),
        buffers in chains(),
        window in 150..2_000_u32,
        applications in applications(),
        handshake: bool,
        impairments in schedules(200),
    ) {
        let mut chain =
            chain(mode, &buffers, &stack(MSS, window), applications, handshake, impairments);
        chain.closes_end_to_end = mode != Mode::Split;
        chain.run_to_completion();
        // The last acknowledgements may need retransmissions: up to twelve in a row may be lost.
        chain.run(chain.now + Duration::from_secs(60));
        for proxy in &chain.proxies {
            for side in Side::BOTH {
                prop_assert_eq!(proxy.proxy.buffer_status(side).bytes_at_risk, 0);
            }
        }
    }
}

#[test]
fn a_stream_is_delivered_within_the_delay_of_its_hops() {
    for mode in MODES {
        let applications =
            [Application::new(900, Close::AtOnce), Application::new(0, Close::AfterPeer)];
        let hosts = stack(MSS, 4_000);
        let mut chain = chain(mode, &[4_000; 3], &hosts, applications, true, Impairments::none());
        chain.run_to_completion();
        assert!(
            chain.now <= Instant::ZERO + Duration::from_millis(400),
            "{mode:?} {:?}",
            chain.now
        );
    }
}

/// SYN of the client begins another connection once both directions are closed.
#[test]
fn a_proxy_is_over_once_both_directions_are_closed() {
    for mode in MODES {
        let opened = |close| {
            let applications = [Application::new(900, close), Application::new(0, close)];
            let hosts = stack(MSS, 4_000);
            chain(mode, &[4_000], &hosts, applications, true, Impairments::none())
        };
        let is_over = |chain: &Chain| chain.proxies[0].proxy.is_over();
        let mut open = opened(Close::Never);
        assert_eq!(is_over(&open), mode != Mode::Split, "{mode:?} before SYN");
        open.run(Instant::ZERO + Duration::from_secs(1));
        assert!(!is_over(&open), "{mode:?}");
        let mut closed = opened(Close::AtOnce);
        closed.run(Instant::ZERO + Duration::from_secs(1));
        assert!(is_over(&closed), "{mode:?}");
    }
}
