//! `snoop`: repairs the losses of the last hop from a cache and keeps them from the sender
//! (Balakrishnan, Seshan, Amir and Katz, MobiCom 1995; RFC 3135, section 3.1.3, local
//! retransmission). Whoever acknowledges is still the receiver: the proxy makes no acknowledgement,
//! and a crash of it loses nothing.
//!
//! `cache.rs` keeps segments, `repair.rs` reads acknowledgements, `timer.rs` says when one is
//! overdue, `hold.rs` how much may be on the hop at a time. docs/limitations/snoop.md lists the trade-offs.

mod cache;
mod hop_window;
mod repair;
mod timer;

use std::collections::VecDeque;

use gridhaul_scenario::units::{Bytes, Instant};

use super::{BufferStatus, Origin, Outgoing, Proxy, Side};
use crate::tcp::{Flags, Segment, expand};

use self::cache::{Cache, Entry, Place};
use self::hop_window::HopWindow;
use self::timer::HopTimer;

/// Keeps copies of what goes over a lossy last hop, and sends them again when they are missing.
#[derive(Debug, Clone)]
pub struct Snoop {
    /// The end behind the lossy hop.
    toward: Side,
    cache: Cache,
    timer: HopTimer,
    window: HopWindow,
    out: VecDeque<Outgoing>,
    view: View,
    /// Both ends speak of selective acknowledgements, by side; or such have been seen.
    sack_permitted: [bool; 2],
    sack: bool,
    /// Payload that the receiver has acknowledged, and the number up to which.
    released: u64,
    released_to: Option<u32>,
}

/// What is known of the stream that goes over the hop. Positions count from `anchor`.
#[derive(Debug, Clone)]
struct View {
    /// The sequence number of position 0; `None`: nothing has been seen.
    anchor: Option<u32>,
    /// End of what has come for the receiver, and of what has gone over the hop.
    highest: u64,
    gone_to: u64,
    /// What the receiver expects next, and the right edge of its window.
    una: Option<u64>,
    edge: u64,
    window: u32,
    /// Segments that have gone over the hop, copies too.
    order: u64,
    /// The latest of these that has arrived.
    arrived: u64,
    /// End of the highest selectively acknowledged range.
    sacked_to: u64,
    /// Duplicates of the acknowledgement of `una`, and how many are needed for a copy.
    duplicates: u64,
    needed: u64,
    /// Segments beyond `una` that have arrived, as far as duplicates tell.
    beyond: u64,
    /// Copies that were sent in vain: each brings a duplicate that means nothing.
    vain: u32,
}

/// Position of the first number that is seen, so that earlier ones have a position as well.
const MIDDLE: u64 = 1 << 31;

impl View {
    const fn new() -> Self {
        Self {
            anchor: None,
            highest: MIDDLE,
            gone_to: 0,
            una: None,
            edge: u64::MAX,
            window: 0,
            order: 0,
            arrived: 0,
            sacked_to: 0,
            duplicates: 0,
            needed: 0,
            beyond: 0,
            vain: 0,
        }
    }

    /// The position of a sequence number, the one nearest to what was seen last.
    fn position(&mut self, wire: u32) -> Option<u64> {
        let anchor = *self.anchor.get_or_insert(wire.wrapping_sub(MIDDLE as u32));
        expand(wire, anchor, self.highest)
    }
}

impl Snoop {
    /// For a connection whose end `toward` is behind a lossy hop. The cache takes `buffer` bytes,
    /// headers included; what does not fit goes on without a copy.
    #[must_use]
    pub fn new(toward: Side, buffer: Bytes) -> Self {
        Self {
            toward,
            cache: Cache::new(buffer.get()),
            timer: HopTimer::new(),
            window: HopWindow::new(),
            out: VecDeque::new(),
            view: View::new(),
            sack_permitted: [false; 2],
            sack: false,
            released: 0,
            released_to: None,
        }
    }

    /// A segment towards the lossy hop, without SYN. Returns what goes on at once.
    fn on_data(&mut self, now: Instant, segment: &Segment) -> Option<Segment> {
        let passing = Some(*segment);
        let Some(start) = self.view.position(segment.seq) else { return passing };
        let end = start + u64::from(segment.sequence_len());
        let floor = self.floor().unwrap_or(0);
        if end <= floor || start < floor && start == end {
            // The sender asks for an answer, and gets each that comes.
            self.view.vain = 0;
            return passing;
        }
        // Outside the window, the receiver takes nothing. A probe stands at its edge.
        if start == end || start > self.view.edge {
            return passing;
        }
        self.view.highest = self.view.highest.max(end);
        let entry = self.entry(now, start, segment).trimmed(floor);
        let was_empty = self.cache.is_empty();
        let fits = entry.payload_end() <= self.view.edge;
        let passing = match if fits { self.cache.insert(entry) } else { Place::None } {
            Place::New { gone: false } => {
                self.release(now, self.allowed(), Some(start));
                None
            }
            Place::New { gone: true } => passing,
            Place::Known { gone: true } => {
                self.timer.stop();
                passing
            }
            // Its sender has lost patience.
            Place::Known { gone: false } => {
                self.release(now, u64::MAX, None);
                None
            }
            // Nothing overtakes what waits.
            Place::None => {
                self.release(now, u64::MAX, None);
                passing
            }
        };
        if passing.is_some() {
            self.view.order += 1;
            self.view.gone_to = self.view.gone_to.max(end);
        }
        if was_empty {
            self.timer.hear(now);
        } else if self.cache.out() == 2 {
            // The first one is no longer alone.
            self.timer.stop();
        }
        self.keep_time(now);
        passing
    }

    /// What would be kept of a segment that goes now.
    fn entry(&self, now: Instant, start: u64, segment: &Segment) -> Entry {
        Entry {
            start,
            end: start + u64::from(segment.sequence_len()),
            segment: *segment,
            gone: false,
            first: self.view.order + 1,
            latest: self.view.order + 1,
            out: u64::MAX,
            sent_at: now,
            copied: false,
            repeated: false,
            sacked: false,
        }
    }

    /// How many segments may be on the hop. Nothing is held where no acknowledgement is seen: they
    /// may go another way, or the hop may be down.
    fn allowed(&self) -> u64 {
        if self.view.una.is_none() || self.timer.is_silent() {
            u64::MAX
        } else {
            self.window.segments()
        }
    }

    /// Lets go what waits while fewer than `allowed` are on the hop. `fresh` is the position of the
    /// segment that has just come in.
    fn release(&mut self, now: Instant, allowed: u64, fresh: Option<u64>) {
        loop {
            // A duplicate says that a segment has left the hop, not which.
            let left = if self.sack { 0 } else { self.view.beyond };
            let out = (self.cache.out() as u64).saturating_sub(left);
            if out >= allowed {
                return;
            }
            let Some(entry) = self.cache.next_waiting() else { return };
            self.view.order += 1;
            self.view.gone_to = self.view.gone_to.max(entry.end);
            (entry.first, entry.latest) = (self.view.order, self.view.order);
            (entry.sent_at, entry.out) = (now, out + 1);
            // Bytes that the receiver has are cut off from what was just kept.
            let origin = match fresh == Some(entry.start) {
                true => Origin::Rewritten,
                false => Origin::Proxy,
            };
            self.out.push_back(Outgoing { to: self.toward, segment: entry.segment, origin });
        }
    }

    /// A connection begins (or its beginning is repeated).
    fn on_syn(&mut self, now: Instant, from: Side, segment: &Segment) {
        let acknowledges = segment.flags.has(Flags::ACK);
        self.forget(now);
        if !acknowledges {
            self.sack_permitted = [false; 2];
            self.sack = false;
        }
        self.sack_permitted[from.index()] = segment.sack_permitted;
        self.sack |= self.sack_permitted == [true; 2];
        if from != self.toward {
            let first = segment.seq.wrapping_add(1);
            // Beyond all that has arrived: another connection, and no repeat of what began this.
            if self.released_to.is_none_or(|to| to.wrapping_sub(first).cast_signed() < 0) {
                self.released_to = Some(first);
            }
            if let Some(start) = self.view.position(segment.seq) {
                self.view.highest = start + u64::from(segment.sequence_len());
                self.view.una = Some(start + 1);
            }
        } else if acknowledges {
            self.released_to.get_or_insert(segment.ack);
            self.view.una = self.view.position(segment.ack);
            self.view.window = segment.window;
            self.view.edge = self.view.highest + u64::from(segment.window);
        }
        self.view.una = self.view.una.max(self.floor());
    }

    /// Position up to which everything has arrived, whatever else was forgotten.
    fn floor(&mut self) -> Option<u64> {
        let released_to = self.released_to?;
        self.view.una.max(self.view.position(released_to))
    }

    /// What comes before this number has arrived; the first one counts from where.
    fn release_to(&mut self, ack: u32) {
        let more = ack.wrapping_sub(*self.released_to.get_or_insert(ack));
        if more.cast_signed() > 0 {
            self.released += u64::from(more);
            self.released_to = Some(ack);
        }
    }

    /// Starts from nothing, as a fresh proxy in mid-connection.
    fn forget(&mut self, now: Instant) {
        self.release(now, u64::MAX, None);
        self.cache.clear();
        self.timer.stop();
        self.view = View::new();
    }

    /// Starts the timer if it is wanted and does not run; stops it if it is not.
    fn keep_time(&mut self, now: Instant) {
        if self.overdue().is_none() {
            self.timer.stop();
        } else if !self.timer.is_running() {
            self.timer.start(now, self.cache.out() == 1);
        }
    }
}

impl Proxy for Snoop {
    fn handle_segment(&mut self, now: Instant, from: Side, segment: &Segment) {
        let incoming = segment;
        let mut passing = Some(*segment);
        if segment.flags.has(Flags::RST) {
            self.forget(now);
        } else if segment.flags.has(Flags::SYN) {
            self.on_syn(now, from, segment);
        } else if from != self.toward {
            passing = self.on_data(now, segment);
        } else if segment.flags.has(Flags::ACK) {
            passing = self.on_acknowledgement(now, segment);
        }
        if let Some(segment) = passing {
            self.out.push_back(Outgoing::forward(from.other(), segment, incoming));
        }
        if from == self.toward {
            self.repair(now);
            self.release(now, self.allowed(), None);
            self.keep_time(now);
        }
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Outgoing> {
        self.out.pop_front()
    }

    fn next_deadline(&self) -> Instant {
        self.timer.deadline()
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.timer.deadline() > now {
            return;
        }
        match self.overdue() {
            None => self.timer.stop(),
            Some(_) if self.timer.is_hopeless(now) => self.forget(now),
            Some(start) => {
                self.timer.back_off();
                self.copy(now, start);
                self.release(now, self.allowed(), None);
                self.timer.start(now, self.cache.out() == 1);
            }
        }
    }

    /// What goes over the lossy hop may have to be retransmitted.
    fn accepts(&self, from: Side, segment: &Segment) -> Option<(u32, u32)> {
        let first = segment.seq.wrapping_add(u32::from(segment.flags.has(Flags::SYN)));
        (from != self.toward && segment.len > 0).then_some((first, segment.len))
    }

    fn is_finished(&self) -> bool {
        self.cache.is_empty() && self.out.is_empty()
    }

    /// Nothing is acknowledged here: what the receiver acknowledges counts as taken and released at
    /// once.
    fn buffer_status(&self, from: Side) -> BufferStatus {
        if from == self.toward {
            return BufferStatus::default();
        }
        let known = self.released;
        let bytes = self.cache.payload();
        BufferStatus {
            bytes,
            bytes_at_risk: 0,
            received: known,
            acknowledged: known,
            released: known,
        }
    }
}
