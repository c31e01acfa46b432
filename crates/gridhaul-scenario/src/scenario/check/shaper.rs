//! Checks of shapers.

use super::Report;
use crate::scenario::route::Network;
use crate::scenario::{Hop, Link, Shaper};
use crate::units::{Bytes, QueueLimit};

/// Headers of IPv4 and UDP (RFC 791, RFC 768) and a byte: no packet is smaller.
const SMALLEST_PACKET: Bytes = Bytes::new(29);

impl Report<'_> {
    /// Checks the shapers of all directions; `network` is given if nodes and links are valid.
    pub(super) fn shapers(&mut self, network: Option<&Network<'_>>) {
        for (index, (name, link)) in self.scenario.link.iter().enumerate() {
            for (side, direction) in link.given() {
                let Some(shaper) = &direction.shaper else { continue };
                let key = format!("link.{name}.{side}.shaper");
                self.shaper(&key, shaper, link);
                let hops = match side {
                    "both" => vec![true, false],
                    side => vec![side == "forward"],
                };
                let hops: Vec<_> =
                    hops.into_iter().map(|forward| Hop { link: index, forward }).collect();
                self.shares_have_traffic(&key, shaper, &hops, network);
            }
        }
    }

    fn shaper(&mut self, key: &str, shaper: &Shaper, link: &Link) {
        let rate = shaper.rate.as_bits_per_sec();
        if rate == 0 {
            self.refuse(
                format!("{key}.rate"),
                "the rate of a shaper must be above 0",
                "write rate = \"3 Mbit/s\"; on = false switches the shaper off",
            );
        }
        if shaper.burst.get() == 0 {
            self.refuse(
                format!("{key}.burst"),
                "the burst size must be above 0",
                "write the size of one or two packets, such as \"3 kB\"",
            );
        }
        let holds_no_packet = match shaper.queue {
            QueueLimit::Packets(packets) => packets == 0,
            QueueLimit::Bytes(bytes) => bytes < SMALLEST_PACKET,
            QueueLimit::Unlimited => false,
        };
        if holds_no_packet {
            self.refuse(
                format!("{key}.queue"),
                "a shaper without a queue for a packet drops every packet",
                "write \"100 packets\", or leave it out",
            );
        }
        if self.scenario.link_members(link) > 1 {
            self.refuse(
                key,
                "the link exists once per member of a group",
                "move the shaper to a downstream link that exists once, or use `shared`",
            );
        }
        let mut guaranteed = 0_u64;
        for (flow, share) in &shaper.share {
            let location = format!("{key}.share.{flow}");
            if !self.scenario.flow.contains_key(flow) {
                self.unknown(&location, "flow", flow, &self.scenario.flow);
            }
            let own = share.guarantee.as_bits_per_sec();
            guaranteed = guaranteed.saturating_add(own);
            if own == 0 {
                self.refuse(
                    format!("{location}.guarantee"),
                    "the guarantee of a share must be above 0",
                    "write guarantee = \"100 kbit/s\", or remove the share",
                );
            }
            if let Some(limit) = share.limit
                && !(own..=rate).contains(&limit.as_bits_per_sec())
            {
                self.refuse(
                    format!("{location}.limit"),
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
                "reduce them, or increase `rate`",
            );
        }
    }

    /// Reports shares of flows that do not cross the direction: an error in a name or in a route.
    fn shares_have_traffic(
        &mut self,
        key: &str,
        shaper: &Shaper,
        hops: &[Hop],
        network: Option<&Network<'_>>,
    ) {
        let Some(network) = network else { return };
        for name in shaper.share.keys() {
            let Some(flow) = self.scenario.flow.get(name) else { continue };
            // A flow without a path is reported elsewhere.
            let Ok(routes) = network.routes(name, flow) else { continue };
            if !routes.forward.iter().chain(&routes.reverse).any(|hop| hops.contains(hop)) {
                self.refuse(
                    format!("{key}.share.{name}"),
                    format!(
                        "neither packets nor acknowledgements of `{name}` cross this direction"
                    ),
                    "remove the share, or route the flow here with `route` or `reverse_route`",
                );
            }
        }
    }
}
