//! Meters whose data is acknowledged when it is durable: packets of the TUN device, and TCP in user
//! space.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use gridhaul_linux::Tun;
use gridhaul_scenario::relay::CollectorConfig;
use gridhaul_scenario::units::{Duration, Instant};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use serde_json::{Map, Value, json};

use super::token::CollectorToken;
use super::tun_device::attach;
use crate::collector::user_tcp::{ConnectionId, DropCause, UserTcp, UserTcpSettings};
use crate::collector::{Collector, MeterId};
use crate::log::Folder;
use crate::runtime::poll::Poll;
use crate::runtime::{RunError, random};

/// Packets that are read before other sockets are served.
const PACKETS: usize = 256;

/// Largest packet of IP.
const PACKET_MAX: usize = 65_535;

/// Packets that are sent have at most the size of Ethernet.
const MTU: u32 = 1_500;

/// Connections whose handshake is not complete: as `net.ipv4.tcp_max_syn_backlog` of Linux on
/// machines with much memory.
const HALF_OPEN_MAX: usize = 4_096;

/// Longest time for which an incomplete message waits for its next byte, before the part that has
/// arrived is recorded: what is not recorded is not acknowledged, and the meter, whose window may
/// be full, would retransmit it after 200 ms or more (RFC 6298, and `TCP_RTO_MIN` of Linux).
pub(super) const MESSAGE_WAIT: Duration = Duration::from_millis(50);

/// The TUN device, TCP, and the meters of its connections.
#[derive(Debug)]
pub(super) struct UserMeters {
    tun: Tun,
    pub tcp: UserTcp,
    /// Row of each listener of the state machine in the configuration.
    pub listeners: Vec<u16>,
    /// Meters by the row of their connection.
    meters: Vec<Option<MeterId>>,
    count: usize,
    is_readable: bool,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl UserMeters {
    /// Attaches to the device; `None` if no listener needs it.
    pub(super) fn open(
        keys: &CollectorConfig,
        poll: &Poll<CollectorToken>,
    ) -> Result<Option<Self>, RunError> {
        let listeners = keys.listener.values().enumerate();
        let durable = listeners.filter(|(_, listener)| listener.is_durable());
        let (rows, addresses): (Vec<u16>, Vec<SocketAddr>) = durable
            .filter_map(|(row, listener)| {
                Some((row as u16, listener.address.parse::<SocketAddr>().ok()?))
            })
            .unzip();
        let Some(name) = keys.tun.as_ref().filter(|_| !addresses.is_empty()) else {
            return Ok(None);
        };
        let tun = attach(name)?;
        poll.add(&tun, CollectorToken::Tun, EventFlags::IN)
            .map_err(gridhaul_linux::Error::call("watching the TUN device"))?;
        let settings = UserTcpSettings {
            listeners: addresses,
            mtu: MTU,
            receive_window: u32::try_from(keys.receive_buffer.get()).unwrap_or(u32::MAX),
            connections_max: 0,
            half_open_max: HALF_OPEN_MAX,
            receive_only: !keys.replies,
            secret: [random(), random()],
        };
        Ok(Some(Self {
            tun,
            tcp: UserTcp::new(settings),
            listeners: rows,
            meters: Vec::new(),
            count: 0,
            is_readable: false,
            input: vec![0; PACKET_MAX],
            output: Vec::new(),
        }))
    }

    /// The device may have packets.
    pub(super) const fn set_readable(&mut self) {
        self.is_readable = true;
    }

    /// When the state machine needs attention.
    pub(super) fn deadline(&self) -> Instant {
        if self.is_readable { Instant::ZERO } else { self.tcp.next_deadline() }
    }

    /// Handles timers and at most [`PACKETS`] packets.
    pub(super) fn receive(&mut self, now: Instant) -> io::Result<()> {
        if self.tcp.next_deadline() <= now {
            self.tcp.handle_timeout(now);
        }
        for _ in 0..PACKETS {
            if !self.is_readable {
                return Ok(());
            }
            match self.tun.read(&mut self.input)? {
                Some(length) => {
                    let packet = Bytes::copy_from_slice(&self.input[..length]);
                    self.tcp.handle_packet(now, &packet);
                }
                None => self.is_readable = false,
            }
        }
        Ok(())
    }

    /// Sends all packets.
    pub(super) fn send(&mut self, now: Instant, collector: &Collector<Folder>) -> io::Result<()> {
        let meters = &self.meters;
        let space = |id: ConnectionId| {
            let meter = meters.get(id.row as usize).copied().flatten();
            meter.map_or(u64::MAX, |meter| collector.storable(meter))
        };
        self.tcp.open_windows(&space);
        while self.tcp.poll_packet(now, &space, &mut self.output) {
            match self.tun.write(&self.output) {
                // While the device is down, packets are lost, as on a link: TCP retransmits, and
                // the other connections of the collector continue.
                Err(error) if Errno::from_io_error(&error) == Some(Errno::IO) => {}
                written => written?,
            }
        }
        Ok(())
    }

    pub(super) fn set_meter(&mut self, id: ConnectionId, meter: Option<MeterId>) {
        let row = id.row as usize;
        if self.meters.len() <= row {
            self.meters.resize(row + 1, None);
        }
        self.count += usize::from(meter.is_some());
        let before = std::mem::replace(&mut self.meters[row], meter);
        self.count -= usize::from(before.is_some());
    }

    pub(super) fn meter(&self, id: ConnectionId) -> Option<MeterId> {
        self.meters.get(id.row as usize).copied().flatten()
    }

    /// Number of meters.
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// Keys for the status of the relay.
    pub(super) fn status(&self) -> Map<String, Value> {
        let counters = self.tcp.counters();
        let dropped: Map<String, Value> = DropCause::ALL
            .iter()
            .map(|cause| (cause.name().to_owned(), counters.dropped[*cause as usize].into()))
            .collect();
        let delay = counters.confirmation_delay();
        let status = json!({
            "durable_meters_count": self.count,
            "durable_half_open_count": self.tcp.half_open(),
            "durable_half_open_evicted_count": counters.half_open_evicted,
            "durable_withheld_byte": self.tcp.withheld(),
            "durable_delay_s": delay.map(Duration::as_secs_f64),
            "durable_delay_max_s": counters.confirmation_delay_max().as_secs_f64(),
            "durable_retransmissions_count": counters.early_retransmissions,
            "durable_unknown_count": counters.unknown,
            "durable_timeouts_count": counters.timeouts,
            "durable_dropped_count": dropped,
        });
        match status {
            Value::Object(status) => status,
            _ => Map::new(),
        }
    }

    /// The meter of a connection has ended.
    pub(super) fn release(&mut self, id: ConnectionId) {
        self.set_meter(id, None);
        self.tcp.release(id);
    }
}
