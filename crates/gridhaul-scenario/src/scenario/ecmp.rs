//! Equal-cost multipath: parallel links between two nodes.

use super::{Hop, Scenario};

impl Scenario {
    /// The nodes with equal-cost multipath, as keys.
    pub fn ecmp_keys(&self) -> impl Iterator<Item = String> {
        let nodes = self.node.iter().filter(|(_, node)| node.ecmp);
        nodes.map(|(name, _)| format!("node.{name}.ecmp"))
    }

    /// The hops with which a path may leave the node of this hop instead, itself included, in the
    /// order of the file: a single one without equal-cost multipath.
    #[must_use]
    pub fn equal_hops(&self, hop: Hop) -> Vec<Hop> {
        let link = &self.link[hop.link];
        let [from, to] = if hop.forward { [&link.from, &link.to] } else { [&link.to, &link.from] };
        match self.node.get(from) {
            Some(node) if node.ecmp => self.hops_between(from, to),
            _ => vec![hop],
        }
    }

    /// All hops from one node to another, over one link each.
    fn hops_between(&self, from: &str, to: &str) -> Vec<Hop> {
        let hops = self.link.values().enumerate().filter_map(|(index, link)| {
            let is_forward = link.from == from && link.to == to;
            let is_reverse = link.from == to && link.to == from;
            let exists =
                is_forward && link.forward().is_some() || is_reverse && link.reverse().is_some();
            exists.then_some(Hop { link: index, forward: is_forward })
        });
        hops.collect()
    }

    /// Whether several links lead from this node to the same other node.
    pub(super) fn has_parallel_links(&self, from: &str) -> bool {
        self.node.keys().any(|to| self.hops_between(from, to).len() > 1)
    }
}
