//! Keys of stacks without effect.

use super::super::{CongestionControlAlgorithm, Profile, Recovery, Scenario, Stack};
use super::{IneffectiveKey, Keys};

/// Finds the keys of stacks that have no effect.
pub(super) fn find(scenario: &Scenario, found: &mut Vec<IneffectiveKey>) {
    for (name, stack) in &scenario.stack {
        let mut keys = Keys { part: format!("stack.{name}"), found };
        keys_of_algorithms(stack, &mut keys);
        let reason = "it belongs to recovery `rack` and the recoveries of profile `linux`";
        keys.without_effect("prr", stack.prr.is_some() && !may_reduce_evenly(stack), reason);
        if stack.delayed_ack.is_some_and(|delay| delay.is_zero()) {
            let reason = "with `delayed_ack` 0 s, each segment is acknowledged at once";
            keys.without_effect("ack_every", stack.ack_every.is_some(), reason);
            keys.without_effect("quick_ack", stack.quick_ack.is_some(), reason);
        }
    }
}

/// Keys that belong to a congestion control, or that its algorithm does not use.
fn keys_of_algorithms(stack: &Stack, keys: &mut Keys<'_>) {
    use CongestionControlAlgorithm::{Cubic, Fixed, Medx, Vegas};
    let algorithm = stack.congestion_control.unwrap_or(stack.profile.congestion_control());
    let owned = [
        ("vegas_alpha", stack.vegas_alpha.is_some(), Vegas, "it belongs to `vegas`"),
        ("vegas_beta", stack.vegas_beta.is_some(), Vegas, "it belongs to `vegas`"),
        ("vegas_gamma", stack.vegas_gamma.is_some(), Vegas, "it belongs to `vegas`"),
        ("medx_alpha", stack.medx_alpha.is_some(), Medx, "it belongs to `medx`"),
        ("medx_beta", stack.medx_beta.is_some(), Medx, "it belongs to `medx`"),
        ("medx_buffer", stack.medx_buffer.is_some(), Medx, "it belongs to `medx`"),
        ("medx_classifier", stack.medx_classifier.is_some(), Medx, "it belongs to `medx`"),
        ("hystart", stack.hystart == Some(true), Cubic, "it belongs to `cubic`"),
        ("fixed_window", stack.fixed_window.is_some(), Fixed, "it belongs to `fixed`"),
    ];
    for (key, is_set, owner, reason) in owned {
        keys.without_effect(key, is_set && algorithm != owner, reason);
    }
    if algorithm == Fixed {
        let reason = "the window of `fixed` is constant";
        keys.without_effect("initial_window", stack.initial_window.is_some(), reason);
        keys.without_effect("initial_ssthresh", stack.initial_ssthresh.is_some(), reason);
    }
}

/// Whether the recovery of a stack may reduce the window evenly.
fn may_reduce_evenly(stack: &Stack) -> bool {
    match stack.recovery {
        None => stack.profile == Profile::Linux,
        Some(recovery) => recovery == Recovery::Rack,
    }
}
