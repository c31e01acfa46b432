//! The small print of a stack, resolved from its profile and its keys in the scenario.

use std::sync::Arc;

use gridhaul_scenario::scenario::{IpVersion, Profile, Recovery, Scenario, Stack, Variant};
use gridhaul_scenario::units::{Bytes, Duration, WindowSize};

use super::congestion::Controller;

/// How the window grows with acknowledgements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// By one segment (or its share) for each acknowledgement, whatever it covers (ns-2).
    PerAck,
    /// By the bytes acknowledged, at most one segment each (RFC 5681, equation 2).
    PerAckedUpToOne,
    /// By all bytes acknowledged (RFC 3465 without its limit; Linux).
    PerAcked,
}

/// What is halved when a loss is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HalvingBasis {
    /// The amount of outstanding data (RFC 5681, equation 4).
    Flight,
    /// The congestion window (Linux).
    Cwnd,
    /// The smaller of congestion and receive window (ns-2).
    Window,
}

/// Whose CUBIC and whose BBR it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// RFC 9438, and draft-cardwell-iccrg-bbr-congestion-control-00.
    Rfc,
    /// Linux. CUBIC: windows are whole segments, the Reno-friendly one keeps growing by `α_cubic`
    /// (section 4.3 would go on with 1), the target lies one least round trip ahead, and as long as no
    /// loss has shown where the plateau is, the window grows by at least a twentieth in each round
    /// trip. BBR: windows are an even number of whole segments, two more while probing, and make room
    /// for acknowledgements that come in bursts; pacing stays one per cent below the bandwidth.
    Linux,
}

/// What TCP options add to the size of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionBytes {
    /// What they take on a real wire, padding included.
    All,
    /// Eight bytes for each SACK block and nothing else (ns-2, `Sacker::append_ack`).
    SackBlocks,
}

/// A TCP stack with every parameter decided.
#[derive(Debug, Clone, PartialEq)]
pub struct StackParams {
    /// The variant.
    pub variant: Variant,
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
    /// Window of the variant `fixed`, in bytes.
    pub fixed_window: u32,
    /// Whether connections are opened and closed.
    pub handshake: bool,
    /// Time that an acknowledgement may wait; zero: never waits.
    pub delayed_ack: Duration,
    /// The same where the receiver adapts it ([`Rules::Linux`]): the longest that comes of it.
    pub delayed_ack_max: Duration,
    /// Segments after which a waiting acknowledgement goes.
    pub ack_every: u32,
    /// Segments at the start that are acknowledged at once.
    pub quick_ack: u32,
    /// Timestamps option.
    pub timestamps: bool,
    /// The option of TCP-MEDX in its place.
    pub one_way_delay: bool,
    /// Selective acknowledgements.
    pub sack: bool,
    /// Duplicate acknowledgements that mean loss.
    pub dupthresh: u32,
    /// Limited transmit.
    pub limited_transmit: bool,
    /// First RTO.
    pub rto_initial: Duration,
    /// Least RTO.
    pub rto_min: Duration,
    /// Largest RTO.
    pub rto_max: Duration,
    /// Clock granularity of round-trip measurements; zero: exact.
    pub clock_granularity: Duration,
    /// Time of the last tick before time zero, where one segment at a time is timed with a clock that
    /// ticks; absent: another one for each connection.
    pub clock_phase: Option<Duration>,
    /// Whether `rto_min` bounds the variance term (Linux) instead of the whole RTO (RFC 6298).
    pub rto_floor_on_variance: bool,
    /// Whether every segment is timed, or one at a time (as BSD and ns-2 did).
    pub time_every_segment: bool,
    /// Slow start again after an idle RTO.
    pub restart_after_idle: bool,
    /// Nagle's algorithm.
    pub nagle: bool,
    /// How the window grows.
    pub growth: Growth,
    /// Whether the window grows only while it is the limit (RFC 7661; Linux).
    pub grow_only_when_limited: bool,
    /// Whether recovery follows proportional rate reduction (RFC 9937), where it is `rack`.
    pub prr: bool,
    /// Whether CUBIC leaves slow start by HyStart.
    pub hystart: bool,
    /// Whose CUBIC, and whose BBR.
    pub rules: Rules,
    /// What is halved.
    pub halving: HalvingBasis,
    /// Whether the slow-start threshold is a whole number of segments (ns-2: `ssthresh_` is an
    /// integer; Linux).
    pub whole_ssthresh: bool,
    /// Whether a timeout forgets selective acknowledgements (RFC 2018, section 8; ns-2).
    pub forget_sack_on_timeout: bool,
    /// What TCP options add to the size of a segment on the wire.
    pub option_bytes: OptionBytes,
    /// Whether recovery is ns-2's where that differs from the RFCs: one fast retransmit for each
    /// window also in Reno (`bugFix_`), a window that stays deflated after NewReno's recovery,
    /// ssthresh cut again by every timeout, Tahoe's duplicates counted across one.
    pub ns2_recovery: bool,
    /// Whether the timer is that of ns-2's Vegas: a fast retransmit doubles the timeout
    /// (`reset_rtx_timer`), and it runs on, and doubles, while nothing is out.
    pub vegas_timer: bool,
    /// Repetitions of SYN after which data still begins with the initial window.
    pub syn_repeats: u32,
    /// Repetitions of SYN before the distance between them begins to double.
    pub syn_linear: u32,
    /// Whether a delayed acknowledgement also answers the last segment in order when that arrives again
    /// (ns-2, `DelAckSink::recv`).
    pub delays_last_again: bool,
    /// Whether connections open as between ns-2's one-way agents: SYN is a packet like others, the
    /// answer is not acknowledged, and only SYN is repeated.
    pub one_way_open: bool,
    /// Vegas: α, β and γ in segments. Shared: all connections of a stack look at the same.
    pub vegas: Arc<(f64, f64, f64)>,
    /// MEDX: α, β, and how many delays are kept.
    pub medx: (f64, f64, u32),
}

impl StackParams {
    /// The stack of this name, or the default one, over this version of IP.
    #[must_use]
    pub fn named(scenario: &Scenario, name: Option<&String>, ip: IpVersion) -> Self {
        let stack = name.and_then(|name| scenario.stack.get(name));
        Self::over(stack.unwrap_or(&Stack::default()), ip)
    }

    /// Decides every parameter of a stack over IPv4.
    #[must_use]
    pub fn resolve(stack: &Stack) -> Self {
        Self::over(stack, IpVersion::V4)
    }

    /// Decides every parameter of a stack; the version of IP decides the size of the headers where the
    /// stack does not.
    #[must_use]
    pub fn over(stack: &Stack, ip: IpVersion) -> Self {
        let mut params = match stack.profile {
            Profile::Rfc => rfc(),
            Profile::Linux => linux(),
            Profile::Ns2 => ns2(),
        };
        let mss = stack.mss.map_or(params.mss, clamp_bytes);
        params.mss = mss;
        params.variant = stack.variant.unwrap_or(params.variant);
        params.sack = stack.sack.unwrap_or(params.sack);
        params.recovery =
            stack.recovery.unwrap_or_else(|| default_recovery(stack.profile, &params));
        if params.recovery == Recovery::Rack && !params.sack {
            // It lives on selective acknowledgements.
            params.recovery = Recovery::NewReno;
        }
        if stack.profile == Profile::Ns2 {
            params.sack = stack.sack.unwrap_or(params.recovery == Recovery::Sack);
            params.set_vegas_of_ns2();
        }
        let window = |size: WindowSize| u32::try_from(size.in_bytes(mss)).unwrap_or(u32::MAX);
        params.header = clamp_bytes(stack.header.unwrap_or(ip.tcp_headers()));
        params.receive_window = stack.receive_window.map_or_else(
            || if stack.profile == Profile::Ns2 { 20 * mss } else { params.receive_window },
            window,
        );
        params.initial_window =
            stack.initial_window.map_or_else(|| default_initial_window(stack.profile, mss), window);
        params.initial_ssthresh = stack.initial_ssthresh.map_or_else(
            || if stack.profile == Profile::Ns2 { params.receive_window } else { u32::MAX },
            window,
        );
        params.fixed_window = stack.fixed_window.map_or(params.receive_window, window);
        params.handshake = stack.handshake.unwrap_or(params.handshake);
        params.delayed_ack = stack.delayed_ack.unwrap_or(params.delayed_ack);
        params.delayed_ack_max = stack.delayed_ack.unwrap_or(params.delayed_ack_max);
        params.ack_every = stack.ack_every.unwrap_or(params.ack_every);
        params.quick_ack = stack.quick_ack.unwrap_or(params.quick_ack);
        params.timestamps = stack.timestamps.unwrap_or(params.timestamps);
        params.dupthresh = stack.dupthresh.unwrap_or(params.dupthresh);
        params.limited_transmit = stack.limited_transmit.unwrap_or(params.limited_transmit);
        params.rto_initial = stack.rto_initial.unwrap_or(params.rto_initial);
        params.rto_min = stack.rto_min.unwrap_or(params.rto_min);
        params.rto_max = stack.rto_max.unwrap_or(params.rto_max);
        params.clock_granularity = stack.clock_granularity.unwrap_or(params.clock_granularity);
        params.clock_phase = stack.clock_phase;
        params.prr = stack.prr.unwrap_or(params.prr);
        params.hystart = stack.hystart.unwrap_or(params.hystart);
        params.restart_after_idle = stack.restart_after_idle.unwrap_or(params.restart_after_idle);
        params.nagle = stack.nagle.unwrap_or(params.nagle);
        let (alpha, beta, gamma) = *params.vegas;
        params.vegas = Arc::new((
            stack.vegas_alpha.unwrap_or(alpha),
            stack.vegas_beta.unwrap_or(beta),
            stack.vegas_gamma.unwrap_or(gamma),
        ));
        params.medx = (
            stack.medx_alpha.unwrap_or(params.medx.0),
            stack.medx_beta.unwrap_or(params.medx.1),
            stack.medx_buffer.unwrap_or(params.medx.2),
        );
        if params.variant == Variant::Medx {
            params.report_delays();
        }
        params
    }

    /// Paper `medx`, section 2: the receiver reports the delay of every segment, and "acknowledges
    /// every incoming packet" without delay. A stack that asks for something else is refused when
    /// the scenario is read.
    fn report_delays(&mut self) {
        self.one_way_delay = true;
        self.timestamps = false;
        self.delayed_ack = Duration::ZERO;
        self.delayed_ack_max = Duration::ZERO;
    }

    /// ns-2's Vegas has a timer and an output routine of its own (`VegasTcpAgent::output`): it opens no
    /// connection, and packet 0 is a data packet, which the sink acknowledges at once
    /// (`SYN_immediate_ack_`).
    fn set_vegas_of_ns2(&mut self) {
        if self.variant == Variant::Vegas {
            self.vegas_timer = true;
            self.handshake = false;
            self.quick_ack = 1;
        }
    }

    /// What is added to times before ticks are counted, for a connection with this initial sequence
    /// number. ns-2 draws the phase of each agent's clock (`boot_time_`); here it comes from the number,
    /// which is drawn for each connection in each replication.
    #[inline]
    pub(crate) fn clock_phase(&self, isn: u32) -> Duration {
        if self.time_every_segment {
            return Duration::ZERO;
        }
        self.clock_phase.unwrap_or_else(|| {
            // Evenly distributed over one tick.
            let product = u128::from(self.clock_granularity.as_nanos()) * u128::from(isn);
            Duration::from_nanos((product >> 32) as u64)
        })
    }

    /// Whether segments carry an option with times, of either kind.
    #[must_use]
    pub const fn has_clock_option(&self) -> bool {
        self.timestamps || self.one_way_delay
    }
}

fn clamp_bytes(bytes: Bytes) -> u32 {
    u32::try_from(bytes.get()).unwrap_or(u32::MAX)
}

/// Variants that Linux has, or gets from gridhaul, all with one loss recovery of its own.
const IN_THE_KERNEL: [Variant; 9] = [
    Variant::Reno,
    Variant::NewReno,
    Variant::Sack,
    Variant::Vegas,
    Variant::Medx,
    Variant::Veno,
    Variant::Westwood,
    Variant::Cubic,
    Variant::Bbr,
];

/// What belongs to the variant; the modern ones use SACK where the stack has it.
fn default_recovery(profile: Profile, params: &StackParams) -> Recovery {
    if profile == Profile::Linux && params.sack && IN_THE_KERNEL.contains(&params.variant) {
        return Recovery::Rack;
    }
    match (Controller::recovery_of(params.variant), params.sack) {
        (Recovery::Sack, false) if params.variant != Variant::Sack => Recovery::NewReno,
        (recovery, _) => recovery,
    }
}

fn default_initial_window(profile: Profile, mss: u32) -> u32 {
    match profile {
        // RFC 6928, section 2: min(10 * MSS, max(2 * MSS, 14600)).
        Profile::Rfc => (10 * mss).min((2 * mss).max(14_600)),
        // Linux: TCP_INIT_CWND 10 segments, whatever their size.
        Profile::Linux => 10 * mss,
        // ns-2: windowInit_ 2.
        Profile::Ns2 => 2 * mss,
    }
}

/// What the RFCs say today.
fn rfc() -> StackParams {
    StackParams {
        variant: Variant::NewReno,
        recovery: Recovery::NewReno,
        mss: 1460,
        header: 0,
        receive_window: 1 << 20,
        initial_window: 0,
        initial_ssthresh: u32::MAX,
        fixed_window: 0,
        handshake: true,
        // RFC 9293, 3.8.6.3: below 0.5 s, and for every second full segment; BSD's 200 ms.
        delayed_ack: Duration::from_millis(200),
        delayed_ack_max: Duration::from_millis(200),
        ack_every: 2,
        quick_ack: 0,
        timestamps: true,
        one_way_delay: false,
        sack: true,
        // RFC 5681, section 3.2: three duplicates.
        dupthresh: 3,
        limited_transmit: true,
        // RFC 6298, 2.1 and 2.4: one second for both.
        rto_initial: Duration::from_secs(1),
        rto_min: Duration::from_secs(1),
        // RFC 6298, 2.5: at least 60 s.
        rto_max: Duration::from_secs(60),
        clock_granularity: Duration::from_millis(1),
        clock_phase: None,
        rto_floor_on_variance: false,
        time_every_segment: true,
        restart_after_idle: true,
        nagle: true,
        growth: Growth::PerAckedUpToOne,
        grow_only_when_limited: true,
        prr: false,
        hystart: false,
        rules: Rules::Rfc,
        halving: HalvingBasis::Flight,
        whole_ssthresh: false,
        forget_sack_on_timeout: false,
        option_bytes: OptionBytes::All,
        ns2_recovery: false,
        vegas_timer: false,
        // RFC 5681, section 3.1: after a lost SYN, one segment.
        syn_repeats: 0,
        syn_linear: 0,
        delays_last_again: false,
        one_way_open: false,
        vegas: Arc::new(Profile::Rfc.vegas()),
        // Paper `medx`, section 2: α = 0.5, β = 1.2. It leaves the length open: the three duplicates
        // that reveal a loss, and one delay from before it.
        medx: (0.5, 1.2, 4),
    }
}

/// What a current Linux does where it differs from the RFCs.
fn linux() -> StackParams {
    StackParams {
        variant: Variant::Cubic,
        recovery: Recovery::Rack,
        prr: true,
        hystart: true,
        rules: Rules::Linux,
        // snd_ssthresh and snd_cwnd count segments.
        whole_ssthresh: true,
        // tcp_rmem's upper default of 6 MB, half of it offered (tcp_adv_win_scale 1).
        receive_window: 3 << 20,
        // TCP_DELACK_MIN; TCP_DELACK_MAX is that of the RFCs above.
        delayed_ack: Duration::from_millis(40),
        // TCP_MAX_QUICKACKS, 16, and one more since the window grows with the first segment
        // (tcp_grow_window: `quick |= 1`).
        quick_ack: 17,
        // TCP_RTO_MIN, and TCP_RTO_MAX of 120 s.
        rto_min: Duration::from_millis(200),
        rto_max: Duration::from_secs(120),
        clock_granularity: Duration::ZERO,
        rto_floor_on_variance: true,
        growth: Growth::PerAcked,
        halving: HalvingBasis::Cwnd,
        // A single repetition may have been needless.
        syn_repeats: 1,
        // tcp_syn_linear_timeouts.
        syn_linear: 4,
        vegas: Arc::new(Profile::Linux.vegas()),
        ..rfc()
    }
}

/// What ns-2.35's one-way agents do (`tcl/lib/ns-default.tcl`).
fn ns2() -> StackParams {
    StackParams {
        variant: Variant::Tahoe,
        recovery: Recovery::GoBack,
        // syn_ true and delay_growth_ true: one round trip before the data, as with a handshake.
        handshake: true,
        // TCPSink acknowledges every segment; TCPSink/DelAck is asked for with `delayed_ack`.
        delayed_ack: Duration::ZERO,
        delayed_ack_max: Duration::ZERO,
        timestamps: false,
        sack: false,
        // rtxcur_init_ 3.0, minrto_ 0.2, maxrto_ 60, tcpTick_ 0.01.
        rto_initial: Duration::from_secs(3),
        rto_min: Duration::from_millis(200),
        rto_max: Duration::from_secs(60),
        clock_granularity: Duration::from_millis(10),
        time_every_segment: false,
        // slow_start_restart_ true; see `Sender::restart_after_idle`.
        restart_after_idle: true,
        nagle: false,
        growth: Growth::PerAck,
        grow_only_when_limited: false,
        halving: HalvingBasis::Window,
        whole_ssthresh: true,
        forget_sack_on_timeout: true,
        option_bytes: OptionBytes::SackBlocks,
        ns2_recovery: true,
        delays_last_again: true,
        one_way_open: true,
        vegas: Arc::new(Profile::Ns2.vegas()),
        ..rfc()
    }
}
