//! Full segments, and the links that limit their size: by their MTU, and by clamping the maximum
//! segment sizes that handshakes offer.

use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{Direction, Hop, PacketTooBig, Scenario, Stage, Transport};
use gridhaul_scenario::units::Bytes;

use super::StackParams;

/// Timestamps option with padding (RFC 7323, section 3.2 and appendix A).
pub(super) const CLOCK_OPTION: u32 = 12;

/// The paths between a sender of data and its peer.
#[derive(Debug, Clone, Copy)]
pub struct SegmentPaths<'a> {
    /// Path of the data.
    pub data: &'a [Hop],
    /// Path of the acknowledgements, and of the SYN with the maximum segment size that the peer
    /// offers.
    pub reverse: &'a [Hop],
}

impl StackParams {
    /// Lowers the segment size of a sender to the one that its handshake yields (RFC 9293, section
    /// 3.7.1): the peer offers its own, which is that of its stack; both ends know the MTU of their
    /// own links, unless the stack states its segment size and the link has no `packet_too_big`;
    /// and routers clamp the size that the peer offers.
    pub fn negotiate_mss(
        &mut self,
        scenario: &Scenario,
        paths: SegmentPaths<'_>,
        peer: &StackParams,
    ) {
        if !self.policy.one_way_open {
            // The one-way agents of ns-2 offer no size.
            self.lower_mss(peer.mss);
        }
        let (options, derives_mss) = (self.option_bytes(), self.derives_mss);
        let own_links = [paths.data, paths.reverse].into_iter().filter_map(|path| path.first());
        let own_links = own_links.filter_map(|hop| {
            let direction = hop.direction(scenario);
            let is_known = derives_mss || direction.packet_too_big.is_some();
            let mtu = direction.mtu.filter(|_| is_known)?;
            Some(mtu.get().saturating_sub(u64::from(self.header + options)))
        });
        let clamps = paths.reverse.iter().filter_map(|hop| {
            let clamp = hop.direction(scenario).mss_clamp?;
            Some(clamp.get().saturating_sub(u64::from(options)))
        });
        if let Some(mss) = own_links.chain(clamps).min() {
            self.lower_mss(u32::try_from(mss).unwrap_or(u32::MAX).max(1));
        }
    }

    /// Bytes of TCP options in each full segment.
    const fn option_bytes(&self) -> u32 {
        if self.has_clock_option() { CLOCK_OPTION } else { 0 }
    }
}

/// A link that is too small for the full segments of a sender.
struct SmallLink<'a> {
    /// Key of the stack of the sender.
    stack_key: String,
    hop: Hop,
    direction: &'a Direction,
    mtu: Bytes,
    /// Size of a full segment with headers and options.
    packet: u64,
    /// Largest payload that fits.
    mss: u64,
    has_return_path: bool,
}

/// The stacks whose full segments exceed the MTU of a link on the path of their data, unless the
/// link has a response to such packets that reaches their sender.
#[must_use]
pub fn oversized_segments(scenario: &Scenario) -> Vec<Unsupported> {
    let small = scenario.flow.keys().flat_map(|name| small_links(scenario, name));
    let mut found: Vec<_> = small.filter_map(|link| unsupported(scenario, link)).collect();
    found.dedup();
    found
}

/// Whether segments of a flow exceed the MTU of a link, so that their sender has to discover the
/// MTU of the path.
#[must_use]
pub fn discovers_path_mtu(scenario: &Scenario, flow: &str) -> bool {
    !small_links(scenario, flow).is_empty()
}

fn unsupported(scenario: &Scenario, link: SmallLink<'_>) -> Option<Unsupported> {
    let SmallLink { packet, mtu, mss, .. } = link;
    let name = scenario.link.get_index(link.hop.link).map_or("", |(name, _)| name.as_str());
    let side = if link.hop.forward { "forward" } else { "reverse" };
    let (key, reason) = match link.direction.packet_too_big {
        None => (
            link.stack_key,
            format!(
                "a full segment has {packet} B, and link.{name}.{side}.mtu is {mtu}: write mss = \
                 \"{mss} B\" in the stack, or packet_too_big = \"icmp\" in the link for path-MTU \
                 discovery"
            ),
        ),
        Some(PacketTooBig::Icmp) if !link.has_return_path => (
            format!("link.{name}.{side}.packet_too_big"),
            format!(
                "the reverse path does not pass node `{}`, so that its reports have no path to \
                 the sender: route the reverse path through it, or write \"black_hole\"",
                link.hop.source(scenario)
            ),
        ),
        Some(_) => return None,
    };
    Some(Unsupported { key, reason })
}

/// The links that are too small for the full segments of a flow.
fn small_links<'a>(scenario: &'a Scenario, name: &str) -> Vec<SmallLink<'a>> {
    let flow = &scenario.flow[name];
    if flow.transport != Transport::Tcp || !scenario.has_mtu() {
        return Vec::new();
    }
    let mut found = Vec::new();
    // A flow without a path is invalid, which is reported elsewhere.
    let stages = scenario.stages(name).unwrap_or_default();
    for (number, stage) in stages.iter().enumerate() {
        let is_last = number + 1 == stages.len();
        let Stage { forward, reverse, stack, ip, .. } = stage;
        let paths = SegmentPaths { data: forward, reverse };
        let to_stack = flow.to_stack.as_ref().filter(|_| is_last).or(stack.as_ref());
        let [from, to] =
            [stack.as_ref(), to_stack].map(|stack| StackParams::named(scenario, stack, *ip));
        let mut params = from.clone();
        params.negotiate_mss(scenario, paths, &to);
        let key = format!("flow.{name}.stack");
        found.extend(small_link(scenario, &key, &params, paths));
        if flow.load.is_two_way() {
            let paths = SegmentPaths { data: reverse, reverse: forward };
            let mut params = to;
            params.negotiate_mss(scenario, paths, &from);
            let key = format!("flow.{name}.to_stack");
            found.extend(small_link(scenario, &key, &params, paths));
        }
    }
    found
}

/// The first link on the path of the data that is too small for the segments of a stack.
fn small_link<'a>(
    scenario: &'a Scenario,
    stack_key: &str,
    params: &StackParams,
    paths: SegmentPaths<'_>,
) -> Option<SmallLink<'a>> {
    let headers = u64::from(params.header + params.option_bytes());
    let packet = u64::from(params.mss) + headers;
    paths.data.iter().find_map(|&hop| {
        let direction = hop.direction(scenario);
        let mtu = direction.mtu.filter(|mtu| mtu.get() < packet)?;
        let node = hop.source(scenario);
        Some(SmallLink {
            stack_key: stack_key.to_owned(),
            hop,
            direction,
            mtu,
            packet,
            mss: mtu.get().saturating_sub(headers),
            has_return_path: paths.reverse.iter().any(|hop| hop.source(scenario) == node),
        })
    })
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::{IpVersion, Profile, Stack};

    use super::*;

    /// Segment sizes of both ends of a flow over a link with these keys.
    fn sizes(stacks: &str, link: &str) -> [u32; 2] {
        let text = format!(
            "title = 'sizes'\nduration = '1 s'\nnode = {{ a = {{}}, b = {{}} }}\nlink.l = {{ from \
             = 'a', to = 'b', both = {{ rate = '1 Mbit/s', delay = '1 ms'{link} }} }}\nflow.f = {{ \
             from = 'a', to = 'b', load = 'bulk', stack = 'own', to_stack = 'far' }}\n{stacks}"
        );
        let scenario = Scenario::from_toml(&text, "sizes.toml").expect("a scenario");
        let named =
            |name: &str| StackParams::named(&scenario, Some(&name.to_owned()), IpVersion::V4);
        let (own, far) = (named("own"), named("far"));
        let [forward, reverse] = [true, false].map(|forward| [Hop { link: 0, forward }]);
        let size = |mut params: StackParams, data, reverse, peer: &StackParams| {
            params.negotiate_mss(&scenario, SegmentPaths { data, reverse }, peer);
            params.mss
        };
        [size(own.clone(), &forward, &reverse, &far), size(far, &reverse, &forward, &own)]
    }

    /// RFC 9293, section 3.7.1: a sender uses the size that its peer offers, if that is smaller.
    #[test]
    fn the_smaller_segment_size_of_both_ends_counts() {
        let stacks = "stack = { own = {}, far = { mss = '536 B' } }";
        assert_eq!(sizes(stacks, ""), [536, 536]);
        let ns2 = "stack.own.profile = 'ns2'\nstack.far = { profile = 'ns2', mss = '536 B' }";
        let own = StackParams::resolve(&Stack { profile: Profile::Ns2, ..Stack::default() }).mss;
        assert_eq!(sizes(ns2, ""), [own, 536], "agents of ns-2 offer no size");
    }

    /// RFC 9293, section 3.7.1: the sender deducts its options, here 12 B of timestamps.
    #[test]
    fn a_stack_without_a_segment_size_derives_it_from_its_link() {
        let stacks = "stack = { own = {}, far = { timestamps = false } }";
        assert_eq!(sizes(stacks, ", mtu = '1500 B'"), [1_448, 1_460]);
        let stated = "stack = { own = { mss = '1460 B' }, far = { mss = '1460 B' } }";
        assert_eq!(sizes(stated, ", mtu = '1500 B'"), [1_460, 1_460]);
        let known = ", mtu = '1500 B', packet_too_big = 'icmp'";
        assert_eq!(sizes(stated, known), [1_448, 1_448]);
    }
}
