//! Delivery to a TCP server while meters connect, are reset and replaced, and both relays and the server fail.

use std::collections::BTreeMap;

use gridhaul_scenario::units::{Duration, Instant};
use proptest::prelude::*;

use super::super::{Deliveries, MeterKey, ServerStreams, StreamId};
use super::world::{SHARDS, World, byte_at};
use crate::aggregate::Tier;
use crate::log::tests::disk::ModelDisk;

/// The end of a connection at the server.
#[derive(Debug)]
struct Connection {
    key: MeterKey,
    is_connected: bool,
    /// Position of the next byte in the meter's stream, and number of bytes that the server's TCP has not acknowledged.
    next: u64,
    unacknowledged: u64,
}

/// What the server has of a meter.
#[derive(Debug, Default)]
struct Received {
    length: u64,
}

/// The part of a head that delivers, in the order of the daemon, and its server.
struct Delivery {
    streams: ServerStreams,
    deliveries: Deliveries<ModelDisk>,
    connections: BTreeMap<StreamId, Connection>,
    received: BTreeMap<MeterKey, Received>,
    /// Position of the log in the file, with which a restart continues.
    saved: u64,
    now: Instant,
}

impl Delivery {
    fn new(world: &World) -> Self {
        let mut delivery = Self {
            streams: ServerStreams::new(0, 10_000),
            deliveries: Deliveries::new(world.head_log().0, world.head_log().1, &[], 0),
            connections: BTreeMap::new(),
            received: BTreeMap::new(),
            saved: 0,
            now: Instant::ZERO,
        };
        delivery.restart(world);
        delivery
    }

    fn restart(&mut self, world: &World) {
        let (disk, epoch, end) = world.head_log();
        // A power failure of the head loses only what was not durable, and is not delivered.
        assert!(self.saved <= end);
        self.deliveries = Deliveries::new(disk, epoch, &[], 0);
        while self.deliveries.position() < self.saved
            && self.deliveries.next(self.saved, |_| {}).unwrap()
        {}
        self.streams = ServerStreams::new(self.deliveries.position(), 10_000);
        for meter in self.deliveries.open_meters() {
            self.streams.restore(self.now, &meter);
        }
        self.connections.clear();
    }

    /// One turn of the delivering thread. `choices` decide what the network and the server do.
    fn turn(&mut self, world: &World, mut choices: u64) {
        self.now += Duration::from_secs(10);
        let mut choose = |probability: u64| {
            choices = choices.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (choices >> 33) % 100 < probability
        };
        let ids: Vec<StreamId> = self.connections.keys().copied().collect();
        for id in ids {
            self.observe(id, choose(10), choose(80));
        }
        let end = world.head_log().2;
        while !self.streams.is_full() {
            self.streams.begin_entry();
            let Self { deliveries, streams, now, .. } = self;
            let is_read =
                deliveries.next(end, |delivery| streams.handle_delivery(*now, &delivery)).unwrap();
            self.streams.end_entry(self.deliveries.position());
            if !is_read {
                break;
            }
        }
        while let Some((id, _)) = self.streams.poll_connect(self.now) {
            let (key, _) = self.streams.meter(id).unwrap();
            let connection = Connection { key, is_connected: false, next: 0, unacknowledged: 0 };
            self.connections.insert(id, connection);
        }
        while let Some(id) = self.streams.poll_ready() {
            self.transmit(id);
        }
        for (&id, connection) in &mut self.connections {
            if connection.is_connected && choose(70) {
                connection.unacknowledged = 0;
                self.streams.handle_acknowledged(id, 0);
            }
        }
        while let Some((id, _)) = self.streams.poll_closed() {
            self.connections.remove(&id);
        }
    }

    /// An event of a connection: it fails, or is established.
    fn observe(&mut self, id: StreamId, fails: bool, is_established: bool) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if fails {
            let is_connected = connection.is_connected;
            self.connections.remove(&id);
            if is_connected {
                self.streams.handle_failed(self.now, id);
            } else {
                self.streams.handle_unreachable(self.now, id);
            }
        } else if is_established && !connection.is_connected {
            connection.is_connected = true;
            connection.next = self.streams.handle_connected(id);
            self.transmit(id);
        }
    }

    /// The server reads what arrives at once.
    fn transmit(&mut self, id: StreamId) {
        let Some(connection) = self.connections.get_mut(&id).filter(|it| it.is_connected) else {
            return;
        };
        let received = self.received.entry(connection.key).or_default();
        assert!(connection.next <= received.length, "{:?}: a gap", connection.key);
        while !self.streams.unsent(id).is_empty() {
            let bytes = self.streams.unsent(id).to_vec();
            for byte in &bytes {
                assert_eq!(*byte, byte_at(connection.key.1, connection.next));
                connection.next += 1;
            }
            connection.unacknowledged += bytes.len() as u64;
            self.streams.handle_sent(id, bytes.len() as u64);
        }
        received.length = received.length.max(connection.next);
        if self.streams.poll_fin(id) {
            connection.unacknowledged += 1;
            self.streams.handle_server_fin(id);
        }
    }

    /// Everything that was confirmed to meters has arrived.
    fn check(&self, world: &World) {
        for (key, known) in &world.known {
            let received = self.received.get(key);
            let length = received.map_or(0, |it| it.length);
            assert!(length >= known.durable, "{key:?}: {known:?}, the server has {received:?}");
        }
        assert_eq!(self.streams.position(), world.head_log().2, "nothing keeps the log");
    }
}

#[derive(Debug, Clone)]
enum Action {
    Open,
    Send(usize, u64),
    Fin(usize),
    Reset(usize),
    /// Records reach the log of the head.
    Forward,
    Turn(u64),
    Save,
    KillCollector,
    KillHead,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => Just(Action::Open),
        8 => (0_usize..6, 1_u64..2_000).prop_map(|(meter, length)| Action::Send(meter, length)),
        4 => (0_usize..6).prop_map(Action::Fin),
        5 => (0_usize..6).prop_map(Action::Reset),
        4 => Just(Action::Forward),
        8 => any::<u64>().prop_map(Action::Turn),
        2 => Just(Action::Save),
        1 => Just(Action::KillCollector),
        1 => Just(Action::KillHead),
    ]
}

fn forward(world: &mut World) {
    for shard in 0..SHARDS {
        world.connect(shard);
    }
    for _ in 0..4 {
        world.commit_collector();
        for shard in 0..SHARDS {
            world.transfer_up(shard, 100_000);
            world.transfer_down(shard, 100_000);
        }
        world.commit_head();
    }
}

proptest! {
    /// Connections of meters that end without data free what later connections use, at every moment.
    #[test]
    fn every_durable_byte_reaches_the_server(
        actions in proptest::collection::vec(action(), 1..120),
        tier in prop_oneof![Just(Tier::Local), Just(Tier::Server)],
    ) {
        let mut world = World::new(tier);
        let mut delivery = Delivery::new(&world);
        for action in &actions {
            match *action {
                Action::Open => world.open_meter(),
                Action::Send(meter, length) => world.send(meter, length),
                Action::Fin(meter) => world.fin(meter),
                Action::Reset(meter) => world.reset(meter),
                Action::Forward => forward(&mut world),
                Action::Turn(choices) => delivery.turn(&world, choices),
                Action::Save => delivery.saved = delivery.streams.position(),
                Action::KillCollector => world.kill_collector(None),
                Action::KillHead => {
                    world.kill_head(None);
                    delivery.restart(&world);
                }
            }
        }
        world.settle();
        for choices in 0..60 {
            delivery.turn(&world, choices);
        }
        delivery.check(&world);
    }
}
