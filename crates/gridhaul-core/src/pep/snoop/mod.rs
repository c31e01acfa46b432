//! `snoop`: repairs losses of the last hop from a cache and hides them from the sender
//! (Balakrishnan, Seshan, Amir and Katz, MobiCom 1995; RFC 3135, section 3.1.3, local
//! retransmission). Only the receiver acknowledges data: the proxy generates no acknowledgements,
//! and a crash of the proxy loses no data.
//!
//! `cache` stores segments, `repair.rs` handles acknowledgements, `hop_timer.rs` of the parent
//! module is the retransmission timer, and `hop_window.rs` limits the segments in flight on the
//! hop. docs/limitations/snoop.md lists the trade-offs.

mod cache;
mod hop_window;
mod repair;

use gridhaul_scenario::units::{Bytes, Instant};

use super::hop_timer::HopTimer;
use super::outgoing_queue::OutgoingQueue;
use super::{BufferStatus, Origin, Outgoing, Proxy, Side, Statistics};
use crate::tcp::{Flags, Segment, expand};

use self::cache::{Cache, CachedSegment, Insertion};
use self::hop_window::HopWindow;

/// Caches segments sent over a lossy last hop, and retransmits those that are lost.
#[derive(Debug, Clone)]
pub struct Snoop {
    /// The side of the lossy hop.
    toward: Side,
    cache: Cache,
    timer: HopTimer,
    window: HopWindow,
    queue: OutgoingQueue,
    state: HopState,
    /// Whether each side has sent the SACK-permitted option; whether SACK is in use.
    sack_permitted: [bool; 2],
    sack: bool,
    /// Number of payload bytes that the receiver has acknowledged, and the highest acknowledgement.
    released: u64,
    released_to: Option<u32>,
    /// Retransmitted segments, and expirations of the retransmission timer.
    retransmissions: u64,
    timeouts: u64,
}

/// State of the stream that is sent over the hop. Positions count from `anchor`.
#[derive(Debug, Clone)]
struct HopState {
    /// Sequence number of position 0; `None` before the first segment.
    anchor: Option<u32>,
    /// End of the data that was received from the sender, and of the data sent over the hop.
    highest: u64,
    sent_to: u64,
    /// Next position that the receiver expects, and the right edge of its window.
    una: Option<u64>,
    edge: u64,
    window: u32,
    /// Number of transmissions over the hop, retransmissions included.
    transmissions: u64,
    /// Number of the latest transmission that has arrived.
    arrived: u64,
    /// End of the highest selectively acknowledged range.
    sacked_to: u64,
    /// Duplicate acknowledgements of `una`, and how many of them trigger a retransmission.
    duplicates: u64,
    duplicate_threshold: u64,
    /// Number of segments after `una` that have arrived, according to duplicate acknowledgements.
    arrived_beyond: u64,
    /// Spurious retransmissions, each of which causes a duplicate acknowledgement without a loss.
    spurious: u32,
}

/// Position of the first sequence number, so that earlier ones have a position as well.
const FIRST_POSITION: u64 = 1 << 31;

impl HopState {
    const fn new() -> Self {
        Self {
            anchor: None,
            highest: FIRST_POSITION,
            sent_to: 0,
            una: None,
            edge: u64::MAX,
            window: 0,
            transmissions: 0,
            arrived: 0,
            sacked_to: 0,
            duplicates: 0,
            duplicate_threshold: 0,
            arrived_beyond: 0,
            spurious: 0,
        }
    }

    /// The position of a sequence number that is closest to the highest position so far.
    fn position(&mut self, seq: u32) -> Option<u64> {
        let anchor = *self.anchor.get_or_insert(seq.wrapping_sub(FIRST_POSITION as u32));
        expand(seq, anchor, self.highest)
    }
}

impl Snoop {
    /// For a connection with a lossy hop on the side `toward`. The cache has `buffer` bytes,
    /// headers included; segments that do not fit are forwarded without a copy.
    #[must_use]
    pub fn new(toward: Side, buffer: Bytes) -> Self {
        Self {
            toward,
            cache: Cache::new(buffer.get()),
            timer: HopTimer::new(),
            window: HopWindow::new(),
            queue: OutgoingQueue::new(),
            state: HopState::new(),
            sack_permitted: [false; 2],
            sack: false,
            released: 0,
            released_to: None,
            retransmissions: 0,
            timeouts: 0,
        }
    }

    /// Handles a segment toward the lossy hop, without SYN. Returns the segment to forward at once.
    fn on_data(&mut self, now: Instant, segment: &Segment) -> Option<Segment> {
        let forwarded = Some(*segment);
        let Some(start) = self.state.position(segment.seq) else { return forwarded };
        let end = start + u64::from(segment.sequence_len());
        let floor = self.floor().unwrap_or(0);
        if end <= floor {
            // The sender probes the connection, and must receive every acknowledgement.
            self.state.spurious = 0;
            return forwarded;
        }
        // The receiver accepts no data outside its window. A zero-window probe begins at its edge.
        if start == end || start > self.state.edge {
            return forwarded;
        }
        self.state.highest = self.state.highest.max(end);
        let entry = self.entry(now, start, segment).trimmed(floor);
        let was_empty = self.cache.is_empty();
        let fits = entry.payload_end() <= self.state.edge;
        let forwarded = match if fits { self.cache.insert(entry) } else { Insertion::NotCached } {
            Insertion::New { sent: false } => {
                self.send_waiting(now, self.hop_limit(), Some(start));
                None
            }
            Insertion::New { sent: true } => forwarded,
            Insertion::AlreadyCached { sent: true } => {
                self.timer.stop();
                forwarded
            }
            // The sender has retransmitted a segment that still waits here.
            Insertion::AlreadyCached { sent: false } => {
                self.send_waiting(now, u64::MAX, None);
                None
            }
            // The segment must not overtake waiting ones.
            Insertion::NotCached => {
                self.send_waiting(now, u64::MAX, None);
                forwarded
            }
        };
        if forwarded.is_some() {
            self.state.transmissions += 1;
            self.state.sent_to = self.state.sent_to.max(end);
        }
        if was_empty {
            self.timer.on_progress(now);
        } else if self.cache.outstanding() == 2 {
            // The timeout without the delayed-ACK allowance applies from the second segment on.
            self.timer.stop();
        }
        self.update_timer(now);
        forwarded
    }

    /// The cache entry of a segment that is sent now.
    fn entry(&self, now: Instant, start: u64, segment: &Segment) -> CachedSegment {
        CachedSegment {
            start,
            end: start + u64::from(segment.sequence_len()),
            segment: *segment,
            sent: false,
            first_transmission: self.state.transmissions + 1,
            latest_transmission: self.state.transmissions + 1,
            outstanding: u64::MAX,
            sent_at: now,
            retransmitted: false,
            retransmitted_by_sender: false,
            sacked: false,
        }
    }

    /// Maximum number of outstanding segments on the hop. There is no limit while no
    /// acknowledgements are seen: they may use another path, or the hop may be down.
    fn hop_limit(&self) -> u64 {
        if self.state.una.is_none() || self.timer.has_timed_out_twice() {
            u64::MAX
        } else {
            self.window.segments()
        }
    }

    /// Sends waiting segments while fewer than `limit` are outstanding. `fresh` is the position of
    /// the segment that has just arrived.
    fn send_waiting(&mut self, now: Instant, limit: u64, fresh: Option<u64>) {
        loop {
            // A duplicate acknowledgement reports that a segment has left the hop, but not which
            // one.
            let arrived = if self.sack { 0 } else { self.state.arrived_beyond };
            let outstanding = (self.cache.outstanding() as u64).saturating_sub(arrived);
            if outstanding >= limit {
                return;
            }
            let Some(entry) = self.cache.next_waiting() else { return };
            self.state.transmissions += 1;
            self.state.sent_to = self.state.sent_to.max(entry.end);
            (entry.first_transmission, entry.latest_transmission) =
                (self.state.transmissions, self.state.transmissions);
            (entry.sent_at, entry.outstanding) = (now, outstanding + 1);
            // A fresh segment was trimmed by the bytes that the receiver has already acknowledged.
            let origin = match fresh == Some(entry.start) {
                true => Origin::Rewritten,
                false => Origin::Proxy,
            };
            self.queue.push_back(Outgoing { to: self.toward, segment: entry.segment, origin });
        }
    }

    /// Handles SYN, which may be a retransmission.
    fn on_syn(&mut self, now: Instant, from: Side, segment: &Segment) {
        let acknowledges = segment.flags.has(Flags::ACK);
        self.clear(now);
        if !acknowledges {
            self.sack_permitted = [false; 2];
            self.sack = false;
        }
        self.sack_permitted[from.index()] = segment.sack_permitted;
        self.sack |= self.sack_permitted == [true; 2];
        if from != self.toward {
            let first = segment.seq.wrapping_add(1);
            // After all acknowledged data: SYN of a new connection, not a retransmission.
            if self.released_to.is_none_or(|to| to.wrapping_sub(first).cast_signed() < 0) {
                self.released_to = Some(first);
            }
            if let Some(start) = self.state.position(segment.seq) {
                self.state.highest = start + u64::from(segment.sequence_len());
                self.state.una = Some(start + 1);
            }
        } else if acknowledges {
            self.released_to.get_or_insert(segment.ack);
            self.state.una = self.state.position(segment.ack);
            self.state.window = segment.window;
            self.state.edge = self.state.highest + u64::from(segment.window);
        }
        self.state.una = self.state.una.max(self.floor());
    }

    /// Position up to which all data has arrived, also after [`Self::clear`].
    fn floor(&mut self) -> Option<u64> {
        let released_to = self.released_to?;
        self.state.una.max(self.state.position(released_to))
    }

    /// Counts the payload that is acknowledged up to this number; the first number is the origin.
    fn release_to(&mut self, ack: u32) {
        let more = ack.wrapping_sub(*self.released_to.get_or_insert(ack));
        if more.cast_signed() > 0 {
            self.released += u64::from(more);
            self.released_to = Some(ack);
        }
    }

    /// Discards all state, like a new proxy in an open connection.
    fn clear(&mut self, now: Instant) {
        self.send_waiting(now, u64::MAX, None);
        self.cache.clear();
        self.timer.stop();
        self.state = HopState::new();
    }

    /// Starts the timer if a segment needs it, and stops it otherwise.
    fn update_timer(&mut self, now: Instant) {
        if self.timer_target().is_none() {
            self.timer.stop();
        } else if !self.timer.is_running() {
            self.timer.start(now, self.cache.outstanding() == 1);
        }
    }
}

impl Proxy for Snoop {
    fn boxed_clone(&self) -> Box<dyn Proxy> {
        Box::new(self.clone())
    }

    fn handle_segment(&mut self, now: Instant, from: Side, segment: &Segment) {
        let incoming = segment;
        let mut forwarded = Some(*segment);
        if segment.flags.has(Flags::RST) {
            self.clear(now);
        } else if segment.flags.has(Flags::SYN) {
            self.on_syn(now, from, segment);
        } else if from != self.toward {
            forwarded = self.on_data(now, segment);
        } else if segment.flags.has(Flags::ACK) {
            forwarded = self.on_acknowledgement(now, segment);
        }
        if let Some(segment) = forwarded {
            self.queue.push_back(Outgoing::forward(from.other(), segment, incoming));
        }
        if from == self.toward {
            self.repair(now);
            self.send_waiting(now, self.hop_limit(), None);
            self.update_timer(now);
        }
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Outgoing> {
        self.queue.pop_front(|| self.cache.is_empty())
    }

    fn next_deadline(&self) -> Instant {
        self.timer.deadline()
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.timer.deadline() > now {
            return;
        }
        match self.timer_target() {
            None => self.timer.stop(),
            Some(_) if self.timer.exceeds_r2(now) => self.clear(now),
            Some(start) => {
                self.timer.back_off();
                self.timeouts += 1;
                self.retransmit(now, start);
                self.send_waiting(now, self.hop_limit(), None);
                self.timer.start(now, self.cache.outstanding() == 1);
            }
        }
    }

    fn drain(&mut self, now: Instant) {
        self.send_waiting(now, u64::MAX, None);
    }

    /// The payload toward the lossy hop for which the cache has space, as it may have to be
    /// retransmitted.
    fn accepts(&self, from: Side, segment: &Segment) -> Option<(u32, u32)> {
        let first = segment.seq.wrapping_add(u32::from(segment.flags.has(Flags::SYN)));
        // Bytes that the receiver has acknowledged are not cached.
        let arrived = self.released_to.map_or(0, |to| to.wrapping_sub(first).cast_signed());
        let len = segment.len.saturating_sub(arrived.max(0).cast_unsigned());
        let is_cached =
            from != self.toward && len > 0 && self.cache.has_space(&Segment { len, ..*segment });
        is_cached.then_some((first, segment.len))
    }

    fn add_connection_counters(&self, statistics: &mut Statistics) {
        statistics.retransmissions[self.toward.index()] += self.retransmissions;
        statistics.timeouts[self.toward.index()] += self.timeouts;
    }

    fn is_finished(&self) -> bool {
        self.cache.is_empty() && self.queue.is_empty()
    }

    /// The proxy generates no acknowledgements: data acknowledged by the receiver counts as
    /// acknowledged and released at once.
    fn buffer_status(&self, from: Side) -> BufferStatus {
        if from == self.toward {
            return BufferStatus::default();
        }
        let acknowledged = self.released;
        let bytes = self.cache.payload();
        BufferStatus {
            bytes,
            bytes_at_risk: 0,
            received: acknowledged,
            acknowledged,
            released: acknowledged,
        }
    }
}
