//! Profile `rfc`: the current RFCs.

use std::sync::Arc;

use gridhaul_scenario::scenario::{LossClassifier, Profile, Recovery};
use gridhaul_scenario::units::Duration;

use crate::tcp::params::{MedxParams, StackParams, VegasParams};
use crate::tcp::rules::{
    AlgorithmRules, ByteCounting, HalvingBasis, IdleRestart, OptionBytes, Policy,
};

pub(super) const POLICY: Policy = Policy {
    one_way_open: false,
    syn_counts_as_data: false,
    bare_handshake_ack: false,
    adaptive_delayed_ack: false,
    acknowledges_when_read: false,
    reports_duplicates: false,
    delays_ack_of_last_duplicate: false,
    nagle_by_minshall: false,
    fills_super_segments: false,
    paces_bursts: false,
    idle_restart: IdleRestart::InitialWindow,
    validates_window: false,
    whole_segment_window: false,
    fin_follows_sent_data: false,
    timer_wheel: false,
    random_timer_phase: false,
    syn_retransmissions_max: None,
    timeout_sends_one_segment: false,
    smaller_segments_fill_window: false,
    timeout_forgets_sacks: false,
    timeout_keeps_duplicates: false,
    repeated_timeout_reduces: false,
    idle_since_last_ack: false,
    timer_runs_while_idle: false,
    fast_retransmit_backs_off: false,
    counts_arrived_segments: false,
    reduces_gradually_for_marks: false,
    ns2_sack1_recovery: false,
    every_ack_leaves_pipe: false,
    first_segment_is_retransmitted_fast: false,
    one_fast_retransmit_per_window: false,
    limited_transmit_sends_one: false,
    partial_ack_keeps_timing: false,
    new_reno_burst: None,
    keeps_deflated_window: false,
    algorithms: AlgorithmRules::Rfc,
};

/// RFC 6928, section 2: min(10 * MSS, max(2 * MSS, 14600)).
pub(super) fn initial_window(mss: u32) -> u32 {
    (10 * mss).min((2 * mss).max(14_600))
}

pub(super) fn defaults() -> StackParams {
    StackParams {
        congestion_control: Profile::Rfc.congestion_control(),
        recovery: Recovery::NewReno,
        mss: 1460,
        derives_mss: true,
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
        ecn: false,
        mtu_probing: false,
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
        byte_counting: ByteCounting::PerAckedUpToOne,
        grow_only_when_limited: true,
        prr: false,
        hystart: false,
        halving: HalvingBasis::Flight,
        whole_ssthresh: false,
        option_bytes: OptionBytes::All,
        // RFC 5681, section 3.1: after a lost SYN, one segment.
        syn_retransmissions_keeping_window: 0,
        syn_linear_timeouts: 0,
        vegas: Arc::new(VegasParams::of(Profile::Rfc)),
        // Paper `medx`, section 2: α = 0.5, β = 1.2. The paper does not give the length: three
        // duplicates that indicate a loss, and one delay before them.
        medx: MedxParams {
            alpha: 0.5,
            beta: 1.2,
            buffer: 4,
            classifier: LossClassifier::OneWayDelay,
        },
        policy: POLICY,
    }
}
