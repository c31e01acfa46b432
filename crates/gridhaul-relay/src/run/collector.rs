//! The collector's thread for all connections.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use gridhaul_linux::Clock;
use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::relay::{Collector, DurabilityTier};
use gridhaul_scenario::units::{Duration, Instant};
use rustix::event::epoll::EventFlags;
use serde_json::{Value, json};
use socket2::Socket;

use super::committer::Committer;
use super::log_folder::{open_log, random};
use super::management::{Question, Questions};
use super::meter_socket::{self, MeterSocket, Output};
use super::poll::{Poll, Token, Waker};
use super::signals::Stop;
use super::upstream::Upstream;
use super::{Level, RunError, listener, report};
use crate::aggregate::{Aggregate, CollectorState, Event, MeterId, Settings, Tier, recover};
use crate::config::framing_of;
use crate::log::Folder;
use crate::protocol::framing::MessageFraming;
use crate::protocol::{Identity, ResetCause};

/// Bytes that are read from a meter before the next one is served (deficit round robin with equal shares).
const QUANTUM: usize = 16 * 1024;

/// Connections that are accepted before meters are served again.
const ACCEPT_BUDGET: usize = 64;

struct Loop {
    clock: Clock,
    poll: Poll,
    waker: Arc<Waker>,
    aggregate: Aggregate<Folder>,
    committer: Option<Committer>,
    listeners: Vec<MeterAddress>,
    upstreams: Vec<Upstream>,
    sockets: Vec<Option<MeterSocket>>,
    /// Meters with data to read, in turn.
    ready: VecDeque<MeterId>,
    receive_buffer: u32,
    meters_max: usize,
    batch_delay: Duration,
    /// When records that wait for others to share a batch are sent.
    flush_at: Instant,
    trimmed: u64,
    idle_gaps: VecDeque<(Instant, MeterId, u64)>,
    buffer: Vec<u8>,
    counters: Counters,
    questions: Questions,
}

struct MeterAddress {
    name: String,
    socket: Socket,
    framing: MessageFraming,
    idle_gap: Option<Duration>,
    /// Whether connections wait to be accepted.
    is_ready: bool,
}

#[derive(Default)]
struct Counters {
    accepted: u64,
    refused: u64,
    received: u64,
    resets: [u64; ResetCause::ALL.len() + 1],
}

/// Runs a collector until it is stopped.
pub(super) fn run(
    config: &RelayConfig,
    collector: &Collector,
    folder: &Path,
) -> Result<(), RunError> {
    let waker = Arc::new(Waker::new()?);
    let stop = Stop::on_signals(Arc::clone(&waker))?;
    let questions = Questions::serve(config.management.as_ref(), &waker)?;
    let mut event_loop = Loop::new(config, collector, folder, waker, questions)?;
    report(Level::Notice, &format!("collector {} is ready", config.name));
    while !stop.is_set() {
        event_loop.turn()?;
    }
    event_loop.stop();
    Ok(())
}

impl Loop {
    fn new(
        config: &RelayConfig,
        collector: &Collector,
        folder: &Path,
        waker: Arc<Waker>,
        questions: Questions,
    ) -> Result<Self, RunError> {
        let settings = settings(config, collector);
        let poll = Poll::new()?;
        poll.add(&*waker, Token::Wake, EventFlags::IN)
            .map_err(gridhaul_linux::Error::call("watching the threads"))?;
        let (aggregate, committer) = match &config.log {
            Some(log) => {
                let opened = open_log(log, folder)?;
                let writer = opened.writer;
                let storage = writer.storage().clone();
                let (epoch, range) = (writer.epoch(), (writer.start(), writer.end()));
                let state =
                    recover(storage.clone(), epoch, &opened.snapshot, range, collector.shards)?;
                let log = Some((storage, range.0, range.1));
                let aggregate = Aggregate::new(settings, epoch, &state, log);
                (aggregate, Some(Committer::start(writer, Arc::clone(&waker))))
            }
            None => (Aggregate::new(settings, random(), &CollectorState::default(), None), None),
        };
        let mut listeners = Vec::new();
        for (name, address) in &collector.listener {
            let key = format!("aggregate.listener.{name}.address");
            let socket = listener::listen(&key, &address.address)?;
            let token = Token::Listener(listeners.len() as u32);
            poll.add(&socket, token, EventFlags::IN | EventFlags::ET)
                .map_err(gridhaul_linux::Error::call("watching a listener"))?;
            let (framing, idle_gap) = framing_of(&address.framing);
            let name = name.clone();
            listeners.push(MeterAddress { name, socket, framing, idle_gap, is_ready: false });
        }
        let control = collector.congestion_control.as_deref();
        let upstream = |shard| Upstream::new(shard, &collector.upstream, control);
        let open_files = gridhaul_linux::raise_open_file_limit().saturating_sub(RESERVED_FILES);
        let meters_max =
            collector.meters.map_or(open_files, |meters| open_files.min(meters.into()));
        Ok(Self {
            clock: Clock::starts_in(Duration::ZERO),
            poll,
            waker,
            aggregate,
            committer,
            listeners,
            upstreams: (0..collector.shards).map(upstream).collect(),
            sockets: Vec::new(),
            ready: VecDeque::new(),
            receive_buffer: collector.receive_buffer.get() as u32,
            meters_max: meters_max as usize,
            batch_delay: collector.batch_delay,
            flush_at: Instant::NEVER,
            trimmed: 0,
            idle_gaps: VecDeque::new(),
            buffer: vec![0; QUANTUM],
            counters: Counters::default(),
            questions,
        })
    }

    /// Waits for events and handles them.
    fn turn(&mut self) -> Result<(), RunError> {
        let mut events = Vec::new();
        self.poll.wait(self.clock.until(self.deadline()), &mut events)?;
        let now = self.clock.now();
        for (token, flags) in events {
            match token {
                Token::Listener(index) => self.listeners[index as usize].is_ready = true,
                Token::Meter(index, number) => self.handle_meter(index, number, flags),
                Token::Upstream(index) => {
                    let upstream = &mut self.upstreams[index as usize];
                    upstream.handle_event(now, &mut self.aggregate, &mut self.buffer);
                }
                Token::Wake => self.waker.clear(),
                Token::Collector(_) => {}
            }
        }
        self.accept();
        self.serve_ready(now);
        self.end_idle_messages(now);
        self.store(now)?;
        for upstream in &mut self.upstreams {
            upstream.advance(now, &mut self.aggregate, &self.poll, &self.waker);
            upstream.transmit(now, &mut self.aggregate);
        }
        self.handle_events();
        self.trim();
        while let Some(question) = self.questions.next() {
            let answer = self.answer(&question);
            question.answer(answer);
        }
        Ok(())
    }

    fn deadline(&self) -> Instant {
        if self.has_work() {
            return Instant::ZERO;
        }
        let upstreams = self.upstreams.iter().map(Upstream::deadline);
        let gap = self.idle_gaps.front().map_or(Instant::NEVER, |(at, _, _)| *at);
        upstreams.min().unwrap_or(Instant::NEVER).min(self.flush_at).min(gap)
    }

    /// Whether something can be done without waiting for an event.
    fn has_work(&self) -> bool {
        let can_accept = self.aggregate.meter_count() < self.meters_max;
        can_accept && self.listeners.iter().any(|listener| listener.is_ready)
            || self.ready.iter().take(READY_CHECKED).any(|id| self.aggregate.acceptable(*id) > 0)
    }

    fn accept(&mut self) {
        let mut budget = ACCEPT_BUDGET;
        for index in 0..self.listeners.len() {
            while self.listeners[index].is_ready
                && budget > 0
                && self.aggregate.meter_count() < self.meters_max
            {
                budget -= 1;
                match listener::accept(&self.listeners[index].socket) {
                    Ok(None) => self.listeners[index].is_ready = false,
                    Ok(Some((socket, address))) => {
                        self.open(index, socket, address.as_socket());
                    }
                    Err(error) => {
                        self.counters.refused += 1;
                        report(Level::Error, &format!("cannot accept a meter: {error}"));
                        self.listeners[index].is_ready = false;
                    }
                }
            }
        }
    }

    fn open(&mut self, index: usize, socket: Socket, peer: Option<std::net::SocketAddr>) {
        if let Err(error) = meter_socket::configure(&socket, self.receive_buffer) {
            self.counters.refused += 1;
            report(Level::Warning, &error.to_string());
            return;
        }
        let listener = &self.listeners[index];
        let local = socket.local_addr().ok().and_then(|address| address.as_socket());
        let identity = Identity { peer, local, listener: &listener.name, certificate: "" };
        let id = self.aggregate.open_meter(identity, listener.framing.clone());
        let token = Token::Meter(id.index, id.number as u32);
        let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
        if let Err(error) = self.poll.add(&socket, token, flags) {
            self.aggregate.handle_reset(id, ResetCause::Operator);
            report(Level::Error, &format!("cannot watch a meter: {error}"));
            return;
        }
        self.counters.accepted += 1;
        let row = id.index as usize;
        if self.sockets.len() <= row {
            self.sockets.resize_with(row + 1, || None);
        }
        let listener = index as u16;
        self.sockets[row] =
            Some(MeterSocket { id, socket, listener, is_ready: false, output: None });
    }

    fn handle_meter(&mut self, index: u32, number: u32, flags: EventFlags) {
        let Some(Some(meter)) = self.sockets.get_mut(index as usize) else { return };
        // An event of a connection that has ended in this turn.
        if meter.id.number as u32 & 0xff_ffff != number {
            return;
        }
        if flags.contains(EventFlags::OUT) && meter.output.is_some() {
            let id = meter.id;
            self.flush(id);
        }
        let Some(Some(meter)) = self.sockets.get_mut(index as usize) else { return };
        let readable = EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        if flags.intersects(readable) && !meter.is_ready {
            meter.is_ready = true;
            self.ready.push_back(meter.id);
        }
    }

    /// Reads from each ready meter at most once, as long as records are accepted.
    fn serve_ready(&mut self, now: Instant) {
        for _ in 0..self.ready.len() {
            let Some(id) = self.ready.pop_front() else { return };
            let acceptable = self.aggregate.acceptable(id) as usize;
            let row = id.index as usize;
            let Some(Some(meter)) = self.sockets.get_mut(row) else { continue };
            if meter.id != id {
                continue;
            }
            if acceptable == 0 && self.aggregate.status(id).is_some_and(|status| !status.is_ended) {
                self.ready.push_back(id);
                continue;
            }
            let limit = acceptable.clamp(1, QUANTUM);
            meter.is_ready = false;
            match meter_socket::read(&meter.socket, &mut self.buffer[..limit]) {
                Ok(None) => {}
                Ok(Some(0)) => self.aggregate.handle_fin(id),
                Ok(Some(length)) => {
                    meter.is_ready = true;
                    self.ready.push_back(id);
                    self.received(now, id, length);
                }
                Err(_) => {
                    self.aggregate.handle_reset(id, ResetCause::Meter);
                    self.counters.resets[ResetCause::Meter as usize] += 1;
                    self.sockets[row] = None;
                }
            }
        }
    }

    fn received(&mut self, now: Instant, id: MeterId, length: usize) {
        self.counters.received += length as u64;
        if self.flush_at == Instant::NEVER {
            self.flush_at = now + self.batch_delay;
        }
        if let Err(error) = self.aggregate.handle_data(id, &self.buffer[..length]) {
            report(Level::Warning, &format!("meter {}: {error}", id.number));
            return;
        }
        let listener = self.sockets[id.index as usize].as_ref().map_or(0, |meter| meter.listener);
        if let Some(gap) = self.listeners[usize::from(listener)].idle_gap
            && let Some(status) = self.aggregate.status(id)
        {
            self.idle_gaps.push_back((now + gap, id, status.received));
        }
    }

    fn end_idle_messages(&mut self, now: Instant) {
        while let Some((_, id, received)) = self.idle_gaps.pop_front_if(|(at, _, _)| *at <= now) {
            if self.aggregate.status(id).is_some_and(|status| status.received == received) {
                self.aggregate.handle_idle_gap(id);
            }
        }
    }

    /// Passes records to the log or, without one, to the backlog.
    fn store(&mut self, now: Instant) -> Result<(), RunError> {
        if let Some(committer) = &self.committer {
            while let Some(end) = committer.poll()? {
                self.aggregate.handle_written(end);
            }
            if let Some(group) = self.aggregate.poll_group() {
                committer.write(group);
            }
            self.flush_at = Instant::NEVER;
        } else if self.flush_at <= now || self.flush_at == Instant::NEVER {
            self.flush_at = Instant::NEVER;
            let group = self.aggregate.poll_group();
            debug_assert!(group.is_none(), "without a log, there are no groups");
        }
        Ok(())
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.aggregate.poll_event() {
            match event {
                Event::Down { meter, bytes } => {
                    if let Some(output) = self.output(meter) {
                        output.bytes.extend(bytes);
                    }
                    self.flush(meter);
                }
                Event::SendFin(meter) => {
                    if let Some(output) = self.output(meter) {
                        output.fin = true;
                    }
                    self.flush(meter);
                }
                Event::Close(meter) => {
                    if let Some(output) = self.output(meter) {
                        output.close = true;
                    }
                    self.flush(meter);
                }
                Event::Reset(meter, cause) => {
                    self.counters.resets[cause as usize] += 1;
                    self.remove(meter);
                }
            }
        }
    }

    fn output(&mut self, id: MeterId) -> Option<&mut Output> {
        let meter = self.sockets.get_mut(id.index as usize)?.as_mut()?;
        (meter.id == id).then(|| &mut **meter.output.get_or_insert_default())
    }

    /// Drops a socket. The kernel sends RST unless FIN was allowed.
    fn remove(&mut self, id: MeterId) {
        if let Some(slot) = self.sockets.get_mut(id.index as usize)
            && slot.as_ref().is_some_and(|meter| meter.id == id)
        {
            *slot = None;
        }
    }

    /// Writes waiting data to a meter.
    fn flush(&mut self, id: MeterId) {
        let Some(Some(meter)) = self.sockets.get_mut(id.index as usize) else { return };
        if meter.id != id {
            return;
        }
        let result = meter.flush();
        let is_complete = meter.is_complete();
        let is_waiting = meter.output.as_ref().is_some_and(|output| !output.bytes.is_empty());
        if is_waiting {
            let token = Token::Meter(id.index, id.number as u32);
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            // Without this event the data would wait for the next one; the socket exists.
            let _ = self.poll.modify(&meter.socket, token, flags);
        }
        match result {
            Ok(written) if written > 0 => {
                let mut none = Vec::new();
                let shard = self.aggregate.shard(id).unwrap_or(0);
                let out = self.upstreams[usize::from(shard)].output().unwrap_or(&mut none);
                self.aggregate.handle_down_written(id, written as u64, out);
            }
            Ok(_) => {}
            Err(_) => {
                self.aggregate.handle_reset(id, ResetCause::Meter);
                self.remove(id);
                return;
            }
        }
        if is_complete {
            self.remove(id);
        }
    }

    /// Removes segments that the head has confirmed.
    fn trim(&mut self) {
        let Some(committer) = &self.committer else { return };
        let position = self.aggregate.confirmed_position();
        if position >= self.trimmed + self.aggregate.settings().segment {
            self.trimmed = position;
            committer.trim(position);
        }
    }

    /// Waits until all accepted data is durable, so that as little as possible is sent again.
    fn stop(&mut self) {
        if let Some(committer) = &self.committer {
            for _ in 0..STOP_TURNS {
                if !self.aggregate.is_writing() {
                    break;
                }
                let mut none = Vec::new();
                let _ = self.poll.wait(std::time::Duration::from_millis(10), &mut none);
                if let Ok(Some(end)) = committer.poll() {
                    self.aggregate.handle_written(end);
                }
            }
        }
        report(Level::Notice, "stopped; connections of meters are reset");
    }

    fn answer(&self, question: &Question) -> Value {
        let aggregate = &self.aggregate;
        match question.path() {
            "/meters" => {
                let meters: Vec<Value> = aggregate
                    .meters()
                    .map(|meter| {
                        json!({
                            "meter": meter.number,
                            "received_byte": meter.received,
                            "durable_byte": meter.durable,
                            "is_ended": meter.is_ended,
                        })
                    })
                    .collect();
                json!({ "epoch": format!("{:016x}", aggregate.epoch()), "meters": meters })
            }
            _ => self.status(),
        }
    }

    fn status(&self) -> Value {
        let aggregate = &self.aggregate;
        let causes = ResetCause::ALL.iter();
        let resets: serde_json::Map<String, Value> = causes
            .map(|cause| (cause.name().to_owned(), self.counters.resets[*cause as usize].into()))
            .collect();
        let connected = self.upstreams.iter().filter(|upstream| upstream.is_connected()).count();
        let reconnections: u64 = self.upstreams.iter().map(|upstream| upstream.reconnections).sum();
        json!({
            "role": "collector",
            "name": aggregate.settings().name,
            "tier": aggregate.settings().tier.name(),
            "meters_count": aggregate.meter_count(),
            "meters_max_count": self.meters_max,
            "accepted_count": self.counters.accepted,
            "refused_count": self.counters.refused,
            "received_byte": self.counters.received,
            "bytes_at_risk_byte": aggregate.bytes_at_risk(),
            "receive_buffer_byte": self.receive_buffer,
            "backlog_byte": aggregate.backlog_size(),
            "backlog_max_byte": aggregate.settings().backlog,
            "upstreams_count": self.upstreams.len(),
            "upstreams_connected_count": connected,
            "upstream_failures_count": reconnections,
            "resets_count": resets,
        })
    }
}

/// Files that are not connections of meters: log, upstreams, listeners, status page.
const RESERVED_FILES: u64 = 256;

/// Turns of 10 ms for which a daemon that is stopped waits until its data is durable.
const STOP_TURNS: usize = 100;

/// Number of waiting meters of which the loop checks whether they can be served.
const READY_CHECKED: usize = 64;

fn settings(config: &RelayConfig, collector: &Collector) -> Settings {
    let tier = match collector.tier {
        DurabilityTier::Memory => Tier::Memory,
        DurabilityTier::Local => Tier::Local,
        DurabilityTier::Server => Tier::Server,
    };
    let (backlog, segment) = match &config.log {
        Some(log) => (log.limit.get(), log.segment.get()),
        None => (collector.memory.get(), u64::MAX),
    };
    Settings {
        name: config.name.clone(),
        tier,
        shards: collector.shards,
        at_risk: collector.bytes_at_risk.get(),
        at_risk_per_meter: collector.bytes_at_risk_per_meter.get(),
        backlog,
        segment,
        // A head delivers to files, which send nothing.
        replies: false,
    }
}
