//! Checks of hybrid routers.

use super::Report;
use crate::scenario::router_times::{
    detection_time_error, hold_time_error, probe_interval_error, probe_interval_max,
};
use crate::scenario::{HybridRouter, NAME_RULE, Node, Scenario};

/// Marks of packets have one byte for the link.
const LINKS_MAX: usize = 8;

impl Report<'_> {
    pub(super) fn hybrid_router(&mut self, name: &str, node: &Node, router: &HybridRouter) {
        let key = format!("node.{name}.router");
        if node.count > 1 {
            self.refuse(
                format!("node.{name}.count"),
                "a hybrid router is a single node",
                "write 1, or leave it out",
            );
        }
        if node.aggregator.is_some() || node.proxy.is_some() {
            self.refuse(
                &key,
                "a hybrid router forwards packets, and is no aggregator or proxy",
                "remove `aggregator` and `proxy`, or move the router to another node",
            );
        }
        self.hybrid_peer(&key, name, router);
        self.hybrid_links(&key, name, router);
        let detection_time = router.detection_time;
        let interval = format!(
            "write \"{}\"; for links that carry fewer probes, increase detection_time too",
            probe_interval_max(detection_time)
        );
        let times = [
            ("detection_time", detection_time_error(detection_time), "a usual value is \"1 s\""),
            ("hold_time", hold_time_error(router.hold_time), "a usual value is \"6 s\""),
            (
                "probe_interval",
                probe_interval_error(router.probe_interval, detection_time),
                &interval,
            ),
        ];
        for (name, error, remedy) in times {
            if let Some(message) = error {
                self.refuse(format!("{key}.{name}"), message, remedy);
            }
        }
        self.hybrid_classes(&key, router);
    }

    fn hybrid_classes(&mut self, key: &str, router: &HybridRouter) {
        for (name, class) in &router.class {
            let key = format!("{key}.class.{name}");
            if !Scenario::is_name(name) {
                self.refuse(&key, format!("{name:?} is not a valid name of a class"), NAME_RULE);
            }
            for (index, flow) in class.flows.iter().enumerate() {
                if !self.scenario.flow.contains_key(flow) {
                    let key = format!("{key}.flows[{index}]");
                    self.unknown(&key, "flow", flow, &self.scenario.flow);
                }
            }
            if class.flows.is_empty() && class.opened_by.is_none() && !class.acknowledgements {
                self.refuse(
                    &key,
                    "all packets match",
                    "add a condition, such as acknowledgements = true, or change `links` of the \
                     router",
                );
            }
            if class.links.is_empty() {
                self.refuse(format!("{key}.links"), "there is no link", "name links of the router");
            }
            for (index, link) in class.links.iter().enumerate() {
                if !router.links.contains(link) || class.links[..index].contains(link) {
                    self.refuse(
                        format!("{key}.links[{index}]"),
                        format!(
                            "expected a link of the router that is not named before, found {link:?}"
                        ),
                        format!("the links are {}", router.links.join(", ")),
                    );
                }
            }
        }
    }

    /// The peer names this node, and is on at the same time.
    fn hybrid_peer(&mut self, key: &str, name: &str, router: &HybridRouter) {
        let Some(peer) = self.scenario.node.get(&router.peer) else {
            return self.unknown(&format!("{key}.peer"), "node", &router.peer, &self.scenario.node);
        };
        if router.peer == name {
            return self.refuse(
                format!("{key}.peer"),
                "a hybrid router cannot be its own peer",
                "name the node at the other end of the links",
            );
        }
        let is_mutual =
            peer.router.as_ref().is_some_and(|other| other.peer == name && other.on == router.on);
        if !is_mutual {
            self.refuse(
                format!("{key}.peer"),
                format!("node {:?} has no hybrid router with this node as its peer", router.peer),
                format!(
                    "add [node.{}.router] with peer = {name:?}, and the same `on`",
                    router.peer
                ),
            );
        }
    }

    fn hybrid_links(&mut self, key: &str, name: &str, router: &HybridRouter) {
        let key = format!("{key}.links");
        if !(2..=LINKS_MAX).contains(&router.links.len()) {
            let found = router.links.len();
            self.refuse(
                &key,
                format!("expected 2 to {LINKS_MAX} links, found {found}"),
                "name the links to the peer",
            );
        }
        for (index, link_name) in router.links.iter().enumerate() {
            let key = format!("{key}[{index}]");
            let Some(link) = self.scenario.link.get(link_name) else {
                self.unknown(&key, "link", link_name, &self.scenario.link);
                continue;
            };
            let ends = [link.from.as_str(), link.to.as_str()];
            // A peer that does not exist is reported once, not for each link.
            let has_peer = self.scenario.node.contains_key(&router.peer) && router.peer != name;
            if has_peer && !(ends.contains(&name) && ends.contains(&router.peer.as_str())) {
                self.refuse(
                    &key,
                    format!("link {link_name:?} does not connect this node and its peer"),
                    "name a link between both routers",
                );
            } else if router.links[..index].contains(link_name) {
                self.refuse(&key, format!("{link_name:?} is named twice"), "name each link once");
            }
        }
        let peer = self.scenario.node.get(&router.peer).and_then(|peer| peer.router.as_ref());
        let differs = peer.is_some_and(|peer| {
            peer.links.len() != router.links.len()
                || router.links.iter().any(|link| !peer.links.contains(link))
        });
        if differs {
            self.refuse(
                &key,
                "the peer has other links",
                "name the same links at both routers, in any order",
            );
        }
    }
}
