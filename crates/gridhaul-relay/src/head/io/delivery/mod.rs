//! The destination of a head's records: a thread for a file, a TCP server, or a broker.

mod commands;
mod delivery_log;
mod file;
pub(crate) mod json_lines;
pub(crate) mod login;
mod mqtt;
mod position_file;
mod status;
mod tcp;

use std::path::Path;
use std::sync::Arc;

use gridhaul_scenario::relay::{Deliver, HeadConfig, RelayLog};

use self::login::Login;
use self::mqtt::{BrokerDelivery, BrokerStart};

pub(crate) use self::delivery_log::DeliveryLog;
use self::file::FileDelivery;
use self::status::DeliveryStatus;
use self::tcp::ServerDelivery;
use crate::head::{Head, MeterKey, Unconfirmed};
use crate::log::Durable;
use crate::runtime::poll::Waker;
use crate::runtime::tls::TlsClient;
use crate::runtime::{RunError, tls};

/// The thread that delivers records.
#[derive(Debug)]
pub(crate) enum Destination {
    File(FileDelivery),
    Servers(ServerDelivery),
    Broker(BrokerDelivery),
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

/// Keys of a head's configuration that concern its destination.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DestinationConfig<'a> {
    /// Name of the relay.
    pub name: &'a str,
    pub head: &'a HeadConfig,
    pub log: &'a RelayLog,
    /// Folder at which relative paths begin.
    pub folder: &'a Path,
}

impl Destination {
    /// Starts the thread that delivers the records of a log.
    pub(crate) fn start(
        config: DestinationConfig<'_>,
        start: DeliveryLog,
        waker: Arc<Waker>,
    ) -> Result<Self, RunError> {
        let DestinationConfig { name, head, log, folder } = config;
        let log_folder = folder.join(&log.folder);
        Ok(match &head.deliver {
            Deliver::File(file) => {
                let (file, rotation) = (folder.join(file), head.rotate.clone());
                Self::File(FileDelivery::start(&file, rotation, &log_folder, start, waker)?)
            }
            Deliver::Tcp(tcp) => {
                Self::Servers(ServerDelivery::start(tcp, log, &log_folder, start, waker)?)
            }
            Deliver::Mqtt(mqtt) => {
                // Files are read before the thread begins: a missing one is an error of the start.
                let login = Login::read(name, mqtt, folder)?;
                let tls = tls::broker(head, folder)?;
                let broker = BrokerStart { config: mqtt.clone(), login, tls, log: start };
                Self::Broker(BrokerDelivery::start(broker, &log_folder, waker)?)
            }
        })
    }

    /// Records up to this position of the log are durable.
    pub(crate) fn deliver(&self, durable_end: Durable<u64>) {
        match self {
            Self::File(delivery) => delivery.deliver(durable_end),
            Self::Servers(delivery) => delivery.deliver(durable_end),
            Self::Broker(delivery) => delivery.deliver(durable_end),
        }
    }

    /// A file that was renamed meanwhile is replaced by a new one.
    pub(crate) fn reopen(&self) {
        if let Self::File(delivery) = self {
            delivery.reopen();
        }
    }

    /// Later connections to a broker use these certificates.
    pub(crate) fn replace_certificates(&self, tls: Option<TlsClient>) {
        if let (Self::Broker(delivery), Some(tls)) = (self, tls) {
            delivery.replace_certificates(tls);
        }
    }

    /// Position of the log up to which the destination has confirmed the records, and why others
    /// wait.
    pub(crate) const fn progress(&self) -> &DeliveryStatus {
        match self {
            Self::File(delivery) => delivery.progress(),
            Self::Servers(delivery) => delivery.progress(),
            Self::Broker(delivery) => delivery.progress(),
        }
    }

    /// Data that a TCP server has acknowledged, and not confirmed; `None` for other destinations.
    pub(crate) fn unconfirmed(&self) -> Option<Unconfirmed> {
        match self {
            Self::Servers(delivery) => Some(delivery.progress().unconfirmed()),
            Self::File(_) | Self::Broker(_) => None,
        }
    }

    /// Exchanges the data of servers, and its confirmations, with the head.
    pub(crate) fn exchange(&self, head: &mut Head) {
        let Self::Servers(delivery) = self else { return };
        while let Some(event) = delivery.poll() {
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
            delivery.confirm(meter, position);
        }
    }
}
