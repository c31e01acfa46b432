//! IEC 60870-5-104: the frames of a controlled and of a controlling station.

mod session;
#[cfg(test)]
mod tests;
mod timers;

use std::collections::VecDeque;

use gridhaul_scenario::scenario::{self, FlowEnd};
use gridhaul_scenario::units::{Bytes, Duration, Instant};

use self::session::TransferSession;
use self::timers::TestProcedure;
use super::{MessageEvent, Periodic};
use crate::random::RandomStream;

/// Both stations, over one connection or over successive ones.
///
/// Call order: report the connection with [`handle_connection`](Self::handle_connection) before
/// other calls; at each [`next_deadline`](Self::next_deadline), report the frames that
/// [`poll_ready`](Self::poll_ready) returns, and write those that [`poll_frame`](Self::poll_frame)
/// returns; call [`handle_frame`](Self::handle_frame) when a frame has been delivered completely.
/// Then [`poll_abort`](Self::poll_abort) and [`poll_event`](Self::poll_event) have the effects.
#[derive(Debug, Clone)]
pub struct Iec104 {
    keys: scenario::Iec104,
    /// Times of the values. The second one is a copy, which has not passed the oldest frame that
    /// waits for the window.
    ready: Periodic,
    waiting: Periodic,
    waiting_frames: u64,
    /// I frames without an acknowledgement on the present connection, and those of earlier
    /// connections that are to be transmitted again, in their order.
    sent: VecDeque<SentFrame>,
    again: VecDeque<SentFrame>,
    /// When the latest values that have arrived were ready.
    arrived: Option<Instant>,
    /// Payload of I frames that has arrived, without further copies.
    delivered: u64,
    /// I frames that the controlling station has received since its last acknowledgement, and when
    /// timer t2 ends.
    owed: u64,
    acknowledge_at: Instant,
    /// Acknowledgements of `w` frames each that are to be written.
    full_acknowledgements: u64,
    /// Timer t3 and U frames of both stations.
    tests: [TestProcedure; 2],
    session: TransferSession,
    /// When a frame is to be written that does not wait for a timer.
    write_at: Instant,
    events: VecDeque<(Instant, MessageEvent)>,
}

/// An I frame without an acknowledgement.
#[derive(Debug, Clone, Copy)]
struct SentFrame {
    ready: Instant,
    /// When it was written first, and on the present connection.
    began: Instant,
    written: Instant,
}

/// A frame on the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iec104Frame {
    /// I frame with values that were ready at this time.
    Values(Instant),
    /// S frame that acknowledges this many I frames.
    Acknowledgement(u64),
    /// U frame STARTDT act.
    Start,
    /// U frame STARTDT con.
    StartConfirmation,
    /// U frame TESTFR act.
    Test,
    /// U frame TESTFR con.
    TestConfirmation,
}

impl Iec104 {
    /// Stations whose values are ready from `start` on.
    #[must_use]
    pub fn new(keys: &scenario::Iec104, start: Instant, random: RandomStream) -> Self {
        let times = scenario::Periodic {
            size: Bytes::new(keys.frame_size()),
            every: keys.every,
            jitter: Duration::ZERO,
            synchronised: keys.synchronised,
        };
        let ready = Periodic::new(&times, start, random);
        Self {
            keys: *keys,
            waiting: ready.clone(),
            tests: [TestProcedure::new(ready.next_time()); 2],
            ready,
            waiting_frames: 0,
            sent: VecDeque::new(),
            again: VecDeque::new(),
            arrived: None,
            delivered: 0,
            owed: 0,
            acknowledge_at: Instant::NEVER,
            full_acknowledgements: 0,
            session: TransferSession::new(keys),
            write_at: Instant::NEVER,
            events: VecDeque::new(),
        }
    }

    /// Size of a frame in bytes.
    #[must_use]
    pub fn size(&self, frame: Iec104Frame) -> u64 {
        match frame {
            Iec104Frame::Values(_) => self.keys.frame_size(),
            _ => scenario::Iec104::CONTROL_FRAME,
        }
    }

    /// When the first values are ready, before any frame.
    #[must_use]
    pub const fn first_ready(&self) -> Instant {
        self.waiting.next_time()
    }

    /// When values are ready, or a frame is to be written.
    #[must_use]
    pub fn next_deadline(&self) -> Instant {
        let ready = self.ready.next_time();
        if !self.session.is_connected() {
            return ready;
        }
        let acknowledge =
            if self.is_active(self.controlling()) { self.acknowledge_at } else { Instant::NEVER };
        let timers = [FlowEnd::From, FlowEnd::To].map(|end| self.next_timer(end));
        timers.into_iter().fold(ready.min(self.write_at).min(acknowledge), Instant::min)
    }

    /// The time of values that are ready by now and have not been returned before.
    pub fn poll_ready(&mut self, now: Instant) -> Option<Instant> {
        let ready = (self.ready.next_time() <= now).then(|| self.ready.next_message().at)?;
        self.waiting_frames += 1;
        Some(ready)
    }

    /// The next frame to write by now, and its sender.
    pub fn poll_frame(&mut self, now: Instant) -> Option<(FlowEnd, Iec104Frame)> {
        self.expire_timers(now);
        if self.session.is_connected() {
            let frame = self.poll_unnumbered(now).or_else(|| self.poll_values(now));
            let frame = frame.or_else(|| self.poll_acknowledgement(now));
            if frame.is_some() {
                return frame;
            }
        }
        self.write_at = Instant::NEVER;
        None
    }

    fn poll_values(&mut self, now: Instant) -> Option<(FlowEnd, Iec104Frame)> {
        let controlled = self.keys.controlled;
        let may_send = self.session.is_started && self.is_active(controlled);
        if !may_send || self.sent.len() >= usize::from(self.keys.k) {
            return None;
        }
        let frame = if let Some(frame) = self.again.pop_front() {
            self.events.push_back((frame.ready, MessageEvent::Retransmitted));
            SentFrame { written: now, ..frame }
        } else if self.waiting_frames > 0 {
            self.waiting_frames -= 1;
            SentFrame { ready: self.waiting.next_message().at, began: now, written: now }
        } else {
            return None;
        };
        self.sent.push_back(frame);
        Some((controlled, Iec104Frame::Values(frame.ready)))
    }

    fn poll_acknowledgement(&mut self, now: Instant) -> Option<(FlowEnd, Iec104Frame)> {
        let controlling = self.controlling();
        if !self.is_active(controlling) {
            return None;
        }
        let frames = if self.full_acknowledgements > 0 {
            self.full_acknowledgements -= 1;
            u64::from(self.keys.w)
        } else if self.acknowledge_at <= now {
            self.acknowledge_at = Instant::NEVER;
            std::mem::take(&mut self.owed)
        } else {
            return None;
        };
        Some((controlling, Iec104Frame::Acknowledgement(frames)))
    }

    /// A frame has been delivered at an end. Returns the time at which its values were ready,
    /// unless they have arrived before.
    pub fn handle_frame(
        &mut self,
        now: Instant,
        end: FlowEnd,
        frame: Iec104Frame,
    ) -> Option<Instant> {
        if !self.is_active(end) {
            return None;
        }
        self.tests[end as usize].last_received = now;
        match frame {
            Iec104Frame::Values(ready) => return self.handle_values(now, ready),
            Iec104Frame::Acknowledgement(frames) => self.handle_acknowledgement(now, frames),
            _ => self.handle_unnumbered(now, end, frame),
        }
        None
    }

    fn handle_values(&mut self, now: Instant, ready: Instant) -> Option<Instant> {
        self.owed += 1;
        if self.owed == 1 {
            self.acknowledge_at = now + self.keys.t2;
        }
        // The number of an acknowledgement is that of the frame which caused it, also if further
        // frames arrive in the same segment.
        if self.owed >= u64::from(self.keys.w) {
            self.owed = 0;
            self.full_acknowledgements += 1;
            self.acknowledge_at = Instant::NEVER;
            self.write_at = now;
        }
        // TCP keeps the order, and so do stations that transmit frames again.
        if self.arrived.is_some_and(|arrived| ready <= arrived) {
            self.events.push_back((ready, MessageEvent::Duplicate));
            return None;
        }
        self.arrived = Some(ready);
        self.delivered += self.keys.frame_size();
        Some(ready)
    }

    fn handle_acknowledgement(&mut self, now: Instant, frames: u64) {
        let frames = self.sent.len().min(frames as usize);
        for SentFrame { ready, began, .. } in self.sent.drain(..frames) {
            self.events.push_back((ready, MessageEvent::Acknowledged(now.since(began))));
        }
        if self.waiting_frames > 0 || !self.again.is_empty() {
            self.write_at = now;
        }
    }

    /// Payload of I frames that has arrived, without further copies; `None` for stations on one
    /// connection, which transmit nothing twice.
    #[must_use]
    pub fn delivered(&self) -> Option<u64> {
        self.keys.starts_transfer().then_some(self.delivered)
    }

    /// When the values were ready that have not arrived.
    pub fn undelivered(&self) -> impl Iterator<Item = Instant> + use<'_> {
        let sent = self.sent.iter().chain(&self.again).map(|frame| frame.ready);
        let arrived = self.arrived;
        let sent = sent.filter(move |ready| arrived.is_none_or(|arrived| *ready > arrived));
        let mut waiting = self.waiting.clone();
        sent.chain((0..self.waiting_frames).map(move |_| waiting.next_message().at))
    }
}
