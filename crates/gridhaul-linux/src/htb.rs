//! Shapers: the hierarchical token bucket of the kernel (`sch_htb`, tc-htb(8)).

use std::fmt::Write;

use gridhaul_scenario::units::{BitRate, Bytes, QueueLimit};

use crate::IpPrefix;

/// A hierarchical token bucket on a device: one class for each guaranteed rate, a default class for
/// all other packets, and a root class that limits their sum.
#[derive(Debug, Clone, PartialEq)]
pub struct Htb {
    /// Rate of the root class.
    pub rate: BitRate,
    /// Bytes that every class may send at once.
    pub burst: Bytes,
    /// Limit of the queue of every class.
    pub queue: QueueLimit,
    /// Bytes below the IP header, such as those of Ethernet, that do not count.
    pub link_header: u32,
    /// Classes with guaranteed rates. Their sum is at most `rate`.
    pub classes: Vec<HtbClass>,
}

/// A class of a [hierarchical token bucket](Htb).
#[derive(Debug, Clone, PartialEq)]
pub struct HtbClass {
    /// Guaranteed rate.
    pub rate: BitRate,
    /// Largest rate, including the rate that the class borrows from others.
    pub ceil: BitRate,
    /// Destination addresses of the packets that belong to the class. Packets belong to it as well
    /// if their priority is its [identifier](Htb::class_id).
    pub destinations: Vec<IpPrefix>,
}

/// Minor numbers of the root class, the default class, and the first class with a guaranteed rate.
const ROOT: u32 = 1;
const DEFAULT: u32 = 2;
const FIRST: u32 = 16;

/// Bytes that a class sends before the next class of the same priority has its turn: one packet, so
/// that the classes alternate as often as possible.
const QUANTUM: u32 = 1_600;

/// Least rate of the default class, in bit/s: `sch_htb` rejects a rate of zero.
const DEFAULT_RATE_MIN: u64 = 8;

/// Packets in a queue without a limit.
const UNLIMITED: u32 = 1_000_000;

impl Htb {
    /// Commands for `tc -batch` that install the shaper on a device; one line for each command. Run
    /// them with [`run_batch`](crate::run_batch).
    #[must_use]
    pub fn commands(&self, device: &str) -> String {
        // tc-stab(8).
        let size = match self.link_header {
            0 => String::new(),
            bytes => format!(" stab overhead -{bytes}"),
        };
        let mut lines =
            format!("qdisc add dev {device} root handle 1:{size} htb default {DEFAULT:x}\n");
        self.append_classes(device, &mut lines);
        let queue = self.queue_discipline();
        for id in [DEFAULT].into_iter().chain((FIRST..).take(self.classes.len())) {
            append(
                &mut lines,
                &format!("qdisc add dev {device} parent 1:{id:x} handle {id:x}: {queue}"),
            );
        }
        for (id, class) in (FIRST..).zip(&self.classes) {
            for destination in &class.destinations {
                // Filters of one preference have one protocol.
                let (protocol, field, preference) = if destination.address.is_ipv6() {
                    ("ipv6", "ip6", 2)
                } else {
                    ("ip", "ip", 1)
                };
                append(
                    &mut lines,
                    &format!(
                        "filter add dev {device} parent 1: protocol {protocol} prio {preference} \
                         u32 match {field} dst {destination} flowid 1:{id:x}"
                    ),
                );
            }
        }
        lines
    }

    /// Identifier of a class with a guaranteed rate, such as `1:10`, by its number from zero. A
    /// packet with this priority (`SO_PRIORITY`, or `meta priority` of nft(8)) belongs to it.
    #[must_use]
    pub fn class_id(number: usize) -> String {
        format!("1:{:x}", FIRST as usize + number)
    }

    fn append_classes(&self, device: &str, lines: &mut String) {
        let (rate, burst) = (self.rate.as_bits_per_sec(), self.burst.get());
        let mut class = |parent: &str, id: u32, (rate, ceil): (u64, u64), priority: u32| {
            append(
                lines,
                &format!(
                    "class add dev {device} parent 1:{parent} classid 1:{id:x} htb rate {rate}bit \
                     ceil {ceil}bit burst {burst} cburst {burst} quantum {QUANTUM} prio {priority}"
                ),
            );
        };
        let guaranteed: u64 = self.classes.iter().map(|class| class.rate.as_bits_per_sec()).sum();
        let root = ROOT.to_string();
        class("", ROOT, (rate, rate), 0);
        class(&root, DEFAULT, (rate.saturating_sub(guaranteed).max(DEFAULT_RATE_MIN), rate), 1);
        for (id, own) in (FIRST..).zip(&self.classes) {
            class(&root, id, (own.rate.as_bits_per_sec(), own.ceil.as_bits_per_sec()), 0);
        }
    }

    fn queue_discipline(&self) -> String {
        match self.queue {
            QueueLimit::Packets(packets) => format!("pfifo limit {packets}"),
            QueueLimit::Bytes(bytes) => format!("bfifo limit {}", bytes.get()),
            QueueLimit::Unlimited => format!("pfifo limit {UNLIMITED}"),
        }
    }
}

fn append(lines: &mut String, line: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(lines, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_its_rates_its_queue_and_a_filter_for_each_destination() {
        let htb = Htb {
            rate: BitRate::from_bits_per_sec(1_000_000),
            burst: Bytes::new(3_000),
            queue: QueueLimit::Packets(50),
            link_header: 14,
            classes: vec![HtbClass {
                rate: BitRate::from_bits_per_sec(400_000),
                ceil: BitRate::from_bits_per_sec(900_000),
                destinations: vec![
                    IpPrefix { address: [10, 2, 0, 0].into(), length: 16 },
                    IpPrefix { address: "fd00::".parse().unwrap(), length: 64 },
                ],
            }],
        };
        let burst = "burst 3000 cburst 3000 quantum 1600";
        let expected = format!(
            "qdisc add dev d root handle 1: stab overhead -14 htb default 2\n\
             class add dev d parent 1: classid 1:1 htb rate 1000000bit ceil 1000000bit {burst} \
             prio 0\n\
             class add dev d parent 1:1 classid 1:2 htb rate 600000bit ceil 1000000bit {burst} \
             prio 1\n\
             class add dev d parent 1:1 classid 1:10 htb rate 400000bit ceil 900000bit {burst} \
             prio 0\n\
             qdisc add dev d parent 1:2 handle 2: pfifo limit 50\n\
             qdisc add dev d parent 1:10 handle 10: pfifo limit 50\n\
             filter add dev d parent 1: protocol ip prio 1 u32 match ip dst 10.2.0.0/16 flowid \
             1:10\n\
             filter add dev d parent 1: protocol ipv6 prio 2 u32 match ip6 dst fd00::/64 flowid \
             1:10\n"
        );
        assert_eq!(htb.commands("d"), expected);
    }

    #[test]
    fn the_default_class_has_a_rate_although_all_of_it_is_guaranteed() {
        let rate = BitRate::from_bits_per_sec(1_000);
        let class = HtbClass { rate, ceil: rate, destinations: Vec::new() };
        let queue = QueueLimit::Bytes(Bytes::new(9_000));
        let (burst, classes) = (Bytes::new(1_500), vec![class]);
        let htb = Htb { rate, burst, queue, link_header: 0, classes };
        let commands = htb.commands("d");
        assert!(commands.contains("classid 1:2 htb rate 8bit ceil 1000bit"), "{commands}");
        assert!(commands.contains("bfifo limit 9000"), "{commands}");
        assert!(commands.contains("handle 1: htb default"), "{commands}");
    }
}
