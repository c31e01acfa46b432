//! The sending half of a connection: transmission, retransmission and their timers.
//!
//! `ack_processing.rs` handles acknowledgements, `transmit.rs` selects the data to send,
//! `retransmission_timer.rs` has the retransmission and persist timers, `cwnd_validation.rs` checks
//! whether the congestion window is used, and `optional_state.rs` has state that few stacks need.

mod ack_event;
mod ack_processing;
mod common_path;
mod congestion_echo;
mod cwnd_validation;
mod flags;
mod idle_restart;
mod optional_state;
mod pacing;
mod path_mtu;
mod rack_timers;
mod retransmission_timer;
mod rtt_measurement;
mod sack_processing;
mod send_buffer;
mod snapshot;
mod timer_wheel;
mod transmit;

use gridhaul_scenario::scenario::Recovery as Kind;
use gridhaul_scenario::units::Instant;

use super::bit_set::BitSet;
use super::congestion::{Controller, EstimatorCounters};
use super::event::LinkReport;
use super::params::StackParams;
use super::rate::RateAccount;
use super::recovery::{Recovery, RecoveryRules};
use super::retransmission_queue::RetransmissionQueue;
use super::rtt::RttEstimator;

pub(super) use self::snapshot::SenderSnapshot;
use cwnd_validation::CwndValidation;
use flags::Flag;
use optional_state::OptionalState;
use timer_wheel::TimerWheel;

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
    /// Losses detected by acknowledgements.
    pub fast_retransmits: u32,
    /// Expirations of the retransmission timer.
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
    /// The last window that the peer offered, and the largest so far.
    peer_window: u32,
    peer_window_max: u32,
    /// Sequence number of the segment that updated the window (RFC 9293: SND.WL1).
    window_update_seq: u32,
    /// Position after the last byte that the application has written.
    written: u64,
    /// Congestion window plus the inflation by loss recovery, cached because it is read often.
    window: u32,
    duplicates: u32,
    /// New data sent by limited transmit, in bytes.
    limited: u32,
    /// The application has closed: FIN follows the written data.
    closed: bool,
    /// Whether the loss recovery processes acknowledgements of new data.
    recovery_active: bool,
    force_retransmit: bool,
    /// Whether the peer sends selective acknowledgements and the recovery uses them.
    sack: bool,
    timer_purpose: rack_timers::TimerPurpose,
    tail_loss_probe: rack_timers::TailLossProbe,
    /// After a timeout that cleared SACK information: SACK blocks are ignored until new data is
    /// acknowledged.
    sack_ignored: bool,
    /// Whether the congestion window limited the sender since the last acknowledgement, where
    /// [`CwndValidation`] does not determine it.
    window_limited: bool,
    flags: BitSet<Flag>,
    rto_at: Instant,
    last_sent: Instant,
    window_probe: retransmission_timer::WindowProbe,
    /// Low half of the end of the segment that is being timed, and its send time, where one segment
    /// at a time is timed; [`Instant::NEVER`] while none is. With tail loss probes, where every
    /// segment is timed: TLP.end_seq.
    timed_end: u32,
    timed_at: Instant,
    queue: RetransmissionQueue,
    rtt: RttEstimator,
    congestion: Controller,
    recovery: Recovery,
    stats: SenderStats,
    optional: OptionalState,
}

/// Builds the context of the loss recovery; a macro, because it borrows the fields separately.
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
            reduced_until: $sender.optional.reduced_until(),
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
    /// A sender that has not sent anything, not even SYN.
    #[must_use]
    pub fn new(params: &StackParams) -> Self {
        let mut congestion = Controller::new(params);
        let recovery = Recovery::new(params);
        let mut flags = BitSet::default();
        flags.set(Flag::Paced, congestion.is_paced());
        flags.set(Flag::CommonPath, common_path::applies(&congestion, params));
        let only_grows = common_path::only_grows(&mut congestion, &recovery, params);
        flags.set(Flag::GrowthOnly, only_grows);
        Self {
            una: 0,
            next: 0,
            peer_window: params.mss,
            peer_window_max: 0,
            window_update_seq: 0,
            written: 1,
            window: congestion.cwnd(),
            duplicates: 0,
            limited: 0,
            closed: false,
            recovery_active: false,
            force_retransmit: false,
            sack: params.sack && matches!(params.recovery, Kind::Sack | Kind::Rack),
            timer_purpose: rack_timers::TimerPurpose::default(),
            tail_loss_probe: rack_timers::TailLossProbe::default(),
            sack_ignored: false,
            window_limited: false,
            flags,
            rto_at: Instant::NEVER,
            last_sent: Instant::ZERO,
            window_probe: retransmission_timer::WindowProbe::default(),
            timed_end: 0,
            timed_at: Instant::NEVER,
            queue: RetransmissionQueue::default(),
            rtt: RttEstimator::new(),
            optional: OptionalState::new(
                (congestion.samples_rate() || congestion.is_paced()).then(RateAccount::default),
                CwndValidation::new(params, congestion.is_paced()),
                params,
            ),
            congestion,
            recovery,
            stats: SenderStats::default(),
        }
    }

    /// The phase of the host's clock follows from a random number, where timers depend on it.
    pub(crate) fn set_timer_phase(&mut self, random: u32) {
        self.optional.set_timer_wheel(TimerWheel::new(random));
    }

    /// The peer does not support selective acknowledgements: loss recovery falls back to NewReno.
    pub(crate) fn without_sack(&mut self, params: &StackParams) {
        self.sack = false;
        if matches!(params.recovery, Kind::Sack | Kind::Rack) {
            self.recovery =
                Recovery::new(&StackParams { recovery: Kind::NewReno, ..params.clone() });
        }
    }

    /// Starts without a handshake, as if the peer's SYN had had the sequence number `peer_isn` and
    /// offered this window.
    pub(crate) fn skip_handshake(&mut self, peer_window: u32, peer_isn: u32) {
        self.una = 1;
        self.next = 1;
        self.set_window(peer_window, peer_isn);
    }

    /// Sets the first window of the peer, from the segment with sequence number `from`.
    pub(crate) fn set_window(&mut self, window: u32, from: u32) {
        self.peer_window = window;
        self.peer_window_max = window;
        self.window_update_seq = from;
    }

    /// Data may be sent before SYN is acknowledged (RFC 7413, section 4.2.2).
    pub(crate) fn answer_early(&mut self) {
        self.flags.set(Flag::AnswersEarly, true);
    }

    /// The last window that the peer has offered, the largest one, and the sequence number of the
    /// segment that offered the last one.
    pub(crate) const fn offer(&self) -> (u32, u32, u32) {
        (self.peer_window, self.peer_window_max, self.window_update_seq)
    }

    /// Notes a window that the peer has offered earlier.
    pub(crate) fn note_largest_window(&mut self, window: u32) {
        self.peer_window_max = self.peer_window_max.max(window);
    }

    /// Whether the application has neither written data nor closed.
    pub(crate) fn has_no_data(&self) -> bool {
        self.written == 1 && !self.is_closing()
    }

    /// The application writes `bytes`; [`u64::MAX`] for an unlimited transfer.
    pub fn write(&mut self, bytes: u64) {
        debug_assert!(!self.is_closing(), "nothing may be written after close");
        if !self.is_closing() {
            self.written = self.written.saturating_add(bytes);
        }
    }
    /// A link reports an event of a segment.
    pub(crate) fn handle_link_report(&mut self, report: &LinkReport) {
        self.congestion.on_link_report(report);
    }
    /// Bytes that the application has written.
    pub const fn written(&self) -> u64 {
        // Position 0 is SYN.
        self.written - 1
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
    /// Position after the data that the application has written.
    #[inline]
    pub(crate) const fn data_end(&self) -> u64 {
        self.written
    }
    /// Position of FIN, once the application has closed.
    #[inline]
    #[must_use]
    pub const fn fin_position(&self) -> Option<u64> {
        if self.closed { Some(self.written) } else { None }
    }
    /// Stream position after all data that may have arrived: sent data, and the byte of a window
    /// probe, which does not count as sent.
    #[must_use]
    pub const fn reach(&self) -> u64 {
        self.next + self.window_probe.outstanding as u64
    }
    /// Counters.
    #[must_use]
    pub const fn stats(&self) -> &SenderStats {
        &self.stats
    }
    /// Estimator counters of the congestion control, where it keeps them.
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
    /// Estimate of the data in the network (RFC 6675, `pipe`).
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        if self.recovery_active
            && let Some(pipe) =
                self.recovery.in_flight(self.next - self.una, self.queue.lost_bytes())
        {
            return pipe;
        }
        // After a timeout in ns-2, a segment may be sacked and lost at once (`LossMark::Keep`): the
        // counts then exceed what is outstanding.
        let elsewhere = self.queue.sacked_bytes() + self.queue.lost_bytes();
        (self.next - self.una).saturating_sub(elsewhere)
    }

    /// Time of the next expiry of a timer or of the next poll.
    #[inline]
    #[must_use]
    pub fn next_deadline(&self) -> Instant {
        // A pacing time in the past is over; it matters only while data waits for it.
        if self.flags.has(Flag::Paced) && self.paced_until() > self.last_sent && self.window_open()
        {
            self.rto_at.min(self.paced_until())
        } else {
            self.rto_at
        }
    }

    /// Stops all timers.
    pub(crate) fn stop(&mut self) {
        self.rto_at = Instant::NEVER;
        self.timer_purpose = rack_timers::TimerPurpose::default();
        self.flags.set(Flag::Paced, false);
    }

    /// The sender's rules for this kind of loss recovery.
    #[inline]
    const fn recovery_rules(&self) -> &'static RecoveryRules {
        self.recovery.rules()
    }

    /// Recomputes the cached window after a change by the controller or the loss recovery.
    #[inline]
    fn refresh_window(&mut self) {
        if !self.recovery_active {
            self.window = self.congestion.cwnd();
            return;
        }
        let inflated = self.congestion.cwnd().saturating_add(self.recovery.inflation());
        self.window = self.recovery.window().unwrap_or(inflated);
    }

    /// Position after all written data, FIN included.
    #[inline]
    const fn end(&self) -> u64 {
        self.written + self.closed as u64
    }

    /// Right edge of the peer's offered window. Until SYN is acknowledged, only SYN may be sent,
    /// except by a server that has received data with TCP Fast Open.
    #[inline]
    fn edge(&self) -> u64 {
        if self.una == 0 && !self.flags.has(Flag::AnswersEarly) {
            1
        } else {
            self.una.max(1) + u64::from(self.peer_window)
        }
    }

    /// Conditions that hold after each event.
    fn check_invariants(&self) {
        assert!(self.una <= self.next, "only sent data is acknowledged");
        assert!(self.next <= self.end().max(1), "only written data, SYN and FIN are sent");
        let outstanding = self.next - self.una;
        // Not the sum of both: ns-2 keeps the loss mark of a segment that is sacked later.
        assert!(self.queue.sacked_bytes() <= outstanding, "sacked segments are outstanding");
        assert!(self.queue.lost_bytes() <= outstanding, "lost segments are outstanding");
        let first = self.queue.front();
        assert!(first.is_none_or(|first| first.start == self.una), "the queue begins at SND.UNA");
        assert!(first.is_some() == (outstanding > 0), "outstanding data is in the queue");
        assert!(self.congestion.cwnd() > 0, "the loss window is one segment");
    }

    /// Whether a segment could be sent if pacing allowed it.
    fn window_open(&self) -> bool {
        let new = self.next < self.end() && self.next < self.edge();
        (new || self.queue.lost_bytes() > 0) && self.in_flight() < u64::from(self.window)
    }
}
