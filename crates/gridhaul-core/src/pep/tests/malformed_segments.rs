//! Segments that no correct host sends.

use gridhaul_scenario::units::Duration;
use proptest::prelude::*;

use crate::link::EcnCodePoint;
use crate::pep::Side;
use crate::tcp::{ClockOption, Flags, SackBlocks, Segment};

/// Up to `len` segments with arbitrary fields, their sides and the times between them. Sequence
/// numbers are often close to each other, so that segments pass the first checks.
pub(super) fn segments(len: usize) -> impl Strategy<Value = Vec<(Duration, Side, Segment)>> {
    let number =
        || prop_oneof![3 => 0..3_000_u32, 1 => u32::MAX - 3_000..=u32::MAX, 1 => any::<u32>()];
    let blocks = prop::collection::vec((number(), number()), 0..=SackBlocks::MAX);
    let numbers = (number(), number(), number());
    let rest = (0..2_000_u16, any::<u8>(), any::<u8>(), any::<Option<(u32, u32)>>(), any::<bool>());
    let segment = (numbers, blocks, rest).prop_map(|((seq, ack, window), blocks, rest)| {
        let (len, bits, header, timestamps, sack_permitted) = rest;
        let mut sack = SackBlocks::default();
        blocks.into_iter().for_each(|(left, right)| sack.push(left, right));
        let chosen = [(1, Flags::FIN), (2, Flags::SYN), (4, Flags::RST)];
        // Most segments have only the ACK flag.
        let rare = |mask: u8| bits & 0xf0 == 0 && bits & mask != 0;
        let flags = chosen.into_iter().filter(|&(mask, _)| rare(mask));
        let ack_bit = if bits & 8 == 0 { Flags::ACK } else { Flags::NONE };
        let flags = flags.fold(ack_bit, |flags, (_, flag)| flags.with(flag));
        let len = u32::from(len);
        let clock =
            if header & 1 == 0 { ClockOption::Timestamps } else { ClockOption::OneWayDelay };
        // Marks too, although a proxy has no connection with ECN.
        let ecn = EcnCodePoint::of_traffic_class(bits);
        let segment = Segment { seq, ack, len, window, timestamps, sack, ..Segment::default() };
        Segment { clock, sack_permitted, ecn, flags, header, ..segment }
    });
    let side = prop_oneof![Just(Side::Client), Just(Side::Server)];
    let wait = prop_oneof![0..3_u64, 0..3_000_u64].prop_map(Duration::from_millis);
    prop::collection::vec((wait, side, segment), 0..len)
}
