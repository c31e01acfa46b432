//! Profiles of a stack: `rfc.rs` follows the RFCs, `linux.rs` lists the differences of current
//! Linux, and `ns2.rs` those of the one-way agents of ns-2.35.
//!
//! Parameters with a key in the scenario are fields of [`StackParams`]. Behaviour without a key is
//! a [`Policy`](super::rules::Policy); algorithms that Linux implements differently from their
//! specification have separate tables in `rules/`. The code that implements a policy cites the
//! source again.

mod linux;
mod ns2;
mod resolve;
mod rfc;

use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Profile, Recovery, Stack};

use super::congestion::Controller;
use super::params::StackParams;

/// Parameters and policy of a profile.
fn defaults(profile: Profile) -> StackParams {
    match profile {
        Profile::Rfc => rfc::defaults(),
        Profile::Linux => linux::defaults(),
        Profile::Ns2 => ns2::defaults(),
    }
}

/// Windows of a profile for the segment size of `params`, in bytes: receive window, initial window
/// and initial ssthresh; an absent ssthresh is the receive window.
fn windows(profile: Profile, params: &StackParams) -> (u32, u32, Option<u32>) {
    let mss = params.mss;
    match profile {
        Profile::Rfc => (params.receive_window, rfc::initial_window(mss), Some(u32::MAX)),
        Profile::Linux => (params.receive_window, linux::initial_window(mss), Some(u32::MAX)),
        Profile::Ns2 => (ns2::receive_window(mss), ns2::initial_window(mss), None),
    }
}

/// The loss recovery of a congestion control algorithm; modern algorithms use SACK where the stack
/// has it.
fn loss_recovery(profile: Profile, params: &StackParams) -> Recovery {
    if profile == Profile::Linux && linux::has_rack(params.congestion_control) {
        return if params.sack { Recovery::Rack } else { Recovery::NewReno };
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

/// Adapts parameters that depend on the congestion control algorithm and the recovery of a stack.
fn adapt(stack: &Stack, params: &mut StackParams) {
    if stack.profile == Profile::Ns2 {
        params.sack = stack.sack.unwrap_or(params.recovery == Recovery::Sack);
        ns2::adapt_to_agent(params);
    }
}
