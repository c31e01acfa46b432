//! The test harness, with proxies that forward every segment.

use gridhaul_scenario::units::{Duration, Instant};
use proptest::prelude::*;

use super::chain::{Chain, ISNS};
use super::hop::{Impairments, schedules};
use super::host::{Application, Close};
use super::stack;
use crate::pep::{PassThrough, Proxy, Side};
use crate::tcp::{Flags, Segment};

fn pass_through_proxies(proxies: usize) -> Vec<Box<dyn Proxy>> {
    (0..proxies).map(|_| Box::new(PassThrough::default()) as Box<dyn Proxy>).collect()
}

#[test]
fn a_stream_is_delivered_within_its_round_trips() {
    let applications =
        [Application::new(900, Close::AtOnce), Application::new(0, Close::AfterPeer)];
    let mut chain = Chain::opening(
        &stack(100, 4000),
        applications,
        pass_through_proxies(3),
        0,
        Impairments::none(),
    );
    chain.run_to_completion();
    // SYN, SYN-ACK, data with FIN, ACK and FIN, ACK: five transits of four hops of 10 ms.
    assert_eq!(chain.now.as_nanos(), 5 * 4 * 10_000_000);
}

#[test]
fn a_slow_reader_closes_its_window_and_receives_everything() {
    let slow = Application {
        reads: Some((150, Duration::from_millis(300))),
        ..Application::new(0, Close::Never)
    };
    let applications = [Application::new(5_000, Close::AtOnce), slow];
    let impairments = Impairments::random(1, 0.2, 0.2, 300);
    let mut chain =
        Chain::opening(&stack(100, 500), applications, pass_through_proxies(2), 0, impairments);
    chain.run(Instant::ZERO + Duration::from_secs(4));
    chain.bypass(1);
    chain.run_to_completion();
    assert!(chain.sent > 300 && chain.hosts[0].window_seen.is_some());
}

#[test]
fn a_host_without_connection_state_resets_the_connection() {
    let applications = [Application::new(50_000, Close::AtOnce), Application::new(0, Close::Never)];
    let mut chain = Chain::opening(
        &stack(100, 500),
        applications,
        pass_through_proxies(1),
        0,
        Impairments::none(),
    );
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
    fn everything_arrives_over_impaired_hops(
        impairments in schedules(120),
        proxies in 0..3_usize,
        sizes in [0..3_000_u64, 0..3_000_u64],
        handshake: bool,
    ) {
        let applications =
            [Application::new(sizes[0], Close::AtOnce), Application::new(sizes[1],
                Close::AfterPeer)];
        let params = stack(100, 1500);
        let mut chain = if handshake {
            Chain::opening(&params, applications, pass_through_proxies(proxies), 0, impairments)
        } else {
            Chain::established(&params, applications, pass_through_proxies(proxies), 0, impairments)
        };
        chain.run_to_completion();
    }
}
