//! TCP parameters of a stack, resolved from its profile and its keys in the scenario.

use std::sync::Arc;

use gridhaul_scenario::scenario::{
    CongestionControlAlgorithm, IpVersion, LossClassifier, Profile, Recovery, Scenario, Stack,
};
use gridhaul_scenario::units::{Bytes, Duration, WindowSize};

use super::profile::{self, ByteCounting, HalvingBasis, OptionBytes, Policy};

/// A TCP stack with all parameters resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct StackParams {
    /// Congestion control algorithm.
    pub congestion_control: CongestionControlAlgorithm,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Payload of a full segment in bytes.
    pub mss: u32,
    /// IP and TCP headers without options, in bytes.
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
    /// Maximum of the delayed-ACK timer where the receiver adapts it ([`Policy::adaptive_delayed_ack`]).
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
    /// Phase of the coarse clock: time of the last tick before time zero, where one segment at a time is
    /// timed; absent: a different phase for each connection.
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
    /// Number of SYN retransmissions before the RTO begins to double (Linux, `tcp_syn_linear_timeouts`).
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
    /// Resolves the stack of this name, or the default stack, over this version of IP.
    #[must_use]
    pub fn named(scenario: &Scenario, name: Option<&String>, ip: IpVersion) -> Self {
        let stack = name.and_then(|name| scenario.stack.get(name));
        Self::resolve_for_ip(stack.unwrap_or(&Stack::default()), ip)
    }

    /// Resolves all parameters of a stack over IPv4.
    #[must_use]
    pub fn resolve(stack: &Stack) -> Self {
        Self::resolve_for_ip(stack, IpVersion::V4)
    }

    /// Resolves all parameters of a stack; the version of IP determines the header size unless the stack sets
    /// it.
    #[must_use]
    pub fn resolve_for_ip(stack: &Stack, ip: IpVersion) -> Self {
        let mut params = profile::defaults(stack.profile);
        let mss = stack.mss.map_or(params.mss, clamp_bytes);
        params.mss = mss;
        params.congestion_control = stack.congestion_control.unwrap_or(params.congestion_control);
        params.sack = stack.sack.unwrap_or(params.sack);
        params.recovery =
            stack.recovery.unwrap_or_else(|| profile::loss_recovery(stack.profile, &params));
        if params.recovery == Recovery::Rack && !params.sack {
            // RACK requires selective acknowledgements.
            params.recovery = Recovery::NewReno;
        }
        profile::adapt(stack, &mut params);
        params.header = clamp_bytes(stack.header.unwrap_or(ip.tcp_headers()));
        params.take_windows(stack);
        params.take_timers(stack);
        params.handshake = stack.handshake.unwrap_or(params.handshake);
        params.ack_every = stack.ack_every.unwrap_or(params.ack_every);
        params.quick_ack = stack.quick_ack.unwrap_or(params.quick_ack);
        params.timestamps = stack.timestamps.unwrap_or(params.timestamps);
        params.dupthresh = stack.dupthresh.unwrap_or(params.dupthresh);
        params.limited_transmit = stack.limited_transmit.unwrap_or(params.limited_transmit);
        params.prr = stack.prr.unwrap_or(params.prr);
        params.hystart = stack.hystart.unwrap_or(params.hystart);
        params.restart_after_idle = stack.restart_after_idle.unwrap_or(params.restart_after_idle);
        params.nagle = stack.nagle.unwrap_or(params.nagle);
        params.vegas = Arc::new(VegasParams {
            alpha: stack.vegas_alpha.unwrap_or(params.vegas.alpha),
            beta: stack.vegas_beta.unwrap_or(params.vegas.beta),
            gamma: stack.vegas_gamma.unwrap_or(params.vegas.gamma),
            initial_window: params.initial_window,
        });
        params.medx = MedxParams {
            alpha: stack.medx_alpha.unwrap_or(params.medx.alpha),
            beta: stack.medx_beta.unwrap_or(params.medx.beta),
            buffer: stack.medx_buffer.unwrap_or(params.medx.buffer),
            classifier: stack.medx_classifier.unwrap_or_default(),
        };
        if params.congestion_control == CongestionControlAlgorithm::Medx {
            params.report_delays();
        }
        params
    }

    fn take_windows(&mut self, stack: &Stack) {
        let mss = self.mss;
        let window = |size: WindowSize| u32::try_from(size.in_bytes(mss)).unwrap_or(u32::MAX);
        let (receive, initial, ssthresh) = profile::windows(stack.profile, self);
        self.receive_window = stack.receive_window.map_or(receive, window);
        self.initial_window = stack.initial_window.map_or(initial, window);
        let ssthresh = ssthresh.unwrap_or(self.receive_window);
        self.initial_ssthresh = stack.initial_ssthresh.map_or(ssthresh, window);
        self.fixed_window = stack.fixed_window.map_or(self.receive_window, window);
    }

    fn take_timers(&mut self, stack: &Stack) {
        self.delayed_ack = stack.delayed_ack.unwrap_or(self.delayed_ack);
        self.delayed_ack_max = stack.delayed_ack.unwrap_or(self.delayed_ack_max);
        self.rto_initial = stack.rto_initial.unwrap_or(self.rto_initial);
        self.rto_min = stack.rto_min.unwrap_or(self.rto_min);
        self.rto_max = stack.rto_max.unwrap_or(self.rto_max);
        self.clock_granularity = stack.clock_granularity.unwrap_or(self.clock_granularity);
        self.clock_phase = stack.clock_phase;
    }

    /// Paper `medx`, section 2: the receiver reports the delay of every segment, and "acknowledges every
    /// incoming packet" without delay. Scenario validation rejects a stack with other settings.
    fn report_delays(&mut self) {
        self.one_way_delay = true;
        self.timestamps = false;
        self.delayed_ack = Duration::ZERO;
        self.delayed_ack_max = Duration::ZERO;
    }

    /// Clock phase of a connection with this initial sequence number, added to times before ticks are
    /// counted. ns-2 chooses the phase of each agent's clock at random (`boot_time_`); here it is derived
    /// from the sequence number, which is random for each connection and replication.
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

    /// Window scale of the receive buffer. Packets of ns-2 contain no window, so that its windows have no unit.
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

/// The window scale of a receive buffer: the shift count with which 16 bits express it, 0 to 14 (RFC 7323,
/// section 2.3), as Linux chooses it (`tcp_select_initial_window`).
#[must_use]
pub const fn window_shift_of(receive_window: u32) -> u8 {
    if receive_window <= 65_535 {
        return 0;
    }
    let shift = receive_window.ilog2() - 15;
    if shift > 14 { 14 } else { shift as u8 }
}

fn clamp_bytes(bytes: Bytes) -> u32 {
    u32::try_from(bytes.get()).unwrap_or(u32::MAX)
}
