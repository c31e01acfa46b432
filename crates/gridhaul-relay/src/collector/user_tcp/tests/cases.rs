//! Acknowledgements, windows, ends and limits of connections.

use std::net::SocketAddr;

use gridhaul_core::tcp::{Flags, Segment, State};
use gridhaul_scenario::units::Duration;

use super::host::{Host, Options};
use super::world::{ADDRESS, Conditions, Times, World};
use crate::collector::user_tcp::DropCause;

const ALL: [Options; 2] = [Options::LINUX, Options::SMALL];

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn slow_disk(milliseconds: u64) -> Conditions {
    Conditions { commits: Times::new(milliseconds, milliseconds), ..Conditions::GOOD }
}

#[test]
fn data_is_acknowledged_when_it_is_durable() {
    let mut world = World::new(1, slow_disk(50));
    let row = world.connect(Options::LINUX);
    world.run_for(ms(25));
    assert_eq!(world.hosts[row].tcp.state(), State::Established);
    world.hosts[row].tcp.write(1_000);
    world.run_for(ms(55));
    assert_eq!((world.hosts[row].acknowledged(), world.tcp.withheld()), (0, 1_000));
    world.run_for(ms(25));
    assert_eq!((world.hosts[row].acknowledged(), world.tcp.withheld()), (1_000, 0));
    let counters = world.tcp.counters();
    assert_eq!(counters.confirmation_delay(), Some(ms(50)));
    assert_eq!(counters.early_retransmissions, 0);
}

#[test]
fn fin_is_acknowledged_and_answered_when_the_stream_is_durable() {
    for options in ALL {
        let mut world = World::new(2, slow_disk(100));
        let row = world.connect(options);
        world.run_for(ms(30));
        world.hosts[row].tcp.write(500);
        world.hosts[row].tcp.close();
        world.run_for(ms(100));
        assert_eq!(world.hosts[row].tcp.state(), State::FinWait1);
        world.run_for(ms(100));
        assert_eq!(world.hosts[row].tcp.state(), State::TimeWait);
        assert_eq!((world.ended.len(), world.tcp.len()), (1, 0));
        world.check_log();
    }
}

/// 200 kB over links with losses, at commits that are shorter and longer than the smallest
/// retransmission timeout: the transfer completes, and most losses are repaired without a timeout.
#[test]
fn losses_are_repaired_by_fast_retransmission() {
    for (options, seed) in ALL.into_iter().zip(3..) {
        for commit in [1, 20, 300] {
            let conditions = Conditions { lost: 20, ..slow_disk(commit) };
            let mut world = World::new(seed, conditions);
            let row = world.connect(options);
            world.run_for(ms(3_000));
            world.hosts[row].tcp.write(200_000);
            world.run_for(Duration::from_secs(120));
            let host = &world.hosts[row];
            let stats = *host.tcp.sender().unwrap().stats();
            let case = format!("{options:?}, commit of {commit} ms: {stats:?}");
            assert_eq!(host.acknowledged(), 200_000, "{case}");
            if commit < 200 {
                assert!(stats.timeouts <= 3, "{case}");
            }
            world.check_log();
        }
    }
}

/// Without space in the log, the window is closed; the meter probes it for hours, and continues
/// when there is space.
#[test]
fn a_full_log_closes_the_window_and_keeps_the_connection() {
    for options in ALL {
        let mut world = World::new(5, Conditions { space: 10_000, ..slow_disk(5) });
        let row = world.connect(options);
        world.run_for(ms(30));
        world.hosts[row].tcp.write(100_000);
        world.run_for(Duration::from_secs(2 * 3_600));
        let host = &world.hosts[row];
        assert_eq!((host.acknowledged(), host.tcp.state()), (10_000, State::Established));
        assert!(world.to_hosts < 2_000, "{} packets", world.to_hosts);
        world.conditions.space = u64::MAX;
        world.run_for(Duration::from_secs(5));
        assert_eq!(world.hosts[row].acknowledged(), 100_000, "{options:?}");
        world.check_log();
    }
}

#[test]
fn after_a_kill_a_segment_is_answered_with_a_reset() {
    let mut world = World::new(6, Conditions::GOOD);
    let row = world.connect(Options::LINUX);
    world.run_for(ms(30));
    world.hosts[row].tcp.write(1_000);
    world.run_for(ms(50));
    world.kill();
    world.hosts[row].tcp.write(1_000);
    world.run_for(ms(50));
    let host = &world.hosts[row];
    assert!(host.was_reset && host.is_closed());
    assert_eq!((host.acknowledged(), world.tcp.counters().unknown), (1_000, 1));
}

#[test]
fn data_of_a_server_reaches_the_meter_in_order() {
    let conditions = Conditions { lost: 30, delays: Times::new(5, 15), ..Conditions::GOOD };
    let mut world = World::new(7, conditions);
    let row = world.connect(Options::LINUX);
    world.run_for(ms(3_000));
    let connection = *world.connections().first().unwrap();
    let sent: Vec<u8> = (0..150_000_u32).map(|at| (at * 7) as u8).collect();
    let mut written = 0;
    while written < sent.len() {
        written += world.tcp.write(connection, &sent[written..]);
        world.run_for(ms(20));
    }
    world.tcp.finish(connection);
    assert_eq!(world.tcp.write(connection, &[0]), 0, "nothing follows FIN");
    world.run_for(Duration::from_secs(20));
    assert!(world.hosts[row].received == sent);
}

#[test]
fn a_meter_that_has_vanished_is_noticed() {
    let mut world = World::new(8, Conditions::GOOD);
    world.connect(Options::LINUX);
    world.run_for(ms(50));
    world.hosts.clear();
    world.run_for(Duration::from_secs(590));
    assert_eq!(world.tcp.len(), 1);
    world.run_for(Duration::from_secs(20));
    assert_eq!((world.tcp.len(), world.tcp.counters().timeouts), (0, 1));
}

/// A machine that was suspended probes a meter once, and waits for the answer.
#[test]
fn after_a_jump_of_the_clock_a_meter_has_time_to_answer() {
    let mut world = World::new(8, Conditions::GOOD);
    world.connect(Options::LINUX);
    world.run_for(ms(50));
    world.now += Duration::from_secs(3_600);
    world.run_for(Duration::from_secs(5));
    assert_eq!((world.tcp.len(), world.tcp.counters().timeouts), (1, 0));
}

#[test]
fn fin_in_the_place_of_a_byte_that_has_arrived_ends_the_stream() {
    let mut world = World::new(9, Conditions::GOOD);
    let row = world.connect(Options::SMALL);
    world.run_for(ms(30));
    world.hosts[row].tcp.write(1_000);
    world.run_for(ms(50));
    let host = &world.hosts[row];
    let segment = Segment {
        seq: host.tcp.next_sequence_number().wrapping_sub(500),
        ack: host.tcp.acknowledgement_number(),
        len: 9,
        window: 1_000,
        flags: Flags::ACK.with(Flags::FIN),
        ..Segment::default()
    };
    let packet = host.packet(&segment);
    world.tcp.handle_packet(world.now, &packet);
    world.run_for(ms(50));
    assert_eq!(world.ended.len(), 1);
    let connection = world.connections();
    assert!(connection.is_empty());
    world.check_log();
}

#[test]
fn half_open_connections_are_bounded_and_do_not_exclude_others() {
    let mut world = World::new(9, Conditions::GOOD);
    let address: SocketAddr = ADDRESS.parse().unwrap();
    for port in 0..1_000 {
        let local = SocketAddr::from(([198, 51, 100, 7], 2_000 + port));
        let mut host = Host::connect(local, address, 1, u32::from(port), Options::SMALL);
        let syn = host.poll_packet(world.now).unwrap();
        world.tcp.handle_packet(world.now, &syn);
    }
    assert_eq!((world.tcp.len(), world.tcp.half_open()), (16, 16));
    assert_eq!(world.tcp.counters().half_open_evicted, 984);
    let row = world.connect(Options::LINUX);
    world.run_for(ms(50));
    assert_eq!(world.hosts[row].tcp.state(), State::Established);
    // The others end when their handshake takes too long.
    world.run_for(Duration::from_secs(70));
    assert_eq!((world.tcp.len(), world.tcp.half_open()), (1, 0));
}

#[test]
fn syn_is_dropped_while_the_table_is_full() {
    let mut world = World::new(10, Conditions::GOOD);
    for _ in 0..4 {
        for _ in 0..16 {
            world.connect(Options::SMALL);
        }
        world.run_for(ms(50));
    }
    let last = world.connect(Options::LINUX);
    world.run_for(ms(50));
    assert_eq!(world.hosts[last].tcp.state(), State::SynSent);
    assert_eq!(world.tcp.counters().dropped[DropCause::Full as usize], 1);
    world.hosts[0].tcp.reset();
    world.run_for(Duration::from_secs(2));
    assert_eq!(world.hosts[last].tcp.state(), State::Established, "SYN was retransmitted");
}

#[test]
fn packets_for_nobody_are_dropped_and_counted() {
    let mut world = World::new(11, Conditions::GOOD);
    let row = world.connect(Options::LINUX);
    let host = &world.hosts[row];
    let syn = Segment { seq: 1, flags: Flags::SYN, ..Segment::default() };
    let good = host.packet(&syn).to_vec();
    let mut wrong_sum = good.clone();
    wrong_sum[40] ^= 1;
    let mut fragment = good.clone();
    fragment[6] = 0x20;
    let mut datagram = good.clone();
    datagram[9] = 1;
    let null = host.packet(&Segment::default()).to_vec();
    let xmas = host.packet(&Segment { flags: Flags::SYN.with(Flags::FIN), ..syn }).to_vec();
    let elsewhere: SocketAddr = "192.0.2.11:4059".parse().unwrap();
    let mut other = Host::connect(host.flow.local, elsewhere, 1, 1, Options::LINUX);
    let other = other.poll_packet(world.now).unwrap().to_vec();
    let own: SocketAddr = ADDRESS.parse().unwrap();
    let mut land = Host::connect(own, own, 1, 1, Options::LINUX);
    let land = land.poll_packet(world.now).unwrap().to_vec();
    for (packet, cause) in [
        (wrong_sum, DropCause::Checksum),
        (fragment, DropCause::Fragment),
        (datagram, DropCause::Protocol),
        (null, DropCause::Malformed),
        (xmas, DropCause::Malformed),
        (good[..30].to_vec(), DropCause::Malformed),
        (other, DropCause::Address),
        (land, DropCause::Source),
    ] {
        let before = world.tcp.counters().dropped[cause as usize];
        world.tcp.handle_packet(world.now, &packet.into());
        assert_eq!(world.tcp.counters().dropped[cause as usize], before + 1, "{cause:?}");
    }
    assert!(world.tcp.is_empty());
    // A port without a listener refuses.
    let closed: SocketAddr = "192.0.2.10:1".parse().unwrap();
    let local = world.hosts[row].flow.local;
    let mut host = Host::connect(local, closed, 1, 1, Options::LINUX);
    let syn = host.poll_packet(world.now).unwrap();
    world.tcp.handle_packet(world.now, &syn);
    let mut packet = Vec::new();
    assert!(world.tcp.poll_packet(world.now, &|_| 0, &mut packet));
    host.handle_packet(world.now, &packet);
    assert!(host.was_reset && host.is_closed());
}
