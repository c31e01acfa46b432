//! The thread of a split proxy for all connections.

mod bulk;
mod checks;
mod connection;
mod listeners;
mod pipes;
mod reload;
mod sessions;
mod setup;
mod status;
mod transfer;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use gridhaul_linux::{Clock, LegOptions};
use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::relay::SplitProxy;
use gridhaul_scenario::units::{Duration, Instant};
use socket2::Socket;

use super::invocation::Invocation;
use super::management::Questions;
use super::poll::{Poll, Token, Waker};
use super::signals::Signals;
use super::sockets::Sockets;
use super::supervisor::{self, Watchdog};
use super::{End, Level, RunError, report};
use crate::split::{SessionEnd, SplitTimeouts};
use checks::Checks;
use connection::Connection;
use listeners::ClientAddress;
use transfer::Shared;

pub(super) use setup::open_listeners;

struct Loop {
    clock: Clock,
    poll: Poll,
    waker: Arc<Waker>,
    config: RelayConfig,
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
    /// Sessions that can transfer data, in turn.
    ready: VecDeque<u32>,
    /// Rows of sessions with a time limit, by the time at which it is checked.
    timers: BTreeSet<(Instant, u32)>,
    /// Sources of bulk data that are read in large pieces.
    checks: Checks,
    shared: Shared,
    /// When pipes of sessions without traffic are returned.
    sweep_at: Instant,
    /// Clients are not accepted before this time, after files were exhausted.
    accept_at: Instant,
    next_report: Instant,
    counters: Counters,
    questions: Questions,
    watchdog: Watchdog,
    /// Until when the relay waits for its clients before another version of the program continues.
    drain_until: Option<Instant>,
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
pub(super) fn run(
    config: &RelayConfig,
    split: &SplitProxy,
    invocation: &Invocation,
    sockets: Sockets,
) -> Result<End, RunError> {
    let waker = Arc::new(Waker::new()?);
    let signals = Signals::install(Arc::clone(&waker))?;
    let mut event_loop = Loop::new(config, split, invocation.folder(), waker, sockets)?;
    let message = format!(
        "split proxy {} is ready: at most {} connections of clients",
        config.name, event_loop.open_max
    );
    report(Level::Notice, &message);
    supervisor::ready();
    while !signals.is_stopped() {
        event_loop.turn()?;
        if signals.take_reload() {
            supervisor::reloading();
            event_loop.reload(invocation.read());
            supervisor::ready();
        }
        if signals.take_upgrade() && invocation.can_be_replaced() {
            supervisor::reloading();
            event_loop.begin_drain(config.drain_limit);
        }
        if event_loop.is_drained() {
            return Ok(End::Upgrade(event_loop.into_listeners()));
        }
    }
    supervisor::stopping();
    report(Level::Notice, "stopped; connections are reset");
    Ok(End::Stopped)
}

impl Loop {
    /// Waits for events and handles them.
    fn turn(&mut self) -> Result<(), RunError> {
        let mut events = Vec::new();
        self.poll.wait(self.clock.until(self.deadline()), &mut events)?;
        self.watchdog.report(&self.clock);
        let now = self.clock.now();
        for (token, flags) in events {
            match token {
                Token::Leg(leg, row, number) => self.handle_leg(now, leg, row, number, flags),
                Token::Listener(index) => self.listeners[index as usize].is_ready = true,
                Token::Upstream(index) => {
                    self.listeners[index as usize].handle_probe(now, &self.poll);
                }
                Token::Wake => self.waker.clear(),
                Token::Meter(..) | Token::Collector(_) | Token::Arrival(..) => {}
            }
        }
        for listener in &mut self.listeners {
            listener.advance(now, &self.poll, &self.waker);
        }
        self.accept(now);
        self.serve_ready(now);
        self.check_slow_sources(now);
        self.check_timers(now);
        self.sweep_pipes(now);
        while let Some(question) = self.questions.next() {
            let answer = self.answer(&question);
            question.answer(answer);
        }
        Ok(())
    }

    fn deadline(&self) -> Instant {
        if !self.ready.is_empty() {
            return Instant::ZERO;
        }
        let mut deadline = self.timers.first().map_or(Instant::NEVER, |(at, _)| *at);
        let accepts = self.open < self.open_max && self.drain_until.is_none();
        if accepts && self.listeners.iter().any(ClientAddress::can_accept) {
            deadline = deadline.min(self.accept_at);
        }
        let listeners = self.listeners.iter().map(ClientAddress::deadline);
        let others = self.sweep_at.min(self.watchdog.deadline()).min(self.checks.deadline());
        let drain = self.drain_until.unwrap_or(Instant::NEVER);
        deadline.min(others).min(drain).min(listeners.min().unwrap_or(Instant::NEVER))
    }

    /// Lets open connections end, while new ones wait in the queues of the listeners for the next version of the program.
    fn begin_drain(&mut self, limit: Duration) {
        let text = format!("upgrade: open connections may end within {limit}, new ones wait");
        report(Level::Notice, &text);
        self.drain_until = self.drain_until.or(Some(self.clock.now() + limit));
    }

    /// Whether another version of the program can continue.
    fn is_drained(&self) -> bool {
        self.drain_until.is_some_and(|until| self.open == 0 || until <= self.clock.now())
    }

    /// The listening sockets.
    fn into_listeners(self) -> Vec<Socket> {
        let clients = self.listeners.into_iter().filter_map(|listener| listener.socket);
        clients.chain(self.questions.into_listeners()).collect()
    }

    /// Resets sessions whose time limit has passed.
    fn check_timers(&mut self, now: Instant) {
        while let Some((at, row)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, row));
            let Some(Some(connection)) = self.connections.get_mut(row as usize) else { continue };
            connection.timer = Instant::NEVER;
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
