//! The state of the sender when it transmits, reconstructed at the point of the capture.
//!
//! A sender receives an acknowledgement after the point of the capture has, and its data arrive
//! there later. The round trip between both, which the handshake shows, is the delay with which
//! acknowledgements count (as in tcpanaly: Paxson, "Automated packet trace analysis of TCP
//! implementations", SIGCOMM 1997). An echoed timestamp proves earlier that the sender has one.

use std::collections::VecDeque;

use gridhaul_scenario::units::{Duration, Instant};

use super::acknowledgement::Acknowledgement;

/// Acknowledgements that the sender has received.
#[derive(Debug, Default)]
pub(super) struct SenderView {
    /// From the point of the capture to the sender and back.
    pub(super) delay: Duration,
    pending: VecDeque<Acknowledgement>,
    /// First byte that has not been acknowledged.
    pub(super) unacknowledged: u64,
    /// Right edge of the receive window.
    pub(super) edge: Option<u64>,
    /// First byte that has not been sent.
    pub(super) next: u64,
    pub(super) last_ack_at: Option<Instant>,
    /// Since when nothing is outstanding.
    pub(super) all_acked_at: Option<Instant>,
    /// Whether the receiver has sent data during the current wait.
    pub(super) received_data: bool,
    /// Largest receive window.
    window_max: u64,
    /// Queueing delay and delayed acknowledgement of the last acknowledgement.
    pub(super) queueing: Duration,
    pub(super) delayed: Option<Duration>,
}

/// Largest number of acknowledgements that are on their way to the sender.
const PENDING_MAX: usize = 65_536;

impl SenderView {
    /// Receives an acknowledgement, at once or after the delay.
    pub(super) fn receive(&mut self, acknowledgement: Acknowledgement, mss: u64) {
        if self.delay.is_zero() && self.pending.is_empty() {
            self.apply(&acknowledgement, acknowledgement.at, mss);
            return;
        }
        if self.pending.len() == PENDING_MAX
            && let Some(oldest) = self.pending.pop_front()
        {
            self.apply(&oldest, oldest.at, mss);
        }
        let at = acknowledgement.at + self.delay;
        self.pending.push_back(Acknowledgement { at, ..acknowledgement });
    }

    /// Applies the acknowledgements that the sender had when it sent a segment with this echoed
    /// timestamp, which is captured now.
    pub(super) fn advance(&mut self, now: Instant, echo: Option<u32>, mss: u64) {
        while let Some(&front) = self.pending.front() {
            let echoed = front.timestamp.zip(echo).is_some_and(|(stamp, echo)| {
                // Serial numbers (RFC 7323, section 5.2).
                echo.wrapping_sub(stamp) as i32 >= 0
            });
            if front.at > now && !echoed {
                break;
            }
            self.pending.pop_front();
            self.apply(&front, front.at.min(now), mss);
        }
    }

    fn apply(&mut self, acknowledgement: &Acknowledgement, at: Instant, mss: u64) {
        let was_closed = self.is_closed(mss);
        self.received_data |= acknowledgement.has_data;
        if acknowledgement.ack < self.unacknowledged {
            return;
        }
        if acknowledgement.ack > self.unacknowledged {
            self.unacknowledged = acknowledgement.ack;
            if self.unacknowledged >= self.next {
                self.all_acked_at = Some(at);
            }
        }
        if let Some(queueing) = acknowledgement.queueing {
            self.queueing = queueing;
            let waits_for_space = was_closed && self.is_partly_full(acknowledgement);
            self.delayed = acknowledgement.delayed.filter(|_| !waits_for_space);
        }
        let window = acknowledgement.edge.map_or(0, |edge| edge - acknowledgement.ack);
        self.window_max = self.window_max.max(window);
        self.edge = acknowledgement.edge;
        self.last_ack_at = Some(at);
    }

    /// Whether the window is smaller than before, since the buffer of the receiver still has data:
    /// an acknowledgement may have waited for space.
    fn is_partly_full(&self, acknowledgement: &Acknowledgement) -> bool {
        let window = acknowledgement.edge.map_or(0, |edge| edge - acknowledgement.ack);
        window < self.window_max / 10 * 9
    }

    /// Whether the receive window has less space than a full-sized segment. A sender with more data
    /// waits for that space (RFC 9293, section 3.8.6.2.1), or for half of the window.
    pub(super) fn is_closed(&self, mss: u64) -> bool {
        self.edge.is_some_and(|edge| edge < self.next.saturating_add(mss))
    }

    /// Begins the wait after a transmission.
    pub(super) fn begin_wait(&mut self) {
        self.received_data = false;
        self.delayed = None;
        self.all_acked_at = self.all_acked_at.filter(|_| self.unacknowledged >= self.next);
    }
}
