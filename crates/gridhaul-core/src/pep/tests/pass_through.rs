//! The harness itself, with the proxy that does nothing.

use gridhaul_scenario::units::{Duration, Instant};
use proptest::prelude::*;

use super::chain::{Chain, ISNS};
use super::hop::{Impairments, schedules};
use super::host::{Application, Close};
use super::stack;
use crate::pep::{PassThrough, Proxy, Side};
use crate::tcp::{Flags, Segment};

fn passes(units: usize) -> Vec<Box<dyn Proxy>> {
    (0..units).map(|_| Box::new(PassThrough::default()) as Box<dyn Proxy>).collect()
}

#[test]
fn a_stream_passes_without_loss_in_the_time_of_its_round_trips() {
    let plans = [Application::new(900, Close::AtOnce), Application::new(0, Close::AfterPeer)];
    let mut chain = Chain::opening(&stack(100, 4000), plans, passes(3), 0, Impairments::good());
    chain.run_to_the_end();
    // SYN, SYN-ACK, data with FIN, ACK and FIN, ACK: five trips over four hops of 10 ms.
    assert_eq!(chain.now.as_nanos(), 5 * 4 * 10_000_000);
}

#[test]
fn a_slow_reader_closes_its_window_and_gets_everything() {
    let slow = Application {
        reads: Some((150, Duration::from_millis(300))),
        ..Application::new(0, Close::Never)
    };
    let plans = [Application::new(5_000, Close::AtOnce), slow];
    let impairments = Impairments::random(1, 0.2, 0.2, 300);
    let mut chain = Chain::opening(&stack(100, 500), plans, passes(2), 0, impairments);
    chain.run(Instant::ZERO + Duration::from_secs(4));
    chain.bypass(1);
    chain.run_to_the_end();
    assert!(chain.sent > 300 && chain.hosts[0].window_seen.is_some());
}

#[test]
fn a_host_that_has_forgotten_the_connection_resets_it() {
    let plans = [Application::new(50_000, Close::AtOnce), Application::new(0, Close::Never)];
    let mut chain = Chain::opening(&stack(100, 500), plans, passes(1), 0, Impairments::good());
    chain.run(Instant::ZERO + Duration::from_secs(1));
    chain.inject(
        0,
        Side::Client,
        Segment { seq: ISNS[0], flags: Flags::ACK, ..Segment::default() },
    );
    assert!(!chain.hosts[0].is_reset());
    chain.hosts[1].forget();
    assert!(chain.run(Instant::ZERO + Duration::from_secs(2)), "{}", chain.progress());
    assert!(chain.hosts[0].is_reset());
}

proptest! {
    #[test]
    fn everything_arrives_over_bad_hops(
        impairments in schedules(120),
        units in 0..3_usize,
        sizes in [0..3_000_u64, 0..3_000_u64],
        handshake: bool,
    ) {
        let plans = [Application::new(sizes[0], Close::AtOnce), Application::new(sizes[1], Close::AfterPeer)];
        let params = stack(100, 1500);
        let mut chain = if handshake {
            Chain::opening(&params, plans, passes(units), 0, impairments)
        } else {
            Chain::established(&params, plans, passes(units), 0, impairments)
        };
        chain.run_to_the_end();
    }
}
