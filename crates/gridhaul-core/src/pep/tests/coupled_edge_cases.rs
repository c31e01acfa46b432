//! `Split`, `Reflect` and `Spoof` under failures: crashes, resets, changes of the path, hosts that
//! do not read or do not answer, and malformed segments.

use std::sync::Arc;

use gridhaul_scenario::units::{Bytes, Duration, Instant};
use proptest::prelude::*;

use super::chain::{Chain, ISNS};
use super::coupled::{MODES, Mode, TRANSPARENT_MODES, chain, chains, proxy, quarter_of_cases};
use super::hop::{Impairments, schedules};
use super::host::{Application, Close};
use super::malformed_segments;
use super::stack;
use crate::pep::{MssLimit, PassThrough, Proxy, Reflect, Side, Split};
use crate::tcp::{Flags, Segment, StackParams, State};

fn after(chain: &Chain, seconds: u64) -> Instant {
    chain.now + Duration::from_secs(seconds)
}

proptest! {
    #![proptest_config(quarter_of_cases())]

    /// A crash loses only bytes at risk. Without bytes at risk, the connection continues through
    /// the new proxy. Otherwise no host with data to send waits for ever. A host without data whose
    /// reset was lost cannot detect the failure: a reset is not retransmitted, and FIN-WAIT-2 has
    /// no timer (RFC 9293, section 3.6).
    #[test]
    fn a_crash_loses_only_bytes_at_risk(
        buffers in chains(),
        sizes in [0..3_000_u64, 0..3_000_u64],
        impairments in schedules(120),
        millis in 30..3_000_u64,
        which: prop::sample::Index,
        mode in prop::sample::select(&TRANSPARENT_MODES[..]),
    ) {
        let applications = sizes.map(|size| Application::new(size, Close::AtOnce));
        let mut chain =
            chain(mode, &buffers, &stack(100, 900), applications, true, impairments);
        chain.run(Instant::ZERO + Duration::from_millis(millis));
        let which = which.index(buffers.len());
        chain.crash(which, proxy(mode, buffers[which]));
        chain.resets = chain.lost_in_crash.iter().any(|lost| !lost.is_empty());
        if !chain.resets {
            chain.run_to_completion();
        } else {
            chain.run(after(&chain, 600));
            let states = [0, 1].map(|host: usize| chain.hosts[host].connection.state());
            let over = chain.hosts.iter().zip([states[1], states[0]]).all(|(host, peer)| {
                match host.connection.state() {
                    State::Closed => true,
                    State::FinWait2 if peer == State::Closed => host.close_acknowledged(),
                    _ => host.finished() && host.close_acknowledged(),
                }
            });
            prop_assert!(over || chain.is_complete(), "{}", chain.progress());
        }
    }

    #[test]
    fn malformed_segments_are_handled_within_the_buffer_limit(
        mode in prop::sample::select(&MODES[..]),
        established: bool,
        segments in malformed_segments::segments(150),
    ) {
        let applications = [Application::new(0, Close::Never); 2];
        let hosts = stack(100, 900);
        let mut chain =
            chain(mode, &[700], &hosts, applications, !established, Impairments::none());
        let proxy = &mut chain.proxies[0].proxy;
        let mut now = Instant::ZERO;
        for (wait, from, segment) in segments {
            now += wait;
            if proxy.next_deadline() <= now {
                proxy.handle_timeout(now);
            }
            proxy.handle_segment(now, from, &segment);
            for _ in 0..1_000 {
                if proxy.poll_transmit(now).is_none() {
                    break;
                }
            }
            prop_assert!(proxy.poll_transmit(now).is_none(), "the proxy does not stop sending");
            for side in Side::BOTH {
                let status = proxy.buffer_status(side);
                prop_assert!(status.bytes <= 700, "{:?}", status);
            }
        }
    }
}

#[test]
fn a_reset_traverses_a_chain_of_any_length() {
    for (mode, proxies, dead) in MODES.into_iter().flat_map(|mode| {
        [1, 2, 3, 7]
            .into_iter()
            .flat_map(move |proxies| Side::BOTH.map(|side| (mode, proxies, side)))
    }) {
        let applications = [Application::new(50_000, Close::AtOnce); 2];
        let mut chain = chain(
            mode,
            &vec![500; proxies],
            &stack(100, 500),
            applications,
            true,
            Impairments::none(),
        );
        chain.run(Instant::ZERO + Duration::from_secs(1));
        chain.resets = true;
        chain.hosts[dead.index()].forget();
        chain.run(Instant::ZERO + Duration::from_secs(60));
        let alive = &chain.hosts[dead.other().index()];
        assert!(alive.is_reset(), "{mode:?}, {proxies} proxies, {dead:?}: {}", chain.progress());
    }
}

#[test]
fn the_offered_window_is_the_smallest_free_buffer_downstream() {
    for proxies in [1, 2, 3, 7] {
        // The server reads nothing.
        let not_reading = Application {
            reads: Some((0, Duration::from_secs(5))),
            ..Application::new(0, Close::Never)
        };
        let buffers: Vec<u32> = (0..proxies).map(|index| 900 - 100 * index).collect();
        let applications = [Application::new(300, Close::Never), not_reading];
        let mut chain = chain(
            Mode::Reflect,
            &buffers,
            &stack(100, 700),
            applications,
            true,
            Impairments::none(),
        );
        chain.run(Instant::ZERO + Duration::from_secs(3));
        let free = |chain: &Chain| {
            let proxies = chain.proxies.iter().zip(&buffers);
            let free = proxies
                .map(|(proxy, &size)| size - proxy.proxy.buffer_status(Side::Client).bytes as u32);
            let host = chain.hosts[1].connection.receiver().window(&stack(100, 700));
            free.min().unwrap_or(host).min(host)
        };
        let smallest = free(&chain);
        // Every acknowledgement carries the smaller window one hop further.
        for _ in 0..=proxies {
            chain.hosts[0].connection.write(5);
            chain.hosts[0].application.write += 5;
            chain.run(chain.now + Duration::from_millis(300));
        }
        let seen = chain.hosts[0].window_seen.unwrap_or(u32::MAX);
        assert!(seen <= smallest, "{proxies} proxies: a window of {seen} exceeds {smallest}");
        assert!(seen > 0);
    }
}

#[test]
fn a_proxy_engages_in_an_open_connection_when_nothing_is_outstanding() {
    let applications =
        [Application::new(5_000, Close::AtOnce), Application::new(0, Close::AfterPeer)];
    let mut hosts = (*stack(100, 150)).clone();
    hosts.timestamps = false;
    let proxies: Vec<Box<dyn Proxy>> = vec![Box::new(PassThrough::default())];
    let mut chain = Chain::opening(&hosts.into(), applications, proxies, 150, Impairments::none());
    chain.run(Instant::ZERO + Duration::from_millis(500));
    chain.crash(0, proxy(Mode::Reflect, 150));
    chain.run(Instant::ZERO + Duration::from_millis(1_000));
    assert!(
        chain.proxies[0]
            .proxy
            .first_sequence_number(Side::Client)
            .is_some_and(|first| first != ISNS[0] + 1)
    );
    chain.run_to_completion();
}

#[test]
fn a_path_change_while_nothing_is_outstanding_loses_nothing() {
    let applications =
        [Application::new(1_000, Close::AfterPeer), Application::new(2_000, Close::AfterPeer)];
    let mut chain =
        chain(Mode::Reflect, &[500; 3], &stack(100, 500), applications, true, Impairments::none());
    chain.run(Instant::ZERO + Duration::from_secs(30));
    chain.bypass(1);
    assert!(chain.lost_in_crash.iter().all(Vec::is_empty));
    assert_eq!((chain.hosts[0].delivered(), chain.hosts[1].delivered()), (2_000, 1_000));
    for host in &mut chain.hosts {
        host.connection.write(700);
        host.application.write += 700;
        host.connection.close();
    }
    chain.run(after(&chain, 30));
    assert_eq!((chain.hosts[0].delivered(), chain.hosts[1].delivered()), (2_700, 1_700));
    assert!(chain.hosts.iter().all(super::host::Host::finished));
}

#[test]
fn a_refused_connection_is_reset_through_split_proxies() {
    for proxies in [1, 3] {
        let applications =
            [Application::new(300, Close::AtOnce), Application::new(0, Close::Never)];
        let buffers = vec![500; proxies];
        let mut chain =
            chain(Mode::Split, &buffers, &stack(100, 500), applications, true, Impairments::none());
        chain.resets = true;
        chain.hosts[1].connection.abort(false);
        // SYN and the resets traverse all hops in turn.
        assert!(chain.run(Instant::ZERO + Duration::from_secs(1)), "{}", chain.progress());
        assert!(chain.hosts[0].is_reset(), "{}", chain.progress());
        assert_eq!((chain.hosts[0].delivered(), chain.hosts[1].delivered()), (0, 0));
        for proxy in &chain.proxies {
            assert_eq!(Side::BOTH.map(|side| proxy.proxy.buffer_status(side).bytes), [0, 0]);
            assert_eq!(proxy.proxy.next_deadline(), Instant::NEVER);
        }
    }
}

#[test]
fn a_restarted_split_proxy_resets_both_hosts_and_serves_the_next_connection() {
    let applications = [Application::new(50_000, Close::AtOnce); 2];
    let mut chain =
        chain(Mode::Split, &[500], &stack(100, 500), applications, true, Impairments::none());
    chain.run(Instant::ZERO + Duration::from_secs(1));
    let delivered = |chain: &Chain| chain.hosts.each_ref().map(super::host::Host::delivered);
    let before = delivered(&chain);
    assert!(before.iter().all(|&bytes| 0 < bytes && bytes < 50_000), "{before:?}");
    chain.crash(0, proxy(Mode::Split, 500));
    chain.resets = true;
    chain.run(after(&chain, 10));
    assert!(chain.hosts.iter().all(super::host::Host::is_reset), "{}", chain.progress());
    // After the crash, only segments in flight on the last hop arrive.
    let at_most = before.map(|bytes| bytes + 500);
    assert!(delivered(&chain).iter().zip(at_most).all(|(&bytes, maximum)| bytes <= maximum));
    let (now, proxy) = (chain.now, &mut chain.proxies[0].proxy);
    let syn = Segment { seq: 77, flags: Flags::SYN, window: 500, ..Segment::default() };
    proxy.handle_segment(now, Side::Client, &syn);
    let answers: Vec<_> = std::iter::from_fn(|| proxy.poll_transmit(now)).collect();
    let flags: Vec<_> = answers.iter().map(|out| (out.to, out.segment.flags)).collect();
    let accepted = Flags::SYN.with(Flags::ACK);
    assert_eq!(flags, [(Side::Client, accepted), (Side::Server, Flags::SYN)]);
}

#[test]
fn an_unanswering_side_is_reset_after_r2() {
    for mode in MODES {
        let applications =
            [Application::new(5_000, Close::Never), Application::new(0, Close::Never)];
        let mut chain =
            chain(mode, &[500], &stack(100, 500), applications, true, Impairments::none());
        chain.run(Instant::ZERO + Duration::from_millis(300));
        chain.resets = true;
        chain.impairments = Impairments::random(1, 1.0, 0.0, u64::MAX);
        chain.run(Instant::ZERO + Duration::from_secs(90));
        assert!(chain.proxies[0].proxy.buffer_status(Side::Client).bytes > 0);
        chain.run(Instant::ZERO + Duration::from_secs(110));
        assert_eq!(chain.proxies[0].proxy.buffer_status(Side::Client).bytes, 0, "{mode:?}");
    }
}

/// A stack with a retransmission timeout of 20 s, as on a low-rate link with a long queue.
fn slow_stack() -> Arc<StackParams> {
    let (rto_min, rto_max) = (Duration::from_secs(20), Duration::from_secs(60));
    Arc::new(StackParams { rto_min, rto_max, ..(*stack(100, 500)).clone() })
}

/// Time at which the only proxy of a chain has sent the first data toward the server. A split proxy
/// accepts the connection itself; through a reflecting proxy, SYN and SYN-ACK take 40 ms.
fn first_data(mode: Mode) -> Duration {
    Duration::from_millis(if mode == Mode::Split { 35 } else { 55 })
}

/// RFC 1122, section 4.2.3.5: R2 is at least 100 s. With timeouts of 20, 40 and 60 s these are
/// three retransmissions, and a lossy link may lose three in a row. `Chain` checks after every
/// event that acknowledged bytes are stored in a proxy until they have arrived. (The timeouts of
/// `Spoof` are those of a hop.)
#[test]
fn a_few_lost_retransmissions_do_not_end_a_connection() {
    for mode in [Mode::Split, Mode::Reflect] {
        let applications =
            [Application::new(900, Close::AtOnce), Application::new(0, Close::AfterPeer)];
        let (params, buffer) = (slow_stack(), Bytes::new(500));
        let proxy: Box<dyn Proxy> = match mode {
            Mode::Split => Box::new(Split::new(params.clone(), buffer, [40, 80])),
            _ => {
                let hosts = MssLimit::of_hosts([params.mss; 2]);
                Box::new(Reflect::new(params.clone(), hosts, buffer))
            }
        };
        let mut chain =
            Chain::opening(&params, applications, vec![proxy], 500, Impairments::none());
        chain.run(Instant::ZERO + first_data(mode));
        assert!(chain.proxies[0].proxy.bytes_at_risk() > 0, "{mode:?}");
        chain.impairments = Impairments::random(1, 1.0, 0.0, u64::MAX);
        chain.run(Instant::ZERO + Duration::from_secs(230));
        chain.impairments = Impairments::none();
        chain.run_to_completion();
    }
}

/// Bytes that the proxy has acknowledged to the client will never arrive: both hosts must be
/// notified, as an application is when its own TCP reaches R2.
#[test]
fn a_proxy_with_bytes_at_risk_resets_both_hosts_after_r2() {
    for mode in MODES {
        let applications = [Application::new(300, Close::Never), Application::new(0, Close::Never)];
        let mut chain =
            chain(mode, &[500], &stack(100, 500), applications, true, Impairments::none());
        chain.run(Instant::ZERO + first_data(mode));
        assert!(chain.proxies[0].proxy.bytes_at_risk() > 0, "{mode:?}");
        // No further segments arrive from the server.
        let proxy = &mut chain.proxies[0].proxy;
        let mut resets = Vec::new();
        while proxy.next_deadline() < Instant::NEVER {
            let now = proxy.next_deadline();
            proxy.handle_timeout(now);
            while let Some(out) = proxy.poll_transmit(now) {
                if out.segment.flags.has(Flags::RST) {
                    resets.push(out.to);
                    assert!(now >= Instant::ZERO + Duration::from_secs(100), "{mode:?} {now:?}");
                }
            }
        }
        assert_eq!(resets, Side::BOTH, "{mode:?}");
        assert_eq!(proxy.bytes_at_risk(), 0, "{mode:?}");
    }
}

/// Windows toward the client are carried in units of 512 bytes: each offered window is a multiple
/// of 512, and the update of a closed window is sent although less than the free space is offered.
#[test]
fn offered_windows_are_whole_units_of_the_scale() {
    for mode in MODES {
        let slow = Application {
            reads: Some((150, Duration::from_millis(300))),
            ..Application::new(0, Close::Never)
        };
        let applications = [Application::new(9_000, Close::AtOnce), slow];
        let mut chain =
            chain(mode, &[1_700], &stack(100, 700), applications, true, Impairments::none());
        for side in Side::BOTH {
            chain.proxies[0].proxy.set_window_shift(side, 9);
        }
        let mut windows = std::collections::BTreeSet::new();
        while !chain.is_complete() && chain.now < Instant::ZERO + Duration::from_secs(300) {
            let until = chain.now + Duration::from_millis(10);
            chain.run(until);
            windows.extend(chain.hosts[0].window_seen);
        }
        assert!(chain.is_complete(), "{mode:?}: {}", chain.progress());
        // The window of SYN is not scaled; a split proxy offers its whole buffer there.
        let scaled = windows.iter().filter(|&&window| window != 1_700 && window != 700);
        let off = scaled.filter(|&window| window % 512 != 0).collect::<Vec<_>>();
        assert!(off.is_empty() && windows.contains(&512), "{mode:?}: {windows:?}");
    }
}

/// A flow table removes a proxy that is finished. Of some random losses, at least one is repaired
/// by the proxy.
#[test]
fn a_proxy_is_finished_before_and_after_its_connection() {
    for mode in MODES {
        let mut retransmissions = 0;
        for seed in 5..10 {
            let applications =
                [Application::new(5_000, Close::AtOnce), Application::new(0, Close::AfterPeer)];
            let hosts = stack(100, 500);
            let losses = Impairments::random(seed, 0.1, 0.0, 60);
            let mut chain = chain(mode, &[500], &hosts, applications, true, losses);
            assert!(chain.proxies[0].proxy.is_finished(), "{mode:?}: no segment has arrived");
            chain.run(Instant::ZERO + Duration::from_millis(300));
            let is_open = !chain.proxies[0].proxy.is_finished();
            assert!(is_open || seed != 5, "{mode:?}");
            chain.run_to_completion();
            // TIME-WAIT, in which FIN may be retransmitted, lasts a minute.
            chain.run(after(&chain, 200));
            let proxy = &chain.proxies[0].proxy;
            let statistics = proxy.statistics();
            assert!(proxy.is_finished(), "{mode:?} {seed} {statistics:?}");
            assert_eq!((statistics.released, statistics.lost), ([5_000, 0], 0), "{mode:?} {seed}");
            retransmissions += statistics.retransmissions[1];
        }
        assert!(retransmissions > 0, "{mode:?}");
    }
}

#[test]
fn reset_ends_the_connection_on_both_sides() {
    for mode in MODES {
        let applications = [Application::new(50_000, Close::AtOnce); 2];
        let mut chain =
            chain(mode, &[500; 3], &stack(100, 500), applications, true, Impairments::none());
        chain.run(Instant::ZERO + Duration::from_secs(1));
        chain.resets = true;
        let at_risk = chain.proxies[1].proxy.bytes_at_risk();
        chain.proxies[1].proxy.reset();
        assert_eq!(chain.proxies[1].proxy.lost(), at_risk, "{mode:?}");
        chain.run(after(&chain, 30));
        assert!(chain.hosts.iter().all(super::host::Host::is_reset), "{mode:?}");
        assert!(chain.proxies.iter().all(|proxy| proxy.proxy.is_finished()), "{mode:?}");
    }
}
