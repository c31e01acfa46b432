//! Keys of stacks without effect.

use super::super::{CongestionControlAlgorithm, Profile, Recovery, Scenario, Stack};
use super::{IneffectiveKey, Keys};

/// Finds the keys of stacks that have no effect.
pub(super) fn find(scenario: &Scenario, found: &mut Vec<IneffectiveKey>) {
    for (name, stack) in &scenario.stack {
        let mut keys = Keys { part: format!("stack.{name}"), found };
        keys_of_algorithms(stack, &mut keys);
        let reason = "the key belongs to recovery `rack` and the recoveries of profile `linux`";
        keys.report_if(stack.prr.is_some() && !may_use_prr(stack), "prr", reason);
        if stack.delayed_ack.is_some_and(|delay| delay.is_zero()) {
            let reason = "with `delayed_ack` 0 s, each segment is acknowledged at once";
            keys.report_if(stack.ack_every.is_some(), "ack_every", reason);
            keys.report_if(stack.quick_ack.is_some(), "quick_ack", reason);
        }
    }
}

/// Keys that belong to a congestion control, or that its algorithm does not use.
fn keys_of_algorithms(stack: &Stack, keys: &mut Keys<'_>) {
    use CongestionControlAlgorithm::{Cubic, Fixed, Medx, Vegas};
    let algorithm = stack.congestion_control.unwrap_or(stack.profile.congestion_control());
    // `hystart = false` has an effect in no algorithm and is no mistake: it states the absence.
    let owned = [
        ("vegas_alpha", stack.vegas_alpha.is_some(), Vegas, "the key belongs to `vegas`"),
        ("vegas_beta", stack.vegas_beta.is_some(), Vegas, "the key belongs to `vegas`"),
        ("vegas_gamma", stack.vegas_gamma.is_some(), Vegas, "the key belongs to `vegas`"),
        ("medx_alpha", stack.medx_alpha.is_some(), Medx, "the key belongs to `medx`"),
        ("medx_beta", stack.medx_beta.is_some(), Medx, "the key belongs to `medx`"),
        ("medx_buffer", stack.medx_buffer.is_some(), Medx, "the key belongs to `medx`"),
        ("medx_classifier", stack.medx_classifier.is_some(), Medx, "the key belongs to `medx`"),
        ("hystart", stack.hystart == Some(true), Cubic, "the key belongs to `cubic`"),
        ("fixed_window", stack.fixed_window.is_some(), Fixed, "the key belongs to `fixed`"),
    ];
    for (key, is_set, owner, reason) in owned {
        keys.report_if(is_set && algorithm != owner, key, reason);
    }
    if algorithm == Fixed {
        let reason = "the window of `fixed` is constant";
        keys.report_if(stack.initial_window.is_some(), "initial_window", reason);
        keys.report_if(stack.initial_ssthresh.is_some(), "initial_ssthresh", reason);
    }
}

/// Whether the recovery of a stack may use proportional rate reduction (RFC 6937).
fn may_use_prr(stack: &Stack) -> bool {
    match stack.recovery {
        None => stack.profile == Profile::Linux,
        Some(recovery) => recovery == Recovery::Rack,
    }
}
