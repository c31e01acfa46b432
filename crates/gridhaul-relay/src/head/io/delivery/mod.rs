//! The destination of a head's records: a thread for a file, a TCP server, or a broker.

mod commands;
mod delivered_position;
mod file;
mod json_lines;
mod log_start;
pub(crate) mod mqtt;
mod status;
mod tcp;

use std::path::Path;
use std::sync::Arc;

use gridhaul_scenario::relay::{Deliver, HeadConfig, RelayLog};

use self::mqtt::BrokerSink;

use self::file::Sink;
pub(crate) use self::log_start::LogStart;
use self::status::Progress;
use self::tcp::ServerSink;
use crate::head::{Head, MeterKey, Unconfirmed};
use crate::runtime::poll::Waker;
use crate::runtime::tls::TlsClient;
use crate::runtime::{RunError, tls};

/// The thread that delivers records.
#[derive(Debug)]
pub(crate) enum Destination {
    File(Sink),
    Servers(ServerSink),
    Broker(BrokerSink),
}

/// Action of a server.
#[derive(Debug)]
pub(crate) enum ServerEvent {
    Data {
        meter: MeterKey,
        shard: u16,
        bytes: Vec<u8>,
    },
    Fin {
        meter: MeterKey,
        shard: u16,
    },
    Reset {
        meter: MeterKey,
        shard: u16,
    },
    /// Data of the meter is lost by damage of the log.
    Incomplete {
        meter: MeterKey,
        shard: u16,
    },
    /// The stream of the meter has ended.
    End {
        meter: MeterKey,
    },
}

impl Destination {
    /// Starts the thread that delivers the records of a log.
    pub(crate) fn start(
        name: &str,
        (head, log): (&HeadConfig, &RelayLog),
        folder: &Path,
        start: LogStart,
        waker: Arc<Waker>,
    ) -> Result<Self, RunError> {
        let log_folder = folder.join(&log.folder);
        Ok(match &head.deliver {
            Deliver::File(file) => {
                let (file, rotation) = (folder.join(file), head.rotate.clone());
                Self::File(Sink::start(&file, rotation, &log_folder, start, waker)?)
            }
            Deliver::Tcp(tcp) => {
                Self::Servers(ServerSink::start((tcp, log), &log_folder, start, waker)?)
            }
            Deliver::Mqtt(mqtt) => {
                let folders = (folder, &*log_folder);
                let tls = tls::broker(head, folder)?;
                Self::Broker(BrokerSink::start(name, mqtt, folders, tls, start, waker)?)
            }
        })
    }

    /// Records up to this position of the log are durable.
    pub(crate) fn deliver(&self, limit: u64) {
        match self {
            Self::File(sink) => sink.deliver(limit),
            Self::Servers(sink) => sink.deliver(limit),
            Self::Broker(sink) => sink.deliver(limit),
        }
    }

    /// A file that was renamed meanwhile is replaced by a new one.
    pub(crate) fn reopen(&self) {
        if let Self::File(sink) = self {
            sink.reopen();
        }
    }

    /// Later connections to a broker use these certificates.
    pub(crate) fn replace_certificates(&self, tls: Option<TlsClient>) {
        if let (Self::Broker(sink), Some(tls)) = (self, tls) {
            sink.replace_certificates(tls);
        }
    }

    /// Position of the log up to which the destination has confirmed the records, and why others wait.
    pub(crate) const fn progress(&self) -> &Progress {
        match self {
            Self::File(sink) => sink.progress(),
            Self::Servers(sink) => sink.progress(),
            Self::Broker(sink) => sink.progress(),
        }
    }

    /// Data that a TCP server has acknowledged, and not confirmed; `None` for other destinations.
    pub(crate) fn unconfirmed(&self) -> Option<Unconfirmed> {
        match self {
            Self::Servers(sink) => Some(sink.progress().unconfirmed()),
            Self::File(_) | Self::Broker(_) => None,
        }
    }

    /// Exchanges the data of servers, and its confirmations, with the head.
    pub(crate) fn exchange(&self, head: &mut Head) {
        let Self::Servers(sink) = self else { return };
        while let Some(event) = sink.poll() {
            match event {
                ServerEvent::Data { meter, shard, bytes } => {
                    head.handle_server_data(meter, shard, &bytes);
                }
                ServerEvent::Fin { meter, shard } => head.handle_server_fin(meter, shard),
                ServerEvent::Reset { meter, shard } => head.handle_server_reset(meter, shard),
                ServerEvent::Incomplete { meter, shard } => head.handle_incomplete(meter, shard),
                ServerEvent::End { meter } => head.handle_server_end(meter),
            }
        }
        while let Some((meter, position)) = head.poll_down_confirmed() {
            sink.confirm(meter, position);
        }
    }
}
