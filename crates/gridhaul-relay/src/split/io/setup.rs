//! Start of a split proxy.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use gridhaul_linux::{Clock, LegOptions, TCP_DELACK_MAX, require_congestion_control};
use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::relay::{SplitConfig, SplitLeg};
use gridhaul_scenario::units::{Bytes, Duration, Instant};
use socket2::Socket;

use super::listeners::{ClientAddress, configure_listener, listener_key};
use super::own_connections::OwnConnections;
use super::pipes::PipePool;
use super::transfer::Shared;
use super::{Counters, Loop};
use crate::runtime::event_loop::{Drain, LoopState};
use crate::runtime::listening_sockets::ListeningSockets;
use crate::runtime::management::StatusRequests;
use crate::runtime::poll::{Poll, Waker};
use crate::runtime::systemd::Watchdog;
use crate::runtime::{Level, RunError, report};
use crate::split::SplitTimeouts;

/// Files that are neither connections nor pipes: listeners, probes, status page.
const RESERVED_FILES: u64 = 128;

/// Files of a session, and of a pipe.
const SESSION_FILES: u64 = 2;
const PIPE_FILES: u64 = 2;

/// Share of the limit of open files that pipes may have.
const PIPE_SHARE: u64 = 8;

/// Opens the listeners, except for those that wait until their server accepts connections.
pub(crate) fn open_listeners(
    split: &SplitConfig,
    sockets: &mut ListeningSockets,
) -> Result<(), RunError> {
    let options = leg_options(&split.client)?;
    for (name, listener) in split.listener.iter().filter(|(_, listener)| !listener.connect_first) {
        let configure = |socket: &Socket, address: SocketAddr| {
            configure_listener(socket, address, &options, listener.transparent)
        };
        sockets.open_with(&listener_key(name), &listener.address, configure)?;
    }
    Ok(())
}

impl Loop {
    pub(super) fn new(
        config: &RelayConfig,
        split: &SplitConfig,
        folder: &Path,
        waker: Arc<Waker>,
        mut sockets: ListeningSockets,
    ) -> Result<Self, RunError> {
        let poll = Poll::new(&waker)?;
        let (open_max, pipes_max) = file_limits(split);
        let client_options = leg_options(&split.client)?;
        let listeners = split.listener.iter().enumerate();
        let mut listeners: Vec<_> = listeners
            .map(|(index, (name, listener))| {
                ClientAddress::new(name, index as u32, listener, client_options.clone())
            })
            .collect();
        for listener in &mut listeners {
            listener.start(&poll, &mut sockets)?;
        }
        let requests = StatusRequests::serve(config, folder, &mut sockets, &waker)?;
        // Linux leaves the mode of immediate acknowledgements by itself (TCP_QUICKACK, tcp(7)): the
        // option of the socket is not enough.
        let immediate = |leg: &SplitLeg| leg.delayed_ack.is_some_and(Duration::is_zero);
        let pipes = PipePool::new(pipes_max, split.pipe_size.get() as usize);
        let immediate_acks = [immediate(&split.client), immediate(&split.server)];
        Ok(Self {
            clock: Clock::starts_in(Duration::ZERO),
            poll,
            waker,
            state: LoopState { config: config.clone(), requests },
            timeouts: timeouts(split),
            server_options: leg_options(&split.server)?,
            listeners,
            connections: Vec::new(),
            free: Vec::new(),
            next_number: 0,
            open: 0,
            open_max,
            own_connections: OwnConnections::default(),
            ready: VecDeque::new(),
            timers: BTreeSet::new(),
            shared: Shared::new(split.memory.get(), pipes, immediate_acks),
            sweep_at: Instant::NEVER,
            accept_at: Instant::ZERO,
            next_report: Instant::ZERO,
            counters: Counters::default(),
            watchdog: Watchdog::from_environment(),
            drain: Drain::default(),
        })
    }
}

pub(super) const fn timeouts(split: &SplitConfig) -> SplitTimeouts {
    SplitTimeouts {
        connect: split.connect_timeout,
        half_close: split.half_close_timeout,
        idle: split.idle_timeout,
    }
}

/// Sessions and pipes that the limit of open files permits.
pub(super) fn file_limits(split: &SplitConfig) -> (usize, u32) {
    let limit = gridhaul_linux::raise_open_file_limit();
    // Pipes save copies only; without files for its connections, a client is not served.
    let pipes = u64::from(split.pipes).min(limit / PIPE_SHARE / PIPE_FILES);
    let sessions = limit.saturating_sub(RESERVED_FILES + pipes * PIPE_FILES) / SESSION_FILES;
    let wanted = split.connections.map_or(sessions, u64::from);
    // The limit depends on who starts the relay, so that fewer sessions are no error of the
    // configuration.
    if wanted > sessions {
        let needed = wanted * SESSION_FILES + pipes * PIPE_FILES + RESERVED_FILES;
        let message = format!(
            "split.connections is {wanted}, but the limit of {limit} open files permits \
             {sessions}; further clients wait\n  \
             help: raise the limit to {needed} (LimitNOFILE of systemd, or `ulimit -n`)"
        );
        report(Level::Warning, &message);
    }
    (wanted.min(sessions) as usize, pipes as u32)
}

/// The options of a leg, whose congestion control the kernel must have.
pub(crate) fn leg_options(leg: &SplitLeg) -> Result<LegOptions, RunError> {
    if let Some(name) = &leg.congestion_control {
        require_congestion_control(name)?;
    }
    if let Some(delay) = leg.delayed_ack.filter(|delay| *delay > TCP_DELACK_MAX) {
        return Err(RunError::Invalid(format!(
            "`delayed_ack` is {delay}, and Linux delays acknowledgements by at most \
             {TCP_DELACK_MAX}\n  help: write a smaller time; \"0 s\" acknowledges at once"
        )));
    }
    let size = |bytes: Bytes| u32::try_from(bytes.get()).unwrap_or(u32::MAX);
    // 0 turns probes off; as an interval, the kernel refuses it.
    let keepalive = Some(leg.keepalive).filter(|interval| !interval.is_zero());
    Ok(LegOptions {
        congestion_control: leg.congestion_control.clone(),
        delayed_ack: leg.delayed_ack.map(std_duration),
        user_timeout: std_duration(leg.user_timeout),
        keepalive: keepalive.map(std_duration),
        mss: leg.mss.map(u32::from),
        send_buffer: leg.send_buffer.map(size),
        receive_buffer: leg.receive_buffer.map(size),
        not_sent_low_water: leg.not_sent_limit.map(size),
        nagle: leg.nagle,
    })
}

const fn std_duration(time: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(time.as_nanos())
}
