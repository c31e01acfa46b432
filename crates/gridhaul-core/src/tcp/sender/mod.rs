//! The sending half: what may be sent, when, and what is sent again.
//!
//! `acknowledge.rs` takes in acknowledgements, `transmit.rs` decides what goes out, `timer.rs`
//! holds the retransmission and the persist timer, `usage.rs` sees whether the window is used, `optional_state.rs`
//! keeps what few stacks need.

mod ack_event;
mod acknowledge;
mod common_path;
mod flags;
mod idle;
mod optional_state;
mod pacing;
mod round_trip;
mod selective;
mod tail;
mod timer;
mod transmit;
mod usage;
mod writes;

use gridhaul_scenario::scenario::Recovery as Kind;
use gridhaul_scenario::units::Instant;

use super::congestion::{Controller, EstimatorCounters};
use super::params::StackParams;
use super::profile::RecoveryRules;
use super::rate::RateAccount;
use super::recovery::Recovery;
use super::rtt::RttEstimator;
use super::sent::SentQueue;

pub(super) use self::tail::TICKS;
use flags::{Flag, Flags};
use optional_state::OptionalState;
use usage::Usage;

/// Counters of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SenderStats {
    /// Segments with data, retransmissions included; SYN and FIN alone carry none.
    pub segments: u64,
    /// Sum of measured round trips in nanoseconds.
    pub rtt_sum_ns: u64,
    /// Number of measured round trips.
    pub rtt_count: u32,
    /// Segments with data that were retransmitted.
    pub retransmissions: u32,
    /// Losses found by acknowledgements.
    pub fast_retransmits: u32,
    /// Times the retransmission timer fired.
    pub timeouts: u32,
}

/// A range of the stream to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SendRange {
    pub start: u64,
    /// Sequence space, SYN and FIN included.
    pub len: u32,
}

/// The sending half of a connection. Positions are 64-bit stream positions: 0 is SYN, data begins
/// at 1, FIN follows the last byte.
#[derive(Debug, Clone)]
pub struct Sender {
    una: u64,
    next: u64,
    /// The window that the other end offered last, and the largest ever.
    peer_window: u32,
    peer_window_max: u32,
    /// Sequence number of the segment that offered it (RFC 9293: SND.WL1).
    window_from: u32,
    /// Position after the last byte that the application has written.
    written: u64,
    /// Congestion window with what recovery adds to it: kept, because it is asked for so often.
    window: u32,
    duplicates: u32,
    /// New data sent on duplicates (limited transmit), in bytes.
    limited: u32,
    /// The application will write no more: FIN follows what is written.
    closed: bool,
    /// Whether the recovery wants to see acknowledgements of new data.
    recovery_active: bool,
    force_retransmit: bool,
    /// Whether the other end sends selective acknowledgements and the recovery uses them.
    sack: bool,
    purpose: tail::Purpose,
    tail: tail::Tail,
    /// After a timeout that forgot selective acknowledgements: they count again with new data.
    sack_ignored: bool,
    /// Whether the window held data back since the last acknowledgement, where [`Usage`] does not tell.
    window_limited: bool,
    flags: Flags,
    rto_at: Instant,
    last_sent: Instant,
    probe: timer::Probe,
    /// Low half of the end of the segment that is being timed, and when it was sent, where one at
    /// a time is; [`Instant::NEVER`] while none is. With RACK-TLP, where none is: low half of the
    /// position that was sent next when the probe was.
    timed_end: u32,
    timed_at: Instant,
    queue: SentQueue,
    rtt: RttEstimator,
    congestion: Controller,
    recovery: Recovery,
    stats: SenderStats,
    optional: OptionalState,
}

/// What a recovery may look at and change; a macro, because it borrows field by field.
macro_rules! loss_recovery_context {
    ($sender:expr, $now:expr, $params:expr) => {
        crate::tcp::recovery::LossRecoveryContext {
            now: $now,
            params: $params,
            queue: &mut $sender.queue,
            congestion: &mut $sender.congestion,
            rtt: &$sender.rtt,
            una: $sender.una,
            next: $sender.next,
            peer_window: $sender.peer_window,
            duplicates: $sender.duplicates,
            limited: u64::from($sender.limited),
            ack: crate::tcp::recovery::Delivery::default(),
            requests: crate::tcp::recovery::SenderRequests {
                retransmit_now: $sender.force_retransmit,
                ..Default::default()
            },
        }
    };
}
use loss_recovery_context;

impl Sender {
    /// A sender that has sent nothing, not even SYN.
    #[must_use]
    pub fn new(params: &StackParams) -> Self {
        let mut congestion = Controller::new(params);
        let recovery = Recovery::new(params);
        let mut flags = Flags::default();
        flags.set(Flag::Paced, congestion.is_paced());
        flags.set(Flag::CommonPath, common_path::applies(&mut congestion, &recovery, params));
        Self {
            una: 0,
            next: 0,
            peer_window: params.mss,
            peer_window_max: 0,
            window_from: 0,
            written: 1,
            window: congestion.cwnd(),
            duplicates: 0,
            limited: 0,
            closed: false,
            recovery_active: false,
            force_retransmit: false,
            sack: params.sack && matches!(params.recovery, Kind::Sack | Kind::Rack),
            purpose: tail::Purpose::default(),
            tail: tail::Tail::default(),
            sack_ignored: false,
            window_limited: false,
            flags,
            rto_at: Instant::NEVER,
            last_sent: Instant::ZERO,
            probe: timer::Probe::default(),
            timed_end: 0,
            timed_at: Instant::NEVER,
            queue: SentQueue::default(),
            rtt: RttEstimator::new(),
            optional: OptionalState::new(
                (congestion.samples_rate() || congestion.is_paced()).then(RateAccount::default),
                Usage::new(params, congestion.is_paced()),
            ),
            congestion,
            recovery,
            stats: SenderStats::default(),
        }
    }

    /// The other end does not send selective acknowledgements: recovery must do without.
    pub(crate) fn without_sack(&mut self, params: &StackParams) {
        self.sack = false;
        if matches!(params.recovery, Kind::Sack | Kind::Rack) {
            self.recovery =
                Recovery::new(&StackParams { recovery: Kind::NewReno, ..params.clone() });
        }
    }

    /// Starts without SYN: the other end's would have had the number `peer_isn` and offered this
    /// window.
    pub(crate) fn skip_handshake(&mut self, peer_window: u32, peer_isn: u32) {
        self.una = 1;
        self.next = 1;
        self.set_window(peer_window, peer_isn);
    }

    /// The other end has sent its first window, in the segment with this number.
    pub(crate) fn set_window(&mut self, window: u32, from: u32) {
        self.peer_window = window;
        self.peer_window_max = window;
        self.window_from = from;
    }

    /// The window that the other end has offered in its newest segment, the largest one, and the
    /// number of that segment.
    pub(crate) const fn offer(&self) -> (u32, u32, u32) {
        (self.peer_window, self.peer_window_max, self.window_from)
    }

    /// The other end has offered as much as this before.
    pub(crate) fn note_largest_window(&mut self, window: u32) {
        self.peer_window_max = self.peer_window_max.max(window);
    }

    /// Whether the application has neither written anything nor closed.
    pub(crate) const fn has_no_data(&self) -> bool {
        self.written == 1 && !self.closed
    }

    /// The application writes `bytes` more; [`u64::MAX`] for ever.
    pub fn write(&mut self, bytes: u64) {
        debug_assert!(!self.closed, "nothing may be written after close");
        if !self.closed {
            self.written = self.written.saturating_add(bytes);
        }
    }
    /// Bytes that the application has written.
    pub const fn written(&self) -> u64 {
        // Position 0 is SYN.
        self.written - 1
    }
    /// The application will write no more.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// First unacknowledged position.
    #[inline]
    #[must_use]
    pub const fn una(&self) -> u64 {
        self.una
    }
    /// Position that is sent next.
    #[inline]
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }
    /// Whether FIN has been sent and acknowledged.
    #[must_use]
    pub const fn fin_acknowledged(&self) -> bool {
        self.closed && self.una > self.written
    }
    /// Position of FIN, once the application has closed.
    #[inline]
    #[must_use]
    pub const fn fin_position(&self) -> Option<u64> {
        if self.closed { Some(self.written) } else { None }
    }
    /// Stream position behind all that may have arrived: what is sent, and the byte of a probe of a closed
    /// window, which does not count as sent.
    #[must_use]
    pub const fn reach(&self) -> u64 {
        self.next + self.probe.out as u64
    }
    /// Counters.
    #[must_use]
    pub const fn stats(&self) -> &SenderStats {
        &self.stats
    }
    /// What the congestion control has computed about the network, where that is counted.
    #[must_use]
    pub fn estimator_counters(&self) -> Option<EstimatorCounters> {
        self.congestion.estimator_counters()
    }
    /// Round-trip estimate.
    #[must_use]
    pub const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }
    /// Congestion window in bytes.
    #[inline]
    #[must_use]
    pub fn cwnd(&self) -> u32 {
        self.congestion.cwnd()
    }
    /// Slow-start threshold in bytes.
    #[must_use]
    pub fn ssthresh(&self) -> u32 {
        self.congestion.ssthresh()
    }
    /// Whether fast recovery is under way.
    #[must_use]
    pub fn in_recovery(&self) -> bool {
        self.recovery_active && self.recovery.in_recovery()
    }
    /// Data believed to be in the network (RFC 6675, `pipe`).
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        if self.recovery_active
            && let Some(pipe) =
                self.recovery.in_flight(self.next - self.una, self.queue.lost_bytes())
        {
            return pipe;
        }
        (self.next - self.una) - self.queue.sacked_bytes() - self.queue.lost_bytes()
    }

    /// When [`Self::handle_timeout`] or another poll is wanted.
    #[inline]
    #[must_use]
    pub fn next_deadline(&self) -> Instant {
        // A pacing time in the past has been served: it only counts while something waits for it.
        if self.flags.has(Flag::Paced) && self.paced_until() > self.last_sent && self.window_open()
        {
            self.rto_at.min(self.paced_until())
        } else {
            self.rto_at
        }
    }

    /// No timer runs any more.
    pub(crate) const fn stop(&mut self) {
        self.rto_at = Instant::NEVER;
        self.flags.set(Flag::Paced, false);
    }

    /// The sender's rules for this kind of loss recovery.
    #[inline]
    const fn recovery_rules(&self) -> &'static RecoveryRules {
        RecoveryRules::of(&self.recovery)
    }

    /// The controller or the recovery has changed the window.
    #[inline]
    fn refresh_window(&mut self) {
        if !self.recovery_active {
            self.window = self.congestion.cwnd();
            return;
        }
        let inflated = self.congestion.cwnd().saturating_add(self.recovery.inflation());
        self.window = self.recovery.window().unwrap_or(inflated);
    }

    /// Position after everything that is to be sent, FIN included.
    #[inline]
    const fn end(&self) -> u64 {
        self.written + self.closed as u64
    }

    /// Right edge of the window that the other end offers. Until SYN is acknowledged, nothing but
    /// SYN may go.
    #[inline]
    const fn edge(&self) -> u64 {
        if self.una == 0 { 1 } else { self.una + self.peer_window as u64 }
    }

    /// Whether something could be sent if pacing allowed it.
    fn window_open(&self) -> bool {
        let new = self.next < self.end() && self.next < self.edge();
        (new || self.queue.lost_bytes() > 0) && self.in_flight() < u64::from(self.window)
    }
}
