//! Limits of time, memory and connections, and what is not served.

use gridhaul_core::tcp::Flags;
use gridhaul_core::wire::{EthernetFrame, IpPacket, TcpHeader, TcpOptions, Transport};
use gridhaul_scenario::units::{Bytes, Duration, Instant};

use super::cases::MODES;
use super::frames::{data, engine, frame, on_link, open, packet_too_big};
use super::host::Plan;
use super::world::{World, rule, settings};
use crate::packet::{
    BridgePort, EndCause, Engine, Frame, FrameDropCause, Handling, UntouchedCause,
};

const LIMIT: Duration = Duration::from_secs(300);

#[test]
fn bytes_at_risk_of_an_idle_connection_are_reset_and_counted() {
    for mode in ["reflect", "spoof", "split"] {
        let mut settings = settings(&rule(mode));
        settings.idle_timeout = Duration::from_secs(20);
        let mut world = World::new(settings);
        let client = Plan { closes: false, ..Plan::new(true, 40_000) };
        let server = Plan { closes: false, ..Plan::new(false, 0) };
        world.connect(BridgePort::First, false, [client, server]);
        // The second link carries handshakes and acknowledgements only.
        world.link_mtus[1] = 100;
        world.run(Instant::ZERO + Duration::from_secs(10));
        let at_risk = world.engine.totals().at_risk;
        assert!(at_risk > 30_000, "{mode}: {at_risk}");
        world.run(Instant::ZERO + Duration::from_secs(60));
        assert_eq!(world.engine.counters().ended(EndCause::Idle), 1, "{mode}");
        let totals = world.engine.totals();
        assert_eq!((totals.lost, totals.at_risk, totals.memory), (at_risk, 0, 0), "{mode}");
        assert!(world.hosts.iter().all(|host| host.was_reset), "{mode}");
    }
}

#[test]
fn an_idle_connection_without_bytes_at_risk_continues_without_the_proxy() {
    for mode in ["reflect", "spoof", "snoop", "ack"] {
        let mut settings = settings(&rule(mode));
        settings.idle_timeout = Duration::from_secs(20);
        let mut world = World::new(settings);
        let plan = |opens| Plan { closes: false, ..Plan::new(opens, 40_000) };
        world.connect(BridgePort::First, false, [plan(true), plan(false)]);
        world.run(Instant::ZERO + Duration::from_secs(60));
        assert_eq!(world.engine.totals().connections, 0, "{mode}");
        for host in &mut world.hosts {
            host.plan.sends += 10_000;
            host.connection.write(10_000);
            host.connection.close();
        }
        world.run_to_end(LIMIT);
        world.assert_complete();
    }
}

#[test]
fn probes_that_the_proxy_answers_do_not_keep_an_idle_connection() {
    for (mode, seq, is_kept) in
        [("reflect", 105, false), ("spoof", 105, false), ("reflect", 106, true), ("ack", 105, true)]
    {
        let mut settings = settings(&rule(mode));
        settings.idle_timeout = Duration::from_secs(20);
        let mut engine = Engine::new(settings, || 7);
        open(&mut engine);
        let first = frame(true, data(101), b"first");
        engine.handle_frame(Instant::ZERO, BridgePort::First, &Frame::new(&first));
        let acknowledgement = TcpHeader { ack: 106, ..data(501) };
        let second = frame(false, acknowledgement, &[]);
        engine.handle_frame(Instant::ZERO, BridgePort::Second, &Frame::new(&second));
        for step in 1..7 {
            let now = Instant::ZERO + Duration::from_secs(5 * step);
            let probe = frame(true, data(seq), &[]);
            engine.handle_frame(now, BridgePort::First, &Frame::new(&probe));
            engine.handle_timeout(now);
            engine.outgoing().clear();
        }
        let ended = engine.counters().ended(EndCause::Idle);
        assert_eq!(ended, u64::from(!is_kept), "{mode}, {seq}");
    }
}

#[test]
fn a_connection_that_is_slower_with_thinned_acknowledgements_is_left_alone() {
    // A window of seven segments waits for each acknowledgement: with a delay of 100 ms, the
    // goodput is a fifth.
    for (keys, is_compared) in [("", true), ("compare_goodput = false\n", false)] {
        let rule = format!("{}max_ack_delay = \"100 ms\"\n{keys}", rule("ack"));
        let mut world = World::new(settings(&rule));
        let plan = |opens, sends| Plan { window: 10_000, ..Plan::new(opens, sends) };
        world.connect(BridgePort::Second, false, [plan(true, 10_000_000), plan(false, 0)]);
        world.run(Instant::ZERO + Duration::from_secs(60));
        let ended = world.engine.counters().ended(EndCause::Goodput);
        assert_eq!(ended, u64::from(is_compared));
        assert_eq!(world.hosts.iter().all(|host| host.is_done()), is_compared, "complete");
        world.run_to_end(LIMIT);
        world.assert_complete();
    }
}

#[test]
fn memory_stays_within_its_limit() {
    for mode in ["reflect", "spoof", "split"] {
        let keys = format!("memory = \"150 kB\"\n{}", rule(mode));
        let mut world = World::new(settings(&keys));
        for _ in 0..6 {
            world.connect(
                BridgePort::First,
                false,
                [Plan::new(true, 200_000), Plan::new(false, 0)],
            );
        }
        world.faults.loss = 20;
        world.run_to_end(LIMIT);
        world.assert_complete();
        assert!(world.memory_max <= 150_000 + 1_500, "{mode}: {}", world.memory_max);
    }
}

#[test]
fn further_connections_pass_when_the_table_is_full() {
    let mut world = World::new(settings(&format!("connections = 2\n{}", rule("reflect"))));
    for _ in 0..5 {
        world.connect(
            BridgePort::First,
            false,
            [Plan::new(true, 50_000), Plan::new(false, 50_000)],
        );
    }
    world.run_to_end(LIMIT);
    world.assert_complete();
    assert_eq!(world.engine.counters().untouched(UntouchedCause::TableFull), 3);
}

#[test]
fn a_connection_that_passes_is_counted_once_although_its_syn_is_retransmitted() {
    let mut engine = engine("none");
    let syn = |seq| TcpHeader { seq, flags: Flags::SYN, window: 60_000, ..TcpHeader::default() };
    // The last one is another connection between the same ports.
    for (seq, count) in [(100, 1), (100, 1), (100, 1), (9_000, 2)] {
        let bytes = frame(true, syn(seq), &[]);
        let handling = engine.handle_frame(Instant::ZERO, BridgePort::First, &Frame::new(&bytes));
        assert_eq!(handling, Handling::Forward);
        assert_eq!(engine.counters().untouched(UntouchedCause::ModeNone), count);
    }
}

#[test]
fn malformed_tcp_is_forwarded_by_the_relay_and_not_left_to_the_kernel() {
    let mut engine = engine("reflect");
    open(&mut engine);
    let whole = frame(true, data(101), b"data");
    let (data_offset, protocol) = (14 + 20 + 12, 14 + 9);
    let mut offset_below_5 = whole.clone();
    offset_below_5[data_offset] = 4 << 4;
    let cut = whole[..whole.len() - 1].to_vec();
    let mut other = cut.clone();
    other[protocol] = 17;
    for (bytes, expected) in [
        (offset_below_5, Handling::Forward),
        (cut, Handling::Forward),
        (other, Handling::Pass),
        (whole, Handling::Handled),
    ] {
        let handling = engine.handle_frame(Instant::ZERO, BridgePort::First, &Frame::new(&bytes));
        assert_eq!(handling, expected, "{bytes:?}");
    }
}

#[test]
fn a_handshake_that_is_not_completed_is_forgotten() {
    let mut world = World::new(settings(&rule("spoof")));
    world.connect(BridgePort::First, false, [Plan::new(true, 1), Plan::new(false, 1)]);
    world.hosts.truncate(1);
    world.run(Instant::ZERO + Duration::from_secs(10));
    assert_eq!(world.engine.totals().connections, 1);
    world.hosts.clear();
    world.run(Instant::ZERO + Duration::from_secs(200));
    assert_eq!(world.engine.totals().connections, 0);
    assert_eq!(world.engine.counters().ended(EndCause::Handshake), 1);
}

#[test]
fn corrupt_segments_of_a_proxy_are_dropped_and_counted() {
    for mode in MODES {
        let mut world = World::new(settings(&rule(mode))).with_seed(5);
        world.faults.corruption = 20;
        world.connect(BridgePort::First, false, [Plan::new(true, 200_000), Plan::new(false, 0)]);
        world.run_to_end(LIMIT);
        world.assert_complete();
        assert!(world.engine.counters().dropped(FrameDropCause::Checksum) > 0, "{mode}");
    }
}

#[test]
fn a_stop_resets_what_is_at_risk_and_nothing_else() {
    for mode in ["reflect", "spoof"] {
        let mut world = World::new(settings(&rule(mode)));
        let plan = |opens, sends| Plan { closes: false, ..Plan::new(opens, sends) };
        // The first connection is idle, the second has bytes at risk.
        world.connect(BridgePort::First, false, [plan(true, 5_000), plan(false, 5_000)]);
        world.run(Instant::ZERO + Duration::from_secs(5));
        world.connect(BridgePort::First, false, [plan(true, 50_000), plan(false, 0)]);
        world.run(world.now + Duration::from_millis(33));
        let at_risk = world.engine.totals().at_risk;
        assert!(at_risk > 0, "{mode}");
        world.engine.stop(world.now);
        world.run(world.now + Duration::from_secs(1));
        let was_reset: Vec<_> = world.hosts.iter().map(|host| host.was_reset).collect();
        assert_eq!(was_reset, [false, false, true, true], "{mode}");
        assert_eq!(world.engine.totals().lost, at_risk);
    }
}

#[test]
fn connections_at_risk_are_reported_until_the_risk_is_over() {
    for mode in ["reflect", "spoof", "split"] {
        let mut world = World::new(settings(&rule(mode)));
        let server = Plan { closes: false, ..Plan::new(false, 0) };
        let client = Plan { closes: false, ..Plan::new(true, 20_000) };
        world.connect(BridgePort::First, false, [client, server]);
        world.link_mtus[1] = 100;
        world.run(Instant::ZERO + Duration::from_secs(1));
        let reported = world.engine.take_newly_at_risk();
        assert_eq!(reported.len(), 1, "{mode}");
        assert_eq!(reported[0].hosts, [world.hosts[0].own, world.hosts[1].own]);
        assert_eq!(reported[0].hardware, [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]]);
        assert!(world.engine.take_newly_at_risk().is_empty());
        assert!(world.engine.take_no_longer_at_risk().is_empty(), "{mode}");
        world.link_mtus[1] = 1_500;
        world.run(Instant::ZERO + Duration::from_secs(20));
        for host in &mut world.hosts {
            host.connection.close();
        }
        world.run(Instant::ZERO + Duration::from_secs(30));
        assert_eq!(world.engine.take_no_longer_at_risk(), reported, "{mode}");
        world.engine.forget();
        assert_eq!((world.engine.totals().connections, world.engine.totals().lost), (0, 0));
    }
}

#[test]
fn a_drained_bridge_serves_no_new_connections() {
    let mut world = World::new(settings(&rule("reflect")));
    let plan = |opens| Plan { closes: false, ..Plan::new(opens, 50_000) };
    world.connect(BridgePort::First, false, [plan(true), plan(false)]);
    world.run(Instant::ZERO + Duration::from_secs(5));
    world.engine.drain(world.now);
    assert!(world.engine.is_drained());
    world.connect(BridgePort::First, false, [plan(true), plan(false)]);
    world.run(world.now + Duration::from_secs(5));
    assert_eq!(world.engine.counters().untouched(UntouchedCause::Draining), 1);
    assert!(world.hosts.iter().all(|host| host.received() == 50_000 && !host.was_reset));
}

#[test]
fn a_narrower_path_is_learned_from_the_report_of_a_router() {
    // Only the sender can make the segments smaller that `spoof` forwards at once; its copies are
    // divided.
    for mode in ["reflect", "spoof", "split"] {
        let mut world = World::new(settings(&rule(mode)));
        world.connect(BridgePort::First, false, [Plan::new(true, 200_000), Plan::new(false, 0)]);
        world.link_mtus[1] = 800;
        world.reports_mtu = true;
        world.run_to_end(LIMIT);
        world.assert_complete();
        assert_eq!(world.engine.counters().path_mtu_lowered, 1, "{mode}");
    }
}

#[test]
fn each_packet_of_a_divided_retransmission_has_timestamps() {
    let mut engine = engine("snoop");
    open(&mut engine);
    let timestamps = Some((1, 2));
    let options = TcpOptions { timestamps, ..TcpOptions::default() };
    let sent = frame(true, TcpHeader { options, ..data(101) }, &[7; 1_000]);
    let report = packet_too_big(&sent, 576);
    for (from, bytes) in [(BridgePort::First, sent), (BridgePort::Second, report)] {
        engine.handle_frame(Instant::ZERO, from, &Frame::new(&bytes));
    }
    engine.outgoing().clear();
    // The copy is retransmitted when its timer expires.
    let due = engine.next_deadline();
    engine.handle_timeout(due);
    let mut lengths = Vec::new();
    for bytes in engine.outgoing().over(BridgePort::Second).iter().flat_map(on_link) {
        let ethernet = EthernetFrame::parse(&bytes).unwrap();
        let ip = IpPacket::parse(ethernet.payload).unwrap();
        let Ok(Transport::Tcp(tcp)) = ip.transport() else { panic!("no TCP") };
        assert_eq!(tcp.header().unwrap().options.timestamps, timestamps, "{lengths:?}");
        lengths.push(tcp.payload().len());
    }
    assert_eq!(lengths, [524, 476]);
}

#[test]
fn settings_are_replaced_without_ending_connections() {
    let mut world = World::new(settings(&rule("reflect")));
    let plan = |opens| Plan { closes: false, ..Plan::new(opens, 50_000) };
    world.connect(BridgePort::First, false, [plan(true), plan(false)]);
    world.run(Instant::ZERO + Duration::from_millis(100));
    let mut next = settings(&rule("none"));
    next.memory = Bytes::new(1_000_000);
    world.engine.set_settings(next);
    world.run(Instant::ZERO + Duration::from_secs(5));
    assert_eq!(world.engine.totals().connections, 1);
    assert!(world.hosts.iter().all(|host| host.received() == 50_000));
    let rules = |world: &World| -> Vec<_> {
        world.engine.connections(world.now).map(|status| status.rule).collect()
    };
    assert_eq!(rules(&world), [None], "the rule is not in use any more");
    world.engine.set_settings(settings(&rule("spoof")));
    world.engine.set_settings(settings(&rule("spoof")));
    world.connect(BridgePort::First, false, [plan(true), plan(false)]);
    world.engine.set_settings(settings(&rule("spoof")));
    world.run(world.now + Duration::from_secs(5));
    assert_eq!(rules(&world), [None, Some(0)], "equal rules stay in use");
}
