//! Start of a collector.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use gridhaul_linux::Clock;
use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::relay::{CollectorConfig, Compression, DurabilityTier};
use gridhaul_scenario::units::{Duration, Instant};
use rustix::event::epoll::EventFlags;
use socket2::Socket;

use super::arrivals::{Arrivals, RateLimit};
use super::framing::framing_of;
use super::idle_gaps::IdleGaps;
use super::meter_socket;
use super::meters::QUANTUM;
use super::sources::Sources;
use super::token::CollectorToken;
use super::upgrade::Continued;
use super::upstream::Upstream;
use super::user_meters::UserMeters;
use super::wall_clock::WallClock;
use super::{Counters, Loop, MeterAddress, listener_key};
use crate::collector::{Collector, CollectorLog, CollectorState, Settings, Tier, recover};
use crate::log::Folder;
use crate::runtime::committer::Committer;
use crate::runtime::event_loop::{Drain, LoopState};
use crate::runtime::listener::canonical;
use crate::runtime::listening_sockets::ListeningSockets;
use crate::runtime::log_folder::{LogLosses, open_log};
use crate::runtime::management::StatusRequests;
use crate::runtime::poll::{Poll, Waker};
use crate::runtime::random;
use crate::runtime::record_age::RecordAges;
use crate::runtime::report::LimitedReports;
use crate::runtime::systemd::Watchdog;
use crate::runtime::{Level, RunError, report, tls};

/// Files that are not connections of meters: log, upstreams, listeners, status page.
const RESERVED_FILES: u64 = 256;

/// Opens the listeners.
pub(crate) fn open_listeners(
    keys: &CollectorConfig,
    sockets: &mut ListeningSockets,
) -> Result<(), RunError> {
    let receive_buffer = receive_buffer(keys);
    let kernel = keys.listener.iter().filter(|(_, listener)| !listener.is_durable());
    for (name, listener) in kernel {
        let configure =
            |socket: &Socket, _: SocketAddr| meter_socket::configure(socket, receive_buffer);
        sockets.open_with(&listener_key(name), &listener.address, configure)?;
    }
    Ok(())
}

impl Loop {
    pub(super) fn new(
        config: &RelayConfig,
        keys: &CollectorConfig,
        folder: &Path,
        waker: Arc<Waker>,
        mut sockets: ListeningSockets,
    ) -> Result<Self, RunError> {
        let poll = Poll::new(&waker)?;
        // The log decides whether the meters of the previous version continue: its records must be
        // those that their state describes.
        let continued = Continued::read(sockets.take_connections());
        let Records { collector, committer, continued, losses } =
            open_records(config, keys, folder, continued, &waker)?;
        let listeners = meter_addresses(keys, folder, &poll, &mut sockets)?;
        let requests = StatusRequests::serve(config, folder, &mut sockets, &waker)?;
        let upstream_tls = tls::upstream(keys, folder)?;
        let upstream = |shard| Upstream::new(shard, keys, upstream_tls.clone());
        // One connection for each shard of the log: it may have more than the configuration.
        let upstreams = (0..collector.shard_count()).map(upstream).collect();
        let user_meters = UserMeters::open(keys, &poll)?;
        let mut event_loop = Self {
            clock: Clock::starts_in(Duration::ZERO),
            wall_clock: WallClock::new(),
            poll,
            waker,
            collector,
            committer,
            listeners,
            upstreams,
            sockets: Vec::new(),
            user_meters,
            ready: VecDeque::new(),
            receive_buffer: receive_buffer(keys),
            meters_max: 0,
            arrivals: Arrivals::default(),
            sources: Sources::default(),
            handshakes: RateLimit::new(keys.handshakes_per_second),
            state: LoopState { config: config.clone(), requests },
            source_limit: None,
            handshake_limit: keys.handshake_limit,
            when_full: keys.when_full,
            batch_delay: keys.batch_delay,
            message_wait: keys.message_wait,
            next_group: Instant::ZERO,
            flush_at: None,
            trimmed: 0,
            accept_at: None,
            idle_gaps: IdleGaps::default(),
            idle_timeout: keys.idle_timeout,
            idle_meters: IdleGaps::default(),
            buffer: vec![0; QUANTUM],
            counters: Counters { log: losses, ..Counters::default() },
            unconfirmed: RecordAges::default(),
            reports: LimitedReports::default(),
            watchdog: Watchdog::from_environment(),
            drain: Drain::default(),
            is_frozen: false,
            open_sockets: 0,
            ending_sockets: 0,
        };
        event_loop.set_limits(keys);
        if let Some(continued) = continued {
            event_loop.take_over(continued);
        }
        Ok(event_loop)
    }

    /// Sets the limits that a reload can change.
    pub(super) fn set_limits(&mut self, keys: &CollectorConfig) {
        let open_files = gridhaul_linux::raise_open_file_limit();
        let possible = open_files.saturating_sub(RESERVED_FILES);
        if let Some(meters) = keys.meters.filter(|meters| u64::from(*meters) > possible) {
            let text = format!(
                "collector.meters: {meters} meters need more than {open_files} open files; at \
                 most {possible} are accepted\n  \
                 help: increase LimitNOFILE of the service, or the hard limit of `ulimit -n`"
            );
            report(Level::Warning, &text);
        }
        self.meters_max =
            keys.meters.map_or(possible, |meters| possible.min(meters.into())) as usize;
        self.source_limit = keys.connections_per_source;
        self.handshake_limit = keys.handshake_limit;
        self.when_full = keys.when_full;
    }
}

/// The listeners of the configuration, whose sockets are open and watched from now on.
fn meter_addresses(
    keys: &CollectorConfig,
    folder: &Path,
    poll: &Poll<CollectorToken>,
    sockets: &mut ListeningSockets,
) -> Result<Vec<MeterAddress>, RunError> {
    let mut listeners = Vec::new();
    for (name, address) in &keys.listener {
        let socket = if address.is_durable() {
            None
        } else {
            let socket = sockets.take(&listener_key(name)).expect("all listeners are open");
            watch_listener(poll, &socket, listeners.len())?;
            Some(socket)
        };
        let (framing, idle_gap) = framing_of(&address.framing);
        let key = format!("collector.listener.{name}.tls");
        let tls = address.tls.as_ref().map(|tls| tls::meters(&key, tls, folder)).transpose()?;
        listeners.push(MeterAddress {
            name: name.clone(),
            local: socket.as_ref().and_then(specific_address),
            socket,
            config: address.clone(),
            tls,
            framing,
            idle_gap,
            is_ready: false,
        });
    }
    Ok(listeners)
}

fn watch_listener(
    poll: &Poll<CollectorToken>,
    socket: &Socket,
    index: usize,
) -> Result<(), RunError> {
    let token = CollectorToken::Listener(index as u32);
    poll.add(socket, token, EventFlags::IN | EventFlags::ET)
        .map_err(gridhaul_linux::Error::call("watching a listener"))?;
    Ok(())
}

fn receive_buffer(keys: &CollectorConfig) -> u32 {
    u32::try_from(keys.receive_buffer.get()).unwrap_or(u32::MAX)
}

/// Where a socket listens, if it accepts connections to a single address.
fn specific_address(socket: &Socket) -> Option<SocketAddr> {
    let address = canonical(socket.local_addr().ok()?.as_socket()?);
    (!address.ip().is_unspecified()).then_some(address)
}

/// The state machine with the records of its log, the thread that writes the log if there is one,
/// and the meters that continue.
struct Records {
    collector: Collector<Folder>,
    committer: Option<Committer>,
    continued: Option<Continued>,
    losses: LogLosses,
}

fn open_records(
    config: &RelayConfig,
    keys: &CollectorConfig,
    folder: &Path,
    continued: Option<Continued>,
    waker: &Arc<Waker>,
) -> Result<Records, RunError> {
    let settings = settings(config, keys);
    let Some(log) = &config.log else {
        let continued = continued.filter(|continued| continued.tier == settings.tier.name());
        let collector = match &continued {
            Some(continued) => Collector::resume(settings, &continued.continuation, None),
            None => Collector::new(settings, random(), &CollectorState::default(), None),
        };
        let losses = LogLosses::default();
        return Ok(Records { collector, committer: None, continued, losses });
    };
    let opened = open_log(log, folder)?;
    let writer = opened.writer;
    let storage = writer.storage().clone();
    let (epoch, range) = (writer.epoch(), writer.durable_range());
    let state = recover(storage.clone(), epoch, &opened.snapshot, range)?;
    let continued = continued.filter(|continued| continued.continuation.is_end_of(epoch, &state));
    let log = Some(CollectorLog { storage, range });
    let mut collector = match &continued {
        Some(continued) => Collector::resume(settings, &continued.continuation, log),
        None => {
            let mut state = state.after_restart(keys.shards, &opened.findings);
            state.time = Some(WallClock::new().time(Instant::ZERO));
            Collector::new(settings, epoch, &state, log)
        }
    };
    if opened.has_old_version {
        collector.begin_segment();
    }
    let committer = Some(Committer::start(writer, Arc::clone(waker)));
    let losses = LogLosses::of(&opened.findings);
    Ok(Records { collector, committer, continued, losses })
}

fn settings(config: &RelayConfig, keys: &CollectorConfig) -> Settings {
    let tier = match keys.tier {
        DurabilityTier::Memory => Tier::Memory,
        DurabilityTier::Local => Tier::Local,
        DurabilityTier::Server => Tier::Server,
    };
    let (backlog, segment) = match &config.log {
        Some(log) => (log.limit.get(), log.segment.get()),
        None => (keys.memory.get(), u64::MAX),
    };
    Settings {
        name: config.name.clone(),
        tier,
        shards: keys.shards,
        at_risk: keys.bytes_at_risk.get(),
        at_risk_per_meter: keys.bytes_at_risk_per_meter.get(),
        message_limit: keys.largest_message().get(),
        backlog,
        segment,
        replies: keys.replies,
        compression: keys.compression == Compression::Lz4,
    }
}
