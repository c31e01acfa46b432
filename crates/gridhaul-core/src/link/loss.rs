//! Packet loss after transmission.

use std::collections::VecDeque;

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::{Duration, Instant, Probability};

use super::LinkRandomStreams;
use super::gilbert_elliott::GilbertElliott;
use crate::random::BernoulliTrial;

/// The loss process of a direction, evaluated once for each transmitted packet.
#[derive(Debug, Clone)]
pub(super) enum Loss {
    /// No loss.
    None,
    /// Independent losses.
    Bernoulli(BernoulliTrial),
    /// Loss processes with state, boxed to keep plain directions small.
    Other(Box<OtherLoss>),
}

/// Loss processes with state.
#[derive(Debug, Clone)]
pub(super) enum OtherLoss {
    /// Burst losses.
    GilbertElliott(GilbertElliott),
    /// Losses of listed packets.
    Listed(Listed),
}

/// Numbers of the packets to drop, counted from 1 in order of transmission.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    seen: u64,
    /// Sorted.
    to_drop: VecDeque<u64>,
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
                let mut to_drop = numbers.clone();
                to_drop.sort_unstable();
                to_drop.dedup();
                let listed = Listed { seen: 0, to_drop: to_drop.into() };
                Self::Other(Box::new(OtherLoss::Listed(listed)))
            }
        }
    }

    /// The loss of a direction after the change with this number.
    pub(super) fn replaced(
        probability: Probability,
        random: LinkRandomStreams,
        number: u64,
    ) -> Self {
        let random = random.numbered_stream("loss after change", number);
        Self::Bernoulli(BernoulliTrial::new(probability, random))
    }

    /// Whether the next packet, whose transmission ends at `sent`, is lost.
    #[inline(always)]
    pub(super) fn loses(&mut self, sent: Instant) -> bool {
        match self {
            Self::None => false,
            Self::Bernoulli(trial) => trial.sample(),
            Self::Other(loss) => loss.loses(sent),
        }
    }
}

impl Loss {
    /// Whether the process delays packets as well, so that the direction is not plain.
    pub(super) const fn delays(loss: Option<&scenario::Loss>) -> bool {
        match loss {
            Some(scenario::Loss::GilbertElliott(channel)) => !channel.delay_bad.is_zero(),
            Some(scenario::Loss::Bernoulli(_) | scenario::Loss::Packets(_)) | None => false,
        }
    }

    /// Additional delay of the packet of the latest call of [`loses`](Self::loses).
    pub(super) fn delay(&self) -> Duration {
        match self {
            Self::Other(loss) => match &**loss {
                OtherLoss::GilbertElliott(channel) => channel.delay(),
                OtherLoss::Listed(_) => Duration::ZERO,
            },
            Self::None | Self::Bernoulli(_) => Duration::ZERO,
        }
    }
}

impl OtherLoss {
    #[inline(never)]
    fn loses(&mut self, sent: Instant) -> bool {
        match self {
            Self::GilbertElliott(channel) => channel.loses(sent),
            Self::Listed(list) => list.loses(),
        }
    }
}

impl Listed {
    fn loses(&mut self) -> bool {
        self.seen += 1;
        while self.to_drop.front().is_some_and(|number| *number < self.seen) {
            self.to_drop.pop_front();
        }
        self.to_drop.front() == Some(&self.seen)
    }
}
