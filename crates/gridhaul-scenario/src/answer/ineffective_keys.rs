//! Warnings about keys of a scenario that have no effect.

use super::Warning;
use crate::scenario::Scenario;

impl Scenario {
    /// Warnings about parts of the scenario that no flow uses and about keys without effect. The
    /// scenario is valid, but its author probably intended something else.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let keys = self.ineffective_proxy_keys().map(|(about, mode)| Warning {
            about,
            message: format!("this key has no effect: a proxy in mode `{mode}` does not use it"),
        });
        let other_keys = self.ineffective_keys().into_iter().map(|found| Warning {
            about: found.key,
            message: format!("this key has no effect: {}", found.reason),
        });
        let keys_of = |names: Vec<String>, about: fn(&str) -> String, message: &'static str| {
            names
                .into_iter()
                .map(move |name| Warning { about: about(&name), message: message.to_owned() })
        };
        keys.chain(other_keys)
            .chain(keys_of(
                self.unused_proxies(),
                |node| format!("node.{node}.proxy"),
                "this proxy has no effect: no TCP flow that it serves passes this node",
            ))
            .chain(keys_of(
                self.unused_aggregators(),
                |node| format!("node.{node}.aggregator"),
                "this aggregator has no effect: no TCP flow passes this node",
            ))
            .chain(keys_of(
                self.isolated_nodes(),
                |node| format!("node.{node}"),
                "this node has no effect: no link connects it",
            ))
            .chain(keys_of(
                self.unused_stacks(),
                |stack| format!("stack.{stack}"),
                "this stack has no effect: no flow, aggregator or proxy uses it",
            ))
            .chain(keys_of(
                self.unused_media(),
                |medium| format!("medium.{medium}"),
                "this medium has no effect: no link shares it",
            ))
            .chain(keys_of(
                self.keys_after_end(),
                str::to_owned,
                "this event has no effect: it starts after the end of the run (`duration`)",
            ))
            .collect()
    }
}
