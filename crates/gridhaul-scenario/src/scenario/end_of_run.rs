//! What a scenario lets happen only when its run has ended.

use super::{Link, Node, Scenario};
use crate::units::Duration;

impl Scenario {
    /// Keys of crashes and outages that begin when the run has ended. Where there is a sweep, they
    /// do so at all of its points.
    pub(crate) fn late_keys(&self) -> Vec<String> {
        self.at_all_points(Self::late_keys_here)
    }

    fn late_keys_here(&self) -> Vec<String> {
        let crashes = self.node.iter().flat_map(|(name, node)| crashes(name, node));
        let outages = self.link.iter().flat_map(|(name, link)| outages(name, link));
        let late = crashes.chain(outages).filter(|(_, begin)| *begin >= self.duration);
        late.map(|(key, _)| key).collect()
    }
}

/// Each crash of a proxy, and when it begins.
fn crashes(name: &str, node: &Node) -> impl Iterator<Item = (String, Duration)> {
    let crashes = node.proxy.iter().flat_map(|proxy| &proxy.crash).enumerate();
    crashes.map(move |(index, crash)| (format!("node.{name}.proxy.crash[{index}].at"), crash.at))
}

/// Each outage of a link, and when it begins for the first time.
fn outages(name: &str, link: &Link) -> impl Iterator<Item = (String, Duration)> {
    link.given().flat_map(move |(way, direction)| {
        let outages = direction.outage.iter().enumerate();
        outages.map(move |(index, outage)| {
            (format!("link.{name}.{way}.outage[{index}].start"), outage.start)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(sweep: &str) -> Vec<String> {
        let text = format!(
            "title = 'late'\nduration = '10 s'\n{sweep}\n[node]\na = {{}}\nb = {{}}\n\
             u = {{ proxy = {{ mode = 'split', crash = [{{ at = '9 s' }}, {{ at = '10 s' }}] }} }}\n\
             [link.one]\nfrom = 'a'\nto = 'u'\n\
             both = {{ rate = '1 Mbit/s', outage = [{{ start = '12 s', length = '1 s', every = '2 s' }}] }}\n\
             [link.two]\nfrom = 'u'\nto = 'b'\nforward = {{ rate = '1 Mbit/s' }}\n\
             reverse = {{ rate = '1 Mbit/s', outage = [{{ start = '9999 ms', length = '1 s' }}] }}\n\
             [flow.up]\nfrom = 'a'\nto = 'b'\nload = 'bulk'\n"
        );
        Scenario::from_toml(&text, "late.toml").expect("a scenario").late_keys()
    }

    #[test]
    fn what_begins_with_or_after_the_end_is_named() {
        assert_eq!(late(""), ["node.u.proxy.crash[1].at", "link.one.both.outage[0].start"]);
    }

    #[test]
    fn in_a_sweep_it_must_be_late_at_every_point() {
        assert_eq!(
            late("sweep = [{ vary = { duration = ['10 s', '11 s'] } }]"),
            ["link.one.both.outage[0].start"]
        );
        assert_eq!(late("sweep = [{ vary = { duration = ['10 s', '13 s'] } }]"), [""; 0]);
    }
}
