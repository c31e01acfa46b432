//! The thread that delivers the records of a head to a TCP server, with one connection per meter.

mod connection;
mod event_loop;
mod records;
mod survey;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use gridhaul_scenario::relay::{RelayLog, TcpDelivery};

use self::event_loop::Worker;
use super::ServerEvent;
use super::commands::OrderSender;
use super::delivered_position::Cursor;
use super::log_start::LogStart;
use super::status::Progress;
use crate::head::MeterKey;
use crate::runtime::RunError;
use crate::runtime::poll::Waker;

/// Data of open connections that the server's TCP has acknowledged uses at most this part of `log.limit`: half of it is left for
/// an outage of the server.
const KEPT_SHARE: u64 = 2;

/// The delivering thread.
#[derive(Debug)]
pub(crate) struct ServerSink {
    orders: OrderSender<Order>,
    events: Receiver<ServerEvent>,
    progress: Progress,
}

#[derive(Debug)]
enum Order {
    /// Records up to this position of the log are durable.
    Limit(u64),
    /// The collector has confirmed data of a server.
    Confirmed(MeterKey, u64),
}

impl ServerSink {
    /// Continues after the records that were delivered before.
    pub(crate) fn start(
        (config, log_config): (&TcpDelivery, &RelayLog),
        folder: &Path,
        log: LogStart,
        head: Arc<Waker>,
    ) -> Result<Self, RunError> {
        let (sender, events) = channel();
        let worker = Arc::new(Waker::new()?);
        let (orders, received) = OrderSender::to(&worker);
        let cursor = Cursor::open(folder, &log, Arc::clone(&head));
        let progress = cursor.progress();
        let sink = Self { orders, events, progress: progress.clone() };
        let (config, kept) = (config.clone(), log_config.limit.get() / KEPT_SHARE);
        thread::spawn(move || {
            let wakers = (worker, head);
            let worker = Worker::new((&config, kept), (log, cursor), wakers, (received, sender));
            progress.end(worker.and_then(|mut worker| worker.run()));
        });
        Ok(sink)
    }

    pub(crate) fn deliver(&self, limit: u64) {
        self.orders.send(Order::Limit(limit));
    }

    pub(crate) fn confirm(&self, meter: MeterKey, position: u64) {
        self.orders.send(Order::Confirmed(meter, position));
    }

    pub(crate) fn poll(&self) -> Option<ServerEvent> {
        self.events.try_recv().ok()
    }

    pub(crate) const fn progress(&self) -> &Progress {
        &self.progress
    }
}
