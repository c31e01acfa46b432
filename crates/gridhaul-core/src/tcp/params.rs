//! TCP parameters of a stack, which `profile/` resolves from its profile and its keys in the
//! scenario.

use std::sync::Arc;

use gridhaul_scenario::scenario::{CongestionControlAlgorithm, LossClassifier, Profile, Recovery};
use gridhaul_scenario::units::Duration;

use super::rules::{ByteCounting, HalvingBasis, OptionBytes, Policy};

/// A TCP stack with all parameters resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct StackParams {
    /// Congestion control algorithm.
    pub congestion_control: CongestionControlAlgorithm,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Payload of a full segment in bytes.
    pub mss: u32,
    /// Whether the stack states no segment size, so that its host takes the size that fits into the
    /// MTU of its own link. A stated size is kept unless the link has `packet_too_big`: a link that
    /// is too small for it is an error of the scenario, which a smaller size would hide.
    pub derives_mss: bool,
    /// IP and TCP headers without options, in bytes. The check of a scenario limits them to
    /// [`Stack::HEADER_MAX`](gridhaul_scenario::scenario::Stack::HEADER_MAX), so that the size with
    /// options fits into [`Segment::header`](super::Segment::header).
    pub header: u32,
    /// Receive buffer in bytes.
    pub receive_window: u32,
    /// Initial congestion window in bytes.
    pub initial_window: u32,
    /// Initial slow-start threshold in bytes.
    pub initial_ssthresh: u32,
    /// Window of the congestion control `fixed`, in bytes.
    pub fixed_window: u32,
    /// Whether connections are opened by a handshake and closed by FIN.
    pub handshake: bool,
    /// Delayed-ACK timer; zero: no delay.
    pub delayed_ack: Duration,
    /// Maximum of the delayed-ACK timer where the receiver adapts it
    /// ([`Policy::adaptive_delayed_ack`]).
    pub delayed_ack_max: Duration,
    /// Number of segments after which a delayed acknowledgement is sent.
    pub ack_every: u32,
    /// Number of segments at the start of the connection that are acknowledged at once.
    pub quick_ack: u32,
    /// Timestamps option.
    pub timestamps: bool,
    /// The one-way delay option of TCP-MEDX instead of timestamps.
    pub one_way_delay: bool,
    /// Selective acknowledgements.
    pub sack: bool,
    /// Explicit congestion notification, if the peer has it too (RFC 3168).
    pub ecn: bool,
    /// Whether the sender lowers its segment size after repeated timeouts (RFC 4821).
    pub mtu_probing: bool,
    /// Number of duplicate acknowledgements that indicate a loss.
    pub dupthresh: u32,
    /// Limited transmit.
    pub limited_transmit: bool,
    /// Initial RTO.
    pub rto_initial: Duration,
    /// Minimum RTO.
    pub rto_min: Duration,
    /// Maximum RTO.
    pub rto_max: Duration,
    /// Clock granularity of round-trip measurements; zero: exact.
    pub clock_granularity: Duration,
    /// Phase of the coarse clock: time of the last tick before time zero, where one segment at a
    /// time is timed; absent: a different phase for each connection.
    pub clock_phase: Option<Duration>,
    /// Whether `rto_min` bounds the variance term (Linux) instead of the whole RTO (RFC 6298).
    pub rto_floor_on_variance: bool,
    /// Whether every segment is timed, or one segment at a time (BSD and ns-2).
    pub time_every_segment: bool,
    /// Slow start again after an idle RTO.
    pub restart_after_idle: bool,
    /// Nagle's algorithm.
    pub nagle: bool,
    /// How acknowledgements are counted for the growth of the window.
    pub byte_counting: ByteCounting,
    /// Whether the window grows only while it limits the sender (RFC 7661; Linux).
    pub grow_only_when_limited: bool,
    /// Whether loss recovery `rack` uses proportional rate reduction (RFC 9937).
    pub prr: bool,
    /// Whether CUBIC uses HyStart to leave slow start.
    pub hystart: bool,
    /// The quantity that a loss halves.
    pub halving: HalvingBasis,
    /// Whether the slow-start threshold is a whole number of segments (ns-2: `ssthresh_` is an
    /// integer; Linux).
    pub whole_ssthresh: bool,
    /// Size that TCP options add to a segment.
    pub option_bytes: OptionBytes,
    /// Number of SYN retransmissions after which data still starts with the initial window.
    pub syn_retransmissions_keeping_window: u32,
    /// Number of SYN retransmissions before the RTO begins to double (Linux,
    /// `tcp_syn_linear_timeouts`).
    pub syn_linear_timeouts: u32,
    /// Parameters of Vegas, shared by all connections of a stack.
    pub vegas: Arc<VegasParams>,
    /// Parameters of MEDX.
    pub medx: MedxParams,
    /// Behaviour of the profile that no key sets.
    pub policy: Policy,
}

/// Parameters of Vegas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VegasParams {
    /// α, in segments.
    pub alpha: f64,
    /// β, in segments.
    pub beta: f64,
    /// γ, in segments.
    pub gamma: f64,
    /// Initial congestion window in bytes, which ns-2 sets with the second acknowledgement.
    pub initial_window: u32,
}

impl VegasParams {
    /// The defaults of a profile, without an initial window.
    pub(crate) const fn of(profile: Profile) -> Self {
        let (alpha, beta, gamma) = profile.vegas();
        Self { alpha, beta, gamma, initial_window: 0 }
    }

    /// α, β and γ, in segments.
    #[must_use]
    pub const fn thresholds(&self) -> [f64; 3] {
        [self.alpha, self.beta, self.gamma]
    }
}

/// Parameters of TCP-MEDX (paper `medx`, section 2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedxParams {
    /// Weight of the previous average delay.
    pub alpha: f64,
    /// Multiple of the average delay above which a delay indicates congestion.
    pub beta: f64,
    /// Length of the list of delays.
    pub buffer: u32,
    /// Rule that classifies losses.
    pub classifier: LossClassifier,
}

impl StackParams {
    /// Lowers the payload of a full segment to `mss`. The initial window keeps its number of
    /// segments.
    pub(crate) fn lower_mss(&mut self, mss: u32) {
        if mss < self.mss {
            let segments = (self.initial_window / self.mss.max(1)).max(1);
            self.initial_window = segments.saturating_mul(mss);
            self.mss = mss;
        }
    }

    /// Clock phase of a connection with this initial sequence number, added to times before ticks
    /// are counted. ns-2 chooses the phase of each agent's clock at random (`boot_time_`); here it
    /// is derived from the sequence number, which is random for each connection and replication.
    #[inline]
    pub(crate) fn clock_phase(&self, isn: u32) -> Duration {
        if self.time_every_segment {
            return Duration::ZERO;
        }
        self.clock_phase.unwrap_or_else(|| {
            // Uniform over one tick.
            let product = u128::from(self.clock_granularity.as_nanos()) * u128::from(isn);
            Duration::from_nanos((product >> 32) as u64)
        })
    }

    /// Window scale of the receive buffer. Packets of ns-2 contain no window, so that its windows
    /// have no unit.
    #[must_use]
    pub const fn window_shift(&self) -> u8 {
        if self.policy.one_way_open { 0 } else { window_shift_of(self.receive_window) }
    }

    /// Whether segments carry a timestamp option of either kind.
    #[must_use]
    pub const fn has_clock_option(&self) -> bool {
        self.timestamps || self.one_way_delay
    }
}

/// The window scale of a receive buffer: the shift count with which 16 bits express it, 0 to 14
/// (RFC 7323, section 2.3), as Linux chooses it (`tcp_select_initial_window`).
#[must_use]
pub const fn window_shift_of(receive_window: u32) -> u8 {
    if receive_window <= 65_535 {
        return 0;
    }
    let shift = receive_window.ilog2() - 15;
    if shift > 14 { 14 } else { shift as u8 }
}
