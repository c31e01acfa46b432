//! Stacks, media, nodes and aggregators that nothing uses.

use toml::Value;

use super::route::Network;
use super::{Scenario, Transport, Values};

impl Scenario {
    /// Names of the stacks that no flow, aggregator or proxy uses; in a sweep, at no point. A stack
    /// that a plan may choose counts as used.
    pub(crate) fn unused_stacks(&self) -> Vec<String> {
        let mut unused = self.at_all_points(Self::unused_stacks_here);
        unused.retain(|name| !self.plan_may_choose(name));
        unused
    }

    /// Names of the media that no link shares; in a sweep, at no point.
    pub(crate) fn unused_media(&self) -> Vec<String> {
        let mut unused = self.at_all_points(|point| {
            point.medium.keys().filter(|name| !point.shares_medium(name)).cloned().collect()
        });
        unused.retain(|name| !self.plan_may_choose(name));
        unused
    }

    /// Names of the nodes without links; in a sweep, at all points.
    pub(crate) fn isolated_nodes(&self) -> Vec<String> {
        self.at_all_points(Self::isolated_nodes_here)
    }

    /// Names of the aggregators that no TCP flow passes; in a sweep, at no point.
    pub(crate) fn unused_aggregators(&self) -> Vec<String> {
        self.at_all_points(Self::unused_aggregators_here)
    }

    fn unused_stacks_here(&self) -> Vec<String> {
        let flows = self.flow.values().flat_map(|flow| [&flow.stack, &flow.to_stack]);
        let nodes = self.node.values().flat_map(|node| {
            let aggregator = node.aggregator.as_ref().map(|aggregator| &aggregator.stack);
            aggregator.into_iter().chain(node.proxy.as_ref().map(|proxy| &proxy.stack))
        });
        let named: Vec<_> = flows.chain(nodes).flatten().collect();
        self.stack.keys().filter(|name| !named.contains(name)).cloned().collect()
    }

    fn isolated_nodes_here(&self) -> Vec<String> {
        let is_isolated = |name: &&String| {
            !self.link.values().any(|link| link.from == **name || link.to == **name)
        };
        self.node.keys().filter(is_isolated).cloned().collect()
    }

    fn unused_aggregators_here(&self) -> Vec<String> {
        let mut unused: Vec<_> =
            self.node.iter().filter(|(_, node)| node.aggregator.is_some()).collect();
        let network = (!unused.is_empty()).then(|| Network::new(self));
        let tcp = self.flow.iter().filter(|(_, flow)| flow.transport == Transport::Tcp);
        for (name, flow) in tcp {
            let Some(network) = network.as_ref().filter(|_| !unused.is_empty()) else { break };
            // A flow without a path is reported elsewhere.
            let Ok(stages) = network
                .routes(name, flow)
                .and_then(|routes| self.split_at_aggregators(name, flow, routes))
            else {
                continue;
            };
            let passed = |node: &str| stages[1..].iter().any(|stage| stage.from == node);
            unused.retain(|(node, _)| !passed(node));
        }
        unused.into_iter().map(|(name, _)| name.clone()).collect()
    }

    /// Whether a plan may choose this name as a value.
    fn plan_may_choose(&self, name: &str) -> bool {
        let lists = self.plan.iter().flat_map(|plan| plan.choose.values());
        lists.into_iter().any(|values| match values {
            Values::List(list) => list.iter().any(|value| mentions(value, name)),
            Values::Range(_) => false,
        })
    }
}

fn mentions(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => text == name,
        Value::Array(list) => list.iter().any(|value| mentions(value, name)),
        Value::Table(table) => table.values().any(|value| mentions(value, name)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(rest: &str) -> Scenario {
        let text = format!(
            "title = 'unused'\nduration = '1 s'\n{rest}\n\
             [node]\na = {{}}\nu = {{ aggregator = {{ stack = 'up' }} }}\nb = {{}}\nalone = {{}}\n\
             [link.one]\nfrom = 'a'\nto = 'u'\nboth = {{ rate = '1 Mbit/s' }}\n\
             [link.two]\nfrom = 'u'\nto = 'b'\nboth = {{ rate = '1 Mbit/s' }}\n\
             [stack.own]\n[stack.far]\n[stack.up]\n[stack.spare]\n"
        );
        Scenario::from_toml(&text, "unused.toml").expect("a scenario")
    }

    fn flow(from: &str) -> String {
        format!(
            "flow.f = {{ from = '{from}', to = 'b', stack = 'own', to_stack = 'far', load = \
             'bulk' }}"
        )
    }

    #[test]
    fn stacks_that_nothing_uses() {
        assert_eq!(scenario(&flow("a")).unused_stacks(), ["spare"]);
        let swept = "sweep = [{ vary = { 'flow.f.stack' = ['own', 'spare'] } }]\n";
        assert_eq!(scenario(&(swept.to_owned() + &flow("a"))).unused_stacks(), [""; 0]);
    }

    #[test]
    fn media_that_no_link_shares() {
        let media = "medium.alone.csma_ca = {}\n";
        assert_eq!(scenario(&(media.to_owned() + &flow("a"))).unused_media(), ["alone"]);
    }

    #[test]
    fn a_node_without_links_is_isolated() {
        assert_eq!(scenario(&flow("a")).isolated_nodes(), ["alone"]);
    }

    #[test]
    fn aggregators_that_no_tcp_flow_passes() {
        assert_eq!(scenario(&flow("a")).unused_aggregators(), [""; 0]);
        assert_eq!(
            scenario(&flow("u")).unused_aggregators(),
            ["u"],
            "a flow does not pass its own end"
        );
        let datagrams = "flow.f = { from = 'a', to = 'b', transport = 'datagram', \
                         load.periodic = { size = '50 B', every = '1 s' } }";
        assert_eq!(scenario(datagrams).unused_aggregators(), ["u"]);
        let swept = "sweep = [{ vary = { 'flow.f.from' = ['u', 'a'] } }]\n";
        assert_eq!(scenario(&(swept.to_owned() + &flow("u"))).unused_aggregators(), [""; 0]);
    }
}
