//! Queues that drop before they are full.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Duration, Probability, QueueLimit};

/// Active queue management: packets are dropped before the queue is full, so that TCP slows down
/// while the delay is still short. `queue` stays the hard limit. Every key has a default:
/// `aqm.codel = {}` is a whole CoDel. Nothing is marked for ECN: packets are dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Aqm {
    /// Random early detection: drops by the average length of the queue.
    Red(Red),
    /// Controlled delay: drops when packets have waited too long for too long.
    Codel(Codel),
    /// Proportional integral controller enhanced: drops at random so that the delay meets a target.
    Pie(Pie),
    /// A queue for each flow, served in turn, each with CoDel; flows that send little go first.
    FqCodel(FqCodel),
}

/// Random early detection (Floyd and Jacobson 1993). Packets are dropped on arrival, at random,
/// by the average of what waits: never below `min`, with up to `max_probability` at `max`, and
/// never while at most one packet waits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Red {
    /// Average below which nothing is dropped, in packets or bytes.
    #[serde(default = "red_min")]
    pub min: QueueLimit,
    /// Average at which `max_probability` is reached; in the unit of `min`.
    #[serde(default = "red_max")]
    pub max: QueueLimit,
    /// Weight of the queue that a packet finds in the average, above 0 and up to 1.
    #[serde(default = "red_weight")]
    pub weight: f64,
    /// Probability to drop a packet when the average is at `max`.
    #[serde(default = "red_max_probability")]
    pub max_probability: Probability,
    /// From `max` to twice `max` the probability grows on to 100 % (Floyd 2000). Without, every
    /// packet is dropped while the average is above `max`.
    #[serde(default = "yes")]
    pub gentle: bool,
    /// While the wire is idle the average falls as if packets of this size had found the queue
    /// empty, one for each time that such a packet takes.
    #[serde(default = "red_packet")]
    pub packet: Bytes,
}

/// CoDel (RFC 8289): once packets have waited longer than `target` for a whole `interval`, one is
/// dropped on its way out of the queue, then more and more often until the wait is short again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Codel {
    /// Wait that may stand. On a slow wire not less than a packet of full size takes on it.
    #[serde(default = "codel_target")]
    pub target: Duration,
    /// Time for which it may be longer; about the longest usual round trip.
    #[serde(default = "codel_interval")]
    pub interval: Duration,
}

/// PIE (RFC 8033): packets are dropped on arrival, at random, with a probability that a controller
/// sets so that the wait comes to `target`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pie {
    /// Wait that the controller aims at.
    #[serde(default = "pie_target")]
    pub target: Duration,
    /// Time between two looks of the controller; at least 1 ms.
    #[serde(default = "pie_update")]
    pub update: Duration,
    /// Time for which a burst into an idle queue is spared.
    #[serde(default = "pie_burst")]
    pub burst: Duration,
    /// Change of the probability for each second that the wait is off the target.
    #[serde(default = "pie_alpha")]
    pub alpha: f64,
    /// Change of the probability for each second that the wait has grown since the last look.
    #[serde(default = "pie_beta")]
    pub beta: f64,
}

/// FQ-CoDel (RFC 8290): packets are sorted by flow into queues that take turns at the wire; a
/// queue that had been empty comes first. Each queue has CoDel. When all together are at the
/// limit, the longest loses its oldest packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FqCodel {
    /// Wait that may stand in the queue of a flow.
    #[serde(default = "codel_target")]
    pub target: Duration,
    /// Time for which it may be longer.
    #[serde(default = "codel_interval")]
    pub interval: Duration,
    /// Bytes that a queue sends in one turn.
    #[serde(default = "fq_quantum")]
    pub quantum: Bytes,
    /// Number of queues. Flows are spread over them at random, so some may share one.
    #[serde(default = "fq_flows")]
    pub flows: u32,
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
// RFC 8289, sections 4.2 (INTERVAL) and 4.3 (TARGET); RFC 8290, section 5.2, has the same.
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

impl Default for Red {
    fn default() -> Self {
        Self {
            min: red_min(),
            max: red_max(),
            weight: red_weight(),
            max_probability: red_max_probability(),
            gentle: yes(),
            packet: red_packet(),
        }
    }
}

impl Default for Codel {
    fn default() -> Self {
        Self { target: codel_target(), interval: codel_interval() }
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
        }
    }
}
