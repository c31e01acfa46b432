//! Fairness of admission by byte: connections that always have data share a buffer that is too small.

use proptest::prelude::*;

use super::super::ByteLimits;
use super::by_byte::Bench;
use super::{Case, Kind};

/// Messages of each connection.
const MESSAGES: usize = 30;

/// A connection offers the rest of its stream.
const ALL: usize = usize::MAX / 2;

proptest! {
    /// No connection is served twice while another one waits ([`Bench::unblock`] checks each turn). Turns accept as
    /// many bytes as are free, so connections do not receive equal shares: 14 of 30 messages were the least when the
    /// first connection had finished. The limit of a third excludes starvation; it is not derived.
    #[test]
    fn connections_share_the_buffer_and_the_reserve(
        connections in 2..7_usize,
        size in 2..200_u32,
        (own, more) in (0..400_u64, 0..400_u64),
        delivered in prop::collection::vec(20..500_u64, 1..8),
    ) {
        let largest = u64::from(size);
        let limits = ByteLimits::new(largest + own + more, largest + own, largest).unwrap();
        let streams = vec![vec![7; MESSAGES * size as usize]; connections];
        let upstream_of = vec![0; connections];
        let mut bench = Bench::new(Case { kind: Kind::Fixed(size), streams, upstream_of }, limits);
        for index in 0..connections {
            bench.offer(index, ALL);
        }
        // Each round delivers 20 bytes or more.
        let mut rounds = delivered.into_iter().cycle().take(MESSAGES * 200 * connections / 20 + 100);
        let complete = loop {
            let complete: Vec<_> = (0..connections).map(|it| bench.messages_of(it)).collect();
            if complete.contains(&MESSAGES) {
                break complete;
            }
            while bench.transmit(0) {}
            bench.deliver(0, rounds.next().expect("progress in each round"));
            while bench.unblock(ALL).is_some() {}
            bench.check();
        };
        let least = *complete.iter().min().unwrap();
        prop_assert!(least >= MESSAGES / 3, "the first connection has finished: {complete:?}");
    }
}
