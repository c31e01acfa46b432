//! Initial sequence numbers (RFC 6528).

use std::hash::{Hash, Hasher};

use gridhaul_scenario::units::Instant;

use super::flow::Flow;

/// Generates initial sequence numbers: ISN = M + F(localip, localport, remoteip, remoteport,
/// secretkey) (RFC 6528, section 3). An attacker who sees those of its own connections cannot
/// predict those of others, and a new connection of the same flow has larger ones.
#[derive(Debug)]
pub(super) struct InitialSequenceNumbers {
    secret: [u64; 2],
}

impl InitialSequenceNumbers {
    pub(super) const fn new(secret: [u64; 2]) -> Self {
        Self { secret }
    }

    /// The number of a connection that is opened now. M advances every 4 microseconds.
    #[expect(deprecated, reason = "its successor has no key, and SipHash-2-4 is fixed by the name")]
    pub(super) fn next(&self, now: Instant, flow: &Flow) -> u32 {
        // A pseudorandom function with a key, as in Linux (`secure_tcp_seq`).
        let mut hash = std::hash::SipHasher::new_with_keys(self.secret[0], self.secret[1]);
        flow.local.hash(&mut hash);
        flow.peer.hash(&mut hash);
        let clock = now.as_nanos() / 4_000;
        (hash.finish() as u32).wrapping_add(clock as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_differ_by_flow_and_grow_with_time() {
        let numbers = InitialSequenceNumbers::new([1, 2]);
        let flow = |port| Flow {
            local: "192.0.2.1:4059".parse().unwrap(),
            peer: ([192, 0, 2, 9], port).into(),
        };
        let (one, two) = (flow(1_024), flow(1_025));
        let start = numbers.next(Instant::ZERO, &one);
        assert_ne!(start, numbers.next(Instant::ZERO, &two));
        assert_ne!(start, InitialSequenceNumbers::new([1, 3]).next(Instant::ZERO, &one));
        // 4 ms are a thousand steps.
        let later = numbers.next(Instant::from_nanos(4_000_000), &one);
        assert_eq!(later.wrapping_sub(start), 1_000);
    }
}
