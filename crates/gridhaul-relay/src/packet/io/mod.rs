//! The thread of a bridge: frames of both interfaces, and timers.

mod fail_open;
mod hand_over;
mod interface;
mod reload;
mod setup;
mod status;
mod token;

use std::path::Path;
use std::sync::Arc;

use gridhaul_linux::{Clock, EventFlags, FrameBatch, FrameMetadata, OutgoingFrame};
use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::relay::BridgeConfig;
use gridhaul_scenario::units::{Duration, Instant};
use serde_json::Value;

use self::fail_open::FailOpen;
use self::interface::{Interface, frame_of, outgoing_frame};
use self::token::BridgeToken;
use super::{BridgePort, Engine, FrameDropCause, Handling};
use crate::runtime::event_loop::{self, Drain, End, EventLoop, LoopState};
use crate::runtime::listening_sockets::ListeningSockets;
use crate::runtime::management::StatusRequest;
use crate::runtime::poll::{Poll, Source, Waker};
use crate::runtime::program::Program;
use crate::runtime::systemd::Watchdog;
use crate::runtime::upgrade::UpgradeState;
use crate::runtime::{Level, RunError, report};

pub(crate) use setup::check;

struct Loop {
    clock: Clock,
    poll: Poll<BridgeToken>,
    waker: Arc<Waker>,
    events: Vec<(Source<BridgeToken>, EventFlags)>,
    state: LoopState,
    engine: Engine,
    interfaces: [Interface; 2],
    /// Absent: the relay alone forwards.
    fail_open: Option<FailOpen>,
    batch: FrameBatch,
    /// Received frames that the kernel could not describe, as counted so far.
    unsupported: u64,
    /// When MTU and counters of the interfaces are read again.
    check_at: Instant,
    watchdog: Watchdog,
    drain: Drain,
    /// State of the connections that the next version of the program continues.
    handed_over: Option<Vec<u8>>,
}

/// Batches that are received from one interface before the other is served.
const ROUNDS: u32 = 8;

/// Time between checks of the interfaces.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Time between checks whether connections can continue without the proxy, during an upgrade.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);

/// Runs a bridge until it is stopped or replaced.
pub(crate) fn run(
    config: &RelayConfig,
    bridge: &BridgeConfig,
    program: &Program,
    sockets: ListeningSockets,
) -> Result<End, RunError> {
    event_loop::run(program, |waker| Loop::new(config, bridge, program.folder(), waker, sockets))
}

impl EventLoop for Loop {
    const RELOADED: &'static str = "`bridge.rule`, `connections`, `memory`, `idle_timeout`";
    const STOPPED: &'static str = "stopped; connections with bytes at risk are reset";

    fn ready(&self) -> String {
        let [first, second] = &self.interfaces;
        let rules = self.engine.settings().rules.len();
        let without_relay = match &self.fail_open {
            Some(_) => "the kernel's bridge forwards what the relay does not",
            None => "only the relay forwards",
        };
        format!(
            "bridge {} is ready: {} and {}, {rules} rules; {without_relay}",
            self.state.config.name, first.name, second.name
        )
    }

    fn turn(&mut self) -> Result<(), RunError> {
        let mut events = std::mem::take(&mut self.events);
        self.poll.wait(self.clock.until(self.deadline()), &mut events)?;
        self.watchdog.report(&self.clock);
        // Before frames are handled: if the lease has expired, the present state is outdated, and
        // must not acknowledge data that has waited here.
        self.renew(self.clock.now())?;
        for (source, _) in events.drain(..) {
            match source {
                Source::Socket(BridgeToken(port)) => self.receive(port)?,
                Source::Waker => self.waker.clear(),
            }
        }
        self.events = events;
        let now = self.clock.now();
        if self.engine.next_deadline() <= now {
            self.engine.handle_timeout(now);
            self.flush()?;
        }
        if self.check_at <= now {
            self.check_at = now + CHECK_INTERVAL;
            self.check_interfaces()?;
        }
        if self.drain.has_begun() {
            self.engine.drain(now);
            self.flush()?;
        }
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
        let is_over = self.engine.is_drained() || self.drain.deadline() <= self.clock.now();
        self.drain.has_begun() && is_over
    }

    fn hand_over(&mut self) {
        self.handed_over = self.engine.hand_over();
    }

    fn into_upgrade_state(self) -> UpgradeState {
        let listeners = self.state.requests.into_listeners();
        let state = self.handed_over.map(|connections| {
            hand_over::write(self.fail_open, &connections).unwrap_or_else(|error| {
                let text = format!("upgrade: connections of `split` are reset: {error}");
                report(Level::Error, &text);
                Vec::new()
            })
        });
        UpgradeState { listeners, state: state.unwrap_or_default(), ..UpgradeState::default() }
    }

    fn stop(&mut self) {
        self.engine.stop(self.clock.now());
        // The interfaces may be gone, and the relay ends in any case.
        let _ = self.flush();
        if let Some(fail_open) = &self.fail_open {
            fail_open.unprotect(&mut self.engine);
        }
    }
}

impl Loop {
    fn deadline(&self) -> Instant {
        let renewal = self.fail_open.as_ref().map_or(Instant::NEVER, FailOpen::deadline);
        let timers = self.engine.next_deadline().min(self.check_at);
        let own = timers.min(self.watchdog.deadline()).min(renewal);
        match self.drain.has_begun() {
            true => own.min(self.clock.now() + DRAIN_INTERVAL),
            false => own,
        }
    }

    /// Handles the frames that wait at an interface, for some batches.
    fn receive(&mut self, from: BridgePort) -> Result<(), RunError> {
        for _ in 0..ROUNDS {
            // A batch of large frames is more than a thousand segments, and all batches of a turn
            // may take longer than the lease on a busy machine.
            self.renew(self.clock.now())?;
            let Self { clock, engine, interfaces, batch, fail_open, .. } = self;
            let count = interfaces[from.index()].receive(batch)?;
            let now = clock.now();
            let mut passing = Vec::new();
            for frame in batch.frames() {
                if frame.truncated {
                    engine.counters_mut().add_dropped(FrameDropCause::Truncated, 1);
                    continue;
                }
                let handling = engine.handle_frame(now, from, &frame_of(&frame));
                let is_own = match handling {
                    Handling::Forward => true,
                    Handling::Pass => fail_open.is_none(),
                    Handling::Handled => false,
                };
                if is_own {
                    passing.push(OutgoingFrame::from(frame));
                }
            }
            let over = &interfaces[from.other().index()];
            over.send(&passing, engine.counters_mut())?;
            self.flush()?;
            if count < BATCH {
                break;
            }
        }
        Ok(())
    }

    /// Renews the lease on the packets of the kernel's bridge.
    fn renew(&mut self, now: Instant) -> Result<(), RunError> {
        let Some(fail_open) = &mut self.fail_open else { return Ok(()) };
        let renewed = fail_open.renew(now, &mut self.engine)?;
        if renewed.discards_waiting {
            self.discard_waiting()?;
        }
        for probe in &renewed.probes {
            let metadata = FrameMetadata::default();
            let frame = OutgoingFrame { bytes: &probe.frame, metadata };
            self.interfaces[probe.interface].send(&[frame], self.engine.counters_mut())?;
        }
        Ok(())
    }

    /// Drops the frames that wait.
    fn discard_waiting(&mut self) -> Result<(), RunError> {
        for interface in &self.interfaces {
            loop {
                let count = interface.receive(&mut self.batch)?;
                self.engine.counters_mut().add_dropped(FrameDropCause::LeaseExpired, count as u64);
                if count == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Sends the frames of the engine, after the connections that they put at risk are protected.
    fn flush(&mut self) -> Result<(), RunError> {
        let Self { engine, interfaces, fail_open, .. } = self;
        match fail_open {
            Some(fail_open) => fail_open.protect(engine),
            None => drop(engine.take_newly_at_risk()),
        }
        let mut outgoing = std::mem::take(engine.outgoing());
        for port in BridgePort::BOTH {
            let queue = outgoing.over(port);
            if !queue.is_empty() {
                let frames: Vec<_> = queue.iter().map(|frame| outgoing_frame(&frame)).collect();
                interfaces[port.index()].send(&frames, engine.counters_mut())?;
            }
        }
        outgoing.clear();
        *engine.outgoing() = outgoing;
        Ok(())
    }

    /// Reads MTU and losses of the interfaces.
    fn check_interfaces(&mut self) -> Result<(), RunError> {
        for port in BridgePort::BOTH {
            let interface = &self.interfaces[port.index()];
            self.engine.set_mtu(port, interface.mtu()?);
            let dropped = interface.take_dropped();
            self.engine.counters_mut().add_dropped(FrameDropCause::ReceiveBuffer, dropped);
        }
        if self.fail_open.is_none() {
            // Nobody protects these connections.
            drop(self.engine.take_no_longer_at_risk());
        }
        let unsupported = self.batch.unsupported();
        let more = unsupported - std::mem::replace(&mut self.unsupported, unsupported);
        self.engine.counters_mut().add_dropped(FrameDropCause::Unsupported, more);
        Ok(())
    }
}

/// Number of frames received per system call.
const BATCH: usize = 32;

/// Bytes of the largest frame of offloads: an IP packet of 64 KiB, and headers.
const FRAME_SIZE: usize = 65_536 + 64;
