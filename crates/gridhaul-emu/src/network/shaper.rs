//! Shapers as the kernel builds them: HTB (`sch_htb`) on the device where a direction begins, with a
//! class for each share and `u32` filters that know flows by their addresses.

use std::fmt::Write;

use gridhaul_scenario::scenario::{Scenario, Shaper};
use gridhaul_scenario::units::QueueLimit;

use super::address::{Address, Side};
use super::plan::FlowPlan;

/// A shaper and the numbers of the flows that have shares of it.
#[derive(Debug, Clone)]
pub(super) struct ShaperPlan {
    shaper: Shaper,
    flows: Vec<usize>,
}

/// Numbers of the classes: the whole, those without a share, and the first share.
const WHOLE: u32 = 1;
const OTHERS: u32 = 2;
const FIRST: u32 = 16;

/// What one class may send before the next of the same rank has its turn: one packet, for evenness.
const QUANTUM: u32 = 1_600;

/// Least rate of those without a share, if the guarantees leave nothing: HTB wants one above nothing.
const REST_MIN: u64 = 8;

impl ShaperPlan {
    pub(super) fn new(scenario: &Scenario, shaper: &Shaper) -> Self {
        let number = |name: &String| {
            scenario.flow.get_index_of(name).expect("a valid scenario shares among flows it has")
        };
        Self { flows: shaper.share.keys().map(number).collect(), shaper: shaper.clone() }
    }

    /// Lines for `tc -batch`.
    pub(super) fn commands(&self, device: &str, flows: &[FlowPlan]) -> String {
        let Shaper { rate, burst, share, .. } = &self.shaper;
        let (rate, burst) = (rate.as_bits_per_sec(), burst.get());
        let guaranteed: u64 = share.values().map(|share| share.guarantee.as_bits_per_sec()).sum();
        let mut lines = format!("qdisc add dev {device} root handle 1: htb default {OTHERS:x}\n");
        let mut class = |under: &str, id: u32, (rate, limit): (u64, u64), rank: u32| {
            let _ = writeln!(
                lines,
                "class add dev {device} parent 1:{under} classid 1:{id:x} htb rate {rate}bit \
                 ceil {limit}bit burst {burst} cburst {burst} quantum {QUANTUM} prio {rank}"
            );
        };
        class("", WHOLE, (rate, rate), 0);
        let under = WHOLE.to_string();
        class(&under, OTHERS, (rate.saturating_sub(guaranteed).max(REST_MIN), rate), 1);
        for (id, share) in (FIRST..).zip(share.values()) {
            let limit = share.limit.map_or(rate, |limit| limit.as_bits_per_sec());
            class(&under, id, (share.guarantee.as_bits_per_sec(), limit), 0);
        }
        for id in [OTHERS].into_iter().chain((FIRST..).take(share.len())) {
            let queue = self.queue();
            let _ =
                writeln!(lines, "qdisc add dev {device} parent 1:{id:x} handle {id:x}: {queue}");
        }
        for (id, &number) in (FIRST..).zip(&self.flows) {
            let family = flows[number].family;
            // What crosses here goes to one of its ends: data to the one, acknowledgements to the other.
            for side in [Side::From, Side::To] {
                let block = Address::block(number as u16, side, family);
                let (protocol, field, rank) = match family {
                    super::Family::V4 => ("ip", "ip", 1),
                    super::Family::V6 => ("ipv6", "ip6", 2),
                };
                let _ = writeln!(
                    lines,
                    "filter add dev {device} parent 1: protocol {protocol} prio {rank} u32 \
                     match {field} dst {block} flowid 1:{id:x}"
                );
            }
        }
        lines
    }

    fn queue(&self) -> String {
        match self.shaper.queue {
            QueueLimit::Packets(packets) => format!("pfifo limit {packets}"),
            QueueLimit::Bytes(bytes) => format!("bfifo limit {}", bytes.get()),
            QueueLimit::Unlimited => "pfifo limit 1000000".to_owned(),
        }
    }
}
