//! Data that the server has acknowledged, and data that it does not confirm.

use gridhaul_linux::unacknowledged_bytes;
use gridhaul_scenario::units::{Duration, Instant};

use super::event_loop::Worker;
use crate::head::StreamId;
use crate::runtime::{Level, report};

/// Interval in which acknowledgements of the server are read.
const ACKNOWLEDGEMENTS: Duration = Duration::from_millis(20);

/// Interval in which unconfirmed data is reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Time after which a connection that the server has not closed is reported.
const CLOSE_LIMIT: Duration = Duration::from_secs(60);

impl Worker {
    pub(crate) fn check_acknowledgements(&mut self, now: Instant) {
        if now < self.next_check {
            return;
        }
        self.next_check = now + ACKNOWLEDGEMENTS;
        for id in std::mem::take(&mut self.unacknowledged) {
            self.check_acknowledgement(now, id);
        }
    }

    /// Reads how much the server's TCP has acknowledged.
    pub(crate) fn check_acknowledgement(&mut self, now: Instant, id: StreamId) {
        let Some(connection) = self.connections.get(&id) else { return };
        if let Ok(bytes) = unacknowledged_bytes(&connection.socket) {
            self.streams.handle_acknowledged(now, id, bytes);
        }
        if self.streams.is_unacknowledged(id) {
            self.unacknowledged.insert(id);
        }
    }

    /// Whether streams keep more of the log than open connections may.
    pub(crate) fn keeps_too_much(&self) -> bool {
        self.records.deliveries().position() - self.streams.position() > self.kept
    }

    /// Reports connections that the server does not close, and lets open connections keep no more
    /// of the log than permitted.
    pub(crate) fn report_unconfirmed(&mut self, now: Instant) {
        if now < self.next_report {
            return;
        }
        self.next_report = now + REPORT_INTERVAL;
        if self.keeps_too_much() {
            self.streams.release_before(self.records.deliveries().position() - self.kept);
        }
        let text = self.unclosed(now).or_else(|| self.failing());
        match text {
            Some(text) if !self.is_close_reported => {
                self.is_close_reported = true;
                report(Level::Warning, &format!("server {}: {text}", self.server));
                self.progress.set_delivery_error(Some(&text));
            }
            None if self.is_close_reported => {
                self.is_close_reported = false;
                if !self.is_unreachable() {
                    self.progress.set_delivery_error(None);
                }
            }
            _ => {}
        }
    }

    /// Connections that the server should have closed, in words.
    fn unclosed(&self, now: Instant) -> Option<String> {
        let (since, count) = self.streams.awaiting_close()?;
        let is_old = now.since(since) >= CLOSE_LIMIT;
        is_old.then(|| format!(
            "the server has not closed {count} connections after FIN, the oldest for more than a \
             minute: their data does not \
             count as delivered, and stays in the log\n  help: a server that never closes \
             connections needs \
             head.deliver.tcp.confirmation = \"acknowledgement\""
        ))
    }

    /// Connections that end again and again, in words. Those that cannot begin have an error of
    /// their own.
    fn failing(&self) -> Option<String> {
        let count = self.streams.failing();
        (count > 0 && !self.is_unreachable()).then(|| {
            format!(
                "the connections of {count} meters have ended more than once before the server has \
                 confirmed their data, which stays in the log\n  help: read in the log of the \
                 server why it ends them"
            )
        })
    }
}
