//! The end of a controller of one control channel.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time;

use gridhaul_linux::{Clock, request_realtime_priority};
use gridhaul_protocols::control_channel::{
    FRAME_MAX, FrameError, FrameReader, ReceiverSpec, Reply, Report, Request, Started,
    write_message, write_preface,
};
use gridhaul_scenario::units::{Duration, Instant};
use thiserror::Error;

use super::channel::{Channel, PinnedKey};
use super::secret::Token;
use crate::clock::Exchange;
use crate::measurement::Fingerprint;

/// Time for the connection and the token.
const CONNECT_WITHIN: time::Duration = time::Duration::from_secs(10);

/// Time for the start of a receiver and its broker: RabbitMQ needs up to 120 s on a busy machine.
const START_WITHIN: time::Duration = time::Duration::from_secs(150);

/// Time without an answer after which the agent is gone, by default.
pub const SILENCE: Duration = Duration::from_secs(10);

/// Exchanges without an answer; further ones wait.
const OUTSTANDING: usize = 100;

/// Bytes of a read.
const READ: usize = 64 * 1024;

/// When times are exchanged with an agent.
#[derive(Debug, Clone, Copy)]
pub struct ExchangeSchedule {
    /// Number of exchanges before the first message.
    pub first: u64,
    /// Time between two of them.
    pub first_interval: Duration,
    /// Time between two later exchanges.
    pub interval: Duration,
}

/// An agent, and what its controller needs to know.
#[derive(Debug, Clone)]
pub struct AgentAddress {
    /// Address of the control channel.
    pub address: SocketAddr,
    /// Fingerprint of its key.
    pub fingerprint: Fingerprint,
    /// Token.
    pub token: Token,
}

/// Why an agent cannot be used.
#[derive(Debug, Error)]
pub enum ControllerError {
    /// Nothing listens at the address.
    #[error(
        "cannot connect to the agent at {address}: {source}\n  help: start `gridhaul measure \
         agent` on the other machine, and permit \
         this port in its firewall"
    )]
    Connect {
        /// Address.
        address: SocketAddr,
        /// Cause.
        source: io::Error,
    },
    /// The agent has another key.
    #[error(
        "the agent at {address} has the fingerprint {presented}, which is not the one of \
         --fingerprint\n  help: compare it with the \
         line that the agent printed; a machine between both may pretend to be the agent"
    )]
    Fingerprint {
        /// Address.
        address: SocketAddr,
        /// Fingerprint of the key that was presented.
        presented: Fingerprint,
    },
    /// The agent refuses the token or the run.
    #[error("the agent at {address}: {reason}")]
    Refused {
        /// Address.
        address: SocketAddr,
        /// Reason that the agent gives.
        reason: String,
    },
    /// The connection has failed.
    #[error("the connection to the agent at {address} has ended: {reason}")]
    Lost {
        /// Address.
        address: SocketAddr,
        /// Cause.
        reason: String,
    },
}

/// Events that a controller receives during a run.
#[derive(Debug)]
pub enum ControlEvent {
    /// An exchange is complete; exchanges are in order.
    Exchange(Exchange),
    /// Messages that have arrived at the agent.
    Report(Report),
    /// The agent is gone, or its receiver has failed.
    Lost(String),
}

/// An authenticated connection to an agent.
#[derive(Debug)]
pub struct Controller {
    address: SocketAddr,
    channel: Channel,
    reader: FrameReader,
    buffer: Vec<u8>,
    /// Time without an answer after which the agent is gone.
    silence: Duration,
}

impl Controller {
    /// Connects to an agent, verifies its key and presents the token.
    ///
    /// # Errors
    /// The agent is not there, has another key or version, or refuses the token.
    pub fn connect(agent: &AgentAddress) -> Result<Self, ControllerError> {
        let address = agent.address;
        let connect = |source| ControllerError::Connect { address, source };
        let socket = TcpStream::connect_timeout(&address, CONNECT_WITHIN).map_err(connect)?;
        let key = PinnedKey::new(agent.fingerprint);
        let channel = Channel::client(socket, Arc::clone(&key)).map_err(connect)?;
        let reader = FrameReader::new(FRAME_MAX);
        let buffer = vec![0; READ];
        let mut controller = Self { address, channel, reader, buffer, silence: SILENCE };
        let mut hello = Vec::new();
        write_preface(&mut hello);
        write_message(&Request::Authenticate { token: agent.token.text().into() }, &mut hello);
        let ready = controller.channel.write(&hello).map_err(|error| controller.lost(&error));
        let ready = ready.and_then(|()| controller.reply(CONNECT_WITHIN));
        // After a key that is not the expected one, TLS has sent nothing of the token.
        if let Some(presented) = key.unexpected() {
            return Err(ControllerError::Fingerprint { address, presented });
        }
        match ready? {
            Reply::Ready => Ok(controller),
            other => Err(controller.unexpected(other)),
        }
    }

    /// Starts the receiver of a run, in the place of that of an earlier one.
    ///
    /// # Errors
    /// The agent cannot start it, or is gone.
    pub fn start(&mut self, spec: &ReceiverSpec) -> Result<Started, ControllerError> {
        self.silence = spec.silence;
        self.send(&Request::Start(Box::new(spec.clone()))).map_err(|error| self.lost(&error))?;
        loop {
            match self.reply(START_WITHIN)? {
                Reply::Started(started) => return Ok(started),
                // Late replies to the exchanges of an earlier run.
                Reply::Answer { .. } | Reply::Report(_) => {}
                other => return Err(self.unexpected(other)),
            }
        }
    }

    /// Ends the session, and waits until the agent has ended its receiver and is free for others,
    /// at most about 10 s.
    pub fn end(mut self) {
        let _ = self.send(&Request::End);
        let wait = time::Duration::from_millis(100);
        let until_closed = |_: &i32| self.channel.read(wait, &mut self.buffer).is_ok();
        let _ = (0..100).take_while(until_closed).count();
        self.channel.close();
    }

    /// Exchanges times and receives reports until `stop` becomes `true` or the agent is gone.
    pub fn run(
        &mut self,
        clock: Clock,
        schedule: ExchangeSchedule,
        events: &SyncSender<ControlEvent>,
        stop: &AtomicBool,
    ) {
        request_realtime_priority();
        let mut exchanges = Exchanges { sent: Vec::new(), answered: 0 };
        let mut due = clock.now();
        let mut last_answer = clock.now();
        let lost = loop {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let now = clock.now();
            if now >= due && exchanges.sent.len() - exchanges.answered < OUTSTANDING {
                let number = exchanges.sent.len() as u64;
                exchanges.sent.push(clock.now());
                if let Err(error) = self.send(&Request::Exchange { number }) {
                    break error.to_string();
                }
                // After a delay the next exchanges do not follow each other at once.
                let is_first = number < schedule.first;
                due = now + if is_first { schedule.first_interval } else { schedule.interval };
            }
            let wait = clock.until(due).max(time::Duration::from_millis(1));
            let read = self.channel.read(wait, &mut self.buffer);
            let received = clock.now();
            match read {
                Err(error) => break error.to_string(),
                Ok(None) if received.since(last_answer) >= self.silence => {
                    break format!("no answer for {} s", self.silence.as_secs_f64());
                }
                Ok(None) => {}
                Ok(Some(length)) => {
                    last_answer = received;
                    self.reader.handle_input(&self.buffer[..length]);
                    match self.forward(&mut exchanges, received, events) {
                        Ok(true) => {}
                        // The run is over.
                        Ok(false) => return,
                        Err(reason) => break reason,
                    }
                }
            }
        };
        let reason = format!("the agent at {} is gone: {lost}", self.address);
        let _ = events.send(ControlEvent::Lost(reason));
    }

    /// Passes replies on; `false` if nobody receives them any more.
    fn forward(
        &mut self,
        exchanges: &mut Exchanges,
        received: Instant,
        events: &SyncSender<ControlEvent>,
    ) -> Result<bool, String> {
        while let Some(reply) = self.reader.poll_message().map_err(|error| error.to_string())? {
            let event = match reply {
                Reply::Answer { number, received: remote_received, sent: remote_sent } => {
                    let sent = exchanges.answer(number).ok_or("answers are not in order")?;
                    let (sent, received) = (sent.as_nanos() as i64, received.as_nanos() as i64);
                    // A clock that steps back between both has an exchange of its own on either
                    // side.
                    let remote_sent = remote_sent.max(remote_received);
                    let exchange = Exchange { sent, remote_received, remote_sent, received };
                    ControlEvent::Exchange(exchange)
                }
                Reply::Report(report) if report.number < exchanges.answered as u64 => {
                    ControlEvent::Report(report)
                }
                Reply::Failed { reason } => return Err(reason),
                _ => return Err("an unexpected reply".into()),
            };
            if events.send(event).is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn send(&mut self, request: &Request) -> io::Result<()> {
        let mut bytes = Vec::new();
        write_message(request, &mut bytes);
        self.channel.write(&bytes)
    }

    /// The next reply.
    #[expect(clippy::disallowed_methods, reason = "a reply is awaited in real time")]
    fn reply(&mut self, within: time::Duration) -> Result<Reply, ControllerError> {
        let begin = time::Instant::now();
        loop {
            let message = self.reader.poll_message();
            if let Some(reply) = message.map_err(|error: FrameError| self.lost(&error))? {
                return Ok(reply);
            }
            let remaining = within.saturating_sub(begin.elapsed());
            if remaining.is_zero() {
                return Err(self.lost(&format_args!("no reply within {} s", within.as_secs())));
            }
            match self.channel.read(remaining, &mut self.buffer) {
                Ok(Some(length)) => self.reader.handle_input(&self.buffer[..length]),
                Ok(None) => {}
                Err(error) => return Err(self.lost(&error)),
            }
        }
    }

    fn lost(&self, reason: &dyn std::fmt::Display) -> ControllerError {
        ControllerError::Lost { address: self.address, reason: reason.to_string() }
    }

    fn unexpected(&self, reply: Reply) -> ControllerError {
        let address = self.address;
        match reply {
            Reply::Failed { reason } => ControllerError::Refused { address, reason },
            _ => self.lost(&"an unexpected reply"),
        }
    }
}

/// Times at which requests were sent.
#[derive(Debug)]
struct Exchanges {
    sent: Vec<Instant>,
    answered: usize,
}

impl Exchanges {
    /// The time of the request of this answer, which must be the next one.
    fn answer(&mut self, number: u64) -> Option<Instant> {
        let sent = (number == self.answered as u64).then(|| self.sent.get(self.answered))??;
        self.answered += 1;
        Some(*sent)
    }
}
