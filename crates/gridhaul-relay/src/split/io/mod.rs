//! The thread of a split proxy for all connections.

mod connection;
mod listeners;
mod own_connections;
mod pipes;
mod reload;
mod sessions;
mod setup;
mod status;
mod token;
mod transfer;

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use gridhaul_linux::{Clock, LegOptions};
use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::relay::SplitConfig;
use gridhaul_scenario::units::{Duration, Instant};
use serde_json::Value;

use self::token::SplitToken;
use super::{SessionEnd, SplitTimeouts};
use crate::runtime::RunError;
use crate::runtime::event_loop;
use crate::runtime::event_loop::End;
use crate::runtime::event_loop::{Drain, EventLoop, LoopState};
use crate::runtime::listening_sockets::ListeningSockets;
use crate::runtime::management::StatusRequest;
use crate::runtime::poll::{Poll, Source, Waker};
use crate::runtime::program::Program;
use crate::runtime::systemd::Watchdog;
use crate::runtime::upgrade::UpgradeState;
use connection::Connection;
use listeners::ClientAddress;
use own_connections::OwnConnections;
use transfer::Shared;

pub(crate) use setup::{leg_options, open_listeners};

struct Loop {
    clock: Clock,
    poll: Poll<SplitToken>,
    waker: Arc<Waker>,
    state: LoopState,
    timeouts: SplitTimeouts,
    /// Options of connections to servers; those of clients are inherited from the listener.
    server_options: LegOptions,
    listeners: Vec<ClientAddress>,
    connections: Vec<Option<Box<Connection>>>,
    /// Rows without a session.
    free: Vec<u32>,
    next_number: u32,
    open: usize,
    open_max: usize,
    own_connections: OwnConnections,
    /// Row and number of each session that can transfer data, in turn.
    ready: VecDeque<(u32, u32)>,
    /// Rows of sessions with a time limit, by the time at which it is checked.
    timers: BTreeSet<(Instant, u32)>,
    shared: Shared,
    /// When pipes of sessions without traffic are returned.
    sweep_at: Instant,
    /// Clients are not accepted before this time, after files were exhausted.
    accept_at: Instant,
    next_report: Instant,
    counters: Counters,
    watchdog: Watchdog,
    drain: Drain,
}

#[derive(Default)]
struct Counters {
    accepted: u64,
    refused: u64,
    /// Bytes that were written to servers, and to clients.
    transferred: [u64; 2],
    resets: [u64; SessionEnd::ALL.len()],
}

/// Runs a split proxy until it is stopped or replaced.
pub(crate) fn run(
    config: &RelayConfig,
    split: &SplitConfig,
    program: &Program,
    sockets: ListeningSockets,
) -> Result<End, RunError> {
    event_loop::run(program, |waker| Loop::new(config, split, program.folder(), waker, sockets))
}

impl EventLoop for Loop {
    const RELOADED: &'static str = "legs, time limits, `connections`, `memory`, `upstream`";
    const STOPPED: &'static str = "stopped; connections are reset";

    fn ready(&self) -> String {
        let (name, open_max) = (&self.state.config.name, self.open_max);
        let waiting = self.listeners.iter().filter(|listener| listener.socket.is_none());
        let names = waiting.map(|listener| &*listener.name).collect::<Vec<_>>().join(", ");
        let first = match names.is_empty() {
            true => String::new(),
            false => format!("; not before their servers answer listen: {names}"),
        };
        format!("split proxy {name} is ready: at most {open_max} connections of clients{first}")
    }

    /// Waits for events and handles them.
    fn turn(&mut self) -> Result<(), RunError> {
        let mut events = Vec::new();
        self.poll.wait(self.clock.until(self.deadline()), &mut events)?;
        self.watchdog.report(&self.clock);
        let now = self.clock.now();
        for (source, flags) in events {
            match source {
                Source::Socket(SplitToken::Leg(leg, row, number)) => {
                    self.handle_leg(now, leg, row, number, flags);
                }
                Source::Socket(SplitToken::Listener(index)) => {
                    self.listeners[index as usize].is_ready = true;
                }
                Source::Socket(SplitToken::Probe(index)) => {
                    self.listeners[index as usize].handle_probe(now, &self.poll);
                }
                Source::Waker => self.waker.clear(),
            }
        }
        // Names of servers are resolved before clients are accepted, whose sessions need addresses.
        for listener in &mut self.listeners {
            listener.advance(now, &self.poll, &self.waker);
        }
        self.accept(now);
        self.serve_ready(now);
        self.check_timers(now);
        self.sweep_pipes(now);
        Ok(())
    }

    fn state(&mut self) -> &mut LoopState {
        &mut self.state
    }

    fn respond_to(&self, request: &StatusRequest) -> Value {
        self.document(request.path())
    }

    fn apply(&mut self, config: &RelayConfig, _: &Path) -> Result<(), String> {
        self.reload(config)
    }

    fn copy_reloaded(from: &RelayConfig, to: &mut RelayConfig) {
        reload::copy_reloaded(from, to);
    }

    fn begin_drain(&mut self) {
        self.drain.begin(self.clock.now(), self.state.config.drain_limit);
    }

    fn is_drained(&mut self) -> bool {
        let is_over = self.open == 0 || self.drain.deadline() <= self.clock.now();
        self.drain.has_begun() && is_over
    }

    fn into_upgrade_state(self) -> UpgradeState {
        let clients = self.listeners.into_iter().filter_map(|listener| listener.socket);
        let listeners = clients.chain(self.state.requests.into_listeners()).collect();
        UpgradeState { listeners, ..UpgradeState::default() }
    }
}

impl Loop {
    fn deadline(&self) -> Instant {
        // Sessions that have used up their turn continue after the events that have arrived since.
        if !self.ready.is_empty() {
            return Instant::ZERO;
        }
        let mut deadline = self.timers.first().map_or(Instant::NEVER, |(at, _)| *at);
        let accepts = self.open < self.open_max && !self.drain.has_begun();
        if accepts && self.listeners.iter().any(ClientAddress::can_accept) {
            deadline = deadline.min(self.accept_at);
        }
        let listeners = self.listeners.iter().map(ClientAddress::deadline);
        let others = self.sweep_at.min(self.watchdog.deadline());
        deadline
            .min(others)
            .min(self.drain.deadline())
            .min(listeners.min().unwrap_or(Instant::NEVER))
    }

    /// Resets sessions whose time limit has passed.
    fn check_timers(&mut self, now: Instant) {
        while let Some((at, row)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, row));
            let Some(Some(connection)) = self.connections.get_mut(row as usize) else { continue };
            connection.timer = Instant::NEVER;
            // Data that moves does not change the timer, but the limit, which is later by now.
            match connection.session.deadline(&self.timeouts) {
                Some((limit, cause)) if limit <= now => self.reset(now, row, cause),
                Some((limit, _)) => self.set_timer(row, limit),
                None => {}
            }
        }
    }

    /// Checks the time limits of a session at a time, at the latest.
    fn set_timer(&mut self, row: u32, at: Instant) {
        let Some(Some(connection)) = self.connections.get_mut(row as usize) else { return };
        if at < connection.timer {
            self.timers.remove(&(connection.timer, row));
            self.timers.insert((at, row));
            connection.timer = at;
        }
    }

    /// Returns pipes of sessions without traffic, once per second while pipes are in use.
    fn sweep_pipes(&mut self, now: Instant) {
        if self.shared.pipes.in_use() == 0 {
            self.sweep_at = Instant::NEVER;
            return;
        }
        if self.sweep_at == Instant::NEVER {
            self.sweep_at = now + SWEEP;
        }
        if self.sweep_at > now {
            return;
        }
        self.sweep_at = now + SWEEP;
        for connection in self.connections.iter_mut().flatten() {
            if connection.holds_pipe() && connection.session.last_progress() + SWEEP <= now {
                connection.release_idle_pipes(&mut self.shared);
            }
        }
    }
}

/// Time without data after which a session returns its pipes.
const SWEEP: Duration = Duration::from_secs(1);
