//! Crashes, outages, handovers, changes of rates, attacks and events of `burst` loads that start
//! after the end of the run.

use super::{Link, Load, Node, Scenario};
use crate::units::Duration;

impl Scenario {
    /// Keys of crashes, outages, handovers, changes of rates, attacks and events of `burst` loads
    /// that start at or after the end of the run; in a sweep, those that do so at all points.
    pub(crate) fn keys_after_end(&self) -> Vec<String> {
        self.at_all_points(Self::keys_after_end_here)
    }

    fn keys_after_end_here(&self) -> Vec<String> {
        let crashes = self.node.iter().flat_map(|(name, node)| crashes(name, node));
        let events = self.link.iter().flat_map(|(name, link)| events(name, link));
        let attacks = self.attack.iter();
        let attacks = attacks.map(|(name, attack)| (format!("attack.{name}.start"), attack.start));
        let all = crashes.chain(events).chain(attacks).chain(self.burst_events());
        all.filter(|(_, start)| *start >= self.duration).map(|(key, _)| key).collect()
    }

    /// Key and time of the first event of each `burst` load.
    fn burst_events(&self) -> impl Iterator<Item = (String, Duration)> {
        self.flow.iter().filter_map(|(name, flow)| {
            let Load::Burst(burst) = &flow.load else { return None };
            Some((format!("flow.{name}.load.burst.at"), flow.start + burst.at))
        })
    }
}

/// Key and start time of each crash of a proxy.
fn crashes(name: &str, node: &Node) -> impl Iterator<Item = (String, Duration)> {
    let crashes = node.proxy.iter().flat_map(|proxy| &proxy.crash).enumerate();
    crashes.map(move |(index, crash)| (format!("node.{name}.proxy.crash[{index}].at"), crash.at))
}

/// Key and first start time of each outage of a link, of each change of its rates, and of its
/// handovers at stated times.
fn events(name: &str, link: &Link) -> impl Iterator<Item = (String, Duration)> {
    let handovers = link.handover.iter().flat_map(|handover| handover.at.iter()).enumerate();
    let handovers =
        handovers.map(move |(index, at)| (format!("link.{name}.handover.at[{index}]"), *at));
    let of_directions = link.given().flat_map(move |(suffix, direction)| {
        let outages = direction.outage.iter().map(|outage| outage.start).enumerate();
        let changes = direction.rate_change.iter().map(|change| change.at).enumerate();
        let key = format!("link.{name}.{suffix}");
        let outages = outages.map({
            let key = key.clone();
            move |(index, start)| (format!("{key}.outage[{index}].start"), start)
        });
        outages
            .chain(changes.map(move |(index, at)| (format!("{key}.rate_change[{index}].at"), at)))
    });
    of_directions.chain(handovers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(sweep: &str) -> Vec<String> {
        let text = format!(
            "title = 'late'\nduration = '10 s'\n{sweep}\n[node]\na = {{}}\nb = {{}}\n\
             u = {{ proxy = {{ mode = 'split', \
             crash = [{{ at = '9 s' }}, {{ at = '10 s' }}] }} }}\n\
             [link.one]\nfrom = 'a'\nto = 'u'\n\
             both = {{ rate = '1 Mbit/s', \
             outage = [{{ start = '12 s', length = '1 s', every = '2 s' }}] }}\n\
             [link.two]\nfrom = 'u'\nto = 'b'\nforward = {{ rate = '1 Mbit/s' }}\n\
             reverse = {{ rate = '1 Mbit/s', \
             outage = [{{ start = '9999 ms', length = '1 s' }}], \
             rate_change = [{{ at = '9 s', rate = '1 kbit/s' }}, \
             {{ at = '10500 ms', rate = '2 kbit/s' }}] }}\n\
             [flow.up]\nfrom = 'a'\nto = 'b'\nload = 'bulk'\n\
             [flow.gasp]\nfrom = 'a'\nto = 'b'\nstart = '6 s'\n\
             load.burst = {{ size = '1 kB', at = '4 s' }}\n\
             [attack.now]\nstart = '9 s'\nlength = '9 s'\naction.drop.link = 'one'\n\
             [attack.late]\nstart = '10600 ms'\nlength = '1 s'\naction.drop.link = 'one'\n"
        );
        Scenario::from_toml(&text, "late.toml").expect("a scenario").keys_after_end()
    }

    #[test]
    fn events_from_the_end_on_are_reported() {
        let expected = [
            "node.u.proxy.crash[1].at",
            "link.one.both.outage[0].start",
            "link.two.reverse.rate_change[1].at",
            "attack.late.start",
            "flow.gasp.load.burst.at",
        ];
        assert_eq!(keys(""), expected);
    }

    #[test]
    fn in_a_sweep_only_keys_after_the_end_of_every_point_are_reported() {
        assert_eq!(
            keys("sweep = [{ vary = { duration = ['10 s', '11 s'] } }]"),
            ["link.one.both.outage[0].start"]
        );
        assert_eq!(keys("sweep = [{ vary = { duration = ['10 s', '13 s'] } }]"), [""; 0]);
    }
}
