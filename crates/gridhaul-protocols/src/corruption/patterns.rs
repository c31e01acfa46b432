//! Errors of several kinds.

/// Number of random errors.
const RANDOM_ERRORS: u32 = 20_000;

/// Bits of a burst.
const BURST_BITS: usize = 16;

/// Which bits are wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorPattern {
    /// One bit: each bit of the message in turn.
    EveryBit,
    /// Two bits at random places.
    TwoBits,
    /// A burst of 16 bits at each place, whose first and last bit are wrong, and the others at
    /// random.
    Burst,
}

impl ErrorPattern {
    /// All patterns.
    pub const ALL: [Self; 3] = [Self::EveryBit, Self::TwoBits, Self::Burst];

    /// Name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EveryBit => "1 bit",
            Self::TwoBits => "2 bits",
            Self::Burst => "burst of 16 bits",
        }
    }

    /// Calls `receive` with the message and each error of the pattern. The same seed gives the same
    /// errors.
    pub(super) fn apply(self, message: &[u8], seed: u64, receive: &mut dyn FnMut(&[u8])) {
        let mut corrupt = message.to_vec();
        let mut random = Random(seed);
        let bits = 8 * message.len();
        match self {
            Self::EveryBit => {
                for bit in 0..bits {
                    flip(&mut corrupt, bit);
                    receive(&corrupt);
                    flip(&mut corrupt, bit);
                }
            }
            Self::TwoBits => {
                for _ in 0..if bits < 2 { 0 } else { RANDOM_ERRORS } {
                    let first = random.below(bits);
                    // Another bit than the first one.
                    let second = (first + 1 + random.below(bits - 1)) % bits;
                    [first, second].into_iter().for_each(|bit| flip(&mut corrupt, bit));
                    receive(&corrupt);
                    [first, second].into_iter().for_each(|bit| flip(&mut corrupt, bit));
                }
            }
            Self::Burst => {
                for start in 0..(bits + 1).saturating_sub(BURST_BITS) {
                    let inner = random.next() as usize;
                    let wrong =
                        |bit: &usize| *bit == 0 || *bit == BURST_BITS - 1 || inner >> *bit & 1 == 1;
                    let wrong: Vec<_> = (0..BURST_BITS).filter(wrong).collect();
                    wrong.iter().for_each(|bit| flip(&mut corrupt, start + bit));
                    receive(&corrupt);
                    wrong.iter().for_each(|bit| flip(&mut corrupt, start + bit));
                }
            }
        }
    }
}

/// Flips a bit; bits are counted from the most significant one of the first byte, as on the link.
fn flip(message: &mut [u8], bit: usize) {
    message[bit / 8] ^= 0x80 >> (bit % 8);
}

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
struct Random(u64);

impl Random {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; messages are so short that the remainder is nearly uniform.
    const fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pattern_leaves_the_message_as_it_was() {
        let message = [0x5a; 20];
        for pattern in ErrorPattern::ALL {
            let mut count = 0;
            pattern.apply(&message, 3, &mut |corrupt| {
                let wrong = corrupt.iter().zip(&message).map(|(a, b)| (a ^ b).count_ones());
                let wrong: u32 = wrong.sum();
                match pattern {
                    ErrorPattern::EveryBit => assert_eq!(wrong, 1),
                    ErrorPattern::TwoBits => assert_eq!(wrong, 2),
                    ErrorPattern::Burst => assert!((2..=16).contains(&wrong)),
                }
                count += 1;
            });
            assert!(count >= 145, "{pattern:?}: {count}");
        }
        ErrorPattern::TwoBits.apply(&[], 1, &mut |_| panic!("there is no bit"));
        ErrorPattern::Burst.apply(&[0], 1, &mut |_| panic!("there is no space for a burst"));
    }
}
