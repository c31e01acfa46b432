//! What happens to segments between two nodes.

use std::collections::VecDeque;

use gridhaul_scenario::units::{Duration, Probability};
use proptest::prelude::*;

use super::Packet;
use crate::random::{RandomStream, Threshold};
use crate::tcp::Flags;

/// What happens to one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Impairment {
    Arrive,
    Lose,
    /// Arrives twice, the second time so many delays later.
    Twice(u8),
    /// Arrives so many delays late: others overtake it.
    Late(u8),
    /// Arrives without the second half of its payload, and without FIN.
    Cut,
}

/// Decides about segments in the order in which they are sent, on whatever hop.
#[derive(Debug, Clone)]
pub(super) enum Impairments {
    /// One after the other; behind the end all arrive.
    Schedule(VecDeque<Impairment>),
    /// At random; after so many segments, all arrive.
    RandomStream { random: RandomStream, loss: Threshold, other: Threshold, until: u64 },
}

impl Impairments {
    /// All arrive.
    pub(super) fn good() -> Self {
        Self::Schedule(VecDeque::new())
    }

    /// Loses segments with probability `loss`, and repeats, delays or cuts them with probability
    /// `other`, up to the segment number `until`.
    pub(super) fn random(seed: u64, loss: f64, other: f64, until: u64) -> Self {
        let threshold = |ratio| Probability::new(ratio).expect("a probability").into();
        let random = RandomStream::named(seed, 0, "chain", 0, "hops");
        Self::RandomStream { random, loss: threshold(loss), other: threshold(other), until }
    }

    pub(super) fn next(&mut self) -> Impairment {
        match self {
            Self::Schedule(fates) => fates.pop_front().unwrap_or(Impairment::Arrive),
            Self::RandomStream { until: 0, .. } => Impairment::Arrive,
            Self::RandomStream { random, loss, other, until } => {
                *until -= 1;
                if random.occurs(*loss) {
                    return Impairment::Lose;
                }
                if !random.occurs(*other) {
                    return Impairment::Arrive;
                }
                let delays = 1 + random.below(6) as u8;
                match random.below(4) {
                    0 => Impairment::Twice(delays),
                    1 => Impairment::Cut,
                    _ => Impairment::Late(delays),
                }
            }
        }
    }
}

/// Schedules of up to `len` segments.
pub(super) fn schedules(len: usize) -> impl Strategy<Value = Impairments> {
    let fate = prop_oneof![
        6 => Just(Impairment::Arrive),
        3 => Just(Impairment::Lose),
        1 => (0..8_u8).prop_map(Impairment::Twice),
        2 => (1..20_u8).prop_map(Impairment::Late),
        1 => Just(Impairment::Cut),
    ];
    prop::collection::vec(fate, 0..len).prop_map(|fates| Impairments::Schedule(fates.into()))
}

/// What arrives of a packet on a hop with this delay, and after what time.
pub(super) fn arrivals(
    packet: Packet,
    fate: Impairment,
    delay: Duration,
) -> Vec<(Duration, Packet)> {
    match fate {
        Impairment::Arrive => vec![(delay, packet)],
        Impairment::Lose => vec![],
        Impairment::Twice(delays) => {
            vec![(delay, packet.clone()), (delay + delay * u64::from(delays), packet)]
        }
        Impairment::Late(delays) => vec![(delay + delay * u64::from(delays), packet)],
        Impairment::Cut => vec![(delay, cut(packet))],
    }
}

fn cut(mut packet: Packet) -> Packet {
    if packet.segment.len > 1 {
        packet.segment.len /= 2;
        packet.segment.flags = packet.segment.flags.without(Flags::FIN);
        packet.bytes.truncate(packet.segment.len as usize);
    }
    packet
}
