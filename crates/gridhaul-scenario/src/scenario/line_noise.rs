//! Impairments of power lines: shadowing and impulsive noise.

use serde::{Deserialize, Serialize};

use crate::units::{Decibel, Duration, Probability};

/// Shadowing: log-normal attenuation, so that the received level in decibels is normally
/// distributed. A packet is lost if the level is below the threshold of the receiver when its
/// transmission begins.
///
/// Measurements show that the power gain of power lines is log-normal across lines (Galli 2011, "A
/// novel approach to the statistical modeling of wireline channels", IEEE Transactions on
/// Communications 59). That the level also changes with time, to an independent value after each
/// `coherence` time, is an assumption of gridhaul; it represents the switching of electrical loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Shadowing {
    /// Mean level above the threshold of the receiver; negative if the mean is below the threshold.
    pub margin: Decibel,
    /// Standard deviation of the level.
    pub deviation: Decibel,
    /// Coherence time, for which the level stays constant. Absent: the whole run, as on a line
    /// whose loads do not change; then either all packets arrive or none (the level is random in
    /// each replication and for each member of a group).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coherence: Option<Duration>,
    /// Number of spans in series, separated by regenerators. Each span has an independent level,
    /// and a packet is lost if the level of one span is too low.
    #[serde(default = "one")]
    pub spans: u32,
}

/// Impulsive noise: bursts of noise that occur independently of the traffic. A packet whose
/// transmission overlaps a burst may be lost.
///
/// Random bursts are a two-state Markov chain in continuous time: the smallest of the partitioned
/// chains of Zimmermann and Dostert 2002 ("Analysis and modeling of impulsive noise in broad-band
/// powerline communications", IEEE Transactions on Electromagnetic Compatibility 44), with one
/// state for impulses and one for the time between them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// Mean duration of a burst.
    pub length: Duration,
    /// Mean time from the end of a burst to the start of the next one.
    pub gap: Duration,
    /// Probability that a burst destroys a packet that it overlaps, independently for each burst.
    #[serde(default = "certain")]
    pub loss: Probability,
    /// Distribution of lengths and gaps.
    #[serde(default)]
    pub timing: NoiseTiming,
}

/// Distribution of the lengths of noise bursts and of the gaps between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NoiseTiming {
    /// Lengths and gaps are exponentially distributed and independent (asynchronous impulses).
    #[default]
    Random,
    /// All lengths are equal, and so are all gaps; the phase is random. A `length` + `gap` of 10 ms
    /// gives one impulse per half cycle of 50 Hz mains.
    Periodic,
}

impl Shadowing {
    /// Largest number of spans of one link.
    pub const SPANS_MAX: u32 = 1_000;
}

impl Noise {
    /// Smallest mean time between the starts of two bursts: each burst is an event of the
    /// simulation.
    pub const CYCLE_MIN: Duration = Duration::from_micros(10);
}

const fn one() -> u32 {
    1
}
const fn certain() -> Probability {
    Probability::ONE
}
