//! What a power line does to packets: attenuation that varies, and noise in bursts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Decibel, Duration, Probability};

/// Log-normal attenuation: in decibels the received level is normally distributed. A packet is lost
/// if the level is below the receiver's threshold when its transmission begins.
///
/// That the power gain of power lines is log-normal from line to line was measured (Galli 2011, "A
/// novel approach to the statistical modeling of wireline channels", IEEE Transactions on
/// Communications 59). That it also changes with time, at once and independently after each
/// `coherence`, is assumed here: it stands for loads that are switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shadowing {
    /// How far the mean level lies above the receiver's threshold; negative: below it.
    pub margin: Decibel,
    /// Standard deviation of the level.
    pub deviation: Decibel,
    /// Time for which the level stays. Absent: for the whole run, as for a line whose loads do not
    /// change; then all packets get through, or none (each repeat and member draws its own).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coherence: Option<Duration>,
    /// Spans of line in series, with a regenerator between two. Each has a level of its own, and a
    /// packet must get through all of them.
    #[serde(default = "one")]
    pub spans: u32,
}

/// Impulsive noise: bursts in time, whether packets are sent or not. A packet whose transmission
/// meets a burst may be destroyed.
///
/// Random bursts are a two-state Markov chain in continuous time: the smallest of the partitioned
/// chains of Zimmermann and Dostert 2002 ("Analysis and modeling of impulsive noise in broad-band
/// powerline communications", IEEE Transactions on Electromagnetic Compatibility 44), with one class
/// of impulses and one of pauses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// Mean length of a burst.
    pub length: Duration,
    /// Mean time from the end of a burst to the beginning of the next.
    pub gap: Duration,
    /// Probability that a burst destroys a packet that it meets. A packet that meets several must
    /// survive each.
    #[serde(default = "certain")]
    pub loss: Probability,
    /// How lengths and gaps are distributed.
    #[serde(default)]
    pub timing: NoiseTiming,
}

/// How the bursts of a noise follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoiseTiming {
    /// Lengths and gaps are exponentially distributed and independent (asynchronous impulses).
    #[default]
    Random,
    /// All lengths are equal, and so are all gaps; the phase is random. With `length` + `gap` of
    /// 10 ms: impulses with every half-wave of mains of 50 Hz.
    Periodic,
}

impl Shadowing {
    /// Most spans of one link.
    pub const SPANS_MAX: u32 = 1_000;
}

impl Noise {
    /// Least mean time from burst to burst: each takes a step of a run.
    pub const CYCLE_MIN: Duration = Duration::from_micros(10);
}

const fn one() -> u32 {
    1
}
const fn certain() -> Probability {
    Probability::ONE
}
