//! `Split` and `Reflect` where something goes wrong: crashes, resets, changes of the path, hosts
//! that do not read or do not answer, segments out of nowhere.

use std::sync::Arc;

use gridhaul_scenario::units::{Bytes, Duration, Instant};
use proptest::prelude::*;

use super::chain::{Chain, ISNS};
use super::coupled::{MODES, Mode, a_quarter, chain, chains, machine};
use super::hop::{Impairments, schedules};
use super::host::{Application, Close};
use super::malformed_segments;
use super::stack;
use crate::pep::{PassThrough, Proxy, Reflect, Side, Split};
use crate::tcp::{Flags, Segment, StackParams, State};

fn after(chain: &Chain, seconds: u64) -> Instant {
    chain.now + Duration::from_secs(seconds)
}

proptest! {
    #![proptest_config(a_quarter())]

    /// Whatever a unit has lost in a crash, it alone had. Where it had nothing alone, the
    /// connection goes on through its successor; where it had, no host waits for ever that has
    /// something to send. One that has not, and whose reset was lost on the way, cannot know: nobody
    /// repeats a reset, and FIN-WAIT-2 has no timer (RFC 9293, section 3.6).
    #[test]
    fn a_crash_loses_what_only_the_unit_had_and_nothing_else(
        buffers in chains(),
        sizes in [0..3_000_u64, 0..3_000_u64],
        impairments in schedules(120),
        millis in 30..3_000_u64,
        which: prop::sample::Index,
    ) {
        let plans = sizes.map(|size| Application::new(size, Close::AtOnce));
        let mut chain = chain(Mode::Reflect, &buffers, &stack(100, 900), plans, true, impairments);
        chain.run(Instant::ZERO + Duration::from_millis(millis));
        let which = which.index(buffers.len());
        chain.crash(which, machine(Mode::Reflect, buffers[which]));
        chain.resets = chain.excused.iter().any(|lost| !lost.is_empty());
        if !chain.resets {
            chain.run_to_the_end();
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
    fn arbitrary_segments_do_no_harm(
        mode in prop::sample::select(&MODES[..]),
        established: bool,
        segments in malformed_segments::segments(150),
    ) {
        let plans = [Application::new(0, Close::Never); 2];
        let hosts = stack(100, 900);
        let mut chain = chain(mode, &[700], &hosts, plans, !established, Impairments::good());
        let proxy = &mut chain.units[0].proxy;
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
            prop_assert!(proxy.poll_transmit(now).is_none(), "it goes on sending");
            for side in Side::BOTH {
                let held = proxy.buffer_status(side);
                prop_assert!(held.bytes <= 700, "{:?}", held);
            }
        }
    }
}

#[test]
fn a_reset_passes_a_chain_of_any_length() {
    for (mode, units, dead) in MODES.into_iter().flat_map(|mode| {
        [1, 2, 3, 7].into_iter().flat_map(move |units| Side::BOTH.map(|side| (mode, units, side)))
    }) {
        let plans = [Application::new(50_000, Close::AtOnce); 2];
        let mut chain =
            chain(mode, &vec![500; units], &stack(100, 500), plans, true, Impairments::good());
        chain.run(Instant::ZERO + Duration::from_secs(1));
        chain.resets = true;
        chain.hosts[dead.index()].forget();
        chain.run(Instant::ZERO + Duration::from_secs(60));
        let alive = &chain.hosts[dead.other().index()];
        assert!(alive.is_reset(), "{mode:?}, {units} units, {dead:?}: {}", chain.progress());
    }
}

#[test]
fn the_window_reported_upstream_is_the_smallest_free_buffer_downstream() {
    for units in [1, 2, 3, 7] {
        // The right host takes nothing.
        let deaf = Application {
            reads: Some((0, Duration::from_secs(5))),
            ..Application::new(0, Close::Never)
        };
        let buffers: Vec<u32> = (0..units).map(|unit| 900 - 100 * unit).collect();
        let plans = [Application::new(300, Close::Never), deaf];
        let mut chain =
            chain(Mode::Reflect, &buffers, &stack(100, 700), plans, true, Impairments::good());
        chain.run(Instant::ZERO + Duration::from_secs(3));
        let free = |chain: &Chain| {
            let units = chain.units.iter().zip(&buffers);
            let free = units
                .map(|(unit, &size)| size - unit.proxy.buffer_status(Side::Client).bytes as u32);
            let host = chain.hosts[1].connection.receiver().window(&stack(100, 700));
            free.min().unwrap_or(host).min(host)
        };
        let smallest = free(&chain);
        // A report goes up by a hop with every acknowledgement.
        for _ in 0..=units {
            chain.hosts[0].connection.write(5);
            chain.hosts[0].plan.write += 5;
            chain.run(chain.now + Duration::from_millis(300));
        }
        let seen = chain.hosts[0].window_seen.unwrap_or(u32::MAX);
        assert!(seen <= smallest, "{units} units: {seen} is more than {smallest}");
        assert!(seen > 0);
    }
}

#[test]
fn a_unit_joins_an_open_connection_when_nothing_is_out() {
    let plans = [Application::new(5_000, Close::AtOnce), Application::new(0, Close::AfterPeer)];
    let mut hosts = (*stack(100, 150)).clone();
    hosts.timestamps = false;
    let pass: Vec<Box<dyn Proxy>> = vec![Box::new(PassThrough::default())];
    let mut chain = Chain::opening(&hosts.into(), plans, pass, 150, Impairments::good());
    chain.run(Instant::ZERO + Duration::from_millis(500));
    chain.crash(0, machine(Mode::Reflect, 150));
    chain.run(Instant::ZERO + Duration::from_millis(1_000));
    assert!(
        chain.units[0]
            .proxy
            .first_sequence_number(Side::Client)
            .is_some_and(|first| first != ISNS[0] + 1)
    );
    chain.run_to_the_end();
}

#[test]
fn a_path_that_changes_while_nothing_is_out_costs_nothing() {
    let plans =
        [Application::new(1_000, Close::AfterPeer), Application::new(2_000, Close::AfterPeer)];
    let mut chain =
        chain(Mode::Reflect, &[500; 3], &stack(100, 500), plans, true, Impairments::good());
    chain.run(Instant::ZERO + Duration::from_secs(30));
    chain.bypass(1);
    assert!(chain.excused.iter().all(Vec::is_empty));
    assert_eq!((chain.hosts[0].delivered(), chain.hosts[1].delivered()), (2_000, 1_000));
    for host in &mut chain.hosts {
        host.connection.write(700);
        host.plan.write += 700;
        host.connection.close();
    }
    chain.run(after(&chain, 30));
    assert_eq!((chain.hosts[0].delivered(), chain.hosts[1].delivered()), (2_700, 1_700));
    assert!(chain.hosts.iter().all(super::host::Host::finished));
}

#[test]
fn a_host_that_refuses_resets_the_other_through_a_split() {
    for units in [1, 3] {
        let plans = [Application::new(300, Close::AtOnce), Application::new(0, Close::Never)];
        let buffers = vec![500; units];
        let mut chain =
            chain(Mode::Split, &buffers, &stack(100, 500), plans, true, Impairments::good());
        chain.resets = true;
        chain.hosts[1].connection.abort(false);
        // SYN has to go all the way, and the refusal back, hop by hop.
        assert!(chain.run(Instant::ZERO + Duration::from_secs(1)), "{}", chain.progress());
        assert!(chain.hosts[0].is_reset(), "{}", chain.progress());
        assert_eq!((chain.hosts[0].delivered(), chain.hosts[1].delivered()), (0, 0));
        for unit in &chain.units {
            assert_eq!(Side::BOTH.map(|side| unit.proxy.buffer_status(side).bytes), [0, 0]);
            assert_eq!(unit.proxy.next_deadline(), Instant::NEVER);
        }
    }
}

#[test]
fn a_split_that_restarts_resets_both_hosts_and_serves_the_next_connection() {
    let plans = [Application::new(50_000, Close::AtOnce); 2];
    let mut chain = chain(Mode::Split, &[500], &stack(100, 500), plans, true, Impairments::good());
    chain.run(Instant::ZERO + Duration::from_secs(1));
    let delivered = |chain: &Chain| chain.hosts.each_ref().map(super::host::Host::delivered);
    let before = delivered(&chain);
    assert!(before.iter().all(|&bytes| 0 < bytes && bytes < 50_000), "{before:?}");
    chain.crash(0, machine(Mode::Split, 500));
    chain.resets = true;
    chain.run(after(&chain, 10));
    assert!(chain.hosts.iter().all(super::host::Host::is_reset), "{}", chain.progress());
    // What the hosts have is a prefix, and no more came than was on the last hop.
    let at_most = before.map(|bytes| bytes + 500);
    assert!(delivered(&chain).iter().zip(at_most).all(|(&bytes, most)| bytes <= most));
    let (now, proxy) = (chain.now, &mut chain.units[0].proxy);
    let syn = Segment { seq: 77, flags: Flags::SYN, window: 500, ..Segment::default() };
    proxy.handle_segment(now, Side::Client, &syn);
    let answers: Vec<_> = std::iter::from_fn(|| proxy.poll_transmit(now)).collect();
    let flags: Vec<_> = answers.iter().map(|out| (out.to, out.segment.flags)).collect();
    let accepted = Flags::SYN.with(Flags::ACK);
    assert_eq!(flags, [(Side::Client, accepted), (Side::Server, Flags::SYN)]);
}

#[test]
fn a_side_that_does_not_answer_is_given_up_after_its_time() {
    for mode in MODES {
        let plans = [Application::new(5_000, Close::Never), Application::new(0, Close::Never)];
        let mut chain = chain(mode, &[500], &stack(100, 500), plans, true, Impairments::good());
        chain.run(Instant::ZERO + Duration::from_millis(300));
        chain.resets = true;
        chain.impairments = Impairments::random(1, 1.0, 0.0, u64::MAX);
        chain.run(Instant::ZERO + Duration::from_secs(90));
        assert!(chain.units[0].proxy.buffer_status(Side::Client).bytes > 0);
        chain.run(Instant::ZERO + Duration::from_secs(110));
        assert_eq!(chain.units[0].proxy.buffer_status(Side::Client).bytes, 0, "{mode:?}");
    }
}

/// A stack whose retransmission timeout is 20 s, as behind a long queue on a narrow link.
fn slow_stack() -> Arc<StackParams> {
    let (rto_min, rto_max) = (Duration::from_secs(20), Duration::from_secs(60));
    Arc::new(StackParams { rto_min, rto_max, ..(*stack(100, 500)).clone() })
}

/// When the first data is in the only proxy of a chain and on its way to the right host. A split
/// accepts the connection itself; through a reflecting proxy, SYN and its answer take 40 ms.
fn first_data(mode: Mode) -> Duration {
    Duration::from_millis(if mode == Mode::Split { 35 } else { 55 })
}

/// RFC 1122, section 4.2.3.5: R2 is at least 100 s. With timeouts of 20, 40 and 60 s that is three
/// retransmissions, and a lossy link loses so many in a row. `Chain` checks after every event that
/// acknowledged bytes are kept somewhere until they have arrived.
#[test]
fn a_few_lost_retransmissions_do_not_end_a_connection_however_long_they_take() {
    for mode in MODES {
        let plans = [Application::new(900, Close::AtOnce), Application::new(0, Close::AfterPeer)];
        let (params, buffer) = (slow_stack(), Bytes::new(500));
        let machine: Box<dyn Proxy> = match mode {
            Mode::Split => Box::new(Split::new(params.clone(), buffer, [40, 80])),
            Mode::Reflect => Box::new(Reflect::new(params.clone(), buffer)),
        };
        let mut chain = Chain::opening(&params, plans, vec![machine], 500, Impairments::good());
        chain.run(Instant::ZERO + first_data(mode));
        assert!(chain.units[0].proxy.bytes_at_risk() > 0, "{mode:?}");
        chain.impairments = Impairments::random(1, 1.0, 0.0, u64::MAX);
        chain.run(Instant::ZERO + Duration::from_secs(230));
        chain.impairments = Impairments::good();
        chain.run_to_the_end();
    }
}

/// What the proxy has acknowledged to the left host will never arrive: both hosts must be notified,
/// as an application is when its own TCP gives up.
#[test]
fn a_proxy_that_gives_up_with_bytes_at_risk_resets_both_hosts() {
    for mode in MODES {
        let plans = [Application::new(300, Close::Never), Application::new(0, Close::Never)];
        let mut chain = chain(mode, &[500], &stack(100, 500), plans, true, Impairments::good());
        chain.run(Instant::ZERO + first_data(mode));
        assert!(chain.units[0].proxy.bytes_at_risk() > 0, "{mode:?}");
        // Nothing comes from the right host any more.
        let proxy = &mut chain.units[0].proxy;
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

/// Windows toward the left host are carried in units of 512 bytes: each offer is a whole number of
/// them, and a window that opens again after being closed is reported though the peer reads less
/// than is free.
#[test]
fn offered_windows_are_whole_units_of_the_scale() {
    for mode in MODES {
        let slow = Application {
            reads: Some((150, Duration::from_millis(300))),
            ..Application::new(0, Close::Never)
        };
        let plans = [Application::new(9_000, Close::AtOnce), slow];
        let mut chain = chain(mode, &[1_700], &stack(100, 700), plans, true, Impairments::good());
        for side in Side::BOTH {
            chain.units[0].proxy.set_window_shift(side, 9);
        }
        let mut windows = std::collections::BTreeSet::new();
        while !chain.is_complete() && chain.now < Instant::ZERO + Duration::from_secs(300) {
            let until = chain.now + Duration::from_millis(10);
            chain.run(until);
            windows.extend(chain.hosts[0].window_seen);
        }
        assert!(chain.is_complete(), "{mode:?}: {}", chain.progress());
        // The window of SYN is not scaled; a split offers its whole buffer there.
        let scaled = windows.iter().filter(|&&window| window != 1_700 && window != 700);
        let off = scaled.filter(|&window| window % 512 != 0).collect::<Vec<_>>();
        assert!(off.is_empty() && windows.contains(&512), "{mode:?}: {windows:?}");
    }
}

/// What a flow table sees of a connection from its beginning to its end.
#[test]
fn a_proxy_is_finished_before_and_after_its_connection() {
    for mode in MODES {
        let plans = [Application::new(5_000, Close::AtOnce), Application::new(0, Close::AfterPeer)];
        let hosts = stack(100, 500);
        let mut chain =
            chain(mode, &[500], &hosts, plans, true, Impairments::random(5, 0.1, 0.0, 60));
        assert!(chain.units[0].proxy.is_finished(), "{mode:?}: nothing has come");
        chain.run(Instant::ZERO + Duration::from_millis(300));
        assert!(!chain.units[0].proxy.is_finished(), "{mode:?}");
        chain.run_to_the_end();
        // TIME-WAIT, in which FIN may come again, lasts a minute.
        chain.run(after(&chain, 200));
        let proxy = &chain.units[0].proxy;
        let statistics = proxy.statistics();
        assert!(proxy.is_finished(), "{mode:?} {statistics:?}");
        assert_eq!((statistics.released, statistics.lost), ([5_000, 0], 0), "{mode:?}");
        assert!(statistics.retransmissions[1] > 0, "{mode:?} {statistics:?}");
    }
}

#[test]
fn a_connection_that_is_reset_from_outside_ends_on_both_sides() {
    for mode in MODES {
        let plans = [Application::new(50_000, Close::AtOnce); 2];
        let mut chain = chain(mode, &[500; 3], &stack(100, 500), plans, true, Impairments::good());
        chain.run(Instant::ZERO + Duration::from_secs(1));
        chain.resets = true;
        let at_risk = chain.units[1].proxy.bytes_at_risk();
        chain.units[1].proxy.reset();
        assert_eq!(chain.units[1].proxy.lost(), at_risk, "{mode:?}");
        chain.run(after(&chain, 30));
        assert!(chain.hosts.iter().all(super::host::Host::is_reset), "{mode:?}");
        assert!(chain.units.iter().all(|unit| unit.proxy.is_finished()), "{mode:?}");
    }
}
