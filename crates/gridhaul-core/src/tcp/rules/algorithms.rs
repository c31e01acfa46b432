//! Rules of algorithms that Linux implements differently from their specification.

use super::{linux, rfc};
use crate::tcp::recovery::Recovery;

/// Implementation of CUBIC, BBR and Vegas; one byte, as every connection holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlgorithmRules {
    /// RFC 9438, draft-cardwell-iccrg-bbr-congestion-control-00, and Vegas as in ns-2.
    Rfc,
    /// Linux.
    Linux,
}

impl AlgorithmRules {
    #[inline]
    pub(crate) const fn cubic(self) -> &'static CubicRules {
        match self {
            Self::Rfc => &rfc::CUBIC,
            Self::Linux => &linux::CUBIC,
        }
    }
    #[inline]
    pub(crate) const fn bbr(self) -> &'static BbrRules {
        match self {
            Self::Rfc => &rfc::BBR,
            Self::Linux => &linux::BBR,
        }
    }
    #[inline]
    pub(crate) const fn vegas(self) -> &'static VegasRules {
        match self {
            Self::Rfc => &rfc::VEGAS,
            Self::Linux => &linux::VEGAS,
        }
    }
}

/// Differences of CUBIC implementations from RFC 9438.
#[derive(Debug)]
pub(crate) struct CubicRules {
    /// The flow is idle while no data is outstanding (`cubictcp_cwnd_event`, `CA_EVENT_TX_START`), instead of
    /// while the window is not used (section 5.8).
    pub idle_is_nothing_outstanding: bool,
    /// The part of an acknowledgement in slow start that exceeds ssthresh counts in congestion avoidance
    /// (`cubictcp_cong_avoid`, `tcp_slow_start`).
    pub slow_start_remainder_counts: bool,
    /// W_max is a whole number of segments (`snd_cwnd`).
    pub whole_segment_plateau: bool,
    /// W_est grows by one segment in a round trip from cwnd_prior on (section 4.3); Linux keeps α_cubic.
    pub friendly_growth_as_reno: bool,
    /// The window grows by a segment for each `cnt` that are acknowledged (`bictcp_update`,
    /// `tcp_cong_avoid_ai`), with the target one minimum RTT ahead.
    pub counts_segments: bool,
}

/// Differences of BBR implementations from the draft.
#[derive(Debug)]
pub(crate) struct BbrRules {
    /// A policer is detected, and its rate is not exceeded (`bbr_lt_bw_sampling`).
    pub detects_policers: bool,
    /// Delivery rates over less than the minimum RTT are rejected (`tcp_rate_gen`).
    pub rejects_short_samples: bool,
    /// Windows allow for aggregated acknowledgements (`bbr_update_ack_aggregation`).
    pub compensates_aggregation: bool,
    /// The data in flight is predicted for the next departure under pacing (`bbr_packets_in_net_at_edt`).
    pub predicts_departure: bool,
    /// Windows are an even number of whole segments (`bbr_quantization_budget`).
    pub quantises_window: bool,
    /// Segments are sent in bursts of the send quantum (`bbr_tso_segs_goal`).
    pub sends_bursts: bool,
    /// The pacing rate as a share of the bandwidth (`bbr_pacing_margin_percent`): slightly below 1, so that
    /// random variation builds no queue.
    pub pacing_margin: f64,
}

/// Differences of Vegas implementations from ns-2.
#[derive(Debug)]
pub(crate) struct VegasRules {
    /// A timeout begins a new round trip (`gh_vegas`).
    pub timeout_begins_round: bool,
    /// The use of the window is determined by the rule of all algorithms (`tcp_is_cwnd_limited`); in ns-2 the
    /// window is used if all but two of its segments are outstanding.
    pub shares_use_of_window: bool,
}

/// Behaviour of the sender that depends on the method of loss detection.
#[derive(Debug)]
pub(crate) struct RecoveryRules {
    /// Tail loss probes (RFC 8985, section 7).
    pub tail_loss_probe: bool,
    /// Acknowledgements report which delivered segment was sent last (RFC 8985, section 6.2).
    pub tracks_send_times: bool,
    /// The first segment acknowledged determines the RTO, the last one the round trip of the congestion
    /// control (Linux, `tcp_clean_rtx_queue`); otherwise the last one determines both.
    pub times_first_segment: bool,
    /// Segments newly sacked by a duplicate measure round trips and restart the timer (Linux,
    /// `tcp_sacktag_one`, `tcp_rearm_rto`).
    pub times_sacked_segments: bool,
    /// A timestamp of zero is an echo in the acknowledgement of SYN (Linux, whose timestamp clock has a
    /// random offset).
    pub times_syn_by_zero_echo: bool,
    /// Without new data, a hole that is not marked lost is retransmitted (RFC 6675, `NextSeg`, rule 3).
    pub fills_unproven_holes: bool,
    /// A retransmission of the first segment restarts the timer (Linux, `tcp_xmit_retransmit_queue`).
    pub first_retransmission_restarts_timer: bool,
    /// A timeout does not mark segments sent within the last round trip (Linux, `tcp_timeout_mark_lost`).
    pub timeout_spares_recent_segments: bool,
    /// A timeout in recovery does not reduce ssthresh again (Linux, `tcp_enter_loss`).
    pub timeout_in_recovery_keeps_threshold: bool,
}

impl RecoveryRules {
    #[inline]
    pub(crate) const fn of(recovery: &Recovery) -> &'static Self {
        match recovery {
            Recovery::Rack(_) => &linux::RACK_TLP,
            _ => &rfc::DUPLICATE_COUNTING,
        }
    }
}
