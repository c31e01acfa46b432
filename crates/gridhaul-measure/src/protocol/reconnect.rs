//! Behaviour without a connection, as settings of a result.

use gridhaul_protocols::settings::ReconnectPolicy;

/// The policy of clients that may queue messages.
pub(super) fn reconnect_settings(policy: ReconnectPolicy) -> [(&'static str, String); 2] {
    let without = if policy.queue { "queue" } else { "refuse" };
    [("reconnect_after", after_text(policy)), ("without_connection", without.into())]
}

/// The time until the next attempt.
pub(super) fn after_text(policy: ReconnectPolicy) -> String {
    policy.after.map_or_else(|| "never".into(), |after| format!("{} s", after.as_secs_f64()))
}
