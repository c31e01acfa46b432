//! Loss on the way, after the wire has been used.

use std::collections::VecDeque;

use gridhaul_scenario::scenario;

use super::LinkRandomStreams;
use super::gilbert_elliott::GilbertElliott;
use crate::random::BernoulliTrial;

/// Decides which packets are lost on the way. Asked once for each packet that leaves the wire.
#[derive(Debug, Clone)]
pub(super) enum Loss {
    /// Never loses.
    None,
    /// Loses each packet independently.
    Bernoulli(BernoulliTrial),
    /// Loses with a memory; apart, to keep plain links small.
    Other(Box<OtherLoss>),
}

/// Loss that remembers.
#[derive(Debug, Clone)]
pub(super) enum OtherLoss {
    /// Loses in bursts.
    GilbertElliott(GilbertElliott),
    /// Loses the listed packets.
    Listed(Listed),
}

/// Packets to lose, counted from 1 as they leave the wire.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    seen: u64,
    /// In order.
    to_lose: VecDeque<u64>,
}

impl Loss {
    /// The loss of a direction.
    pub(super) fn new(loss: Option<&scenario::Loss>, random: LinkRandomStreams) -> Self {
        match loss {
            None => Self::None,
            Some(scenario::Loss::Bernoulli(probability)) => {
                Self::Bernoulli(BernoulliTrial::new(*probability, random.stream("loss")))
            }
            Some(scenario::Loss::GilbertElliott(channel)) => {
                let (moves, losses) = (random.stream("loss state"), random.stream("loss"));
                let channel = GilbertElliott::new(channel, moves, losses);
                Self::Other(Box::new(OtherLoss::GilbertElliott(channel)))
            }
            Some(scenario::Loss::Packets(numbers)) => {
                let mut to_lose = numbers.clone();
                to_lose.sort_unstable();
                to_lose.dedup();
                let listed = Listed { seen: 0, to_lose: to_lose.into() };
                Self::Other(Box::new(OtherLoss::Listed(listed)))
            }
        }
    }

    /// Whether the next packet is lost.
    #[inline]
    pub(super) fn loses(&mut self) -> bool {
        match self {
            Self::None => false,
            Self::Bernoulli(trial) => trial.sample(),
            Self::Other(loss) => loss.loses(),
        }
    }
}

impl OtherLoss {
    #[inline(never)]
    fn loses(&mut self) -> bool {
        match self {
            Self::GilbertElliott(channel) => channel.loses(),
            Self::Listed(list) => list.loses(),
        }
    }
}

impl Listed {
    fn loses(&mut self) -> bool {
        self.seen += 1;
        while self.to_lose.front().is_some_and(|number| *number < self.seen) {
            self.to_lose.pop_front();
        }
        self.to_lose.front() == Some(&self.seen)
    }
}
