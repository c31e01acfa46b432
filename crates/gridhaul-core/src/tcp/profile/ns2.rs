//! Profile `ns2`: the one-way agents of ns-2.35 (`tcl/lib/ns-default.tcl`).

use std::sync::Arc;

use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Profile, Recovery};
use gridhaul_scenario::units::Duration;

use super::rfc;
use crate::tcp::params::{StackParams, VegasParams};
use crate::tcp::rules::{ByteCounting, HalvingBasis, IdleRestart, OptionBytes, Policy};

const POLICY: Policy = Policy {
    one_way_open: true,
    syn_counts_as_data: true,
    delays_ack_of_last_duplicate: true,
    idle_restart: IdleRestart::OneSegment,
    timeout_forgets_sacks: true,
    timeout_keeps_duplicates: true,
    repeated_timeout_reduces: true,
    idle_since_last_ack: true,
    ns2_sack1_recovery: true,
    every_ack_leaves_pipe: true,
    first_segment_is_retransmitted_fast: true,
    one_fast_retransmit_per_window: true,
    limited_transmit_sends_one: true,
    partial_ack_keeps_timing: true,
    new_reno_burst: Some(2),
    keeps_deflated_window: true,
    ..rfc::POLICY
};

/// `window_` 20, which is also the initial ssthresh.
pub(super) const fn receive_window(mss: u32) -> u32 {
    20 * mss
}

/// `windowInit_` 2.
pub(super) const fn initial_window(mss: u32) -> u32 {
    2 * mss
}

pub(super) fn defaults() -> StackParams {
    StackParams {
        congestion_control: Profile::Ns2.congestion_control(),
        recovery: Recovery::GoBackN,
        // syn_ true and delay_growth_ true: one round trip before the data, as with a handshake.
        handshake: true,
        // TCPSink acknowledges every segment; `delayed_ack` selects TCPSink/DelAck.
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
        byte_counting: ByteCounting::PerAck,
        grow_only_when_limited: false,
        halving: HalvingBasis::Window,
        whole_ssthresh: true,
        option_bytes: OptionBytes::SackBlocks,
        vegas: Arc::new(VegasParams::of(Profile::Ns2)),
        policy: POLICY,
        ..rfc::defaults()
    }
}

/// ns-2's Vegas has a timer and an output routine of its own (`VegasTcpAgent::output`): it opens no
/// connection, and packet 0 is a data packet, which the sink acknowledges at once
/// (`SYN_immediate_ack_`).
pub(super) fn adapt_to_agent(params: &mut StackParams) {
    if params.congestion_control == CongestionControlAlgorithm::Vegas {
        params.policy.timer_runs_while_idle = true;
        params.policy.fast_retransmit_backs_off = true;
        params.handshake = false;
        params.quick_ack = 1;
    }
}
