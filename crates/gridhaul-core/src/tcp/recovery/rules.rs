//! Rules of the sender for each method of loss detection.

/// Behaviour of the sender that depends on the method of loss detection.
#[derive(Debug)]
pub(crate) struct RecoveryRules {
    /// Tail loss probes (RFC 8985, section 7).
    pub tail_loss_probe: bool,
    /// Acknowledgements report which delivered segment was sent last (RFC 8985, section 6.2).
    pub tracks_send_times: bool,
    /// The first segment acknowledged determines the RTO, the last one the round trip of the
    /// congestion control (Linux, `tcp_clean_rtx_queue`); otherwise the last one determines both.
    pub times_first_segment: bool,
    /// Segments newly sacked by a duplicate measure round trips and restart the timer (Linux,
    /// `tcp_sacktag_one`, `tcp_rearm_rto`).
    pub times_sacked_segments: bool,
    /// A timestamp of zero is an echo in the acknowledgement of SYN (Linux, whose timestamp clock
    /// has a random offset).
    pub times_syn_by_zero_echo: bool,
    /// Without new data, a hole that is not marked lost is retransmitted (RFC 6675, `NextSeg`, rule
    /// 3).
    pub fills_unproven_holes: bool,
    /// A retransmission of the first segment restarts the timer (Linux,
    /// `tcp_xmit_retransmit_queue`).
    pub first_retransmission_restarts_timer: bool,
    /// A timeout does not mark segments sent within the last round trip (Linux,
    /// `tcp_timeout_mark_lost`).
    pub timeout_spares_recent_segments: bool,
    /// A timeout in recovery does not reduce ssthresh again (Linux, `tcp_enter_loss`).
    pub timeout_in_recovery_keeps_threshold: bool,
}

/// RFC 5681, RFC 6582 and RFC 6675: losses are detected by counting duplicate acknowledgements.
pub(super) const DUPLICATE_COUNTING: RecoveryRules = RecoveryRules {
    tail_loss_probe: false,
    tracks_send_times: false,
    times_first_segment: false,
    times_sacked_segments: false,
    times_syn_by_zero_echo: false,
    fills_unproven_holes: true,
    first_retransmission_restarts_timer: false,
    timeout_spares_recent_segments: false,
    timeout_in_recovery_keeps_threshold: false,
};

/// RACK-TLP (RFC 8985) as Linux implements it; stacks of other profiles with this recovery follow
/// the same rules.
pub(super) const RACK_TLP: RecoveryRules = RecoveryRules {
    tail_loss_probe: true,
    tracks_send_times: true,
    times_first_segment: true,
    times_sacked_segments: true,
    times_syn_by_zero_echo: true,
    fills_unproven_holes: false,
    first_retransmission_restarts_timer: true,
    timeout_spares_recent_segments: true,
    timeout_in_recovery_keeps_threshold: true,
};

/// Linux without selective acknowledgements: neither tail loss probes nor times of sacked segments.
pub(super) const LINUX_WITHOUT_SACK: RecoveryRules =
    RecoveryRules { tail_loss_probe: false, times_sacked_segments: false, ..RACK_TLP };
