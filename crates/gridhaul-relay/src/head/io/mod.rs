//! The head's thread for all connections.

pub(crate) mod delivery;
mod links;
mod status;
mod token;

use std::path::Path;
use std::sync::Arc;

use gridhaul_linux::Clock;
use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::relay::{Deliver, HeadConfig};
use gridhaul_scenario::units::{Duration, Instant};
use rustix::event::epoll::EventFlags;
use rustls::ServerConfig;
use serde_json::Value;
use socket2::Socket;

use self::delivery::{DeliveryLog, Destination, DestinationConfig};
use self::token::HeadToken;
use super::{Head, HeadSettings, HeadState, Loss, METERS_MAX};
use crate::runtime::committer::Committer;
use crate::runtime::event_loop;
use crate::runtime::event_loop::End;
use crate::runtime::event_loop::{EventLoop, LoopState};
use crate::runtime::listening_sockets::ListeningSockets;
use crate::runtime::log_folder::{LogLosses, open_log};
use crate::runtime::management::{StatusRequest, StatusRequests};
use crate::runtime::poll::{Poll, Source, Waker};
use crate::runtime::program::Program;
use crate::runtime::random;
use crate::runtime::record_age::RecordAges;
use crate::runtime::report::LimitedReports;
use crate::runtime::systemd::Watchdog;
use crate::runtime::upgrade::UpgradeState;
use crate::runtime::{Level, RunError, report, tls};
use links::Link;

/// Key of the address at which collectors connect.
pub(crate) const LISTENER: &str = "head.address";

struct Loop {
    state: LoopState,
    clock: Clock,
    poll: Poll<HeadToken>,
    waker: Arc<Waker>,
    head: Head,
    committer: Committer,
    destination: Destination,
    listener: Socket,
    /// Whether connections wait to be accepted.
    is_ready: bool,
    /// Collectors are not accepted before this time, after files were exhausted.
    accept_at: Instant,
    reports: LimitedReports,
    links: Vec<Option<Link>>,
    segment: u64,
    log_end: u64,
    delivered: u64,
    trimmed: u64,
    /// Ages of records that are not delivered.
    undelivered: RecordAges,
    backlog_max: u64,
    next_check: Instant,
    buffer: Vec<u8>,
    tls: Option<Arc<ServerConfig>>,
    watchdog: Watchdog,
    /// Another version of the program continues after this turn.
    is_replaced: bool,
    losses: Losses,
}

/// Records that are lost.
#[derive(Default)]
struct Losses {
    /// Damaged and missing regions of the head's log.
    log: LogLosses,
    /// Gaps in the records of collectors, and what they have lost as far as it is known.
    gaps: u64,
    records: u64,
    bytes: u64,
}

/// Runs a head until it is stopped.
pub(crate) fn run(
    config: &RelayConfig,
    head: &HeadConfig,
    program: &Program,
    sockets: ListeningSockets,
) -> Result<End, RunError> {
    event_loop::run(program, |waker| Loop::new(config, head, program.folder(), waker, sockets))
}

impl Loop {
    fn new(
        config: &RelayConfig,
        head: &HeadConfig,
        folder: &Path,
        waker: Arc<Waker>,
        mut sockets: ListeningSockets,
    ) -> Result<Self, RunError> {
        let log = config.log.as_ref().ok_or_else(|| {
            RunError::Unsupported(
                "log: a head needs a log\n  help: add [log] with folder".to_owned(),
            )
        })?;
        let tls = head.tls.as_ref().map(|tls| tls::head(tls, folder)).transpose()?;
        let poll = Poll::new(&waker)?;
        let opened = open_log(log, folder)?;
        let (writer, snapshot) = (opened.writer, opened.snapshot);
        let (storage, epoch) = (writer.storage().clone(), writer.epoch());
        let range = writer.durable_range();
        let state = HeadState::recover(storage.clone(), epoch, &snapshot, range)?;
        let requests = StatusRequests::serve(config, folder, &mut sockets, &waker)?;
        let delivery_log = DeliveryLog { storage, epoch, snapshot, range };
        let losses = LogLosses::of(&opened.findings);
        let keys = DestinationConfig { name: &config.name, head, log, folder };
        let destination = Destination::start(keys, delivery_log, Arc::clone(&waker))?;
        let settings = HeadSettings {
            collectors: head.collectors.clone(),
            window: head.window.get(),
            backlog: log.limit.get(),
            segment: log.segment.get(),
            replies: head.deliver.has_replies(),
            meters: METERS_MAX,
        };
        let mut machine = Head::new(settings, random(), state, range.end);
        // Records before the start of the log were delivered; the destination reports how many
        // more.
        machine.handle_delivered(range.start);
        if opened.has_old_version {
            machine.begin_segment();
        }
        let listener = sockets.take(LISTENER).expect("the listener is open");
        poll.add(&listener, HeadToken::Listener, EventFlags::IN | EventFlags::ET)
            .map_err(gridhaul_linux::Error::call("watching the listener"))?;
        Ok(Self {
            state: LoopState { config: config.clone(), requests },
            clock: Clock::starts_in(Duration::ZERO),
            poll,
            committer: Committer::start(writer, Arc::clone(&waker)),
            waker,
            head: machine,
            destination,
            listener,
            is_ready: false,
            accept_at: Instant::ZERO,
            reports: LimitedReports::default(),
            links: Vec::new(),
            segment: log.segment.get(),
            log_end: range.end.position(),
            delivered: range.start,
            trimmed: range.start,
            undelivered: RecordAges::default(),
            backlog_max: log.limit.get(),
            next_check: Instant::ZERO,
            buffer: vec![0; 256 * 1024],
            tls,
            watchdog: Watchdog::from_environment(),
            is_replaced: false,
            losses: Losses { log: losses, ..Losses::default() },
        })
    }
}

impl EventLoop for Loop {
    const RELOADED: &'static str = "TLS, `handshake_limit`";
    const STOPPED: &'static str = "stopped";

    fn ready(&self) -> String {
        let address = self.state.config.head.as_ref().map_or("", |head| &head.address);
        format!("head {} is ready at {address}", self.state.config.name)
    }

    fn turn(&mut self) -> Result<(), RunError> {
        let mut events = Vec::new();
        self.watchdog.report(&self.clock);
        let accept = if self.is_ready { self.accept_at } else { Instant::NEVER };
        let deadline = self.next_check.min(self.watchdog.deadline()).min(accept);
        self.poll.wait(self.clock.until(deadline), &mut events)?;
        let now = self.clock.now();
        for (source, _) in events {
            match source {
                Source::Socket(HeadToken::Listener) => self.is_ready = true,
                Source::Socket(HeadToken::Collector(index)) => self.handle_link(now, index),
                Source::Waker => self.waker.clear(),
            }
        }
        self.accept(now);
        // The result of a group comes before the next one: meanwhile, the frames of this turn have
        // joined the group that begins now (group commit).
        while let Some(end) = self.committer.poll()? {
            self.log_end = end.position();
            self.head.handle_written(end);
            self.destination.deliver(end);
        }
        if let Some(group) = self.head.poll_group() {
            self.committer.write(group);
        }
        let delivered = self.destination.progress().delivered()?;
        self.delivered = delivered;
        self.undelivered.note(now, self.log_end, delivered);
        self.head.handle_delivered(delivered);
        self.destination.exchange(&mut self.head);
        // A crash begins delivery at the saved position again: what was delivered since then must
        // stay in the log, so that segments are removed up to the saved position only.
        let saved = self.destination.progress().saved();
        if saved >= self.trimmed + self.segment {
            self.trimmed = saved;
            self.committer.trim(saved);
        }
        self.report_losses();
        // The former connection of a collector is closed before output is written: none of it may
        // go there.
        while let Some(index) = self.head.poll_superseded() {
            self.close(index);
        }
        while let Some((index, bytes)) = self.head.poll_output() {
            if let Some(Some(link)) = self.links.get_mut(index as usize) {
                link.out.extend_from_slice(&bytes);
            }
            self.transmit(index);
        }
        self.close_silent(now);
        Ok(())
    }

    fn state(&mut self) -> &mut LoopState {
        &mut self.state
    }

    fn respond_to(&self, _: &StatusRequest) -> Value {
        self.status()
    }

    fn apply(&mut self, config: &RelayConfig, folder: &Path) -> Result<(), String> {
        let head = config.head.as_ref().ok_or("there is no [head]")?;
        let own = head.tls.as_ref().map(|tls| tls::head(tls, folder)).transpose();
        let broker = tls::broker(head, folder).map_err(|error| error.to_string())?;
        self.tls = own.map_err(|error| error.to_string())?;
        self.destination.replace_certificates(broker);
        self.destination.reopen();
        Ok(())
    }

    fn copy_reloaded(from: &RelayConfig, to: &mut RelayConfig) {
        if let (Some(to), Some(from)) = (&mut to.head, &from.head) {
            to.tls.clone_from(&from.tls);
            to.handshake_limit = from.handshake_limit;
            if let (Deliver::Mqtt(to), Deliver::Mqtt(from)) = (&mut to.deliver, &from.deliver)
                && let (Some(to), Some(from)) = (&mut to.tls, &from.tls)
            {
                to.clone_from(from);
            }
        }
    }

    fn begin_drain(&mut self) {
        report(Level::Notice, "upgrade: collectors connect again");
        self.is_replaced = true;
    }

    fn is_drained(&mut self) -> bool {
        self.is_replaced
    }

    fn into_upgrade_state(self) -> UpgradeState {
        let listeners = std::iter::once(self.listener).chain(self.state.requests.into_listeners());
        UpgradeState { listeners: listeners.collect(), ..UpgradeState::default() }
    }
}

impl Loop {
    /// Reports records that collectors do not have any more.
    fn report_losses(&mut self) {
        while let Some(Loss { collector, shard, records, bytes }) = self.head.poll_loss() {
            let size = match (records, bytes) {
                (Some(records), _) => format!("{records} records"),
                (None, Some(bytes)) => format!("{bytes} bytes of its record log"),
                (None, None) => "an unknown number of records".to_owned(),
            };
            let text = format!("collector {collector}, shard {shard}: {size} are lost");
            report(Level::Error, &text);
            self.losses.gaps += 1;
            self.losses.records += records.unwrap_or(0);
            self.losses.bytes += bytes.unwrap_or(0);
        }
    }
}
