//! Proxies that end without loss: bytes at risk fall to zero, and the hosts continue without the
//! proxy.

use gridhaul_scenario::units::{Bytes, Duration, Instant};

use super::chain::Chain;
use super::coupled::{MODES, Mode, TRANSPARENT_MODES, chain};
use super::hop::Impairments;
use super::host::{Application, Close};
use super::random_schedules::random_chain;
use super::stack;
use crate::pep::{AckFilter, Proxy, Side, Snoop};
use crate::random::RandomStream;
use crate::tcp::{Flags, Segment};

const STEP: Duration = Duration::from_millis(5);

/// Longest time until no bytes are at risk: the impairments of a random schedule delay a transfer
/// by several timeouts.
const LIMIT: Duration = Duration::from_secs(300);

/// Drains a proxy until no bytes are at risk.
fn drain(chain: &mut Chain, index: usize) {
    let mut at_risk = chain.proxies[index].proxy.bytes_at_risk();
    let limit = chain.now + LIMIT;
    chain.proxies[index].proxy.drain(chain.now);
    while at_risk > 0 {
        chain.run(chain.now + STEP);
        let now = chain.proxies[index].proxy.bytes_at_risk();
        assert!(now <= at_risk, "{at_risk} bytes were at risk, and {now} are now");
        assert!(chain.now < limit, "{at_risk} bytes remain at risk: {}", chain.progress());
        at_risk = now;
    }
}

fn bulk(mode: Mode) -> Chain {
    let applications =
        [Application::new(60_000, Close::AtOnce), Application::new(3_000, Close::AfterPeer)];
    let hosts = stack(100, 1_000);
    let mut chain = chain(mode, &[1_000; 3], &hosts, applications, true, Impairments::none());
    chain.run(Instant::ZERO + Duration::from_millis(500));
    assert!(chain.proxies[1].proxy.bytes_at_risk() > 0, "{mode:?}");
    chain
}

#[test]
fn no_bytes_are_at_risk_while_a_bulk_transfer_continues() {
    for mode in MODES {
        let mut chain = bulk(mode);
        let begun = chain.now;
        drain(&mut chain, 1);
        assert!(chain.now < begun + Duration::from_millis(200), "{mode:?}: {:?}", chain.now);
        let delivered = chain.hosts[1].delivered();
        for _ in 0..100 {
            chain.run(chain.now + STEP);
            assert_eq!(chain.proxies[1].proxy.bytes_at_risk(), 0, "{mode:?}");
        }
        assert!(chain.hosts[1].delivered() > delivered + 4_000, "{mode:?}");
        let sender = chain.hosts[0].connection.sender().unwrap();
        assert_eq!(sender.stats().retransmissions, 0, "{mode:?}: withheld, and not duplicated");
        chain.run_to_completion();
    }
}

#[test]
fn a_bulk_transfer_continues_without_the_drained_proxy() {
    for mode in TRANSPARENT_MODES {
        let mut chain = bulk(mode);
        drain(&mut chain, 1);
        chain.bypass(1);
        chain.run_to_completion();
        assert!(chain.hosts.iter().all(|host| !host.is_reset()), "{mode:?}");
    }
}

#[test]
fn hosts_of_a_split_connection_have_the_same_streams_once_no_bytes_are_at_risk() {
    for mode in MODES {
        let mut chain = bulk(mode);
        let is_end_to_end = |chain: &Chain| chain.proxies[1].proxy.is_end_to_end();
        assert!(!is_end_to_end(&chain), "{mode:?}: data is still acknowledged ahead");
        chain.proxies[1].proxy.drain(chain.now);
        assert!(!is_end_to_end(&chain), "{mode:?}: bytes are at risk");
        drain(&mut chain, 1);
        assert_eq!(is_end_to_end(&chain), mode == Mode::Split, "{mode:?}");
    }
}

#[test]
fn random_schedules_lose_nothing_when_proxies_are_drained() {
    for mode in TRANSPARENT_MODES {
        for seed in 0..300 {
            let mut random = RandomStream::named(seed, 0, "drain", 0, "case");
            let mut chain = random_chain(mode, seed);
            for _ in 0..2 {
                chain.run(chain.now + Duration::from_millis(random.below(3_000)));
                let index = random.below(chain.proxies.len() as u64) as usize;
                drain(&mut chain, index);
                chain.bypass(index);
            }
            chain.run_to_completion();
            let was_reset = chain.lost_in_crash.iter().any(|lost| !lost.is_empty());
            assert!(!was_reset, "{mode:?}, schedule {seed}");
        }
    }
}

#[test]
fn waiting_acknowledgements_are_sent() {
    let mut filter = AckFilter::new(Side::Server, Duration::from_millis(10));
    let ack = |ack| Segment { ack, flags: Flags::ACK, window: 1_000, ..Segment::default() };
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    for (ms, number) in [(1, 100), (2, 200)] {
        filter.handle_segment(at(ms), Side::Client, &ack(number));
    }
    assert_eq!(filter.poll_transmit(at(2)).map(|sent| sent.segment.ack), Some(100));
    assert_eq!(filter.poll_transmit(at(2)), None);
    filter.drain(at(3));
    assert_eq!(filter.poll_transmit(at(3)).map(|sent| sent.segment.ack), Some(200));
    assert!(filter.is_finished());
}

#[test]
fn waiting_segments_of_the_cache_are_sent() {
    let mut snoop = Snoop::new(Side::Server, Bytes::new(10_000));
    let flags = Flags::ACK;
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    let data = |seq| Segment { seq, ack: 1, len: 100, flags, window: 9_000, ..Segment::default() };
    let ack = Segment { seq: 1, ack: 100, flags, window: 9_000, ..Segment::default() };
    // After the first round trip, the hop has a window of segments.
    snoop.handle_segment(at(0), Side::Client, &data(0));
    snoop.handle_segment(at(20), Side::Server, &ack);
    for seq in (100..3_100).step_by(100) {
        snoop.handle_segment(at(20), Side::Client, &data(seq));
    }
    let sent = |snoop: &mut Snoop| {
        let sent = std::iter::from_fn(|| snoop.poll_transmit(at(20)));
        sent.filter(|sent| sent.to == Side::Server).count()
    };
    let before = sent(&mut snoop);
    assert!(before < 31, "some segments wait");
    snoop.drain(at(20));
    assert_eq!(before + sent(&mut snoop), 31);
}
