//! The thread of a hybrid router: probes, events of devices, and changes of the packet filter.

mod devices;
mod plan;
mod record;
mod ruleset;
mod setup;
mod shares;
mod sockets;
mod status;
mod step;
mod system;
mod token;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridhaul_core::router::{Event, LinkState, Machine, Probe};
use gridhaul_linux::{Clock, LinkEvent, LinkEvents, discard_waiting_packets, replace_mark_rules};
use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::relay::RouterConfig;
use gridhaul_scenario::units::{Duration, Instant};
use serde_json::Value;

use self::record::Record;
use self::ruleset::Selection;
use self::sockets::ProbeSocket;
use self::step::Step;
use self::token::RouterToken;
use crate::file_lock::FileLock;
use crate::runtime::event_loop::{Drain, End, EventLoop, LoopState};
use crate::runtime::listening_sockets::ListeningSockets;
use crate::runtime::management::StatusRequest;
use crate::runtime::poll::{Poll, Source, Waker};
use crate::runtime::program::Program;
use crate::runtime::systemd::Watchdog;
use crate::runtime::upgrade::UpgradeState;
use crate::runtime::{Level, RunError, event_loop, report};

pub(crate) use devices::notes;
pub(crate) use setup::{commands, remove, validate};

struct Loop {
    clock: Clock,
    poll: Poll<RouterToken>,
    waker: Arc<Waker>,
    state: LoopState,
    /// File of the record of all changes, which no other process may use.
    record: PathBuf,
    /// Content of the file at the start: others may delete it.
    copy: Record,
    _lock: FileLock,
    machine: Machine,
    devices: LinkEvents,
    /// By link: number of the device in the kernel, 0 if there is none.
    indices: Vec<u32>,
    /// By link; `None` while its device does not exist.
    sockets: Vec<Option<ProbeSocket>>,
    /// Time of the next attempt to change the packet filter, after one that has failed.
    retry_at: Instant,
    watchdog: Watchdog,
    drain: Drain,
}

/// Time from an attempt to change the packet filter that has failed to the next one.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Runs a hybrid router until it is stopped or replaced.
pub(crate) fn run(
    config: &RelayConfig,
    router: &RouterConfig,
    program: &Program,
    sockets: ListeningSockets,
) -> Result<End, RunError> {
    event_loop::run(program, |waker| Loop::new(config, router, program.folder(), waker, sockets))
}

impl EventLoop for Loop {
    const RELOADED: &'static str = "`management.tls`";
    const STOPPED: &'static str = "stopped; all changes of routes and filters are undone";

    fn ready(&self) -> String {
        let (name, links) = (&self.state.config.name, self.sockets.len());
        format!("hybrid router {name} is ready: {links} links")
    }

    fn turn(&mut self) -> Result<(), RunError> {
        let mut events = Vec::new();
        self.poll.wait(self.clock.until(self.deadline()), &mut events)?;
        self.watchdog.report(&self.clock);
        let now = self.clock.now();
        for (source, _) in events {
            match source {
                Source::Socket(RouterToken::Devices) => self.handle_devices(now)?,
                Source::Socket(RouterToken::Link(link)) => self.receive(now, link as usize),
                Source::Waker => self.waker.clear(),
            }
        }
        self.machine.advance(now);
        while let Some((link, probe)) = self.machine.next_probe(now) {
            if let Some(socket) = &self.sockets[link] {
                socket.send(&probe.encode());
            }
        }
        self.apply_events(now);
        Ok(())
    }

    fn state(&mut self) -> &mut LoopState {
        &mut self.state
    }

    fn respond_to(&self, request: &StatusRequest) -> Value {
        self.document(self.clock.now(), request.path())
    }

    fn apply(&mut self, config: &RelayConfig, _: &Path) -> Result<(), String> {
        if config.router == self.state.config.router {
            return Ok(());
        }
        Err("router: a running hybrid router does not change its links and classes\n  help: \
             restart the relay"
            .to_owned())
    }

    fn copy_reloaded(_: &RelayConfig, _: &mut RelayConfig) {}

    fn begin_drain(&mut self) {
        self.drain.begin(self.clock.now(), Duration::ZERO);
    }

    fn is_drained(&mut self) -> bool {
        self.drain.has_begun()
    }

    fn into_upgrade_state(self) -> UpgradeState {
        // The next version adopts the changes to the system.
        let listeners = self.state.requests.into_listeners();
        UpgradeState { listeners, ..UpgradeState::default() }
    }

    fn stop(&mut self) {
        if self.drain.has_begun() {
            return;
        }
        if let Err(error) = system::remove_own(&self.record, &self.copy) {
            report(Level::Error, &error.to_string());
        }
    }
}

impl Loop {
    fn router(&self) -> &RouterConfig {
        self.state.config.router.as_ref().expect("the relay is a hybrid router")
    }

    fn deadline(&self) -> Instant {
        self.machine.deadline().min(self.retry_at).min(self.watchdog.deadline())
    }

    fn receive(&mut self, now: Instant, link: usize) {
        let Some(socket) = &self.sockets[link] else { return };
        let machine = &mut self.machine;
        socket.receive(|datagram| match Probe::decode(datagram) {
            Some(probe) => machine.handle_probe(now, link, &probe),
            None => machine.note_refused(),
        });
    }

    fn handle_devices(&mut self, now: Instant) -> Result<(), RunError> {
        let Ok(events) = self.devices.receive() else {
            // Events were lost: all devices are read again.
            let repeated = self.devices.request_all();
            repeated.map_err(gridhaul_linux::Error::call("observing network devices"))?;
            return Ok(());
        };
        for event in events {
            let router = self.router();
            let link = router.link.values().position(|link| link.device == event.name);
            if let Some(link) = link {
                self.handle_device(now, link, &event);
            }
        }
        Ok(())
    }

    fn handle_device(&mut self, now: Instant, link: usize, event: &LinkEvent) {
        let is_new = event.has_carrier && self.indices[link] != event.index;
        let was_up = self.machine.has_carrier(link);
        if event.has_carrier && (is_new || !was_up) {
            self.restore(link, is_new);
            if is_new {
                self.reopen_socket(link);
            }
            self.indices[link] = event.index;
        }
        self.machine.handle_carrier(now, link, event.has_carrier);
    }

    /// Restores what the kernel has removed: routes of a device that was down, everything of a
    /// device that was deleted.
    fn restore(&mut self, link: usize, is_new: bool) {
        let plan = match system::plan(self.router()) {
            Ok(plan) => plan,
            Err(error) => return report(Level::Warning, &error.to_string()),
        };
        let device = plan.devices[link].iter().filter(|_| is_new);
        for step in device.chain(&plan.routes[link]) {
            if let Err(error) = system::apply(step) {
                report(Level::Warning, &error.to_string());
            }
        }
    }

    /// Opens a socket for the device that has replaced that of a link.
    fn reopen_socket(&mut self, link: usize) {
        // A closed socket is no longer watched.
        self.sockets[link] = None;
        match ProbeSocket::open_watched(self.router(), link, &self.poll) {
            Ok(socket) => self.sockets[link] = Some(socket),
            Err(error) => report(Level::Warning, &error.to_string()),
        }
    }

    /// Reports changes, and lets classes use other links.
    fn apply_events(&mut self, now: Instant) {
        let mut changes = Vec::new();
        for event in self.machine.take_events() {
            let router = self.router();
            let name = |link: usize| router.link.get_index(link).map_or("", |(name, _)| name);
            match event {
                Event::State { link, state } => {
                    let text = format!("link {}: {}", name(link), status::words(state));
                    report(Level::Notice, &text);
                }
                Event::Selected { class, link } => {
                    let class_name = router.class.get_index(class);
                    let packets = class_name
                        .map_or("other packets".to_owned(), |(name, _)| format!("class {name}"));
                    report(Level::Notice, &format!("{packets}: link {}", name(link)));
                    changes.push(Selection { class, link });
                }
            }
        }
        if changes.is_empty() && self.retry_at > now {
            return;
        }
        let is_retry = self.retry_at <= now;
        self.retry_at = Instant::NEVER;
        if let Err(error) = self.select(&changes, is_retry) {
            report(Level::Error, &format!("{error}\nretrying in {RETRY_INTERVAL}"));
            self.retry_at = now + RETRY_INTERVAL;
            return;
        }
        // Before the change, a segment may have been sent to the device that has lost its carrier,
        // where it waits for a neighbour. The kernel would not retransmit it for three seconds.
        for (link, index) in self.indices.iter().enumerate() {
            if matches!(self.machine.state(link), LinkState::Failed(_) | LinkState::Suspected)
                && let Err(error) = discard_waiting_packets(*index)
            {
                report(Level::Warning, &error.to_string());
            }
        }
    }

    /// Changes the packet filter. If another program has removed the table, it is created again.
    fn select(&self, changes: &[Selection], is_retry: bool) -> Result<(), gridhaul_linux::Error> {
        let rules = ruleset::selection(changes);
        if !is_retry && replace_mark_rules(ruleset::TABLE_NAME, &rules).is_ok() {
            return Ok(());
        }
        let router = self.router();
        let selected: Vec<_> =
            (0..=router.class.len()).map(|class| self.machine.selected(class)).collect();
        system::apply(&Step::Ruleset(ruleset::table(router, &selected)))
    }
}
