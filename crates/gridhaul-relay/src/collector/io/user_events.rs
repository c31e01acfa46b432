//! Events of TCP in user space: connections that open, data, and acknowledgements.

use std::io;

use gridhaul_scenario::units::Instant;

use super::Loop;
use super::meter_socket::{Input, MeterSocket};
use super::meter_stream::MeterStream;
use crate::collector::MeterId;
use crate::collector::user_tcp::{ConnectionId, Flow, UserTcpEvent};
use crate::protocol::Identity;
use crate::runtime::{Level, RunError};

impl Loop {
    /// Handles packets and timers of TCP in user space.
    pub(super) fn receive_packets(&mut self, now: Instant) -> Result<(), RunError> {
        let Some(user) = &mut self.user_meters else { return Ok(()) };
        let others = self.open_sockets.saturating_sub(user.len());
        user.tcp.set_accepting(!self.drain.has_begun());
        user.tcp.set_connections_max(self.meters_max.saturating_sub(others));
        user.receive(now).map_err(|error| device_failed(&error))?;
        while let Some(event) = self.user_meters.as_mut().and_then(|user| user.tcp.poll_event()) {
            match event {
                UserTcpEvent::Opened { connection, flow, listener } => {
                    self.admit_user(now, connection, flow, listener);
                }
                UserTcpEvent::Readable(connection) => self.handle_readable(connection),
                UserTcpEvent::Writable(connection) => {
                    if let Some(meter) = self.meter_of(connection) {
                        self.flush(meter);
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends the packets of TCP in user space.
    pub(super) fn send_packets(&mut self, now: Instant) -> Result<(), RunError> {
        let Some(user) = &mut self.user_meters else { return Ok(()) };
        user.send(now, &self.collector).map_err(|error| device_failed(&error))
    }

    fn meter_of(&self, connection: ConnectionId) -> Option<MeterId> {
        self.user_meters.as_ref()?.meter(connection)
    }

    /// Checks a new connection. A refused one is reset.
    fn admit_user(&mut self, now: Instant, connection: ConnectionId, flow: Flow, listener: u16) {
        let Some(user) = &mut self.user_meters else { return };
        let row = user.listeners[usize::from(listener)];
        let config = &self.listeners[usize::from(row)].config;
        let peer = flow.peer;
        let refusal = if !config.is_allowed(peer.ip()) {
            Some(("allow_list", format!("{peer} is not in `allow`")))
        } else {
            self.refuses_for_full_log()
                .then(|| ("log_full", "less than a tenth of the log is free".to_owned()))
        };
        let source = match refusal {
            Some(refusal) => Err(refusal),
            None => self.sources.add(Some(peer.ip()), self.source_limit).ok_or_else(|| {
                ("source_limit", format!("{peer} has the largest number of connections"))
            }),
        };
        match source {
            Ok(source) => self.open_user(connection, flow, row, source),
            Err((cause, text)) => {
                if let Some(user) = &mut self.user_meters {
                    user.release(connection);
                }
                self.refuse(now, cause, &text);
            }
        }
    }

    fn open_user(&mut self, connection: ConnectionId, flow: Flow, listener: u16, source: u32) {
        let address = &self.listeners[usize::from(listener)];
        let identity = Identity {
            peer: Some(flow.peer),
            local: Some(flow.local),
            listener: &address.name,
            certificate: "",
        };
        let id = self.collector.open_meter(identity, address.framing.clone());
        self.collector.notify_stored(id);
        self.counters.accepted += 1;
        if let Some(user) = &mut self.user_meters {
            user.set_meter(connection, Some(id));
        }
        self.insert(MeterSocket {
            id,
            stream: MeterStream::User(connection),
            source,
            listener,
            // Data may have arrived with the handshake.
            is_ready: true,
            input: Input::default(),
            output: None,
        });
    }

    /// A connection has data, its end or a failure.
    fn handle_readable(&mut self, connection: ConnectionId) {
        let Some(id) = self.meter_of(connection) else { return };
        let has_ended =
            self.user_meters.as_ref().is_some_and(|user| user.tcp.has_ended(connection));
        let Some(Some(meter)) = self.sockets.get_mut(id.index as usize) else { return };
        if meter.id != id {
            return;
        }
        if has_ended && meter.input != Input::Ended {
            meter.input = Input::Ended;
            self.collector.handle_closing(id);
        }
        if !meter.is_ready {
            meter.is_ready = true;
            self.ready.push_back(id);
        }
    }

    /// The stream of a meter is durable up to a position, or with its FIN: TCP acknowledges it.
    pub(super) fn acknowledge(&mut self, meter: MeterId, position: Option<u64>) {
        let Some(Some(socket)) = self.sockets.get(meter.index as usize) else { return };
        let MeterStream::User(connection) = socket.stream else { return };
        let Some(user) = self.user_meters.as_mut().filter(|_| socket.id == meter) else { return };
        match position {
            Some(position) => user.tcp.confirm(connection, position),
            None => user.tcp.confirm_end(connection),
        }
    }

    /// Acknowledges what is durable, and resets all connections: another process cannot continue
    /// them.
    pub(super) fn end_user_meters(&mut self) {
        if self.user_meters.is_none() {
            return;
        }
        self.handle_events();
        let now = self.clock.now();
        // A failure of the device ends the connections as well.
        let _ = self.send_packets(now);
        if let Some(user) = &mut self.user_meters {
            user.tcp.reset_all();
        }
        if let Err(error) = self.send_packets(now) {
            self.reports.report(now, "tun", Level::Warning, &error.to_string());
        }
    }
}

/// The device was deleted: the relay ends, and its next start reports what is missing.
fn device_failed(error: &io::Error) -> RunError {
    RunError::Invalid(format!("collector.tun: the device was deleted: {error}"))
}
