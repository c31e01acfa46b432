//! The head's thread for all connections.

use std::path::Path;
use std::sync::Arc;

use gridhaul_linux::Clock;
use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::relay::{Deliver, HeadEnd};
use gridhaul_scenario::units::{Duration, Instant};
use rustix::event::epoll::EventFlags;
use rustls::ServerConfig;
use serde_json::{Value, json};
use socket2::Socket;

use super::committer::Committer;
use super::destination::Destination;
use super::event_loop::{self, EventLoop};
use super::handover::Handover;
use super::invocation::Invocation;
use super::log_folder::{open_log, random};
use super::management::{Question, Questions};
use super::poll::{Poll, Token, Waker};
use super::sink::LogStart;
use super::sockets::Sockets;
use super::stream::Stream;
use super::supervisor::Watchdog;
use super::{End, Level, RunError, certificate, listener, report, tls};
use crate::head::{Head, HeadSettings, HeadState};
use crate::protocol::{Frame, FrameReader, Refusal};

/// Key of the address at which collectors connect.
pub(super) const LISTENER: &str = "head.address";

/// Time after which a connection without any byte is closed: collectors probe every 10 s.
const SILENCE: Duration = Duration::from_secs(60);

struct Loop {
    config: RelayConfig,
    clock: Clock,
    poll: Poll,
    waker: Arc<Waker>,
    head: Head,
    committer: Committer,
    destination: Destination,
    listener: Socket,
    links: Vec<Option<Link>>,
    segment: u64,
    log_end: u64,
    delivered: u64,
    trimmed: u64,
    next_check: Instant,
    buffer: Vec<u8>,
    questions: Questions,
    tls: Option<Arc<ServerConfig>>,
    watchdog: Watchdog,
    /// Another version of the program continues after this turn.
    is_replaced: bool,
}

struct Link {
    stream: Stream,
    frames: FrameReader,
    out: Vec<u8>,
    heard: Instant,
    /// Close the connection after the output was sent.
    is_ended: bool,
}

/// Runs a head until it is stopped.
pub(super) fn run(
    config: &RelayConfig,
    head: &HeadEnd,
    invocation: &Invocation,
    sockets: Sockets,
) -> Result<End, RunError> {
    event_loop::run(invocation, |waker| {
        Loop::new(config, head, invocation.folder(), waker, sockets)
    })
}

impl Loop {
    fn new(
        config: &RelayConfig,
        head: &HeadEnd,
        folder: &Path,
        waker: Arc<Waker>,
        mut sockets: Sockets,
    ) -> Result<Self, RunError> {
        let log = config.log.as_ref().ok_or_else(|| {
            RunError::Unsupported(
                "log: a head needs a log\n  help: add [log] with folder".to_owned(),
            )
        })?;
        let tls = head.tls.as_ref().map(|it| tls::head(it, folder)).transpose()?;
        let poll = Poll::new()?;
        poll.add(&*waker, Token::Wake, EventFlags::IN)
            .map_err(gridhaul_linux::Error::call("watching the threads"))?;
        let opened = open_log(log, folder)?;
        let (writer, snapshot) = (opened.writer, opened.snapshot);
        let (storage, epoch) = (writer.storage().clone(), writer.epoch());
        let (start, end) = (writer.start(), writer.end());
        let state = HeadState::recover(storage.clone(), epoch, &snapshot, (start, end))?;
        let questions = Questions::serve(config, folder, &mut sockets, &waker)?;
        let log_start = LogStart { storage, epoch, snapshot, start, end };
        let ends = (head, log);
        let destination =
            Destination::start(&config.name, ends, folder, log_start, Arc::clone(&waker))?;
        let settings = HeadSettings {
            collectors: head.collectors.clone(),
            window: head.window.get(),
            backlog: log.limit.get(),
            segment: log.segment.get(),
            replies: head.deliver.has_replies(),
        };
        let mut machine = Head::new(settings, random(), state, end);
        machine.handle_delivered(start);
        let listener = sockets.take(LISTENER).expect("the listener is open");
        poll.add(&listener, Token::Listener(0), EventFlags::IN)
            .map_err(gridhaul_linux::Error::call("watching the listener"))?;
        Ok(Self {
            config: config.clone(),
            clock: Clock::starts_in(Duration::ZERO),
            poll,
            committer: Committer::start(writer, Arc::clone(&waker)),
            waker,
            head: machine,
            destination,
            listener,
            links: Vec::new(),
            segment: log.segment.get(),
            log_end: end,
            delivered: start,
            trimmed: start,
            next_check: Instant::ZERO,
            buffer: vec![0; 256 * 1024],
            questions,
            tls,
            watchdog: Watchdog::from_environment(),
            is_replaced: false,
        })
    }
}

impl EventLoop for Loop {
    const RELOADED: &'static str = "TLS";
    const STOPPED: &'static str = "stopped";

    fn ready(&self) -> String {
        let address = self.config.head.as_ref().map_or("", |head| &head.address);
        format!("head {} is ready at {address}", self.config.name)
    }

    fn turn(&mut self) -> Result<(), RunError> {
        let mut events = Vec::new();
        self.watchdog.report(&self.clock);
        let deadline = self.next_check.min(self.watchdog.deadline());
        self.poll.wait(self.clock.until(deadline), &mut events)?;
        let now = self.clock.now();
        for (token, _) in events {
            match token {
                Token::Listener(_) => self.accept(now),
                Token::Collector(index) => self.handle_link(now, index),
                Token::Wake => self.waker.clear(),
                Token::Meter(..) | Token::Upstream(_) | Token::Arrival(..) | Token::Leg(..) => {}
            }
        }
        while let Some(end) = self.committer.poll()? {
            self.log_end = end;
            self.head.handle_written(end);
            self.destination.deliver(end);
        }
        if let Some(group) = self.head.poll_group() {
            self.committer.write(group);
        }
        let delivered = self.destination.progress().delivered()?;
        self.delivered = delivered;
        self.head.handle_delivered(delivered);
        self.destination.exchange(&mut self.head);
        if delivered >= self.trimmed + self.segment {
            self.trimmed = delivered;
            self.committer.trim(delivered);
        }
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

    fn questions(&self) -> &Questions {
        &self.questions
    }

    fn answer(&self, _: &Question) -> Value {
        self.status()
    }

    fn config(&self) -> &RelayConfig {
        &self.config
    }

    fn apply(&mut self, config: RelayConfig, folder: &Path) -> Result<(), String> {
        let head = config.head.as_ref().ok_or("there is no [head]")?;
        let own = head.tls.as_ref().map(|it| tls::head(it, folder)).transpose();
        let broker = tls::broker(head, folder).map_err(|error| error.to_string())?;
        self.tls = own.map_err(|error| error.to_string())?;
        self.destination.replace_certificates(broker);
        self.config = config;
        Ok(())
    }

    fn copy_reloaded(from: &RelayConfig, to: &mut RelayConfig) {
        if let (Some(to), Some(from)) = (&mut to.head, &from.head) {
            to.tls.clone_from(&from.tls);
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

    fn into_handover(self) -> Handover {
        let listeners = std::iter::once(self.listener).chain(self.questions.into_listeners());
        Handover { listeners: listeners.collect(), ..Handover::default() }
    }
}

impl Loop {
    fn accept(&mut self, now: Instant) {
        loop {
            let socket = match listener::accept(&self.listener) {
                Ok(Some((socket, _))) => socket,
                Ok(None) => return,
                Err(error) => {
                    report(Level::Error, &format!("cannot accept a collector: {error}"));
                    return;
                }
            };
            let _ = socket.set_tcp_nodelay(true);
            let free = self.links.iter().position(Option::is_none);
            let index = free.unwrap_or_else(|| {
                self.links.push(None);
                self.links.len() - 1
            });
            let stream = match &self.tls {
                None => Ok(Stream::plain(socket)),
                Some(config) => Stream::server(socket, config),
            };
            let Ok(stream) = stream else { continue };
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
            if self.poll.add(&stream, Token::Collector(index as u32), flags).is_err() {
                continue;
            }
            let (frames, out) = (FrameReader::default(), Vec::new());
            self.links[index] = Some(Link { stream, frames, out, heard: now, is_ended: false });
            self.head.handle_connected(index as u32);
        }
    }

    fn handle_link(&mut self, now: Instant, index: u32) {
        match self.receive(now, index) {
            Ok(()) => {}
            Err(message) => {
                if !message.is_empty() {
                    report(Level::Warning, &format!("collector: {message}"));
                }
                while let Some((other, bytes)) = self.head.poll_output() {
                    if let Some(Some(link)) = self.links.get_mut(other as usize) {
                        link.out.extend_from_slice(&bytes);
                    }
                    self.transmit(other);
                }
                self.close(index);
                return;
            }
        }
        self.transmit(index);
    }

    fn receive(&mut self, now: Instant, index: u32) -> Result<(), String> {
        let Some(Some(link)) = self.links.get_mut(index as usize) else { return Ok(()) };
        loop {
            let length = match link.stream.read(&mut self.buffer) {
                Ok(Some(0)) => return Err(String::new()),
                Ok(Some(length)) => length,
                Ok(None) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            };
            link.heard = now;
            link.frames.push(&self.buffer[..length]);
            while let Some(frame) = link.frames.next_frame().map_err(|error| error.to_string())? {
                if let Frame::Hello(hello) = &frame
                    && let Err(reason) = check_name(&link.stream, hello.collector)
                {
                    Frame::Refused(Refusal { reason: &reason }).write(&mut link.out);
                    let _ = link.stream.write(&link.out);
                    return Err(reason);
                }
                self.head.handle_frame(index, &frame).map_err(|error| error.to_string())?;
            }
        }
    }

    fn transmit(&mut self, index: u32) {
        let Some(Some(link)) = self.links.get_mut(index as usize) else { return };
        match link.stream.write(&link.out) {
            Ok(written) => {
                link.out.drain(..written);
                if link.out.is_empty() && link.is_ended {
                    self.close(index);
                }
            }
            Err(_) => self.close(index),
        }
    }

    fn close(&mut self, index: u32) {
        if let Some(slot) = self.links.get_mut(index as usize) {
            *slot = None;
        }
        self.head.handle_disconnected(index);
    }

    fn close_silent(&mut self, now: Instant) {
        if now < self.next_check {
            return;
        }
        self.next_check = now + SILENCE / 4;
        for index in 0..self.links.len() {
            if self.links[index].as_ref().is_some_and(|link| now.since(link.heard) > SILENCE) {
                self.close(index as u32);
            }
        }
    }

    fn status(&self) -> Value {
        json!({
            "role": "head",
            "name": self.config.name,
            "collectors_connected_count": self.links.iter().flatten().count(),
            "meters_count": self.head.state().meter_count(),
            "log_end_byte": self.log_end,
            "delivered_byte": self.delivered,
            "delivery_error": self.destination.progress().trouble(),
            "backlog_byte": self.log_end - self.delivered.min(self.log_end),
        })
    }
}

/// With TLS, a collector has the name that its certificate states.
fn check_name(stream: &Stream, collector: &str) -> Result<(), String> {
    let Some(certificate) = stream.certificate() else { return Ok(()) };
    let names = certificate::names(certificate);
    if names.iter().any(|name| name == collector) {
        return Ok(());
    }
    Err(format!("collector {collector:?} has a certificate for {}", names.join(", ")))
}
