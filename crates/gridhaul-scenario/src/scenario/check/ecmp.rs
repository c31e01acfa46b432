//! Checks of equal-cost multipath.

use super::Report;
use crate::scenario::Node;

impl Report<'_> {
    pub(super) fn ecmp(&mut self, name: &str, node: &Node) {
        let key = format!("node.{name}.ecmp");
        if node.router.is_some() {
            self.refuse(
                &key,
                "the hybrid router of the node selects the links",
                "remove `ecmp`, or the table `router`",
            );
        } else if !self.scenario.has_parallel_links(name) {
            self.refuse(
                &key,
                "no two links lead from the node to the same other node",
                "add a second link between both, or remove `ecmp`",
            );
        }
    }
}
