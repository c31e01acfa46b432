//! Bursty loss: the Gilbert–Elliott model.

use serde::{Deserialize, Serialize};

use crate::units::{Duration, Probability};

/// The Gilbert–Elliott model: a two-state Markov chain, either in time, with `mean_good` and
/// `mean_bad`, or with one step per packet, with `good_to_bad` and `bad_to_good`. In time, bursts
/// do not depend on the traffic, and an idle link changes its state; the state at the end of its
/// transmission determines whether a packet is lost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    /// Mean duration of the good state; durations are exponentially distributed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_good: Option<Duration>,
    /// Mean duration of the bad state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_bad: Option<Duration>,
    /// Transition probability from the good to the bad state, per packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good_to_bad: Option<Probability>,
    /// Transition probability from the bad to the good state, per packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad_to_good: Option<Probability>,
    /// Loss probability in the good state.
    #[serde(default)]
    pub loss_good: Probability,
    /// Loss probability in the bad state.
    #[serde(default = "certain")]
    pub loss_bad: Probability,
    /// Delay of packets in the bad state, which is added to `delay`, so that loss and delay are
    /// correlated. Packets keep their order: those that follow when the state has become good do
    /// not arrive before delayed ones.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub delay_bad: Duration,
}

/// Transitions of a Gilbert–Elliott channel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ChannelTransitions {
    /// Mean durations of the states.
    InTime {
        /// Of the good state.
        mean_good: Duration,
        /// Of the bad state.
        mean_bad: Duration,
    },
    /// Probabilities of a transition before each packet.
    PerPacket {
        /// From the good to the bad state.
        good_to_bad: Probability,
        /// From the bad to the good state.
        bad_to_good: Probability,
    },
}

impl GilbertElliott {
    /// The transitions of a valid channel: in time, or else with each packet.
    #[must_use]
    pub fn transitions(&self) -> ChannelTransitions {
        if let (Some(mean_good), Some(mean_bad)) = (self.mean_good, self.mean_bad) {
            return ChannelTransitions::InTime { mean_good, mean_bad };
        }
        ChannelTransitions::PerPacket {
            good_to_bad: self.good_to_bad.unwrap_or_default(),
            bad_to_good: self.bad_to_good.unwrap_or_default(),
        }
    }

    /// Stationary probability of the bad state (Elliott 1963); a chain without transitions stays
    /// good.
    #[must_use]
    pub fn bad_share(&self) -> f64 {
        let (to_bad, to_good) = match self.transitions() {
            ChannelTransitions::InTime { mean_good, mean_bad } => {
                (mean_bad.as_secs_f64(), mean_good.as_secs_f64())
            }
            ChannelTransitions::PerPacket { good_to_bad, bad_to_good } => {
                (good_to_bad.ratio(), bad_to_good.ratio())
            }
        };
        if to_bad + to_good > 0.0 { to_bad / (to_bad + to_good) } else { 0.0 }
    }

    /// Mean loss probability.
    #[must_use]
    pub fn mean_loss(&self) -> f64 {
        let bad = self.bad_share();
        bad * self.loss_bad.ratio() + (1.0 - bad) * self.loss_good.ratio()
    }
}

fn certain() -> Probability {
    Probability::ONE
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_zero(delay: &Duration) -> bool {
    delay.is_zero()
}
