//! Profile `linux`: the differences of current Linux from the RFCs.

use std::sync::Arc;

use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Profile, Recovery};
use gridhaul_scenario::units::Duration;

use super::rfc;
use crate::tcp::params::{StackParams, VegasParams};
use crate::tcp::rules::{AlgorithmRules, ByteCounting, HalvingBasis, IdleRestart, Policy};

const POLICY: Policy = Policy {
    bare_handshake_ack: true,
    adaptive_delayed_ack: true,
    acknowledges_when_read: true,
    reports_duplicates: true,
    nagle_by_minshall: true,
    fills_super_segments: true,
    paces_bursts: true,
    idle_restart: IdleRestart::Decay,
    validates_window: true,
    whole_segment_window: true,
    fin_follows_sent_data: true,
    timer_wheel: true,
    random_timer_phase: true,
    // tcp_syn_retries, 6, and tcp_syn_linear_timeouts, 4, since Linux 6.5 (`tcp_write_timeout`):
    // the last retransmission after 67 s, the end after 131 s
    // (Documentation/networking/ip-sysctl.rst).
    syn_retransmissions_max: Some(10),
    timeout_sends_one_segment: true,
    smaller_segments_fill_window: true,
    counts_arrived_segments: true,
    reduces_gradually_for_marks: true,
    algorithms: AlgorithmRules::Linux,
    ..rfc::POLICY
};

/// Algorithms of Linux and those that gridhaul adds: all use the loss recovery of the kernel.
const IN_THE_KERNEL: [CongestionControlAlgorithm; 9] = [
    CongestionControlAlgorithm::Reno,
    CongestionControlAlgorithm::NewReno,
    CongestionControlAlgorithm::Sack,
    CongestionControlAlgorithm::Vegas,
    CongestionControlAlgorithm::Medx,
    CongestionControlAlgorithm::Veno,
    CongestionControlAlgorithm::Westwood,
    CongestionControlAlgorithm::Cubic,
    CongestionControlAlgorithm::Bbr,
];

pub(super) fn has_rack(congestion_control: CongestionControlAlgorithm) -> bool {
    IN_THE_KERNEL.contains(&congestion_control)
}

/// TCP_INIT_CWND: 10 segments, of any size.
pub(super) const fn initial_window(mss: u32) -> u32 {
    10 * mss
}

pub(super) fn defaults() -> StackParams {
    StackParams {
        congestion_control: Profile::Linux.congestion_control(),
        recovery: Recovery::Rack,
        prr: true,
        hystart: true,
        // snd_ssthresh and snd_cwnd count segments.
        whole_ssthresh: true,
        // tcp_rmem's upper default of 6 MB, half of it offered (tcp_adv_win_scale 1).
        receive_window: 3 << 20,
        // TCP_DELACK_MIN; TCP_DELACK_MAX is that of the RFCs.
        delayed_ack: Duration::from_millis(40),
        // TCP_MAX_QUICKACKS, 16, plus one because the window grows with the first segment
        // (tcp_grow_window: `quick |= 1`).
        quick_ack: 17,
        // TCP_RTO_MIN, and TCP_RTO_MAX of 120 s.
        rto_min: Duration::from_millis(200),
        rto_max: Duration::from_secs(120),
        clock_granularity: Duration::ZERO,
        rto_floor_on_variance: true,
        byte_counting: ByteCounting::PerAcked,
        halving: HalvingBasis::Cwnd,
        // A single retransmission of SYN may have been spurious.
        syn_retransmissions_keeping_window: 1,
        // tcp_syn_linear_timeouts.
        syn_linear_timeouts: 4,
        vegas: Arc::new(VegasParams::of(Profile::Linux)),
        policy: POLICY,
        ..rfc::defaults()
    }
}
