//! Proxies that acknowledge data in place of the receiver, with the sequence numbers of the hosts:
//! both hosts see one connection. `reflect` and `spoof` differ in the relay of segments
//! ([`Relay`]) between handshake and close; joining and leaving a connection is common to both.

mod crash_loss_detection;
mod held;
mod monitor;
mod relay;

use std::sync::Arc;

use gridhaul_scenario::units::{Bytes, Instant};

use super::coupling::proxy_params;
use super::outgoing_queue::OutgoingQueue;
use super::{BufferStatus, MssLimit, Origin, Outgoing, Proxy, Side, Statistics};
use crate::tcp::{Flags, SackBlocks, Segment, StackParams};

use self::crash_loss_detection::CrashLossDetector;
use self::held::HeldData;
pub(super) use self::monitor::EntryState;
use self::monitor::HandshakeMonitor;
pub(super) use self::relay::Relay;

/// A proxy that acknowledges data in place of the receiver.
///
/// SYN and SYN-ACK are forwarded without the timestamps option, and with a window that is at most
/// the buffer of the proxy. The proxy engages with the first segment of the client after the
/// handshake. When it meets an open connection, after a restart or a change of the path, it
/// forwards all segments and engages when all forwarded data is acknowledged in both directions;
/// never if timestamps are in use or FIN was forwarded.
///
/// FIN is forwarded after the data, and acknowledged to its sender when the next hop has
/// acknowledged it: a close has the same end-to-end meaning as without proxies. RST is forwarded at
/// once. If a side does not answer for 100 s and 15 retransmissions (R2 of RFC 1122, section
/// 4.2.3.5), the proxy disengages: it resets both hosts if it has bytes at risk, because no other
/// node can deliver them; otherwise it forwards all further segments.
///
/// If bytes that another proxy has acknowledged are found to be lost (that proxy has crashed, or
/// the path no longer contains it), both hosts are reset instead of waiting for ever.
#[derive(Debug, Clone)]
pub struct Transparent<R> {
    params: Arc<StackParams>,
    phase: Phase<R>,
    /// By the side that retransmits.
    loss_detectors: [CrashLossDetector; 2],
    /// See [`Proxy::set_window_shift`].
    window_shifts: [u8; 2],
    /// Forwarded segments, and resets of the proxy; absent while none waits.
    queue: Option<Box<OutgoingQueue>>,
    /// Bytes that another proxy had acknowledged and that were found to be lost, and those that
    /// were lost with earlier connections.
    lost: u64,
}

#[derive(Debug, Clone)]
enum Phase<R> {
    Forwarding(Box<HandshakeMonitor>),
    Engaged(Box<Engaged<R>>),
}

#[derive(Debug, Clone)]
struct Engaged<R> {
    relay: R,
    /// Sequence number of the first byte of each side that the proxy has accepted.
    first: [u32; 2],
    held: HeldData,
}

impl<R: Relay> Transparent<R> {
    /// A proxy that buffers up to `buffer` bytes of each direction and sends with the TCP
    /// parameters `params`, whose MSS is lowered to that of the hosts.
    #[must_use]
    pub fn new(params: Arc<StackParams>, hosts: MssLimit, buffer: Bytes) -> Self {
        Self {
            params: hosts.apply(proxy_params(params, buffer)),
            phase: Phase::Forwarding(Box::default()),
            loss_detectors: Default::default(),
            window_shifts: [0; 2],
            queue: None,
            lost: 0,
        }
    }

    /// A proxy for an open connection that it must not join, because the window scales of the hosts
    /// are unknown. It forwards all segments, and resets both hosts if bytes that an earlier proxy
    /// has acknowledged are lost. The next connection begins as with [`Self::new`].
    #[must_use]
    pub fn observing(params: Arc<StackParams>, hosts: MssLimit, buffer: Bytes) -> Self {
        let phase = Phase::Forwarding(Box::new(HandshakeMonitor::of_open_connection()));
        Self { phase, ..Self::new(params, hosts, buffer) }
    }

    /// A proxy in a connection that exists from the start, without handshake and timestamps. `isns`
    /// are the initial sequence numbers of client and server, `next` the parameters of the next
    /// hops on both sides, which determine their first windows.
    #[must_use]
    pub fn engaged(
        params: Arc<StackParams>,
        hosts: MssLimit,
        buffer: Bytes,
        isns: [u32; 2],
        next: [&StackParams; 2],
    ) -> Self {
        let mut proxy = Self::new(params, hosts, buffer);
        let windows = next.map(|stack| stack.receive_window);
        let sack = next.iter().all(|stack| stack.sack);
        proxy.phase = proxy.engage(EntryState { isns, windows, sack });
        proxy
    }

    fn engage(&self, entry: EntryState) -> Phase<R> {
        let relay = R::engage(&self.params, &entry, self.window_shifts);
        let first = entry.isns.map(|isn| isn.wrapping_add(1));
        let held = match &self.phase {
            Phase::Forwarding(monitor) => *monitor.held(),
            Phase::Engaged(_) => HeldData::default(),
        };
        Phase::Engaged(Box::new(Engaged { relay, first, held }))
    }

    fn forward(&mut self, now: Instant, from: Side, segment: &Segment) {
        let (header, buffer) = (self.params.header as u8, self.params.receive_window);
        let Phase::Forwarding(monitor) = &mut self.phase else { return };
        if let Some(entry) = monitor.handshake_completed_by(from, segment, buffer) {
            self.phase = self.engage(entry);
            if let Phase::Engaged(engaged) = &mut self.phase {
                // The server still waits for the ACK of its SYN-ACK.
                engaged.relay.request_ack(Side::Server);
                engaged.relay.handle_segment(now, from, segment);
            }
            return;
        }
        let incoming = segment;
        let mut segment = *segment;
        monitor.on_forward(from, &mut segment, header, buffer);
        let expected = monitor.expected_from(from);
        let forwarded = Outgoing::forward(from.other(), segment, incoming);
        self.queue.get_or_insert_default().push_back(forwarded);
        if let Some(entry) = monitor.all_acknowledged() {
            self.phase = self.engage(entry);
        } else if let Some(expected) = expected {
            self.detect_loss(now, from, &segment, expected);
        }
    }

    /// A host acknowledges data that the proxy has never sent: data that it holds, or the proxy has
    /// engaged with wrong sequence numbers, which it has read from old duplicates.
    #[cold]
    fn on_unsent_acknowledged(&mut self, now: Instant, from: Side, segment: &Segment) {
        if let Phase::Engaged(engaged) = &self.phase
            && engaged.held.contains(from, segment.ack)
        {
            let ack = engaged.relay.next_to(from);
            let known = Segment { ack, sack: SackBlocks::default(), ..*segment };
            self.handle_segment(now, from, &known);
        } else if self.disengage() {
            self.forward(now, from, segment);
        }
    }

    /// Disengages. If the proxy has bytes at risk (acknowledged to their sender and not yet by the
    /// next hop), both hosts are reset: the sender considers these bytes delivered, and no other
    /// node stores them. Otherwise all segments are forwarded from now on, and true is returned.
    fn disengage(&mut self) -> bool {
        let Phase::Engaged(engaged) = &mut self.phase else { return true };
        match engaged.relay.bytes_at_risk() {
            0 => {
                self.phase = Phase::Forwarding(Box::default());
                self.loss_detectors = Default::default();
                true
            }
            _ => {
                engaged.relay.abort();
                false
            }
        }
    }

    #[inline]
    fn detect_loss(&mut self, now: Instant, from: Side, segment: &Segment, expected: u32) {
        let counts = segment.sequence_len() > 0 && !segment.flags.has(Flags::SYN);
        if !counts {
            return;
        }
        let detector = &mut self.loss_detectors[from.index()];
        if let Some(missing) = detector.on_segment(now, segment.seq, expected) {
            self.on_bytes_lost(missing);
        }
    }

    /// Resets both hosts, because acknowledged bytes are stored nowhere any more.
    #[cold]
    fn on_bytes_lost(&mut self, missing: u32) {
        self.lost += u64::from(missing);
        self.loss_detectors = Default::default();
        self.reset_both();
    }

    fn pop_forwarded(&mut self) -> Option<Outgoing> {
        let next = self.queue.as_mut()?.pop_front(|| false);
        self.queue.take_if(|queue| queue.is_empty());
        next
    }

    /// Sends segments that pass the proxy unchanged. A function of its own, because they are rare
    /// once the proxy takes part, and every event would be longer by it.
    #[inline(never)]
    fn transmit_forwarded(&mut self, send: &mut dyn FnMut(&Outgoing)) {
        while let Some(outgoing) = self.pop_forwarded() {
            send(&outgoing);
        }
    }

    fn reset_both(&mut self) {
        match &mut self.phase {
            Phase::Engaged(engaged) => engaged.relay.abort(),
            Phase::Forwarding(monitor) => {
                let numbers = Side::BOTH.map(|side| monitor.expected_from(side));
                **monitor = HandshakeMonitor::default();
                for reset in resets(numbers, self.params.header as u8) {
                    self.queue.get_or_insert_default().push_back(reset);
                }
            }
        }
    }
}

impl<R: Relay> Engaged<R> {
    /// Whether a host acknowledges data that the proxy has never sent.
    #[inline]
    fn acknowledges_unsent(&self, from: Side, segment: &Segment) -> bool {
        let answers = segment.flags.has(Flags::ACK)
            && !segment.flags.has(Flags::RST)
            && !segment.flags.has(Flags::SYN);
        answers && self.relay.is_unsent(from, segment.ack)
    }
}

impl<R: Relay> Proxy for Transparent<R> {
    fn boxed_clone(&self) -> Box<dyn Proxy> {
        Box::new(self.clone())
    }

    fn handle_segment(&mut self, now: Instant, from: Side, segment: &Segment) {
        if let Phase::Engaged(engaged) = &mut self.phase {
            if engaged.acknowledges_unsent(from, segment) {
                self.on_unsent_acknowledged(now, from, segment);
                return;
            }
            engaged.held.note(from, segment);
            let opens = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK);
            if !(opens && from == Side::Client && engaged.relay.is_over()) {
                engaged.relay.handle_segment(now, from, segment);
                let expected = engaged.relay.expected(from);
                self.detect_loss(now, from, segment, expected);
                return;
            }
            // A new connection with the same addresses and ports begins.
            self.lost += engaged.relay.lost();
            self.phase = Phase::Forwarding(Box::default());
        }
        self.forward(now, from, segment);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing> {
        match &mut self.phase {
            Phase::Engaged(engaged) if self.queue.is_none() => engaged.relay.poll_transmit(now),
            _ => self.pop_forwarded(),
        }
    }

    fn transmit(&mut self, now: Instant, send: &mut dyn FnMut(&Outgoing)) -> (Instant, u64) {
        if self.queue.is_some() {
            self.transmit_forwarded(send);
        }
        match &mut self.phase {
            Phase::Forwarding(_) => (Instant::NEVER, 0),
            Phase::Engaged(engaged) => engaged.relay.transmit(now, send),
        }
    }

    fn next_deadline(&self) -> Instant {
        match &self.phase {
            Phase::Forwarding(_) => Instant::NEVER,
            Phase::Engaged(engaged) => engaged.relay.next_deadline(),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let Phase::Engaged(engaged) = &mut self.phase else { return };
        engaged.relay.handle_timeout(now);
        if engaged.relay.exceeds_r2(now) {
            self.disengage();
        }
    }

    fn buffer_status(&self, from: Side) -> BufferStatus {
        match &self.phase {
            Phase::Forwarding(_) => BufferStatus::default(),
            Phase::Engaged(engaged) => engaged.relay.buffer_status(from),
        }
    }

    fn bytes_at_risk(&self) -> u64 {
        match &self.phase {
            Phase::Forwarding(_) => 0,
            Phase::Engaged(engaged) => engaged.relay.bytes_at_risk(),
        }
    }

    fn accepts(&self, from: Side, segment: &Segment) -> Option<(u32, u32)> {
        match &self.phase {
            Phase::Engaged(engaged) => engaged.relay.accepts(from, segment),
            Phase::Forwarding(monitor) => {
                monitor.handshake_completed_by(from, segment, self.params.receive_window)?;
                (segment.len > 0).then_some((segment.seq, segment.len))
            }
        }
    }

    fn is_finished(&self) -> bool {
        let is_idle = match &self.phase {
            Phase::Forwarding(monitor) => monitor.is_idle(),
            Phase::Engaged(engaged) => engaged.relay.is_finished(),
        };
        is_idle && self.queue.is_none()
    }

    fn is_over(&self) -> bool {
        match &self.phase {
            Phase::Forwarding(monitor) => monitor.is_idle(),
            Phase::Engaged(engaged) => engaged.relay.is_over(),
        }
    }

    fn limit_mss(&mut self, limit: MssLimit) {
        self.params = limit.apply(Arc::clone(&self.params));
    }

    fn reset(&mut self) {
        self.reset_both();
    }

    /// A proxy that only forwards has nothing at risk.
    fn drain(&mut self, _now: Instant) {
        if let Phase::Engaged(engaged) = &mut self.phase {
            engaged.relay.drain();
        }
    }

    /// To be called for each connection, after its handshake was forwarded.
    fn set_window_shift(&mut self, toward: Side, shift: u8) {
        self.window_shifts[toward.index()] = shift;
        if let Phase::Engaged(engaged) = &mut self.phase {
            engaged.relay.set_window_shift(toward, shift);
        }
    }

    fn add_connection_counters(&self, statistics: &mut Statistics) {
        if let Phase::Engaged(engaged) = &self.phase {
            engaged.relay.count(statistics);
        }
    }

    fn lost(&self) -> u64 {
        match &self.phase {
            Phase::Forwarding(_) => self.lost,
            Phase::Engaged(engaged) => self.lost + engaged.relay.lost(),
        }
    }

    fn first_sequence_number(&self, from: Side) -> Option<u32> {
        match &self.phase {
            Phase::Forwarding(_) => None,
            Phase::Engaged(engaged) => Some(engaged.first[from.index()]),
        }
    }
}

/// Resets for both hosts, with the sequence numbers that they expect: `numbers` are those that are
/// expected from the client and from the server.
fn resets(numbers: [Option<u32>; 2], header: u8) -> impl Iterator<Item = Outgoing> {
    Side::BOTH.into_iter().filter_map(move |from| {
        let seq = numbers[from.index()]?;
        let (flags, ack) = match numbers[from.other().index()] {
            Some(ack) => (Flags::RST.with(Flags::ACK), ack),
            None => (Flags::RST, 0),
        };
        let segment = Segment { seq, ack, flags, header, ..Segment::default() };
        Some(Outgoing { to: from.other(), segment, origin: Origin::Proxy })
    })
}
