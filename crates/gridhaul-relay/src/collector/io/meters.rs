//! Connections of meters: accepting, reading in turn, writing, closing.

use gridhaul_scenario::units::{Duration, Instant};
use rustix::event::epoll::EventFlags;

use super::Loop;
use super::arrivals::Admitted;
use super::meter_socket::{Input, MeterSocket, Output, READ_EVENTS};
use super::meter_stream::MeterStream;
use super::token::CollectorToken;
use super::user_meters::MESSAGE_WAIT;
use crate::collector::{Event, MeterId};
use crate::protocol::{Identity, ResetCause};
use crate::runtime::poll::NUMBER_MASK;
use crate::runtime::{Level, listener};

/// Bytes that are read from a meter before the next one is served (deficit round robin with equal
/// shares).
pub(super) const QUANTUM: usize = 16 * 1024;

impl Loop {
    pub(super) fn accept(&mut self, now: Instant) {
        if self.accept_at.is_some_and(|at| at > now) {
            return;
        }
        self.accept_at = None;
        let mut budget = listener::ACCEPT_BUDGET;
        for index in 0..self.listeners.len() {
            while self.listeners[index].is_ready && budget > 0 && self.may_accept(index) {
                budget -= 1;
                // Listeners of TCP in user space are never ready.
                let Some(socket) = &self.listeners[index].socket else { break };
                match listener::accept(socket) {
                    Ok(None) => self.listeners[index].is_ready = false,
                    Ok(Some((socket, peer))) => self.admit(now, index, socket, peer),
                    Err(error) => {
                        // The connection waits. No event announces that it can be accepted.
                        self.accept_at = Some(now + listener::EXHAUSTED);
                        let text = format!("cannot accept a meter: {error}");
                        self.reports.report(now, "system", Level::Warning, &text);
                        return;
                    }
                }
            }
        }
        let is_waiting = self.listeners.iter().any(|listener| listener.is_ready);
        if is_waiting && self.collector.meter_count() >= self.meters_max {
            let text = format!("{} meters are connected; others wait", self.meters_max);
            self.reports.report(now, "meters", Level::Warning, &text);
        }
    }

    /// A connection is ready for data. `arrival` is its row if it was an arrival.
    pub(super) fn open(&mut self, now: Instant, admitted: Admitted, arrival: Option<u32>) {
        let Admitted { stream, listener, source, addresses } = admitted;
        let address = &self.listeners[usize::from(listener)];
        let certificate = Self::certificate_name(&stream);
        let identity = Identity {
            peer: addresses.peer,
            local: addresses.local,
            listener: &address.name,
            certificate: &certificate,
        };
        let id = self.collector.open_meter(identity, address.framing.clone());
        let token = CollectorToken::Meter(id.index, id.number as u32);
        let watched = match arrival {
            None => self.poll.add(&stream, token, READ_EVENTS),
            Some(_) => self.poll.modify(&stream, token, READ_EVENTS),
        };
        if let Err(error) = watched {
            self.collector.handle_reset(id, ResetCause::Operator);
            self.collector.release(id);
            self.sources.remove(source);
            self.refuse(now, "system", &format!("cannot watch a meter: {error}"));
            return;
        }
        self.counters.accepted += 1;
        // Data may be decrypted already: the socket does not show it.
        let is_ready = stream.is_encrypted();
        self.insert(MeterSocket {
            id,
            stream: MeterStream::Kernel(stream),
            source,
            listener,
            is_ready,
            input: Input::default(),
            output: None,
        });
    }

    /// Adds a socket, whose row is that of its meter.
    pub(super) fn insert(&mut self, socket: MeterSocket) {
        let row = socket.id.index as usize;
        if self.sockets.len() <= row {
            self.sockets.resize_with(row + 1, || None);
        }
        if socket.is_ready {
            self.ready.push_back(socket.id);
        }
        self.note_activity(socket.id);
        self.open_sockets += 1;
        self.ending_sockets += usize::from(!socket.stream.survives_upgrade());
        let displaced = self.sockets[row].replace(socket);
        debug_assert!(displaced.is_none(), "the row of an open socket is reserved");
    }

    pub(super) fn handle_meter(&mut self, index: u32, number: u32, flags: EventFlags) {
        let Some(Some(meter)) = self.sockets.get_mut(index as usize) else { return };
        // An event of a connection that has ended in this turn.
        if meter.id.number as u32 & NUMBER_MASK != number {
            return;
        }
        if flags.contains(EventFlags::OUT) && (meter.output.is_some() || meter.wants_write()) {
            let id = meter.id;
            self.flush(id);
        }
        let Some(Some(meter)) = self.sockets.get_mut(index as usize) else { return };
        let ended = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        if flags.intersects(ended) && meter.input != Input::Ended {
            meter.input = Input::Ended;
            self.collector.handle_closing(meter.id);
        } else if flags.contains(EventFlags::PRI) && meter.input == Input::Open {
            meter.input = Input::Urgent;
        }
        if flags.intersects(EventFlags::IN | ended) && !meter.is_ready {
            meter.is_ready = true;
            self.ready.push_back(meter.id);
        }
    }

    /// Reads from each ready meter at most once, as long as records are accepted.
    pub(super) fn serve_ready(&mut self, now: Instant) {
        if self.is_frozen {
            return;
        }
        for _ in 0..self.ready.len() {
            let Some(id) = self.ready.pop_front() else { return };
            let acceptable = self.collector.acceptable(id) as usize;
            let row = id.index as usize;
            let Some(Some(meter)) = self.sockets.get_mut(row) else { continue };
            if meter.id != id {
                continue;
            }
            if acceptable == 0 && self.collector.status(id).is_some_and(|status| !status.is_ended) {
                self.ready.push_back(id);
                continue;
            }
            let limit = acceptable.clamp(1, QUANTUM);
            meter.is_ready = false;
            match meter.stream.read(&mut self.user_meters, &mut self.buffer[..limit]) {
                Ok(None) => {
                    let listener = &self.listeners[usize::from(meter.listener)];
                    if let Some(gap) = listener.idle_gap {
                        self.idle_gaps.handle_empty(now, id, gap);
                    }
                }
                Ok(Some(0)) => {
                    // After FIN, reading does not report a reset.
                    let is_reset = meter.stream.has_failed();
                    self.collector.handle_fin(id);
                    if is_reset {
                        self.collector.handle_reset(id, ResetCause::Meter);
                        self.counters.resets[ResetCause::Meter as usize] += 1;
                        self.remove(id);
                    }
                }
                Ok(Some(length)) => {
                    if length == limit || !meter.is_emptied_by_short_read() {
                        meter.is_ready = true;
                        self.ready.push_back(id);
                    }
                    self.received(now, id, length);
                }
                Err(_) => {
                    self.collector.handle_reset(id, ResetCause::Meter);
                    self.counters.resets[ResetCause::Meter as usize] += 1;
                    self.remove(id);
                }
            }
        }
    }

    fn received(&mut self, now: Instant, id: MeterId, length: usize) {
        self.counters.received += length as u64;
        self.flush_at.get_or_insert(now + self.batch_delay);
        self.note_activity(id);
        if let Err(error) = self.collector.handle_data(id, &self.buffer[..length]) {
            let text = format!("meter {}: {error}", id.number);
            self.reports.report(now, "framing", Level::Warning, &text);
            return;
        }
        let listener = self.sockets[id.index as usize].as_ref().map_or(0, |meter| meter.listener);
        let listener = &self.listeners[usize::from(listener)];
        match listener.idle_gap {
            Some(gap) => self.idle_gaps.handle_data(now, id, gap),
            None if self.collector.has_incomplete_message(id) => {
                let is_durable = listener.socket.is_none();
                let longest = if is_durable { MESSAGE_WAIT } else { Duration::MAX };
                self.idle_gaps.handle_data(now, id, self.message_wait.min(longest));
            }
            None => self.idle_gaps.remove(id),
        }
    }

    /// Ends messages after which no byte has arrived for a time. While the collector does not read,
    /// as with a full log, the bytes that arrive are in the kernel.
    pub(super) fn end_idle_messages(&mut self, now: Instant) {
        while let Some(id) = self.idle_gaps.poll(now) {
            if !self.may_continue(id) {
                self.collector.handle_idle_gap(id);
            } else if self.idle_gaps.suspend(now, id, self.message_wait) {
                // Incomplete messages may occupy the space for which the bytes wait.
                self.collector.record_part(id);
            }
        }
    }

    /// Whether bytes of a message that a pause would end may have arrived and are not read. The
    /// event that announces them may not have been read either.
    fn may_continue(&self, id: MeterId) -> bool {
        let found = self.sockets.get(id.index as usize).and_then(Option::as_ref);
        let Some(meter) = found.filter(|meter| meter.id == id) else { return false };
        let is_ended_by_pauses = self.listeners[usize::from(meter.listener)].idle_gap.is_some();
        is_ended_by_pauses
            && (meter.is_ready || self.unread(&meter.stream).is_some_and(|bytes| bytes > 0))
    }

    /// Data has passed, so that the meter is not idle.
    fn note_activity(&mut self, id: MeterId) {
        if let Some(limit) = self.idle_timeout {
            self.idle_meters.handle_data(self.clock.now(), id, limit);
        }
    }

    /// Resets meters without data for a time. One that has sent FIN waits for an answer, and one
    /// whose data is not read is not idle.
    pub(super) fn reset_idle_meters(&mut self, now: Instant) {
        while let Some(id) = self.idle_meters.poll(now) {
            let Some(Some(meter)) = self.sockets.get(id.index as usize) else { continue };
            let is_ended = self.collector.status(id).is_none_or(|status| status.is_ended);
            if meter.id != id || is_ended {
                continue;
            }
            if meter.is_ready {
                self.note_activity(id);
                continue;
            }
            self.collector.handle_reset(id, ResetCause::Timeout);
            self.counters.resets[ResetCause::Timeout as usize] += 1;
            self.reset(id);
        }
    }

    /// All meters are watched from now on, after a reload.
    pub(super) fn watch_idle_meters(&mut self) {
        let ids: Vec<MeterId> = self.sockets.iter().flatten().map(|meter| meter.id).collect();
        ids.into_iter().for_each(|id| self.note_activity(id));
    }

    pub(super) fn handle_events(&mut self) {
        while let Some(event) = self.collector.poll_event() {
            match event {
                Event::Down { meter, bytes } => {
                    if let Some(output) = self.output(meter) {
                        output.bytes.extend(bytes);
                    }
                    self.flush(meter);
                }
                Event::Stored { meter, position } => self.acknowledge(meter, Some(position)),
                Event::EndStored(meter) => self.acknowledge(meter, None),
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
                    self.reset(meter);
                }
            }
        }
    }

    fn output(&mut self, id: MeterId) -> Option<&mut Output> {
        let meter = self.sockets.get_mut(id.index as usize)?.as_mut()?;
        (meter.id == id).then(|| &mut **meter.output.get_or_insert_default())
    }

    /// Drops a socket whose stream is incomplete: the kernel sends RST, also if the server has
    /// ended its direction before.
    fn reset(&mut self, id: MeterId) {
        if let Some(Some(meter)) = self.sockets.get(id.index as usize)
            && meter.id == id
        {
            meter.stream.forbid_fin(&mut self.user_meters);
        }
        self.remove(id);
    }

    /// Drops a socket. The kernel sends RST unless FIN was allowed.
    fn remove(&mut self, id: MeterId) {
        if let Some(slot) = self.sockets.get_mut(id.index as usize)
            && slot.as_ref().is_some_and(|meter| meter.id == id)
        {
            let Some(removed) = slot.take() else { return };
            self.idle_gaps.remove(id);
            self.idle_meters.remove(id);
            self.open_sockets -= 1;
            self.ending_sockets -= usize::from(!removed.stream.survives_upgrade());
            self.sources.remove(removed.source);
            removed.stream.close(&mut self.user_meters);
        }
        self.collector.release(id);
    }

    /// Writes waiting data to a meter.
    pub(super) fn flush(&mut self, id: MeterId) {
        let Some(Some(meter)) = self.sockets.get_mut(id.index as usize) else { return };
        if meter.id != id {
            return;
        }
        let result = meter.flush(&mut self.user_meters);
        let is_complete = meter.is_complete();
        let is_waiting = meter.wants_write();
        // TCP in user space notifies without being asked.
        if is_waiting && let MeterStream::Kernel(stream) = &meter.stream {
            let token = CollectorToken::Meter(id.index, id.number as u32);
            let flags = READ_EVENTS | EventFlags::OUT;
            // Without this event the data would wait for the next one; the socket exists.
            let _ = self.poll.modify(stream, token, flags);
        }
        match result {
            Ok(written) if written > 0 => {
                self.note_activity(id);
                let mut none = Vec::new();
                let shard = self.collector.shard(id).unwrap_or(0);
                let out = self.upstreams[usize::from(shard)].output().unwrap_or(&mut none);
                self.collector.handle_down_written(id, written as u64, out);
            }
            Ok(_) => {}
            Err(_) => {
                self.collector.handle_reset(id, ResetCause::Meter);
                self.remove(id);
                return;
            }
        }
        if is_complete {
            self.remove(id);
        }
    }
}
