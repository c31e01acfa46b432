//! What of a scenario changes nothing, as warnings.

use super::Warning;
use crate::scenario::Scenario;

impl Scenario {
    /// Parts of the scenario that no flow uses, and keys without effect. They are no contradictions: a
    /// scenario is answered with them, but its author probably meant something else.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let keys = self.idle_proxy_keys().map(|(about, mode)| Warning {
            about,
            message: format!("a proxy in mode `{mode}` has no use for it: it changes nothing"),
        });
        let each = |names: Vec<String>, about: fn(&str) -> String, message: &'static str| {
            names
                .into_iter()
                .map(move |name| Warning { about: about(&name), message: message.to_owned() })
        };
        keys.chain(each(
            self.idle_proxies(),
            |node| format!("node.{node}.proxy"),
            "no TCP flow that it serves goes on from here: it changes nothing",
        ))
        .chain(each(
            self.idle_aggregators(),
            |node| format!("node.{node}.aggregator"),
            "no TCP flow goes on from here: it changes nothing",
        ))
        .chain(each(
            self.isolated_nodes(),
            |node| format!("node.{node}"),
            "no link begins or ends here: it changes nothing",
        ))
        .chain(each(
            self.unused_stacks(),
            |stack| format!("stack.{stack}"),
            "no flow, aggregator or proxy names it: it changes nothing",
        ))
        .chain(each(
            self.late_keys(),
            str::to_owned,
            "it begins when the run has ended (`duration`): it changes nothing",
        ))
        .collect()
    }
}
