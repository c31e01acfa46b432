//! RACK-TLP (RFC 8985): a segment is lost if one that was sent sufficiently later has arrived. The
//! window follows proportional rate reduction meanwhile, where the stack has it; what turns out to
//! have been needless is undone (RFC 4015), where timestamps tell (RFC 3522) or F-RTO does (RFC 5682).
//! The tail loss probe is the timer's business (`sender/tail.rs`).
//!
//! Left out: duplicate SACK (RFC 2883), by which Linux also learns of needless repetitions and
//! widens the reordering window; ours stays at a quarter of the least round trip.

use gridhaul_scenario::units::{Duration, Instant};

use super::prr::{Prr, Step};
use super::{CwndGrowth, LossRecovery, LossRecoveryContext};
use crate::tcp::params::StackParams;
use crate::tcp::sender::TICKS;
use crate::tcp::sent::Sent;

/// RACK.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rack {
    /// The recovery, or the repair after a timeout, ends when this is acknowledged.
    recover: u64,
    phase: Phase,
    /// Whether something is out of order.
    disorder: bool,
    details: Option<Box<Details>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
}

/// What is kept from the first disorder on.
#[derive(Debug, Clone, Default)]
struct Details {
    /// RFC 8985, section 5.2: `RACK.segment`, `RACK.rtt` and `RACK.reordering_seen`.
    newest: Option<Delivered>,
    rtt: Duration,
    reordered: bool,
    prr: Option<Prr>,
    undo: Option<Undo>,
    doubt: Doubt,
}

/// Whether the last timeout was needed (RFC 5682, section 3.1, for SACK as Linux has it).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Doubt {
    /// It was, or nobody asks.
    #[default]
    None,
    /// Step 1: the first segment was sent again, and nothing else.
    Waiting,
    /// Step 2b: it has been acknowledged, and new data goes instead of what counts as lost.
    NewData,
    /// New data has been sent: what is acknowledged now tells.
    Sent,
}

/// A delivered segment: of several, the one that was sent last counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivered {
    pub sent_at: Instant,
    /// Stream position of its end.
    pub end: u64,
    /// When the one was sent that was looked at last.
    pub last_sent_at: Instant,
    /// It was sent once, and one behind it had arrived before: the network has reordered.
    pub reordered: bool,
    /// Stream position at which the first of them begins that was sent once; [`u64::MAX`]: none was.
    pub original: u64,
}

impl Delivered {
    /// A segment that has just been delivered, while everything before `highest` was sacked or
    /// missing.
    pub(crate) const fn of(sent: &Sent, highest: u64) -> Self {
        let repeated = sent.transmits > 1;
        let reordered = !repeated && sent.end() <= highest;
        let original = if repeated { u64::MAX } else { sent.start };
        let (sent_at, end) = (sent.sent_at, sent.end());
        Self { sent_at, end, last_sent_at: sent_at, reordered, original }
    }

    /// Whether this one was sent after another (RFC 8985, section 6.2, `RACK_sent_after`).
    pub(crate) fn is_after(&self, other: &Self) -> bool {
        (self.sent_at, self.end) > (other.sent_at, other.end)
    }

    /// The later of two, which remembers reordering that either has shown; `other` was looked at before.
    pub(crate) fn later(self, other: Option<Self>) -> Self {
        let Some(other) = other else { return self };
        let reordered = self.reordered || other.reordered;
        let original = self.original.min(other.original);
        let last = if self.is_after(&other) { self } else { other };
        Self { reordered, original, last_sent_at: self.last_sent_at, ..last }
    }
}

/// Window and threshold before a reduction that may prove needless.
#[derive(Debug, Clone, Copy)]
struct Undo {
    cwnd: u32,
    ssthresh: u32,
    /// When the first segment was repeated.
    repeated_at: Instant,
}

impl Rack {
    pub(crate) fn new(_params: &StackParams) -> Self {
        Self::default()
    }

    /// Section 6.2, steps 1 to 3: the segment sent last of those that have arrived.
    fn update(&mut self, context: &LossRecoveryContext<'_>) {
        let Some(newest) = context.ack.newest else { return };
        let details = self.details.get_or_insert_default();
        details.reordered |= newest.reordered;
        // Step 2 goes through what has arrived: the last of it makes the round trip.
        details.rtt = context.now.since(newest.last_sent_at);
        if details.newest.is_none_or(|before| newest.is_after(&before)) {
            details.newest = Some(newest);
        }
    }

    /// Section 6.2, steps 4 and 5: marks what is lost, and asks for a timer if more may follow.
    /// Returns the bytes marked, and whether there are repetitions among them.
    fn detect(&mut self, context: &mut LossRecoveryContext<'_>) -> (u64, bool) {
        let Some(details) = &self.details else { return (0, false) };
        let Some(newest) = details.newest else { return (0, false) };
        // Section 6.2, step 4: without reordering seen, no waiting in recovery or with DupThresh
        // segments beyond; else a quarter of the least round trip.
        let many = u64::from(context.params.dupthresh) * u64::from(context.params.mss);
        let sure = self.phase != Phase::Open || context.queue.sacked_bytes() >= many;
        let window = if sure && !details.reordered {
            Duration::ZERO
        } else {
            Duration::from_nanos(context.rtt.least().as_nanos() / 4)
                .min(context.rtt.srtt().unwrap_or_default())
        };
        let found = context.queue.mark_expired(&newest, details.rtt + window, context.now);
        // Linux, tcp_rack_mark_lost: two ticks more, TCP_TIMEOUT_MIN.
        context.requests.reorder_at = found.due.map(|at| at + TICKS);
        (found.bytes, found.repeated)
    }

    /// Detects, and enters recovery if something is lost. Returns whether it did.
    fn look(&mut self, context: &mut LossRecoveryContext<'_>, advanced: bool) -> bool {
        let (lost, again) = self.detect(context);
        // A repetition that is lost in the repair after a timeout is a loss of its own (Linux).
        let entered = match self.phase {
            Phase::Open => context.queue.lost_bytes() > 0,
            Phase::Loss => again,
            Phase::Recovery => false,
        };
        if entered {
            self.enter(context);
        }
        self.disorder = context.queue.sacked_bytes() > 0;
        let in_flight = context.in_flight();
        if let Some(prr) = self.details.as_mut().and_then(|details| details.prr.as_mut()) {
            let (delivered, mss) = (context.ack.delivered, context.params.mss);
            prr.on_ack(&Step { delivered, lost, advanced, in_flight, mss });
        }
        entered
    }

    fn enter(&mut self, context: &mut LossRecoveryContext<'_>) {
        let undo = Undo::new(context);
        let loss = context.loss();
        context.congestion.on_loss(&loss);
        self.phase = Phase::Recovery;
        self.recover = context.next;
        context.requests.stop_timing = true;
        // Linux counts segments.
        let unit = if context.params.whole_ssthresh { context.params.mss } else { 1 };
        let prr = (context.params.prr && !context.congestion.is_paced())
            .then(|| Prr::begin(undo.cwnd, context.congestion.cwnd(), unit));
        // Without it the first repetition goes whatever the window says (RFC 6675, section 5); but in
        // Linux a controller that paces does without it and waits for room.
        context.requests.retransmit_now = !context.params.prr;
        let details = self.details.get_or_insert_default();
        details.prr = prr;
        details.undo = Some(undo);
        details.doubt = Doubt::None;
    }

    /// RFC 3522, section 3.2, and RFC 4015: an acknowledgement that echoes a time before the first
    /// repetition was caused by an original, so nothing was lost. Returns whether it was so.
    fn undo(&mut self, context: &mut LossRecoveryContext<'_>) -> bool {
        let Some(details) = &mut self.details else { return false };
        let (Some(undo), Some(echo)) = (details.undo, context.ack.echo) else { return false };
        if u64::from(echo) >= undo.repeated_at.as_nanos() / 1_000_000 {
            return false;
        }
        self.restore(context);
        true
    }

    fn restore(&mut self, context: &mut LossRecoveryContext<'_>) {
        let undo = self.details.as_mut().and_then(|details| details.undo.take());
        context.queue.forget_losses();
        if let Some(undo) = undo {
            context.congestion.on_undone(undo.cwnd, undo.ssthresh);
        }
    }

    /// RFC 5682, section 3.1, with an acknowledgement after a timeout: step 3b, whether one of the
    /// segments has arrived that were out then and not sent again, so that the timeout was needless;
    /// else whether new data is to show that (step 2b) or repetitions go on (steps 2a and 3a).
    fn was_needless(&mut self, context: &LossRecoveryContext<'_>, advanced: bool) -> bool {
        let recover = self.recover;
        let Some(details) = self.details.as_mut() else { return false };
        if details.doubt == Doubt::None {
            return false;
        }
        if context.ack.newest.is_some_and(|newest| newest.original < recover) {
            return true;
        }
        details.doubt = match details.doubt {
            Doubt::Waiting if advanced && context.una < recover => {
                self.recover = context.next;
                Doubt::NewData
            }
            Doubt::Waiting => Doubt::Waiting,
            Doubt::NewData | Doubt::Sent if advanced => Doubt::Sent,
            Doubt::NewData | Doubt::Sent | Doubt::None => Doubt::None,
        };
        false
    }

    fn leave(&mut self) {
        self.phase = Phase::Open;
        if let Some(details) = &mut self.details {
            (details.prr, details.undo, details.doubt) = (None, None, Doubt::None);
        }
    }
}

impl Undo {
    fn new(context: &LossRecoveryContext<'_>) -> Self {
        Self {
            cwnd: context.congestion.cwnd(),
            ssthresh: context.congestion.ssthresh(),
            repeated_at: context.now,
        }
    }
}

impl LossRecovery for Rack {
    fn on_duplicate(&mut self, context: &mut LossRecoveryContext<'_>) -> bool {
        self.update(context);
        if self.phase == Phase::Loss && self.was_needless(context, false) {
            self.restore(context);
            self.leave();
        }
        self.look(context, false)
    }

    #[inline]
    fn on_new_ack(&mut self, context: &mut LossRecoveryContext<'_>, _acked: u64) -> CwndGrowth {
        self.update(context);
        context.requests.restart_timer = true;
        if self.phase == Phase::Loss && self.was_needless(context, true) {
            self.restore(context);
            self.leave();
        } else if self.phase != Phase::Open && context.una >= self.recover {
            let recovering = self.phase == Phase::Recovery;
            let undone = self.undo(context);
            self.leave();
            if recovering && !undone {
                context.congestion.on_recovered(context.now);
            }
        } else if self.phase == Phase::Loss && self.undo(context) {
            self.leave();
        }
        self.look(context, true);
        if self.phase == Phase::Recovery { CwndGrowth::Hold } else { CwndGrowth::Grow }
    }

    fn on_reorder_timer(&mut self, context: &mut LossRecoveryContext<'_>) -> bool {
        self.look(context, false)
    }

    fn before_timeout(&mut self, context: &LossRecoveryContext<'_>) {
        let open = self.phase == Phase::Open;
        // RFC 5682, section 3.2: asked for after a recovery only if the same segment times out again.
        let again = context.queue.front().is_some_and(|first| first.timed_out);
        let details = self.details.get_or_insert_default();
        details.doubt = if open || again { Doubt::Waiting } else { Doubt::None };
        if open {
            details.undo = Some(Undo::new(context));
        }
    }

    fn on_timeout(&mut self, next: u64) {
        self.recover = next;
        self.phase = Phase::Loss;
        if let Some(details) = &mut self.details {
            details.prr = None;
        }
    }

    #[inline]
    fn window(&self) -> Option<u32> {
        let prr = self.details.as_ref()?.prr.as_ref()?;
        Some(prr.window())
    }

    #[inline]
    fn prefers_new(&self) -> bool {
        self.details.as_ref().is_some_and(|details| details.doubt == Doubt::NewData)
    }

    fn repeat_after_all(&mut self, next: u64) -> bool {
        let sent_nothing = next <= self.recover;
        if let Some(details) = self.details.as_mut().filter(|_| sent_nothing) {
            details.doubt = Doubt::None;
        }
        sent_nothing
    }

    #[inline]
    fn on_sent(&mut self, len: u32) {
        if let Some(prr) = self.details.as_mut().and_then(|details| details.prr.as_mut()) {
            prr.on_sent(len);
        }
    }

    #[inline]
    fn in_recovery(&self) -> bool {
        self.phase == Phase::Recovery
    }

    #[inline]
    fn is_watching(&self) -> bool {
        self.disorder || self.phase != Phase::Open
    }

    fn round_trip(&self) -> Option<Duration> {
        self.details.as_ref().filter(|details| details.newest.is_some()).map(|details| details.rtt)
    }
}
