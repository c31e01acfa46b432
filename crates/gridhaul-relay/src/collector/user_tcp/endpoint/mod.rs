//! A connection: its TCP endpoint, and the bytes of both directions.

mod input;
mod output;
mod silence;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use gridhaul_core::pep::Payload;
use gridhaul_core::tcp::{Connection, Flags, Segment, StackParams, State};
use gridhaul_scenario::units::Instant;

use super::flow::Flow;
use super::window::OfferedWindow;

pub use input::ReadResult;

/// A connection.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub flow: Flow,
    /// Row of the listener in the settings.
    pub listener: u16,
    /// Distinguishes the connections of a row in the table.
    pub number: u32,
    pub phase: Phase,
    /// When the timer of this connection is set to expire.
    pub timer: Instant,
    /// Whether the connection is in the queue of those that may have a segment to send.
    pub is_queued: bool,
    /// The peer's window scale; `None` if its SYN had none, so that neither window is scaled (RFC
    /// 7323, section 2.2).
    pub peer_scale: Option<u8>,
    tcp: Connection,
    /// Data of the peer that the application has not read, by sequence numbers.
    input: Payload,
    /// Bytes of the peer's stream that the application has read.
    read: u64,
    /// Data for the peer that is not acknowledged, and the sequence number of its first byte.
    output: VecDeque<u8>,
    output_start: u32,
    /// The application has closed its direction.
    is_finishing: bool,
    /// A write was not accepted as a whole.
    awaits_space: bool,
    window: OfferedWindow,
    /// When the connection was opened, or a segment has arrived last.
    received_at: Instant,
    /// When the data that is outstanding was sent first.
    sent_at: Instant,
    /// Probes of an idle connection since a segment has arrived, and the time of the last one.
    probes: u8,
    probed_at: Instant,
    is_probe_due: bool,
    /// Position up to which the application has stored the stream, and whether FIN is stored: the
    /// next segment acknowledges them.
    stored: u64,
    is_end_stored: bool,
    /// When the first byte that is not confirmed, and the last byte, have arrived.
    unconfirmed_since: Option<Instant>,
    arrived_at: Instant,
}

/// A connection to open.
#[derive(Debug)]
pub(super) struct Opening {
    pub flow: Flow,
    pub listener: u16,
    pub params: Arc<StackParams>,
    /// Initial sequence number.
    pub isn: u32,
    pub peer_scale: Option<u8>,
    /// The application will not write.
    pub receive_only: bool,
}

/// Progress of a connection that reading can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Progress {
    /// Bytes that have arrived in order.
    delivered: u64,
    /// Whether the peer has closed its direction.
    pub is_finished: bool,
    pub has_failed: bool,
}

/// Owner of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The handshake is not complete.
    Opening,
    /// The application has the connection.
    Open,
    /// The application has released the connection, which ends.
    Released,
}

impl Endpoint {
    /// A connection that waits for the SYN of `opening`.
    pub(super) fn new(now: Instant, opening: Opening) -> Self {
        let Opening { flow, listener, params, isn, peer_scale, receive_only } = opening;
        let mut tcp = Connection::listen(Arc::clone(&params), isn);
        tcp.acknowledge_on_confirmation();
        if receive_only {
            tcp.receive_only();
        }
        let shift = if peer_scale.is_some() { params.window_shift() } else { 0 };
        tcp.set_window_shift(shift);
        Self {
            flow,
            listener,
            number: 0,
            phase: Phase::Opening,
            timer: Instant::NEVER,
            is_queued: false,
            peer_scale,
            tcp,
            input: Payload::new(params.receive_window as usize),
            read: 0,
            output: VecDeque::new(),
            output_start: isn.wrapping_add(1),
            is_finishing: false,
            awaits_space: false,
            window: OfferedWindow::new(params.receive_window, params.mss, shift),
            received_at: now,
            sent_at: now,
            probes: 0,
            probed_at: now,
            is_probe_due: false,
            stored: 0,
            is_end_stored: false,
            unconfirmed_since: None,
            arrived_at: now,
        }
    }

    /// Handles a segment, whose window is not scaled yet. Returns whether it repeats data that is
    /// withheld.
    pub(super) fn handle_segment(
        &mut self,
        now: Instant,
        mut segment: Segment,
        payload: &Bytes,
    ) -> bool {
        if !segment.flags.has(Flags::SYN) {
            // RFC 7323, section 2.3: a larger shift is treated as 14.
            segment.window <<= self.peer_scale.unwrap_or(0).min(14);
        }
        let withheld = self.tcp.unconfirmed();
        let incoming = self.tcp.incoming(&segment).filter(|_| self.is_current(&segment));
        let repeats = segment.len > 0 && incoming.is_none() && withheld > 0;
        if let Some(range) = incoming {
            let seq = self.tcp.sequence_of(range.start);
            let start = seq.wrapping_sub(segment.seq) as usize;
            let length = (range.end - range.start) as usize;
            self.input.insert(seq, &payload.slice(start..start + length));
        }
        self.tcp.handle_segment(now, &segment);
        (self.received_at, self.probes) = (now, 0);
        if self.tcp.unconfirmed() > withheld {
            self.arrived_at = now;
            self.unconfirmed_since.get_or_insert(now);
        }
        self.release_output();
        let is_used_up = self.window.is_used_up(self.tcp.receiver().delivered());
        if segment.len > 0 && is_used_up && self.is_narrow() {
            // A probe of a closed window, or a retransmission of data beyond it.
            self.tcp.request_ack();
        }
        repeats
    }

    /// Whether a segment acknowledges nothing that was not sent: otherwise its data is dropped. The
    /// byte of a window probe does not count as sent.
    fn is_current(&self, segment: &Segment) -> bool {
        let next = self.tcp.next_sequence_number();
        segment.flags.has(Flags::ACK) && segment.ack.wrapping_sub(next).cast_signed() <= 1
    }

    /// Aborts the connection: the peer is sent RST.
    pub(super) fn reset(&mut self) {
        self.tcp.reset();
    }

    /// Whether the connection is open for both applications.
    pub(super) const fn is_open(&self) -> bool {
        !matches!(self.tcp.state(), State::Listen | State::SynReceived | State::Closed)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.tcp.state() == State::Closed
    }

    /// Whether the connection has ended before both directions were closed.
    pub(super) fn has_failed(&self) -> bool {
        let is_complete =
            self.is_finishing && self.tcp.receiver().finished() && self.tcp.unconfirmed() == 0;
        self.is_closed() && !is_complete
    }

    /// Progress that the application can notice by reading.
    pub(super) fn progress(&self) -> Progress {
        let receiver = self.tcp.receiver();
        Progress {
            delivered: receiver.delivered(),
            is_finished: receiver.finished(),
            has_failed: self.has_failed(),
        }
    }

    /// Whether SYN with this sequence number opens a new connection of the same flow: in TIME-WAIT,
    /// with a larger number than the former connection has used (RFC 9293, 3.10.7.4, MAY-2).
    pub(super) fn may_be_replaced(&self, seq: u32) -> bool {
        let expected = self.tcp.acknowledgement_number();
        self.tcp.state() == State::TimeWait && seq.wrapping_sub(expected).cast_signed() > 0
    }
}
