//! Active queue management: RED, CoDel, PIE and FQ-CoDel.

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Duration, Probability, QueueLimit};

/// Active queue management: packets are dropped before the queue is full, so that TCP reduces its
/// rate while the queuing delay is still short. `queue` remains the hard limit. Every key has a
/// default: `aqm.codel = {}` is a complete CoDel configuration. With `ecn = true`, packets of
/// senders that understand marks (`ecn` of their stack) are marked instead (RFC 3168).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Aqm {
    /// Random early detection: drops according to the average queue length.
    Red(Red),
    /// Controlled delay: drops when the queuing delay stays above a target for an interval.
    Codel(Codel),
    /// Proportional integral controller enhanced: drops at random to keep the queuing delay at a
    /// target.
    Pie(Pie),
    /// One CoDel queue per flow, served by deficit round robin; sparse flows have priority.
    FqCodel(FqCodel),
}

/// Random early detection (Floyd and Jacobson 1993). Arriving packets are dropped at random with a
/// probability that depends on the average queue length: 0 below `min`, rising to `max_probability`
/// at `max`. No packet is dropped while at most one packet is queued.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Red {
    /// Average queue length below which no packet is dropped, in packets or bytes.
    #[serde(default = "red_min")]
    pub min: QueueLimit,
    /// Average queue length at which the drop probability is `max_probability`; same unit as `min`.
    #[serde(default = "red_max")]
    pub max: QueueLimit,
    /// Weight of the current queue length in the average, above 0 and at most 1.
    #[serde(default = "red_weight")]
    pub weight: f64,
    /// Drop probability when the average is `max`.
    #[serde(default = "red_max_probability")]
    pub max_probability: Probability,
    /// Whether the drop probability rises linearly to 100 % between `max` and twice `max` (Floyd
    /// 2000). Otherwise every packet is dropped while the average is above `max`.
    #[serde(default = "yes")]
    pub gentle: bool,
    /// Packet size for the decay of the average while the transmitter is idle: the average falls as
    /// if packets of this size had arrived at the rate of the link and found the queue empty.
    #[serde(default = "red_packet")]
    pub packet: Bytes,
    /// Whether packets with ECN are marked instead of dropped while the average is below `max`, or
    /// with `gentle` below twice `max`. At a higher average they are dropped as others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ecn: bool,
}

/// CoDel (RFC 8289): when the queuing delay has been above `target` for an `interval`, packets are
/// dropped at the head of the queue, at a rising rate, until the delay is below `target`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Codel {
    /// Acceptable standing queuing delay. On a low-rate link at least the serialisation delay of a
    /// full-sized packet.
    #[serde(default = "codel_target")]
    pub target: Duration,
    /// Time for which the delay may exceed the target; about the largest usual round-trip time.
    #[serde(default = "codel_interval")]
    pub interval: Duration,
    /// Whether packets with ECN are marked instead of dropped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ecn: bool,
}

/// PIE (RFC 8033): arriving packets are dropped at random; a controller adjusts the drop
/// probability so that the queuing delay approaches `target`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Pie {
    /// Target queuing delay.
    #[serde(default = "pie_target")]
    pub target: Duration,
    /// Update interval of the drop probability; at least 1 ms.
    #[serde(default = "pie_update")]
    pub update: Duration,
    /// Burst allowance: time after an idle period in which no packet is dropped.
    #[serde(default = "pie_burst")]
    pub burst: Duration,
    /// Change of the drop probability per second of deviation from the target.
    #[serde(default = "pie_alpha")]
    pub alpha: f64,
    /// Change of the drop probability per second of growth of the delay since the last update.
    #[serde(default = "pie_beta")]
    pub beta: f64,
    /// Whether packets with ECN are marked instead of dropped while the drop probability is at most
    /// 10 % (RFC 8033, section 5.1).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ecn: bool,
}

/// FQ-CoDel (RFC 8290): packets are classified by flow into queues, which are served by deficit
/// round robin; a queue that had been empty has priority. Each queue runs CoDel. When the total
/// length reaches the limit, the oldest packet of the longest queue is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FqCodel {
    /// Acceptable standing queuing delay of each queue.
    #[serde(default = "codel_target")]
    pub target: Duration,
    /// Time for which the delay may exceed the target.
    #[serde(default = "codel_interval")]
    pub interval: Duration,
    /// Bytes that a queue may send per round.
    #[serde(default = "fq_quantum")]
    pub quantum: Bytes,
    /// Number of queues. Flows are assigned to them by a random hash, so that several may share
    /// one.
    #[serde(default = "fq_flows")]
    pub flows: u32,
    /// Whether packets with ECN are marked instead of dropped. A packet is dropped nevertheless if
    /// the queue is full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ecn: bool,
}

// Floyd and Jacobson 1993, section 6, and Floyd's later advice (notes on parameters, 1997): a
// minimum of 5 packets, a maximum of three times that, a weight of 0.002, 10 % instead of 2 %.
const fn red_min() -> QueueLimit {
    QueueLimit::Packets(5)
}
const fn red_max() -> QueueLimit {
    QueueLimit::Packets(15)
}
const fn red_weight() -> f64 {
    0.002
}
fn red_max_probability() -> Probability {
    Probability::new(0.1).unwrap_or_default()
}
const fn red_packet() -> Bytes {
    Bytes::new(500)
}
const fn yes() -> bool {
    true
}
// RFC 8289, sections 4.2 (INTERVAL) and 4.3 (TARGET); RFC 8290, section 5.2, has the same values.
const fn codel_target() -> Duration {
    Duration::from_millis(5)
}
const fn codel_interval() -> Duration {
    Duration::from_millis(100)
}
// RFC 8033, sections 4.2 (alpha, beta, T_UPDATE, QDELAY_REF) and 4.4 (MAX_BURST).
const fn pie_target() -> Duration {
    Duration::from_millis(15)
}
const fn pie_update() -> Duration {
    Duration::from_millis(15)
}
const fn pie_burst() -> Duration {
    Duration::from_millis(150)
}
const fn pie_alpha() -> f64 {
    0.125
}
const fn pie_beta() -> f64 {
    1.25
}
// RFC 8290, sections 5.2.4 (quantum) and 5.2.5 (flows).
const fn fq_quantum() -> Bytes {
    Bytes::new(1_514)
}
const fn fq_flows() -> u32 {
    1_024
}

impl Aqm {
    /// The name, as written in files.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Red(_) => "red",
            Self::Codel(_) => "codel",
            Self::Pie(_) => "pie",
            Self::FqCodel(_) => "fq_codel",
        }
    }

    /// Whether packets with ECN are marked.
    #[must_use]
    pub const fn marks(&self) -> bool {
        match self {
            Self::Red(keys) => keys.ecn,
            Self::Codel(keys) => keys.ecn,
            Self::Pie(keys) => keys.ecn,
            Self::FqCodel(keys) => keys.ecn,
        }
    }
}

impl Default for Red {
    fn default() -> Self {
        Self {
            min: red_min(),
            max: red_max(),
            weight: red_weight(),
            max_probability: red_max_probability(),
            gentle: yes(),
            packet: red_packet(),
            ecn: false,
        }
    }
}

impl Default for Codel {
    fn default() -> Self {
        Self { target: codel_target(), interval: codel_interval(), ecn: false }
    }
}

impl Default for Pie {
    fn default() -> Self {
        Self {
            target: pie_target(),
            update: pie_update(),
            burst: pie_burst(),
            alpha: pie_alpha(),
            beta: pie_beta(),
            ecn: false,
        }
    }
}

impl Default for FqCodel {
    fn default() -> Self {
        Self {
            target: codel_target(),
            interval: codel_interval(),
            quantum: fq_quantum(),
            flows: fq_flows(),
            ecn: false,
        }
    }
}
