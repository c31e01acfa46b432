//! Connections of meters that survive an upgrade: the next version of the program continues their
//! streams. Those with TLS and those of TCP in user space cannot be continued, because their keys
//! or their state are in the memory of this process.

use std::net::IpAddr;

use gridhaul_protocols::framing::MessageFraming;
use rustix::event::epoll::EventFlags;
use socket2::Socket;

use super::meter_socket::{Input, MeterSocket, Output, READ_EVENTS};
use super::meter_stream::MeterStream;
use super::sources::NO_SOURCE;
use super::token::CollectorToken;
use super::{Loop, MeterAddress};
use crate::collector::{Continuation, MeterId, MeterState};
use crate::protocol::{
    DOWN_WINDOW, DecodeError, Decoder, ResetCause, put_bytes, put_text, put_varint, read_progress,
    write_progress,
};
use crate::runtime::stream::Stream;
use crate::runtime::upgrade::{InheritedConnections, UpgradeState};
use crate::runtime::{Level, report};

/// Largest text in the state.
const TEXT_MAX: usize = 1_024;

/// A collector that this program continues, and its meters.
pub(super) struct Continued {
    pub continuation: Continuation,
    pub tier: String,
    inherited: InheritedConnections,
    /// Offset of the meters in the state.
    meters: usize,
}

impl Continued {
    /// Reads the state of the collector; `None` if this program replaces none, or cannot continue
    /// it.
    pub(super) fn read(inherited: InheritedConnections) -> Option<Self> {
        if inherited.state.is_empty() {
            return None;
        }
        let mut decoder = Decoder::new(&inherited.state, "state of the collector");
        let mut read =
            || Ok((decoder.text(TEXT_MAX)?.to_owned(), Continuation::read(&mut decoder)?));
        let result: Result<_, DecodeError> = read();
        let meters = inherited.state.len() - decoder.rest().len();
        match result {
            Ok((tier, continuation)) => Some(Self { continuation, tier, inherited, meters }),
            Err(error) => {
                report(Level::Error, &format!("{error}: connections are reset"));
                None
            }
        }
    }
}

/// A meter in the state.
struct Entry<'a> {
    state: MeterState,
    /// Row of the connection; `None` if it was reset.
    connection: Option<usize>,
    listener: &'a str,
    /// The framing as it is configured: another one cannot continue within a message.
    framing: &'a str,
    /// State within the present message.
    progress: &'a [u8],
    source: Option<IpAddr>,
    /// Whether a pause would end a message.
    awaits_gap: bool,
    unwritten: &'a [u8],
    sends_fin: bool,
}

impl Entry<'_> {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.state.write(bytes);
        put_varint(bytes, self.connection.map_or(0, |row| row as u64 + 1));
        put_text(bytes, self.listener, TEXT_MAX);
        put_text(bytes, self.framing, TEXT_MAX);
        put_bytes(bytes, self.progress);
        put_text(
            bytes,
            &self.source.map(|source| source.to_string()).unwrap_or_default(),
            TEXT_MAX,
        );
        bytes.extend_from_slice(&[u8::from(self.awaits_gap), u8::from(self.sends_fin)]);
        put_bytes(bytes, self.unwritten);
    }
}

impl<'a> Entry<'a> {
    fn read(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            state: MeterState::read(decoder)?,
            connection: decoder.varint()?.checked_sub(1).map(|row| row as usize),
            listener: decoder.text(TEXT_MAX)?,
            framing: decoder.text(TEXT_MAX)?,
            progress: decoder.bytes(TEXT_MAX)?,
            source: decoder.text(TEXT_MAX)?.parse().ok(),
            awaits_gap: decoder.u8()? != 0,
            sends_fin: decoder.u8()? != 0,
            unwritten: decoder.bytes(DOWN_WINDOW as usize)?,
        })
    }
}

fn framing_text(listener: &MeterAddress) -> String {
    format!("{:?}", listener.config.framing)
}

impl Loop {
    /// The sockets for the next version of the program. Connections are only part of them if all
    /// records are stored.
    pub(super) fn hand_over(mut self) -> UpgradeState {
        let mut upgrade_state = UpgradeState::default();
        if self.collector.is_everything_stored() {
            put_text(&mut upgrade_state.state, self.collector.settings().tier.name(), TEXT_MAX);
            self.collector.continuation().write(&mut upgrade_state.state);
            for socket in std::mem::take(&mut self.sockets).into_iter().flatten() {
                self.hand_over_meter(socket, &mut upgrade_state);
            }
        }
        let listeners = self.listeners.into_iter().filter_map(|listener| listener.socket);
        upgrade_state.listeners = listeners.chain(self.state.requests.into_listeners()).collect();
        upgrade_state
    }

    fn hand_over_meter(&self, socket: MeterSocket, upgrade_state: &mut UpgradeState) {
        let Some((state, framing)) = self.collector.meter_state(socket.id) else { return };
        let listener = &self.listeners[usize::from(socket.listener)];
        let mut output = socket.output.unwrap_or_default();
        let mut progress = Vec::new();
        write_progress(framing, &mut progress);
        let is_continued = socket.stream.survives_upgrade();
        let entry = Entry {
            state,
            connection: is_continued.then_some(upgrade_state.connections.len()),
            listener: &listener.name,
            framing: &framing_text(listener),
            progress: &progress,
            source: self.sources.address(socket.source),
            awaits_gap: self.idle_gaps.contains(socket.id),
            sends_fin: output.fin,
            unwritten: output.bytes.make_contiguous(),
        };
        entry.write(&mut upgrade_state.state);
        upgrade_state.connections.extend(socket.stream.into_socket());
    }

    /// Continues the meters of the previous version of the program.
    pub(super) fn take_over(&mut self, continued: Continued) {
        let Continued {
            inherited: InheritedConnections { mut connections, state }, meters, ..
        } = continued;
        let mut decoder = Decoder::new(&state[meters..], "state of a meter");
        let mut count = 0;
        while !decoder.is_empty() {
            match self.take_over_meter(&mut decoder, &mut connections) {
                Ok(is_continued) => count += usize::from(is_continued),
                Err(error) => {
                    report(Level::Error, &format!("{error}: further connections are reset"));
                    break;
                }
            }
        }
        report(Level::Notice, &format!("connections of meters that continue: {count}"));
    }

    /// False if the connection of the next meter was reset, which is recorded.
    fn take_over_meter(
        &mut self,
        decoder: &mut Decoder<'_>,
        connections: &mut [Option<Socket>],
    ) -> Result<bool, DecodeError> {
        let entry = Entry::read(decoder)?;
        let mut listeners = self.listeners.iter();
        let listener = listeners.position(|listener| listener.name == entry.listener);
        let row = listener.filter(|row| framing_text(&self.listeners[*row]) == entry.framing);
        let mut progress = Decoder::new(entry.progress, "state of a message");
        let framing = row
            .and_then(|row| read_progress(self.listeners[row].framing.clone(), &mut progress).ok());
        let row = row.filter(|_| framing.is_some());
        // Without its framing, a meter is continued only to record its end.
        let framing = framing.unwrap_or(MessageFraming::Stream);
        let unwritten = entry.unwritten.len() as u64;
        let Some(id) = self.collector.resume_meter(&entry.state, framing, unwritten) else {
            return Ok(false);
        };
        let socket = entry.connection.and_then(|row| connections.get_mut(row)?.take());
        let socket = socket.zip(row).and_then(|(socket, row)| self.watch(id, socket, row as u16));
        let Some(mut socket) = socket else {
            self.collector.handle_reset(id, ResetCause::Restart);
            self.collector.release(id);
            return Ok(false);
        };
        // A limit that is lower than before concerns later connections.
        let limit = self.source_limit.map(|_| u32::MAX);
        socket.source = self.sources.add(entry.source, limit).unwrap_or(NO_SOURCE);
        if !entry.unwritten.is_empty() || entry.sends_fin {
            let bytes = entry.unwritten.iter().copied().collect();
            socket.output = Some(Box::new(Output { bytes, fin: entry.sends_fin, close: false }));
        }
        if entry.awaits_gap {
            let gap = self.listeners[row.unwrap_or(0)].idle_gap.unwrap_or(self.message_wait);
            self.idle_gaps.handle_data(self.clock.now(), id, gap);
        }
        self.insert(socket);
        Ok(true)
    }

    fn watch(&self, id: MeterId, socket: Socket, listener: u16) -> Option<MeterSocket> {
        let token = CollectorToken::Meter(id.index, id.number as u32);
        // The first event shows whether there is data to read, and space for waiting output.
        self.poll.add(&socket, token, READ_EVENTS | EventFlags::OUT).ok()?;
        let (stream, source) = (MeterStream::Kernel(Stream::plain(socket)), NO_SOURCE);
        let (is_ready, input) = (false, Input::default());
        Some(MeterSocket { id, stream, source, listener, is_ready, input, output: None })
    }
}
