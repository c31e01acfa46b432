//! The share of a sweep that one process computes.

use std::str::FromStr;

/// Every `count`-th part of a sweep, beginning with the part `number` (from 1): a part is a run or,
/// where results decide about further replications, a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    number: u32,
    /// Number of shards.
    count: u32,
}

impl Shard {
    /// The whole sweep.
    pub const ALL: Self = Self { number: 1, count: 1 };

    /// A shard; `None` if the number is not between 1 and `count`.
    #[must_use]
    pub fn new(number: u32, count: u32) -> Option<Self> {
        (1..=count).contains(&number).then_some(Self { number, count })
    }

    /// Number of parts of the shard, of so many of the sweep.
    pub(super) const fn count_of(self, parts: u64) -> u64 {
        parts.saturating_sub(self.first()).div_ceil(self.count as u64)
    }

    /// The number in the sweep of the part at an index of the shard.
    pub(super) const fn part(self, index: u64) -> u64 {
        self.first() + index * self.count as u64
    }

    const fn first(self) -> u64 {
        (self.number - 1) as u64
    }
}

impl FromStr for Shard {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let shard =
            parts.and_then(|(number, count)| Self::new(number.parse().ok()?, count.parse().ok()?));
        shard.ok_or_else(|| {
            "expected NUMBER/COUNT with a number from 1 to the count, such as 3/100".to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_belongs_to_one_shard() {
        let shards: Vec<Shard> = (1..=3).map(|number| Shard::new(number, 3).unwrap()).collect();
        for runs in 0..20 {
            let of_shard = |shard: &Shard| {
                let shard = *shard;
                (0..shard.count_of(runs)).map(move |run| shard.part(run))
            };
            let mut all: Vec<u64> = shards.iter().flat_map(of_shard).collect();
            all.sort_unstable();
            assert_eq!(all, (0..runs).collect::<Vec<_>>());
        }
        assert_eq!((shards[1].part(0), shards[1].part(1)), (1, 4));
        assert_eq!((Shard::ALL.part(7), Shard::ALL.count_of(7)), (7, 7));
    }

    #[test]
    fn a_shard_is_a_number_and_a_count() {
        assert_eq!("3/100".parse(), Ok(Shard { number: 3, count: 100 }));
        for text in ["0/3", "4/3", "1", "a/b", "1/0"] {
            assert!(text.parse::<Shard>().is_err_and(|error| error.contains("3/100")), "{text}");
        }
    }
}
