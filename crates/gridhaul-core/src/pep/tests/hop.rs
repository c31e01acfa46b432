//! Impairments of segments between two nodes.

use std::collections::VecDeque;

use gridhaul_scenario::units::{Duration, Probability};
use proptest::prelude::*;

use super::Packet;
use crate::random::{RandomStream, Threshold};
use crate::tcp::Flags;

/// Impairment of one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Impairment {
    None,
    Drop,
    /// The segment arrives twice, the second time this many hop delays later.
    Duplicate(u8),
    /// The segment is delayed by this many hop delays, so that later segments overtake it.
    Delay(u8),
    /// The segment arrives without the second half of its payload, and without FIN.
    Truncate,
}

/// Impairments of segments in the order of transmission, over all hops.
#[derive(Debug, Clone)]
pub(super) enum Impairments {
    /// A given sequence, followed by no impairments.
    Schedule(VecDeque<Impairment>),
    /// Random impairments of the first `until` segments.
    Random { random: RandomStream, loss: Threshold, other: Threshold, until: u64 },
}

impl Impairments {
    /// No impairments.
    pub(super) fn none() -> Self {
        Self::Schedule(VecDeque::new())
    }

    /// Drops segments with probability `loss`, and duplicates, delays or truncates them with
    /// probability `other`, up to the segment number `until`.
    pub(super) fn random(seed: u64, loss: f64, other: f64, until: u64) -> Self {
        let threshold = |ratio| Probability::new(ratio).expect("a probability").into();
        let random = RandomStream::named(seed, 0, "chain", 0, "hops");
        Self::Random { random, loss: threshold(loss), other: threshold(other), until }
    }

    pub(super) fn next(&mut self) -> Impairment {
        match self {
            Self::Schedule(impairments) => impairments.pop_front().unwrap_or(Impairment::None),
            Self::Random { until: 0, .. } => Impairment::None,
            Self::Random { random, loss, other, until } => {
                *until -= 1;
                if random.occurs(*loss) {
                    return Impairment::Drop;
                }
                if !random.occurs(*other) {
                    return Impairment::None;
                }
                let delays = 1 + random.below(6) as u8;
                match random.below(4) {
                    0 => Impairment::Duplicate(delays),
                    1 => Impairment::Truncate,
                    _ => Impairment::Delay(delays),
                }
            }
        }
    }
}

/// Impairments of up to `len` segments.
pub(super) fn schedules(len: usize) -> impl Strategy<Value = Impairments> {
    let impairment = prop_oneof![
        6 => Just(Impairment::None),
        3 => Just(Impairment::Drop),
        1 => (0..8_u8).prop_map(Impairment::Duplicate),
        2 => (1..20_u8).prop_map(Impairment::Delay),
        1 => Just(Impairment::Truncate),
    ];
    prop::collection::vec(impairment, 0..len)
        .prop_map(|impairments| Impairments::Schedule(impairments.into()))
}

/// The packets that arrive over a hop with this delay, and their delays.
pub(super) fn arrivals(
    packet: Packet,
    impairment: Impairment,
    delay: Duration,
) -> Vec<(Duration, Packet)> {
    match impairment {
        Impairment::None => vec![(delay, packet)],
        Impairment::Drop => vec![],
        Impairment::Duplicate(delays) => {
            vec![(delay, packet.clone()), (delay + delay * u64::from(delays), packet)]
        }
        Impairment::Delay(delays) => vec![(delay + delay * u64::from(delays), packet)],
        Impairment::Truncate => vec![(delay, truncated(packet))],
    }
}

fn truncated(mut packet: Packet) -> Packet {
    if packet.segment.len > 1 {
        packet.segment.len /= 2;
        packet.segment.flags = packet.segment.flags.without(Flags::FIN);
        packet.bytes.truncate(packet.segment.len as usize);
    }
    packet
}
