//! Delivery to a TCP server while meters connect, are reset and replaced, and both relays and the
//! server fail.

use std::collections::{BTreeMap, VecDeque};

use gridhaul_scenario::relay::Confirmation;
use gridhaul_scenario::units::{Duration, Instant};
use proptest::prelude::*;

use super::super::servers::READ_DELAY;
use super::super::{Deliveries, Item, MeterKey, ServerStreams, StreamId, items};
use super::world::{SHARDS, World, byte_at};
use crate::collector::Tier;
use crate::log::LogReader;
use crate::log::tests::disk::ModelDisk;

/// The end of a connection at the server.
#[derive(Debug)]
struct Connection {
    key: MeterKey,
    is_connected: bool,
    /// Bytes that were sent and not acknowledged, and bytes that were acknowledged and not read by
    /// the server's program.
    in_transit: VecDeque<u8>,
    buffer: VecDeque<u8>,
    /// Position in the meter's stream of the next byte to send, and to read.
    next: u64,
    read: u64,
    is_fin_sent: bool,
    is_fin_acknowledged: bool,
    /// The program has closed its direction before FIN of the meter, and reads on.
    is_closed_early: bool,
    unread_since: Option<Instant>,
}

/// Data of a meter at the program of the server.
#[derive(Debug, Default)]
struct Received {
    length: u64,
    is_complete: bool,
}

/// The part of a head that delivers, in the order of the daemon, and its server.
struct Delivery {
    streams: ServerStreams,
    deliveries: Deliveries<ModelDisk>,
    replay: Option<LogReader<ModelDisk>>,
    connections: BTreeMap<StreamId, Connection>,
    received: BTreeMap<MeterKey, Received>,
    /// Position of the log in the file, with which a restart continues.
    saved: u64,
    now: Instant,
}

/// Bytes in memory: little, so that the log is read again often.
const MEMORY: u64 = 4_000;

fn streams(position: u64) -> ServerStreams {
    ServerStreams::new(Confirmation::Close, position, MEMORY)
}

impl Delivery {
    fn new(world: &World) -> Self {
        let mut delivery = Self {
            streams: streams(0),
            deliveries: Deliveries::new(world.head_log().0, world.head_log().1, &[], 0),
            replay: None,
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
        // A failure of the head loses only what was not durable, and is not delivered.
        assert!(self.saved <= end);
        self.deliveries = Deliveries::new(disk, epoch, &[], 0);
        while self.deliveries.position() < self.saved
            && self.deliveries.next(self.saved, |_| {}).unwrap()
        {}
        self.streams = streams(self.deliveries.position());
        for meter in self.deliveries.open_meters() {
            self.streams.restore(self.now, &meter);
        }
        self.replay = None;
        self.connections.clear();
    }

    /// One turn of the delivering thread. `choices` decide what the network and the server do.
    fn turn(&mut self, world: &World, step: Duration, failures: u64, mut choices: u64) {
        self.now += step;
        let mut choose = |percent: u64| {
            choices = choices.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (choices >> 33) % 100 < percent
        };
        let ids: Vec<StreamId> = self.connections.keys().copied().collect();
        for id in ids {
            self.observe(id, choose(failures), choose(80));
            if choose(60) || self.is_read_late(id) {
                self.read(id);
            }
            if choose(failures / 2) {
                self.close_early(id);
            }
        }
        self.streams.handle_timeout(self.now);
        self.read_log(world);
        while let Some((id, _)) = self.streams.poll_connect(self.now) {
            let (key, _) = self.streams.meter(id).unwrap();
            self.connections.insert(id, Connection::new(key));
        }
        while let Some(id) = self.streams.poll_ready() {
            self.transmit(id);
        }
        let ids: Vec<StreamId> = self.connections.keys().copied().collect();
        for id in ids {
            if choose(70) {
                self.acknowledge(id);
            }
        }
        while let Some((id, _)) = self.streams.poll_closed() {
            self.end(id);
        }
    }

    /// The head has closed the connection.
    fn end(&mut self, id: StreamId) {
        match self.connections.get(&id) {
            Some(ended) if ended.is_closed_early && ended.is_fin_acknowledged => {
                // The death of the program would not be seen any more.
                assert!(ended.buffer.is_empty(), "{:?}: nobody has read the end", ended.key);
                self.received.entry(ended.key).or_default().is_complete = true;
            }
            // What is in the receive buffer is still read after RST.
            _ => self.read(id),
        }
        self.connections.remove(&id);
    }

    fn read_log(&mut self, world: &World) {
        let (disk, epoch, end) = world.head_log();
        while self.streams.needs_replay() && !self.streams.is_full() {
            let reader = self.replay.get_or_insert_with(|| {
                LogReader::new(disk.clone(), epoch, self.streams.begin_replay().unwrap())
            });
            let Some(entry) = reader.next(self.deliveries.position()).unwrap() else {
                self.streams.end_replay(self.now);
                self.replay = None;
                continue;
            };
            for item in items(entry.payload).map_while(Result::ok) {
                let Item::Batch(batch) = item else { continue };
                for (_, record) in batch.records().map_while(Result::ok) {
                    self.streams.handle_replayed(batch.epoch, &record);
                }
            }
        }
        if !self.streams.needs_replay() {
            self.replay = None;
        }
        while !self.streams.is_full() {
            let Self { deliveries, streams, now, .. } = self;
            let is_read =
                deliveries.next(end, |delivery| streams.handle_delivery(*now, &delivery)).unwrap();
            streams.end_entry(deliveries.position());
            if !is_read {
                break;
            }
        }
        assert_eq!(self.streams.poll_incomplete(), None, "no log is damaged");
    }

    /// An event of a connection: it fails, with everything that the server has not read, or it is
    /// established.
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
            connection.read = connection.next;
            self.transmit(id);
        }
    }

    fn transmit(&mut self, id: StreamId) {
        let Some(connection) =
            self.connections.get_mut(&id).filter(|connection| connection.is_connected)
        else {
            return;
        };
        while !self.streams.unsent(id).is_empty() {
            let bytes = self.streams.unsent(id).to_vec();
            for byte in &bytes {
                assert_eq!(*byte, byte_at(connection.key.1, connection.next));
                connection.next += 1;
            }
            self.streams.handle_sent(id, bytes.len() as u64);
            connection.in_transit.extend(bytes);
        }
        connection.is_fin_sent |= self.streams.poll_fin(id);
    }

    /// The server's TCP acknowledges everything.
    fn acknowledge(&mut self, id: StreamId) {
        let Some(connection) =
            self.connections.get_mut(&id).filter(|connection| connection.is_connected)
        else {
            return;
        };
        if !connection.in_transit.is_empty() {
            connection.unread_since.get_or_insert(self.now);
        }
        connection.buffer.append(&mut connection.in_transit);
        connection.is_fin_acknowledged |= connection.is_fin_sent;
        self.streams.handle_acknowledged(self.now, id, 0);
    }

    /// The program of the server reads its buffer, and closes the connection after FIN.
    fn read(&mut self, id: StreamId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let received = self.received.entry(connection.key).or_default();
        let has_data = !connection.buffer.is_empty();
        assert!(!has_data || connection.read <= received.length, "{:?}: a gap", connection.key);
        connection.read += connection.buffer.drain(..).len() as u64;
        received.length = received.length.max(connection.read);
        connection.unread_since = None;
        if connection.is_fin_acknowledged {
            received.is_complete = true;
            self.streams.handle_server_fin(self.now, id);
        }
    }

    /// Whether the program of the server, which is alive, has had data for as long as the head
    /// waits.
    fn is_read_late(&self, id: StreamId) -> bool {
        let since = self.connections.get(&id).and_then(|connection| connection.unread_since);
        since.is_some_and(|since| self.now >= since + READ_DELAY)
    }

    /// The program of the server has read everything, and closes its direction before FIN.
    fn close_early(&mut self, id: StreamId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.is_connected && !connection.is_fin_sent && connection.buffer.is_empty() {
            connection.is_closed_early = true;
            self.streams.handle_server_fin(self.now, id);
        }
    }

    /// Everything that was confirmed to meters has arrived.
    fn check(&self, world: &World) {
        for (key, known) in &world.known {
            let received = self.received.get(key);
            let length = received.map_or(0, |stream| stream.length);
            assert!(length >= known.durable, "{key:?}: {known:?}, the server has {received:?}");
            let is_complete = received.is_some_and(|stream| stream.is_complete);
            assert!(!known.is_closed || is_complete, "{key:?}: {known:?}");
        }
        assert_eq!(self.streams.position(), world.head_log().2, "nothing keeps the log");
        assert_eq!(self.streams.unconfirmed().bytes, self.streams.unconfirmed().at_risk);
    }
}

impl Connection {
    const fn new(key: MeterKey) -> Self {
        Self {
            key,
            is_connected: false,
            in_transit: VecDeque::new(),
            buffer: VecDeque::new(),
            next: 0,
            read: 0,
            is_fin_sent: false,
            is_fin_acknowledged: false,
            is_closed_early: false,
            unread_since: None,
        }
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
    /// All connections fail, and what the server's program has not read is lost.
    KillServer,
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
        1 => Just(Action::KillServer),
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
    // A schedule has about 200 turns.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 4,
        ..ProptestConfig::default()
    })]

    /// Connections of meters that end without data free what later connections use, at every
    /// moment.
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
                Action::Turn(choices) => {
                    let step = Duration::from_millis(100 + choices % 900);
                    delivery.turn(&world, step, 10, choices);
                }
                Action::KillServer => {
                    delivery.turn(&world, Duration::from_millis(100), 100, 0);
                }
                Action::Save => delivery.saved = delivery.streams.position(),
                Action::KillCollector => world.kill_collector(None),
                Action::KillHead => {
                    world.kill_head(None);
                    delivery.restart(&world);
                }
            }
        }
        world.deliver_all();
        for choices in 0..60 {
            let failures = 60_u64.saturating_sub(choices * 2);
            delivery.turn(&world, Duration::from_secs(10), failures, choices);
        }
        delivery.check(&world);
    }
}
