//! The collector's thread for all connections.

mod arrivals;
mod drain;
mod framing;
mod idle_gaps;
mod log_groups;
mod meter_socket;
mod meter_stream;
mod meters;
mod reload;
mod setup;
mod sources;
mod status;
mod token;
mod tun_device;
mod upgrade;
mod upstream;
mod user_events;
mod user_meters;
mod wall_clock;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use gridhaul_linux::Clock;
use gridhaul_protocols::framing::MessageFraming;
use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::relay::{CollectorConfig, MeterListener, WhenFull};
use gridhaul_scenario::units::{Duration, Instant};
use rustls::ServerConfig;
use serde_json::Value;
use socket2::Socket;

use self::meter_socket::MeterSocket;
use self::token::CollectorToken;
use self::upstream::Upstream;
use self::wall_clock::WallClock;
use super::{Collector, MeterId};
use crate::log::Folder;
use crate::protocol::ResetCause;
use crate::runtime::RunError;
use crate::runtime::committer::Committer;
use crate::runtime::event_loop;
use crate::runtime::event_loop::End;
use crate::runtime::event_loop::{Drain, EventLoop, LoopState};
use crate::runtime::listening_sockets::ListeningSockets;
use crate::runtime::log_folder::LogLosses;
use crate::runtime::management::StatusRequest;
use crate::runtime::poll::{Poll, Source, Waker};
use crate::runtime::program::Program;
use crate::runtime::record_age::RecordAges;
use crate::runtime::report::LimitedReports;
use crate::runtime::systemd::Watchdog;
use crate::runtime::upgrade::UpgradeState;

use arrivals::{Arrivals, RateLimit};
use idle_gaps::IdleGaps;
pub(crate) use setup::open_listeners;
use sources::Sources;
pub(crate) use tun_device::check_device;
use user_meters::UserMeters;

struct Loop {
    clock: Clock,
    wall_clock: WallClock,
    poll: Poll<CollectorToken>,
    waker: Arc<Waker>,
    collector: Collector<Folder>,
    committer: Option<Committer>,
    listeners: Vec<MeterAddress>,
    upstreams: Vec<Upstream>,
    sockets: Vec<Option<MeterSocket>>,
    /// TCP in user space, for listeners whose data is acknowledged when it is durable.
    user_meters: Option<UserMeters>,
    /// Connections before their TLS handshake and their PROXY header are complete.
    arrivals: Arrivals,
    /// When connections are accepted again, after file descriptors or memory of the kernel were
    /// exhausted.
    accept_at: Option<Instant>,
    sources: Sources,
    handshakes: RateLimit,
    state: LoopState,
    source_limit: Option<u32>,
    handshake_limit: Duration,
    when_full: WhenFull,
    /// Meters with data to read, in turn.
    ready: VecDeque<MeterId>,
    receive_buffer: u32,
    meters_max: usize,
    batch_delay: Duration,
    /// Longest time for which an incomplete message waits for its next byte.
    message_wait: Duration,
    /// When records that wait for others to share a batch are sent or written; `None` if none wait.
    flush_at: Option<Instant>,
    /// When the next group may be written to the log.
    next_group: Instant,
    trimmed: u64,
    idle_gaps: IdleGaps,
    /// Longest time without data of a meter, and meters by it.
    idle_timeout: Option<Duration>,
    idle_meters: IdleGaps,
    buffer: Vec<u8>,
    counters: Counters,
    /// Ages of records that the head has not confirmed.
    unconfirmed: RecordAges,
    reports: LimitedReports,
    watchdog: Watchdog,
    drain: Drain,
    /// No meter is read any more: what was read becomes durable before an upgrade.
    is_frozen: bool,
    /// Number of connections of meters, and of those that an upgrade ends.
    open_sockets: usize,
    ending_sockets: usize,
}

struct MeterAddress {
    name: String,
    /// `None` if the connections are terminated in user space.
    socket: Option<Socket>,
    /// Where the socket listens, unless it accepts connections to several addresses.
    local: Option<SocketAddr>,
    /// The configuration, of which a reload replaces a part.
    config: MeterListener,
    tls: Option<Arc<ServerConfig>>,
    framing: MessageFraming,
    idle_gap: Option<Duration>,
    /// Whether connections wait to be accepted.
    is_ready: bool,
}

#[derive(Default)]
struct Counters {
    accepted: u64,
    refused: BTreeMap<&'static str, u64>,
    received: u64,
    resets: [u64; ResetCause::ALL.len() + 1],
    /// Damaged and missing regions of the log.
    log: LogLosses,
    /// Records that are missing in the log, as far as their number is known.
    lost_records: u64,
}

impl Counters {
    fn refuse(&mut self, cause: &'static str) {
        *self.refused.entry(cause).or_default() += 1;
    }

    /// Refused connections by cause; every cause is listed, so that metrics exist from the start.
    fn refused_by_cause(&self) -> serde_json::Map<String, serde_json::Value> {
        let count = |cause: &str| self.refused.get(cause).copied().unwrap_or(0);
        arrivals::CAUSES.iter().map(|cause| ((*cause).to_owned(), count(cause).into())).collect()
    }
}

/// Key of the address of a listener.
fn listener_key(name: &str) -> String {
    format!("collector.listener.{name}.address")
}

/// Runs a collector until it is stopped or replaced.
pub(crate) fn run(
    config: &RelayConfig,
    keys: &CollectorConfig,
    program: &Program,
    sockets: ListeningSockets,
) -> Result<End, RunError> {
    event_loop::run(program, |waker| Loop::new(config, keys, program.folder(), waker, sockets))
}

impl EventLoop for Loop {
    const RELOADED: &'static str = "TLS, limits of connections, framing, `message_wait`, \
        `idle_timeout`, `allow`, `proxy_protocol`, `when_full`";
    const STOPPED: &'static str = "stopped; connections of meters are reset";

    fn ready(&self) -> String {
        format!("collector {} is ready", self.state.config.name)
    }

    /// Waits for events and handles them.
    fn turn(&mut self) -> Result<(), RunError> {
        let mut events = Vec::new();
        self.poll.wait(self.clock.until(self.deadline()), &mut events)?;
        let now = self.clock.now();
        self.collector.set_time(self.wall_clock.time(now));
        for (source, flags) in events {
            match source {
                Source::Socket(CollectorToken::Listener(index)) => {
                    self.listeners[index as usize].is_ready = true;
                }
                Source::Socket(CollectorToken::Meter(index, number)) => {
                    self.handle_meter(index, number, flags);
                }
                Source::Socket(CollectorToken::Arrival(index, number)) => {
                    self.handle_arrival(now, index, number);
                }
                Source::Socket(CollectorToken::Upstream(index)) => {
                    let upstream = &mut self.upstreams[index as usize];
                    upstream.handle_event(now, &mut self.collector, &mut self.buffer);
                }
                Source::Socket(CollectorToken::Tun) => {
                    self.user_meters.iter_mut().for_each(UserMeters::set_readable);
                }
                Source::Waker => self.waker.clear(),
            }
        }
        // Handshakes are refilled first: their limit decides what can be accepted.
        self.handshakes.refill(now);
        self.accept(now);
        self.receive_packets(now)?;
        self.end_slow_arrivals(now);
        self.serve_ready(now);
        self.end_idle_messages(now);
        self.reset_idle_meters(now);
        // After reading: the group has the data of this turn.
        self.store(now)?;
        // Data that meters accept is confirmed upstream in the same turn.
        self.handle_events();
        for upstream in &mut self.upstreams {
            upstream.advance(now, &mut self.collector, &self.poll, &self.waker);
            upstream.transmit(now, &mut self.collector);
            self.counters.lost_records += upstream.report_lost(&mut self.collector);
            if let Some(error) = upstream.take_damage() {
                return Err(error.into());
            }
        }
        // After the events, which acknowledge data.
        self.send_packets(now)?;
        self.observe_age(now);
        self.watchdog.report(&self.clock);
        self.trim();
        Ok(())
    }

    fn state(&mut self) -> &mut LoopState {
        &mut self.state
    }

    fn respond_to(&self, request: &StatusRequest) -> Value {
        self.document(request.path())
    }

    fn apply(&mut self, config: &RelayConfig, folder: &Path) -> Result<(), String> {
        self.reload(config, folder)
    }

    fn copy_reloaded(from: &RelayConfig, to: &mut RelayConfig) {
        reload::copy_reloaded(from, to);
    }

    fn begin_drain(&mut self) {
        self.drain.begin(self.clock.now(), self.state.config.drain_limit);
    }

    fn is_drained(&mut self) -> bool {
        self.check_drain()
    }

    fn into_upgrade_state(self) -> UpgradeState {
        self.hand_over()
    }

    fn stop(&mut self) {
        if !self.is_frozen {
            self.collector.record_incomplete_messages();
        }
        self.wait_until_durable();
        self.end_user_meters();
    }
}

impl Loop {
    fn deadline(&self) -> Instant {
        if self.has_work() {
            return Instant::ZERO;
        }
        let upstreams = self.upstreams.iter().map(Upstream::deadline);
        let arrivals = self.arrivals.deadline().min(self.handshake_deadline());
        upstreams
            .min()
            .unwrap_or(Instant::NEVER)
            .min(self.flush_at.unwrap_or(Instant::NEVER))
            .min(self.idle_gaps.deadline())
            .min(self.idle_meters.deadline())
            .min(arrivals)
            .min(self.accept_at.unwrap_or(Instant::NEVER))
            .min(self.watchdog.deadline())
            .min(self.drain.deadline())
            .min(self.user_meters.as_ref().map_or(Instant::NEVER, UserMeters::deadline))
    }

    /// Whether something can be done without waiting for an event.
    fn has_work(&self) -> bool {
        let mut listeners = 0..self.listeners.len();
        self.accept_at.is_none()
            && listeners.any(|index| self.listeners[index].is_ready && self.may_accept(index))
            || !self.is_frozen
                && self
                    .ready
                    .iter()
                    .take(READY_CHECKED)
                    .any(|id| self.collector.acceptable(*id) > 0)
    }
}

/// Number of waiting meters of which the loop checks whether they can be served.
const READY_CHECKED: usize = 64;
