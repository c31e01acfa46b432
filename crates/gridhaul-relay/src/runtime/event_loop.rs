//! Event loop of collector, head, split proxy and bridge: turns until a signal ends the relay,
//! reload (SIGHUP), upgrade (SIGUSR2), and answers for the status page.

use std::path::Path;
use std::sync::Arc;

use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::units::{Duration, Instant};
use serde_json::Value;

use super::management::{StatusRequest, StatusRequests};
use super::poll::Waker;
use super::program::Program;
use super::signals::Signals;
use super::upgrade::UpgradeState;
use super::{Level, RunError, report, systemd};

/// How the event loop of a relay has ended.
pub(crate) enum End {
    /// By SIGTERM or SIGINT.
    Stopped,
    /// Another version of the program continues.
    Upgrade(UpgradeState),
}

/// State of every event loop.
pub(crate) struct LoopState {
    /// The configuration in use.
    pub config: RelayConfig,
    pub requests: StatusRequests,
}

/// The event loop of a relay.
pub(crate) trait EventLoop: Sized {
    /// Keys that a reload applies, for a message.
    const RELOADED: &'static str;

    /// Effect of a stop on connections, for a message.
    const STOPPED: &'static str;

    /// Message after the start.
    fn ready(&self) -> String;

    /// Waits for events and handles them.
    fn turn(&mut self) -> Result<(), RunError>;

    fn state(&mut self) -> &mut LoopState;

    fn respond_to(&self, request: &StatusRequest) -> Value;

    /// Applies a configuration that was read again, as a whole or, with an error, not at all.
    /// Relative paths begin at `folder`.
    fn apply(&mut self, config: &RelayConfig, folder: &Path) -> Result<(), String>;

    /// Replaces the values of keys that [`Self::apply`] applies by those of another configuration.
    fn copy_reloaded(from: &RelayConfig, to: &mut RelayConfig);

    /// Accepts no more connections, so that the next version of the program serves them.
    fn begin_drain(&mut self);

    /// Whether the next version of the program can continue.
    fn is_drained(&mut self) -> bool;

    /// Sets aside what continues in the next version of the program, before [`Self::stop`].
    fn hand_over(&mut self) {}

    /// The sockets for the next version of the program.
    fn into_upgrade_state(self) -> UpgradeState;

    /// Prepares the end of the process.
    fn stop(&mut self) {}
}

/// Runs an event loop until the relay is stopped or replaced. `start` creates the loop, which the
/// waker wakes.
pub(crate) fn run<L: EventLoop>(
    program: &Program,
    start: impl FnOnce(Arc<Waker>) -> Result<L, RunError>,
) -> Result<End, RunError> {
    let waker = Arc::new(Waker::new()?);
    let signals = Signals::install(Arc::clone(&waker))?;
    let mut event_loop = start(waker)?;
    report(Level::Notice, &event_loop.ready());
    systemd::ready();
    while !signals.is_stopped() {
        event_loop.turn()?;
        while let Some(request) = event_loop.state().requests.next() {
            let answer = event_loop.respond_to(&request);
            request.respond(answer);
        }
        if signals.take_reload() {
            systemd::reloading();
            reload(&mut event_loop, program);
            systemd::ready();
        }
        if signals.take_upgrade() && program.can_be_replaced() {
            systemd::reloading();
            event_loop.begin_drain();
        }
        if event_loop.is_drained() {
            event_loop.hand_over();
            event_loop.stop();
            return Ok(End::Upgrade(event_loop.into_upgrade_state()));
        }
    }
    systemd::stopping();
    event_loop.stop();
    report(Level::Notice, L::STOPPED);
    Ok(End::Stopped)
}

/// Reads the configuration again. With an error, the present one stays.
fn reload<L: EventLoop>(event_loop: &mut L, program: &Program) {
    let old = event_loop.state().config.clone();
    let apply = |config: RelayConfig| {
        // Whatever can fail comes first, so that a configuration is applied as a whole.
        let certificates = StatusRequests::certificates(&config, program.folder());
        let certificates = certificates.map_err(|error| error.to_string())?;
        event_loop.apply(&config, program.folder())?;
        // Other keys keep the values that are in use: the next configuration is compared with them.
        let mut running = old;
        L::copy_reloaded(&config, &mut running);
        StatusRequests::copy_reloaded(&config, &mut running);
        running.drain_limit = config.drain_limit;
        let is_complete = running == config;
        let state = event_loop.state();
        state.config = running;
        state.requests.replace_certificates(certificates);
        Ok(is_complete)
    };
    match program.read().and_then(apply) {
        Ok(is_complete) => {
            if !is_complete {
                let text = format!(
                    "keys other than those of {}, `drain_limit` and `management.tls` have \
                     changed: an upgrade (SIGUSR2) or a restart applies them",
                    L::RELOADED
                );
                report(Level::Warning, &text);
            }
            report(Level::Notice, "the configuration was read again");
        }
        Err(error) => {
            report(Level::Error, &format!("{error}\nthe present configuration stays in use"));
        }
    }
}

/// The time for which connections may end before an upgrade.
#[derive(Debug, Default)]
pub(crate) struct Drain(Option<Instant>);

impl Drain {
    /// Begins, unless it has begun before.
    pub(crate) fn begin(&mut self, now: Instant, limit: Duration) {
        if self.0.is_none() {
            let text = format!("upgrade: open connections may end within {limit}, new ones wait");
            report(Level::Notice, &text);
            self.0 = Some(now + limit);
        }
    }

    /// The present program continues.
    pub(crate) const fn cancel(&mut self) {
        self.0 = None;
    }

    pub(crate) const fn has_begun(&self) -> bool {
        self.0.is_some()
    }

    /// When the time ends.
    pub(crate) fn deadline(&self) -> Instant {
        self.0.unwrap_or(Instant::NEVER)
    }
}
