//! Hosts, the collector's TCP, a log, and links between them, in virtual time.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bytes::Bytes;
use gridhaul_scenario::units::{Duration, Instant};

use super::host::{Host, Options, byte};
use crate::collector::user_tcp::{
    ConnectionId, Flow, ReadResult, UserTcp, UserTcpEvent, UserTcpSettings,
};

/// Pseudo-random numbers, so that a failure can be repeated.
#[derive(Debug)]
pub(super) struct Random(pub u64);

impl Random {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Times between a shortest and a longest one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub shortest: Duration,
    pub longest: Duration,
}

impl Times {
    pub(super) const fn new(shortest_ms: u64, longest_ms: u64) -> Self {
        let (shortest, longest) =
            (Duration::from_millis(shortest_ms), Duration::from_millis(longest_ms));
        Self { shortest, longest }
    }
}

/// Behaviour of the links and of the disk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conditions {
    /// Lost and duplicated packets, of a thousand.
    pub lost: u64,
    pub duplicated: u64,
    /// Delays of packets: different ones reorder them.
    pub delays: Times,
    /// Times until data that was read is durable.
    pub commits: Times,
    /// Bytes for which the log has space, for each connection.
    pub space: u64,
}

impl Conditions {
    pub(super) const GOOD: Self = Self {
        lost: 0,
        duplicated: 0,
        delays: Times::new(10, 10),
        commits: Times::new(5, 5),
        space: u64::MAX,
    };
}

pub(super) const ADDRESS: &str = "192.0.2.10:4059";

/// A connection of the collector.
#[derive(Debug)]
struct Meter {
    flow: Flow,
    /// Bytes that were read.
    read: u64,
    has_ended: bool,
}

/// Data that becomes durable at a time: of a connection, up to a position, with its end or not.
#[derive(Debug)]
struct Commit {
    at: Instant,
    connection: ConnectionId,
    bytes: Vec<u8>,
    end: bool,
}

pub(super) struct World {
    pub now: Instant,
    pub conditions: Conditions,
    pub random: Random,
    pub tcp: UserTcp,
    pub hosts: Vec<Host>,
    meters: BTreeMap<ConnectionId, Meter>,
    commits: Vec<Commit>,
    /// Durable bytes of each flow. They survive a kill.
    pub log: BTreeMap<Flow, Vec<u8>>,
    /// Flows whose end is durable.
    pub ended: Vec<Flow>,
    /// Packets in transit: to the collector, or to the host with this row.
    transit: BTreeMap<(Instant, u64), (Option<usize>, Bytes)>,
    next_packet: u64,
    next_port: u16,
    pub to_hosts: u64,
}

pub(super) fn settings(secret: u64) -> UserTcpSettings {
    UserTcpSettings {
        listeners: vec![ADDRESS.parse().unwrap()],
        mtu: 1_500,
        receive_window: 16_000,
        connections_max: 64,
        half_open_max: 16,
        receive_only: false,
        secret: [secret, 1],
    }
}

impl World {
    pub(super) fn new(seed: u64, conditions: Conditions) -> Self {
        Self {
            now: Instant::from_nanos(1_000_000_000),
            conditions,
            random: Random(seed),
            tcp: UserTcp::new(settings(seed)),
            hosts: Vec::new(),
            meters: BTreeMap::new(),
            commits: Vec::new(),
            log: BTreeMap::new(),
            ended: Vec::new(),
            transit: BTreeMap::new(),
            next_packet: 0,
            next_port: 1_024,
            to_hosts: 0,
        }
    }

    /// A host that connects, and returns its row.
    pub(super) fn connect(&mut self, options: Options) -> usize {
        self.hosts.push(self.host(options));
        self.next_port += 1;
        self.hosts.len() - 1
    }

    /// Another connection of a host, whose former one has ended.
    pub(super) fn reconnect(&mut self, row: usize, options: Options) {
        self.hosts[row] = self.host(options);
        self.next_port = self.next_port.checked_add(1).unwrap_or(1_024);
    }

    fn host(&self, options: Options) -> Host {
        let local = SocketAddr::from(([192, 0, 2, 99], self.next_port));
        let stream = u64::from(self.next_port);
        let isn = u32::from(self.next_port).wrapping_mul(77_777);
        Host::connect(local, ADDRESS.parse().unwrap(), stream, isn, options)
    }

    /// Kills the collector: only the log remains.
    pub(super) fn kill(&mut self) {
        let secret = self.random.below(u64::from(u32::MAX));
        self.tcp = UserTcp::new(settings(secret));
        self.meters.clear();
        self.commits.clear();
    }

    /// Open connections of the collector.
    pub(super) fn connections(&self) -> Vec<ConnectionId> {
        self.meters.keys().copied().collect()
    }

    /// Runs until a time.
    pub(super) fn run_until(&mut self, end: Instant) {
        loop {
            self.exchange();
            let next = self.next_event();
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            self.deliver();
            self.commit();
            for host in &mut self.hosts {
                if host.tcp.next_deadline() <= self.now {
                    host.tcp.handle_timeout(self.now);
                }
            }
            if self.tcp.next_deadline() <= self.now {
                self.tcp.handle_timeout(self.now);
            }
        }
    }

    pub(super) fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    fn next_event(&self) -> Instant {
        let hosts = self.hosts.iter().map(|host| host.tcp.next_deadline());
        let commits = self.commits.iter().map(|commit| commit.at);
        let packet = self.transit.first_key_value().map_or(Instant::NEVER, |((at, _), _)| *at);
        let first = hosts.chain(commits).min().unwrap_or(Instant::NEVER);
        first.min(packet).min(self.tcp.next_deadline()).max(self.now)
    }

    /// Everything that happens at one time.
    fn exchange(&mut self) {
        self.handle_events();
        let mut packet = Vec::new();
        let space = self.conditions.space;
        let meters = &self.meters;
        let limit =
            |id: ConnectionId| space.saturating_sub(meters.get(&id).map_or(0, |meter| meter.read));
        self.tcp.open_windows(&limit);
        let mut sent = Vec::new();
        while self.tcp.poll_packet(self.now, &limit, &mut packet) {
            sent.push(Bytes::copy_from_slice(&packet));
        }
        for packet in sent {
            self.to_hosts += 1;
            let port = u16::from_be_bytes([packet[22], packet[23]]);
            let row = self.hosts.iter().position(|host| host.flow.local.port() == port);
            if row.is_some() {
                self.send(row, &packet);
            }
        }
        for row in 0..self.hosts.len() {
            while let Some(packet) = self.hosts[row].poll_packet(self.now) {
                self.send(None, &packet);
            }
        }
    }

    fn send(&mut self, to: Option<usize>, packet: &Bytes) {
        let Conditions { lost, duplicated, delays, .. } = self.conditions;
        if self.random.below(1_000) < lost {
            return;
        }
        let copies = 1 + u64::from(self.random.below(1_000) < duplicated);
        for _ in 0..copies {
            let at = self.now + self.between(delays);
            self.transit.insert((at, self.next_packet), (to, packet.clone()));
            self.next_packet += 1;
        }
    }

    fn between(&mut self, times: Times) -> Duration {
        let range = times.longest.as_nanos() - times.shortest.as_nanos();
        times.shortest + Duration::from_nanos(self.random.below(range.max(1)))
    }

    fn deliver(&mut self) {
        while let Some(entry) = self.transit.first_entry().filter(|entry| entry.key().0 <= self.now)
        {
            let (to, packet) = entry.remove();
            match to {
                None => self.tcp.handle_packet(self.now, &packet),
                Some(row) => {
                    let port = u16::from_be_bytes([packet[22], packet[23]]);
                    let host = &mut self.hosts[row];
                    if host.flow.local.port() == port {
                        host.handle_packet(self.now, &packet);
                        self.check(row);
                    }
                }
            }
        }
    }

    /// Whatever a host knows as acknowledged is in the log.
    pub(super) fn check(&self, row: usize) {
        let host = &self.hosts[row];
        let flow = Flow { local: host.flow.peer, peer: host.flow.local };
        let stored = self.log.get(&flow).map_or(&[][..], Vec::as_slice);
        let acknowledged = host.acknowledged();
        assert!(
            acknowledged <= stored.len() as u64,
            "{acknowledged} bytes are acknowledged, {} stored",
            stored.len()
        );
        assert!(stored.len() as u64 <= host.tcp.written());
    }

    /// The bytes in the log are those that the hosts have sent.
    pub(super) fn check_log(&self) {
        for (flow, bytes) in &self.log {
            let stream = u64::from(flow.peer.port());
            let expected = (0..bytes.len() as u64).map(|at| byte(stream, at));
            assert!(expected.eq(bytes.iter().copied()), "stream {stream}");
        }
    }

    fn commit(&mut self) {
        let now = self.now;
        let (done, rest): (Vec<_>, Vec<_>) =
            self.commits.drain(..).partition(|commit| commit.at <= now);
        self.commits = rest;
        for Commit { connection, bytes, end, .. } in done {
            let Some(meter) = self.meters.get(&connection) else { continue };
            let flow = meter.flow;
            let log = self.log.entry(flow).or_default();
            log.extend(bytes);
            self.tcp.confirm(connection, log.len() as u64);
            if end {
                self.ended.push(flow);
                self.tcp.confirm_end(connection);
                self.tcp.finish(connection);
                self.tcp.release(connection);
                self.meters.remove(&connection);
            }
        }
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.tcp.poll_event() {
            match event {
                UserTcpEvent::Opened { connection, flow, .. } => {
                    assert_eq!(flow.local, ADDRESS.parse().unwrap());
                    let meter = Meter { flow, read: 0, has_ended: false };
                    self.meters.insert(connection, meter);
                    self.read(connection);
                }
                UserTcpEvent::Readable(connection) => self.read(connection),
                UserTcpEvent::Writable(_) => {}
            }
        }
        // Space that was missing before.
        let waiting: Vec<ConnectionId> = self.meters.keys().copied().collect();
        waiting.into_iter().for_each(|connection| self.read(connection));
    }

    /// Reads what the log has space for; it becomes durable later.
    fn read(&mut self, connection: ConnectionId) {
        let commits = self.conditions.commits;
        loop {
            let Some(meter) = self.meters.get_mut(&connection) else { return };
            let space = self.conditions.space.saturating_sub(meter.read).min(2_000) as usize;
            let mut buffer = vec![0; space];
            let (length, end) = match self.tcp.read(connection, &mut buffer) {
                ReadResult::Data(length) => (length, false),
                ReadResult::End if !meter.has_ended => (0, true),
                ReadResult::Nothing | ReadResult::End => return,
                ReadResult::Failed => {
                    self.tcp.release(connection);
                    self.meters.remove(&connection);
                    return;
                }
            };
            meter.read += length as u64;
            meter.has_ended |= end;
            buffer.truncate(length);
            // Data of one connection becomes durable in order.
            let last = self.commits.iter().filter(|commit| commit.connection == connection);
            let earliest = last.map(|commit| commit.at).max().unwrap_or(Instant::ZERO);
            let at = (self.now + self.between(commits)).max(earliest);
            self.commits.push(Commit { at, connection, bytes: buffer, end });
        }
    }
}
