//! Tests of directions and link sets through their public interface.

mod aqm;
mod attacks;
mod conservation;
mod impairments;
mod load_latency;
mod medium;
mod queue_length;
mod scheduler;
mod set;
mod timing;
mod trace;

use gridhaul_scenario::scenario::{Direction, Dscp};
use gridhaul_scenario::units::{BitRate, Duration, Instant, Probability, QueueLimit};

use super::{LinkDirection, LinkPayload, LinkRandomStreams, PacketTransit};

/// Numbered packets of three flows, each with its code point.
impl LinkPayload for u32 {
    fn flow(&self) -> u64 {
        u64::from(*self) % 3
    }

    fn code_point(&self) -> Option<Dscp> {
        Dscp::new(CODE_POINTS[self.flow() as usize])
    }
}

/// Code points of the three flows: expedited and assured forwarding, and the default.
const CODE_POINTS: [u8; 3] = [46, 10, 0];

/// 8 Mbit/s: a byte takes a microsecond.
fn one_byte_a_microsecond(delay_us: u64, queue: QueueLimit) -> Direction {
    let rate = BitRate::from_bits_per_sec(8_000_000);
    Direction { queue, ..Direction::new(rate, Duration::from_micros(delay_us)) }
}

fn link(direction: &Direction) -> LinkDirection<u32> {
    LinkDirection::new(direction, LinkRandomStreams::named(1, 0, "link.forward", 0))
}

fn at(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

fn p(ratio: f64) -> Probability {
    Probability::new(ratio).unwrap()
}

/// All departing packets, in order.
fn drain(link: &mut LinkDirection<u32>) -> Vec<PacketTransit<u32>> {
    let mut left = Vec::new();
    while let Some(transit) = link.poll_output(link.next_deadline()) {
        left.push(transit);
    }
    left
}
