//! The thread that delivers the records of a head to a TCP server, with one connection per meter.

mod connection;
mod event_loop;
mod records;
mod unconfirmed;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use gridhaul_scenario::relay::{RelayLog, TcpDelivery};

use self::event_loop::{Channels, Start, Worker};
use super::ServerEvent;
use super::commands::CommandSender;
use super::delivery_log::DeliveryLog;
use super::position_file::PositionFile;
use super::status::DeliveryStatus;
use crate::head::MeterKey;
use crate::log::Durable;
use crate::runtime::RunError;
use crate::runtime::poll::Waker;

/// Data of open connections that the server's TCP has acknowledged uses at most this part of
/// `log.limit`: half of it is left for an outage of the server.
const KEPT_SHARE: u64 = 2;

/// The delivering thread.
#[derive(Debug)]
pub(crate) struct ServerDelivery {
    commands: CommandSender<Command>,
    events: Receiver<ServerEvent>,
    progress: DeliveryStatus,
}

#[derive(Debug)]
enum Command {
    /// Records up to this position of the log are durable.
    DurableEnd(Durable<u64>),
    /// The collector has confirmed data of a server.
    Confirmed(MeterKey, u64),
}

impl ServerDelivery {
    /// Continues after the records that were delivered before.
    pub(crate) fn start(
        config: &TcpDelivery,
        log_config: &RelayLog,
        folder: &Path,
        log: DeliveryLog,
        head_waker: Arc<Waker>,
    ) -> Result<Self, RunError> {
        let (sender, events) = channel();
        let waker = Arc::new(Waker::new()?);
        let (commands, received) = CommandSender::to(&waker);
        let position_file = PositionFile::open(folder, &log, Arc::clone(&head_waker));
        let progress = position_file.progress();
        let delivery = Self { commands, events, progress: progress.clone() };
        let start = Start {
            config: config.clone(),
            kept: log_config.limit.get() / KEPT_SHARE,
            log,
            position_file,
            channels: Channels { waker, head_waker, commands: received, events: sender },
        };
        thread::spawn(move || {
            let worker = Worker::new(start);
            progress.end(worker.and_then(|mut worker| worker.run()));
        });
        Ok(delivery)
    }

    pub(crate) fn deliver(&self, durable_end: Durable<u64>) {
        self.commands.send(Command::DurableEnd(durable_end));
    }

    pub(crate) fn confirm(&self, meter: MeterKey, position: u64) {
        self.commands.send(Command::Confirmed(meter, position));
    }

    pub(crate) fn poll(&self) -> Option<ServerEvent> {
        self.events.try_recv().ok()
    }

    pub(crate) const fn progress(&self) -> &DeliveryStatus {
        &self.progress
    }
}
