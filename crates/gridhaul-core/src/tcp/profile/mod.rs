//! What the profiles of a stack do differently, in one place: `rfc.rs` follows the RFCs, `linux.rs` lists
//! what a current Linux does otherwise, `ns2.rs` what the one-way agents of ns-2.35 do otherwise.
//!
//! Parameters with a key in the scenario are fields of [`StackParams`]. Behaviour without a key is a
//! [`Policy`]; algorithms that Linux implements unlike their specification have tables of their own. The
//! code that follows a policy cites the source again where it acts.

mod algorithms;
mod linux;
mod ns2;
mod rfc;

use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Profile, Recovery, Stack};

use super::congestion::Controller;
use super::params::StackParams;

pub use algorithms::Rules;
pub(crate) use algorithms::{BbrRules, CubicRules, RecoveryRules};
pub(crate) use linux::BBR_PACING_MARGIN;

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

impl Growth {
    /// Bytes that count in slow start and in congestion avoidance, with so many acknowledged in order and
    /// so many delivered, selectively acknowledged ones included.
    #[inline]
    pub(crate) fn credits(self, acked: u32, delivered: u32, mss: u32) -> (u32, u32) {
        match self {
            Self::PerAck => (mss, mss),
            Self::PerAckedUpToOne => (acked.min(mss), mss),
            Self::PerAcked => (delivered, delivered),
        }
    }
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

/// What TCP options add to the size of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionBytes {
    /// Their size on a real link, padding included.
    All,
    /// Eight bytes for each SACK block and nothing else (ns-2, `Sacker::append_ack`).
    SackBlocks,
}

/// How the window restarts after an idle time longer than the RTO.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleRestart {
    /// At most the initial window (RFC 5681, section 4.1).
    InitialWindow,
    /// Half for each RTO of idle time, down to the initial window (RFC 2861, section 3.1; Linux,
    /// `tcp_cwnd_restart`).
    Decay,
    /// One segment (ns-2, `slow_start_restart_`).
    OneSegment,
}

/// Behaviour of an implementation that no key of a scenario sets. The comments say what `true` means, and
/// whose behaviour that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The answer to SYN is not acknowledged, and only SYN is retransmitted (ns-2, one-way agents).
    pub one_way_open: bool,
    /// SYN is a packet like others: its loss reduces the window (ns-2, `syn_`).
    pub syn_counts_as_data: bool,
    /// The third segment of the handshake carries no data (Linux, `tcp_rcv_synsent_state_process`).
    pub bare_handshake_ack: bool,

    /// The delayed-ACK timer follows the pace of arriving data, and acknowledgements go at once after a
    /// silence or an old segment (Linux, `tcp_event_data_recv`, `tcp_enter_quickack_mode`).
    pub adaptive_delayed_ack: bool,
    /// A retransmission of the last segment in order is acknowledged with delay (ns-2, `DelAckSink::recv`).
    pub delays_ack_of_last_duplicate: bool,

    /// A small segment waits for earlier small segments only (Linux, `tcp_minshall_check`).
    pub nagle_by_minshall: bool,
    /// The application writes until a super-segment of the device is full (Linux, `tcp_sendmsg_locked`,
    /// `tcp_stream_memory_free`).
    pub fills_super_segments: bool,
    /// Pacing spaces bursts (Linux, `tcp_update_skb_after_send`).
    pub paces_bursts: bool,
    /// How the window restarts after an idle time.
    pub idle_restart: IdleRestart,
    /// A window that the application leaves empty neither grows nor stays (RFC 2861; Linux,
    /// `tcp_cwnd_validate`).
    pub validates_window: bool,
    /// The congestion window is a whole number of segments (Linux, `snd_cwnd`).
    pub whole_segment_window: bool,

    /// A timeout retransmits the first segment alone (Linux, `tcp_retransmit_timer`).
    pub timeout_sends_one_segment: bool,
    /// A timeout forgets selective acknowledgements (RFC 2018, section 8; ns-2).
    pub timeout_forgets_sacks: bool,
    /// The count of duplicate acknowledgements lasts over a timeout in Tahoe (ns-2, `TcpAgent::timeout`).
    pub timeout_keeps_duplicates: bool,
    /// Another timeout of the same segment reduces ssthresh again, against RFC 5681, section 3.1 (ns-2,
    /// `TcpAgent::slowdown`).
    pub repeated_timeout_reduces: bool,
    /// The timer that the last acknowledgement has started counts as the start of an idle time (ns-2,
    /// `TcpAgent::newack`).
    pub idle_since_last_ack: bool,
    /// The retransmission timer expires, and backs off, while nothing is outstanding (ns-2,
    /// `VegasTcpAgent::timeout`).
    pub timer_runs_while_idle: bool,
    /// A fast retransmit doubles the timeout (ns-2, `VegasTcpAgent::recv`, `reset_rtx_timer`).
    pub fast_retransmit_backs_off: bool,

    /// SACK recovery counts the pipe in packets (ns-2, `tcp-sack1.cc`) instead of RFC 6675.
    pub sack1_recovery: bool,
    /// In SACK recovery every acknowledgement counts as a duplicate (ns-2, `Sack1TcpAgent::recv`).
    pub every_ack_leaves_pipe: bool,
    /// The first data segment may be retransmitted fast after an earlier loss (ns-2, `bugfix_ss_`).
    pub first_segment_is_retransmitted_fast: bool,
    /// One fast retransmit for each window, also in Reno (ns-2, `bugFix_`).
    pub one_fast_retransmit_per_window: bool,
    /// Limited transmit sends one segment for each duplicate, whatever earlier ones have released (ns-2,
    /// `send_one`).
    pub limited_transmit_sends_one: bool,
    /// A partial acknowledgement leaves the segment being timed (ns-2, `NewRenoTcpAgent::partialnewack`).
    pub partial_ack_keeps_timing: bool,
    /// Segments that NewReno sends at most for each acknowledgement in recovery (ns-2, `send_much (0, 0, 2)`).
    pub new_reno_burst: Option<u8>,
    /// The window stays as partial acknowledgements have deflated it (ns-2, `NewRenoTcpAgent::recv`).
    pub keeps_deflated_window: bool,

    /// Whose CUBIC, BBR and Vegas it is.
    pub algorithms: Rules,
}

/// The parameters and the policy of a profile.
pub(super) fn defaults(profile: Profile) -> StackParams {
    match profile {
        Profile::Rfc => rfc::defaults(),
        Profile::Linux => linux::defaults(),
        Profile::Ns2 => ns2::defaults(),
    }
}

/// Windows of a profile for the segment size of `params`, in bytes: receive window, initial window and
/// initial ssthresh, which is the receive window where absent.
pub(super) fn windows(profile: Profile, params: &StackParams) -> (u32, u32, Option<u32>) {
    let mss = params.mss;
    match profile {
        Profile::Rfc => (params.receive_window, rfc::initial_window(mss), Some(u32::MAX)),
        Profile::Linux => (params.receive_window, linux::initial_window(mss), Some(u32::MAX)),
        Profile::Ns2 => (ns2::receive_window(mss), ns2::initial_window(mss), None),
    }
}

/// The loss recovery of a variant; the modern ones use SACK where the stack has it.
pub(super) fn loss_recovery(profile: Profile, params: &StackParams) -> Recovery {
    if profile == Profile::Linux && params.sack && linux::has_rack(params.congestion_control) {
        return Recovery::Rack;
    }
    match (Controller::recovery_of(params.congestion_control), params.sack) {
        (Recovery::Sack, false)
            if params.congestion_control != CongestionControlAlgorithm::Sack =>
        {
            Recovery::NewReno
        }
        (recovery, _) => recovery,
    }
}

/// Adapts what follows from the variant and the recovery of a stack.
pub(super) fn adapt(stack: &Stack, params: &mut StackParams) {
    if stack.profile == Profile::Ns2 {
        params.sack = stack.sack.unwrap_or(params.recovery == Recovery::Sack);
        ns2::adapt_to_agent(params);
    }
}
