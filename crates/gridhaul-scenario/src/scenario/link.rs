//! Links: two directions, each with its own rate, delay, queue and impairments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::power_line::WrittenDirection;
use super::{Aqm, Noise, PowerLine, Shadowing, Shaper};
use crate::units::{BitRate, Bytes, Duration, Probability, QueueLimit};

/// A link between two nodes, with whatever a power line gives to its directions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Written")]
pub struct Link {
    /// Node where `forward` begins.
    pub from: String,
    /// Node where `forward` ends.
    pub to: String,
    /// Whether the members of a group share one link.
    #[serde(skip_serializing_if = "is_false")]
    pub shared: bool,
    /// Where rates and delays came from, if not from the directions themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_line: Option<PowerLine>,
    /// Both directions, where they are the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub both: Option<Direction>,
    /// From `from` to `to`, where the directions differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward: Option<Direction>,
    /// From `to` to `from`, where the directions differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverse: Option<Direction>,
}

/// One direction of a link: a queue, then a wire that takes each packet its own time, then the
/// way to the other end.
// The parameters differ in the text of a file only, where a power line may give rate and delay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Direction")]
pub struct Direction<Rate = BitRate, Delay = Duration> {
    /// Rate of the wire. Required, except in a power line.
    pub rate: Rate,
    /// Propagation delay, counted from the end of a packet's transmission. Absent: none, except in a
    /// power line.
    pub delay: Delay,
    /// What may wait for the wire; a packet that finds the queue full is dropped (drop-tail).
    #[serde(default = "default_queue")]
    pub queue: QueueLimit,
    /// Active queue management: `red`, `codel`, `pie` or `fq_codel`. Absent: plain drop-tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aqm: Option<Aqm>,
    /// Random loss on the way, after the wire has been used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// Loss while a log-normal attenuation is too large, as on power lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadowing: Option<Shadowing>,
    /// Loss by bursts of noise in time, as on power lines; several kinds may be given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noise: Vec<Noise>,
    /// Random addition to the delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// Packets that are held back so that later ones overtake them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Reorder>,
    /// Probability that a packet arrives twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<Probability>,
    /// Probability that a packet arrives damaged; its receiver's checksum rejects it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrupt: Option<Probability>,
    /// Probability that a packet arrives with damaged data and a right checksum, so that its receiver
    /// takes it. The data of a simulation does not exist; real kernels hand it to the application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrupt_undetected: Option<Probability>,
    /// Times at which this direction does not work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outage: Vec<Outage>,
    /// Delay that depends on the load, as measured on GPRS uplinks (paper `hybrid`, section 2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_latency: Option<LoadLatency>,
    /// A shaper in front of it, at the node where it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaper: Option<Shaper>,
}

/// Loss on the way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Each packet is lost with this probability, independently of all others.
    Bernoulli(Probability),
    /// Loss in bursts: a good and a bad state with a loss probability each.
    GilbertElliott(GilbertElliott),
    /// Exactly these packets are lost, counted from 1 as they leave the wire.
    Packets(Vec<u64>),
}

/// The Gilbert–Elliott channel: a two-state Markov chain that moves once for each packet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    /// Probability to move from the good to the bad state before a packet.
    pub good_to_bad: Probability,
    /// Probability to move from the bad to the good state before a packet.
    pub bad_to_good: Probability,
    /// Loss in the good state.
    #[serde(default)]
    pub loss_good: Probability,
    /// Loss in the bad state.
    #[serde(default = "certain")]
    pub loss_bad: Probability,
}

/// Random addition to the delay of each packet. Order is kept: a packet never overtakes the one
/// before it (use `reorder` for that).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    /// Size of the addition: its upper end (uniform), standard deviation (half-normal) or mean
    /// (exponential).
    pub size: Duration,
    /// Distribution of the addition.
    #[serde(default)]
    pub shape: JitterShape,
}

/// Distribution of jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JitterShape {
    /// Evenly between nothing and `size`.
    #[default]
    Uniform,
    /// The absolute value of a normal variable with standard deviation `size`.
    HalfNormal,
    /// Exponential with mean `size`.
    Exponential,
}

/// Packets that are held back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// Probability that a packet is held back.
    pub probability: Probability,
    /// For how long it is held back.
    pub delay: Duration,
}

/// A time at which a direction does not work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// When it begins, from the start of the run.
    pub start: Duration,
    /// How long it lasts.
    pub length: Duration,
    /// It comes again after this time, counted from begin to begin. Absent: once only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// What happens to packets meanwhile.
    #[serde(default)]
    pub mode: OutageMode,
}

/// What happens to packets in an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutageMode {
    /// The wire goes on, and what it sends is lost.
    #[default]
    Drop,
    /// The wire stands still; packets wait in the queue.
    Hold,
}

/// Delay of a GPRS-like uplink that depends on its own load and on whether the downlink of the
/// same terminal is in use (paper `hybrid`, section 2, figures 2 and 3). It is added to `delay`:
/// the defaults are the whole latency that the paper measured, so leave `delay` at `"0 s"` with them.
///
/// Alone (unidirectional) and up to `critical`, the addition grows with the load from `idle` to
/// `stationary`. Above `critical` it climbs within `drift_time` to `drift_max`, jumps to `jump` and
/// stays there until the load is back below. With the paired direction in use (bidirectional),
/// it stays around `paired` whatever the load; beyond `rate` the queue adds the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadLatency {
    /// Critical throughput γ, headers included.
    #[serde(default = "ll_critical")]
    pub critical: BitRate,
    /// Mean addition without load.
    #[serde(default = "ll_idle")]
    pub idle: Duration,
    /// Largest addition while the load stays up to `critical`, oscillation included.
    #[serde(default = "ll_stationary")]
    pub stationary: Duration,
    /// Addition to which the latency drifts before it jumps.
    #[serde(default = "ll_drift_max")]
    pub drift_max: Duration,
    /// Time from crossing `critical` to the jump.
    #[serde(default = "ll_drift_time")]
    pub drift_time: Duration,
    /// Least addition after the jump; it oscillates above.
    #[serde(default = "ll_jump")]
    pub jump: Duration,
    /// Mean addition while the paired direction is in use.
    #[serde(default = "ll_paired")]
    pub paired: Duration,
    /// Amplitude of the slow oscillation of the latency.
    #[serde(default = "ll_oscillation")]
    pub oscillation: Duration,
    /// Period of that oscillation; its phase is random.
    #[serde(default = "ll_period")]
    pub period: Duration,
    /// Time over which the load is averaged, and for which a use of the paired direction counts.
    #[serde(default = "ll_memory")]
    pub memory: Duration,
    /// The direction whose use makes this one bidirectional: `"<link>.forward"` or
    /// `"<link>.reverse"`. Absent: always unidirectional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paired_with: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_false(value: &bool) -> bool {
    !*value
}
const fn default_queue() -> QueueLimit {
    QueueLimit::Packets(100)
}
fn certain() -> Probability {
    Probability::new(1.0).unwrap_or_default()
}
const fn ll_critical() -> BitRate {
    BitRate::from_bits_per_sec(10_000)
}
const fn ll_idle() -> Duration {
    Duration::from_millis(900)
}
const fn ll_stationary() -> Duration {
    Duration::from_millis(2_000)
}
const fn ll_drift_max() -> Duration {
    Duration::from_millis(2_400)
}
const fn ll_drift_time() -> Duration {
    Duration::from_secs(30)
}
const fn ll_jump() -> Duration {
    Duration::from_millis(4_000)
}
const fn ll_paired() -> Duration {
    Duration::from_millis(1_000)
}
const fn ll_oscillation() -> Duration {
    Duration::from_millis(200)
}
const fn ll_period() -> Duration {
    Duration::from_secs(20)
}
const fn ll_memory() -> Duration {
    Duration::from_secs(5)
}

impl Link {
    /// The direction from `from` to `to`, if there is one.
    #[must_use]
    pub fn forward(&self) -> Option<&Direction> {
        self.forward.as_ref().or(self.both.as_ref())
    }
    /// The direction from `to` to `from`, if there is one.
    #[must_use]
    pub fn reverse(&self) -> Option<&Direction> {
        self.reverse.as_ref().or(self.both.as_ref())
    }
    /// The directions that a file gives, by their keys.
    pub(crate) fn given(&self) -> impl Iterator<Item = (&'static str, &Direction)> {
        let ways = [("both", &self.both), ("forward", &self.forward), ("reverse", &self.reverse)];
        ways.into_iter().filter_map(|(way, direction)| Some((way, direction.as_ref()?)))
    }
}

impl Direction {
    /// The shaper in front of it, if it works.
    #[must_use]
    pub fn active_shaper(&self) -> Option<&Shaper> {
        self.shaper.as_ref().filter(|shaper| shaper.on)
    }
    /// A plain wire with the default queue.
    #[must_use]
    pub const fn new(rate: BitRate, delay: Duration) -> Self {
        Self {
            rate,
            delay,
            queue: default_queue(),
            aqm: None,
            loss: None,
            shadowing: None,
            noise: Vec::new(),
            jitter: None,
            reorder: None,
            duplicate: None,
            corrupt: None,
            corrupt_undetected: None,
            outage: Vec::new(),
            load_latency: None,
            shaper: None,
        }
    }
}

impl WrittenDirection {
    /// The direction, with this rate and delay where it gives none.
    pub(super) fn or(self, rate: BitRate, delay: Duration) -> Direction {
        Direction {
            rate: self.rate.unwrap_or(rate),
            delay: self.delay.unwrap_or(delay),
            queue: self.queue,
            aqm: self.aqm,
            loss: self.loss,
            shadowing: self.shadowing,
            noise: self.noise,
            jitter: self.jitter,
            reorder: self.reorder,
            duplicate: self.duplicate,
            corrupt: self.corrupt,
            corrupt_undetected: self.corrupt_undetected,
            outage: self.outage,
            load_latency: self.load_latency,
            shaper: self.shaper,
        }
    }
}

/// A link between two nodes. Give `both` for a symmetric link, or `forward` and `reverse` for a
/// lopsided one; a link with only one of these two is one-way. Give `power_line` for a line of paper
/// `plc`; it works in both directions.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Link")]
struct Written {
    /// Node where `forward` begins.
    from: String,
    /// Node where `forward` ends.
    to: String,
    /// The members of a group share one link (a radio cell, a power line) instead of having one
    /// each. Between two groups: one for each member of the smaller.
    #[serde(default)]
    shared: bool,
    /// A kind of power line and its length, in place of rate and delay.
    power_line: Option<PowerLine>,
    /// The same in both directions (each has its own queue and its own chance).
    both: Option<WrittenDirection>,
    /// From `from` to `to`.
    forward: Option<WrittenDirection>,
    /// From `to` to `from`.
    reverse: Option<WrittenDirection>,
}

impl From<Written> for Link {
    /// Directions without a rate get none; the check of the scenario names them.
    fn from(written: Written) -> Self {
        let Written { from, to, shared, power_line, both, forward, reverse } = written;
        let complete = |direction: Option<WrittenDirection>| match &power_line {
            Some(line) => Some(line.complete(direction)),
            None => direction.map(|written| written.or(BitRate::default(), Duration::ZERO)),
        };
        let is_lopsided = forward.is_some() || reverse.is_some();
        let [both, forward, reverse] = match (&power_line, is_lopsided) {
            // A power line works in both directions, whether the file says something of them or not.
            (Some(_), true) => {
                let both = both.and_then(|both| complete(Some(both)));
                [both, complete(forward), complete(reverse)]
            }
            (Some(_), false) => [complete(both), None, None],
            (None, _) => [complete(both), complete(forward), complete(reverse)],
        };
        Self { from, to, shared, power_line, both, forward, reverse }
    }
}

/// Size of the longest packet that a link carries.
pub const PACKET_MAX: Bytes = Bytes::new(65_535);
