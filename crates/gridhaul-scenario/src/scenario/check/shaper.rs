//! Contradictions in shapers.

use super::Report;
use crate::scenario::route::Network;
use crate::scenario::{Hop, Link, Shaper};
use crate::units::{Bytes, QueueLimit};

impl Report<'_> {
    /// Shapers of all directions; `network` where nodes and links are known to be right.
    pub(super) fn shapers(&mut self, network: Option<&Network<'_>>) {
        for (index, (name, link)) in self.scenario.link.iter().enumerate() {
            for (way, direction) in link.given() {
                let Some(shaper) = &direction.shaper else { continue };
                let key = format!("link.{name}.{way}.shaper");
                self.shaper(&key, shaper, link);
                let hops = match way {
                    "both" => vec![true, false],
                    way => vec![way == "forward"],
                };
                let hops: Vec<_> =
                    hops.into_iter().map(|forward| Hop { link: index, forward }).collect();
                self.shares_are_crossed(&key, shaper, &hops, network);
            }
        }
    }

    fn shaper(&mut self, key: &str, shaper: &Shaper, link: &Link) {
        let rate = shaper.rate.as_bits_per_sec();
        if rate == 0 {
            self.refuse(
                format!("{key}.rate"),
                "packets must be able to leave",
                "write rate = \"3 Mbit/s\"; on = false is as if the shaper were not there",
            );
        }
        if shaper.burst.get() == 0 {
            self.refuse(
                format!("{key}.burst"),
                "a burst of nothing lets no packet through",
                "write the size of a packet or two, such as \"3 kB\"",
            );
        }
        if matches!(shaper.queue, QueueLimit::Packets(0))
            || shaper.queue == QueueLimit::Bytes(Bytes::new(0))
        {
            self.refuse(
                format!("{key}.queue"),
                "a shaper without room drops every packet",
                "write \"100 packets\", or leave it out",
            );
        }
        if self.scenario.link_members(link) > 1 {
            self.refuse(
                key,
                "the link stands for several, one for each member of a group",
                "a shaper stands before one link: put it on the link behind, or use `shared`",
            );
        }
        let mut guaranteed = 0_u64;
        for (flow, share) in &shaper.share {
            let place = format!("{key}.share.{flow}");
            if !self.scenario.flow.contains_key(flow) {
                self.unknown(&place, "flow", flow, &self.scenario.flow);
            }
            let own = share.guarantee.as_bits_per_sec();
            guaranteed = guaranteed.saturating_add(own);
            if own == 0 {
                self.refuse(
                    format!("{place}.guarantee"),
                    "a share of nothing is no share",
                    "write guarantee = \"100 kbit/s\", or remove the share",
                );
            }
            if let Some(limit) = share.limit
                && !(own..=rate).contains(&limit.as_bits_per_sec())
            {
                self.refuse(
                    format!("{place}.limit"),
                    format!(
                        "{limit} is not between the guarantee ({}) and the rate of the shaper ({})",
                        share.guarantee, shaper.rate
                    ),
                    "write a rate between the two, or leave it out",
                );
            }
        }
        if guaranteed > rate {
            self.refuse(
                format!("{key}.share"),
                format!("the guarantees add up to more than the rate ({})", shaper.rate),
                "lower them, or raise `rate`",
            );
        }
    }

    /// A share of a flow that never comes here is a mistake in its name or in a route.
    fn shares_are_crossed(
        &mut self,
        key: &str,
        shaper: &Shaper,
        hops: &[Hop],
        network: Option<&Network<'_>>,
    ) {
        let Some(network) = network else { return };
        for name in shaper.share.keys() {
            let Some(flow) = self.scenario.flow.get(name) else { continue };
            // A flow without a way is told elsewhere.
            let Ok(routes) = network.routes(name, flow) else { continue };
            if !routes.forward.iter().chain(&routes.reverse).any(|hop| hops.contains(hop)) {
                self.refuse(
                    format!("{key}.share.{name}"),
                    format!(
                        "neither packets nor acknowledgements of `{name}` cross this direction"
                    ),
                    "remove the share, or lead the flow here with `route` or `reverse_route`",
                );
            }
        }
    }
}
