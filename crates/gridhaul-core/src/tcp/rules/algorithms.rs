//! Rules of algorithms that Linux implements differently from their specification.

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
            Self::Rfc => &CubicRules::RFC,
            Self::Linux => &CubicRules::LINUX,
        }
    }
    #[inline]
    pub(crate) const fn bbr(self) -> &'static BbrRules {
        match self {
            Self::Rfc => &BbrRules::RFC,
            Self::Linux => &BbrRules::LINUX,
        }
    }
    #[inline]
    pub(crate) const fn vegas(self) -> &'static VegasRules {
        match self {
            Self::Rfc => &VegasRules::RFC,
            Self::Linux => &VegasRules::LINUX,
        }
    }
}

/// Differences of CUBIC implementations from RFC 9438.
#[derive(Debug)]
pub(crate) struct CubicRules {
    /// The flow is idle while no data is outstanding (`cubictcp_cwnd_event`, `CA_EVENT_TX_START`),
    /// instead of while the window is not used (section 5.8).
    pub idle_is_nothing_outstanding: bool,
    /// The part of an acknowledgement in slow start that exceeds ssthresh counts in congestion
    /// avoidance (`cubictcp_cong_avoid`, `tcp_slow_start`).
    pub slow_start_remainder_counts: bool,
    /// W_max is a whole number of segments (`snd_cwnd`).
    pub whole_segment_plateau: bool,
    /// W_est grows by one segment in a round trip from cwnd_prior on (section 4.3); Linux keeps
    /// α_cubic.
    pub friendly_growth_as_reno: bool,
    /// The window grows by a segment for each `cnt` that are acknowledged (`bictcp_update`,
    /// `tcp_cong_avoid_ai`), with the target one minimum RTT ahead.
    pub counts_segments: bool,
}

impl CubicRules {
    const RFC: Self = Self {
        idle_is_nothing_outstanding: false,
        slow_start_remainder_counts: false,
        whole_segment_plateau: false,
        friendly_growth_as_reno: true,
        counts_segments: false,
    };

    const LINUX: Self = Self {
        idle_is_nothing_outstanding: true,
        slow_start_remainder_counts: true,
        whole_segment_plateau: true,
        friendly_growth_as_reno: false,
        counts_segments: true,
    };
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
    /// The data in flight is predicted for the next departure under pacing
    /// (`bbr_packets_in_net_at_edt`).
    pub predicts_departure: bool,
    /// Windows are an even number of whole segments (`bbr_quantization_budget`).
    pub quantises_window: bool,
    /// Segments are sent in bursts of the send quantum (`bbr_tso_segs_goal`).
    pub sends_bursts: bool,
    /// The pacing rate as a share of the bandwidth (`bbr_pacing_margin_percent`): slightly below 1,
    /// so that random variation builds no queue.
    pub pacing_margin: f64,
}

impl BbrRules {
    /// `bbr_pacing_margin_percent`: 1 % below the estimate, so that random variation builds no
    /// queue.
    pub(crate) const LINUX_PACING_MARGIN: f64 = 0.99;

    const RFC: Self = Self {
        detects_policers: false,
        rejects_short_samples: false,
        compensates_aggregation: false,
        predicts_departure: false,
        quantises_window: false,
        sends_bursts: false,
        pacing_margin: 1.0,
    };

    const LINUX: Self = Self {
        detects_policers: true,
        rejects_short_samples: true,
        compensates_aggregation: true,
        predicts_departure: true,
        quantises_window: true,
        sends_bursts: true,
        pacing_margin: Self::LINUX_PACING_MARGIN,
    };
}

/// Differences of Vegas implementations from ns-2.
#[derive(Debug)]
pub(crate) struct VegasRules {
    /// A timeout begins a new round trip (`gh_vegas`).
    pub timeout_begins_round: bool,
    /// The use of the window is determined by the rule of all algorithms (`tcp_is_cwnd_limited`);
    /// in ns-2 the window is used if all but two of its segments are outstanding.
    pub shares_use_of_window: bool,
}

impl VegasRules {
    const RFC: Self = Self { timeout_begins_round: false, shares_use_of_window: false };

    const LINUX: Self = Self { timeout_begins_round: true, shares_use_of_window: true };
}
