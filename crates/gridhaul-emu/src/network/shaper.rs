//! Shapers of the scenario as token buckets of the kernel: one class for each share, with a filter
//! on the destination addresses of its flow.

use gridhaul_linux::{Htb, HtbClass};
use gridhaul_scenario::scenario::{FlowEnd, Scenario, Shaper, ShaperShare};

use super::address::Address;
use super::flow_layout::FlowLayout;

/// The token bucket of a shaper.
pub(super) fn token_bucket(scenario: &Scenario, shaper: &Shaper, flows: &[FlowLayout]) -> Htb {
    let class = |(name, share): (&String, &ShaperShare)| {
        let number =
            scenario.flow.get_index_of(name).expect("a valid scenario shares among flows it has");
        let family = flows[number].family;
        // A link carries data to one end of the flow, and acknowledgements to the other.
        let destinations =
            [FlowEnd::From, FlowEnd::To].map(|side| Address::block(number as u16, side, family));
        HtbClass {
            rate: share.guarantee,
            ceil: share.limit.unwrap_or(shaper.rate),
            destinations: destinations.to_vec(),
        }
    };
    Htb {
        rate: shaper.rate,
        burst: shaper.burst,
        queue: shaper.queue,
        link_header: 0,
        classes: shaper.share.iter().map(class).collect(),
    }
}
