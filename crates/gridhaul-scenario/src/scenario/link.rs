//! Links: two directions, each with its own rate, delay, queue and impairments.

use serde::{Deserialize, Serialize};

use super::link_quality::LinkQuality;
use super::link_trace::LinkTrace;
use super::power_line::DirectionTable;
use super::rate_change::RateChange;
use super::route_change::RouteChange;
use super::{
    Aqm, Compression, Drx, GilbertElliott, Handover, Noise, Outage, PacketTooBig, PowerLine, Radio,
    Scheduler, Shadowing, Shaper,
};
use crate::units::{BitRate, Bytes, Duration, Probability, QueueLimit};

/// A link between two nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(from = "LinkTable")]
pub struct Link {
    /// Node from which `forward` leads.
    pub from: String,
    /// Node to which `forward` leads.
    pub to: String,
    /// Whether the members of a group share one link.
    #[serde(skip_serializing_if = "is_false")]
    pub shared: bool,
    /// Name of the medium that the link shares with others, in both directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub medium: Option<String>,
    /// Handovers of the device at the link, which interrupt both directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handover: Option<Handover>,
    /// Source of rates and delays, unless the directions themselves give them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_line: Option<PowerLine>,
    /// Both directions, if they are equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub both: Option<Direction>,
    /// From `from` to `to`, if the directions differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward: Option<Direction>,
    /// From `to` to `from`, if the directions differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverse: Option<Direction>,
}

/// One direction of a link: a queue, a transmitter that sends one packet at a time, and the
/// propagation to the other end.
// The type parameters differ only in a file, where a power line may give rate and delay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[serde(bound(serialize = "Rate: Serialize + Default + PartialEq, Delay: Serialize"))]
#[cfg_attr(any(test, feature = "schema"), schemars(rename = "Direction"))]
pub struct Direction<Rate = BitRate, Delay = Duration> {
    /// Transmission rate. Required, except with `power_line`, `trace` and `quality`.
    #[serde(skip_serializing_if = "is_unset")]
    pub rate: Rate,
    /// Propagation delay, from the end of a packet's transmission to its arrival. Absent: 0 s, or
    /// the delay of the `power_line`.
    pub delay: Delay,
    /// Changes of the rate at stated times; before the first one the direction has `rate`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_change: Vec<RateChange>,
    /// File with the rate over time, instead of `rate`; in CSV, delay and loss as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<LinkTrace>,
    /// Distribution of rate, loss and delay over the members of a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<LinkQuality>,
    /// Largest IP packet (MTU). Larger datagrams are divided into fragments, each of which may be
    /// lost (RFC 791, section 3.2): by their sender, and with IPv4 by routers as well. Segments of
    /// TCP must fit, unless the direction has `packet_too_big`. Absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Bytes>,
    /// Response to packets of TCP that exceed the `mtu` and must not be fragmented. Hosts at the
    /// link know its MTU: they offer and send no larger segments. Absent: such segments are an
    /// error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_too_big: Option<PacketTooBig>,
    /// MSS clamping: the maximum segment size that SYN segments of this direction offer is lowered
    /// to this value, so that segments of the opposite direction are no larger. As in the option,
    /// the value includes TCP options: with timestamps, the payload is 12 B smaller. Absent: SYN
    /// segments pass unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss_clamp: Option<Bytes>,
    /// Queue limit; a packet that arrives at a full queue is dropped (drop-tail).
    #[serde(default = "default_queue")]
    pub queue: QueueLimit,
    /// Active queue management: `red`, `codel`, `pie` or `fq_codel`. Absent: drop-tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aqm: Option<Aqm>,
    /// Scheduler with classes of packets and a queue for each, instead of one queue for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<Scheduler>,
    /// Random loss after transmission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// Loss by log-normal shadowing, as on power lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadowing: Option<Shadowing>,
    /// Loss by impulsive noise, as on power lines; a list of several kinds is possible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noise: Vec<Noise>,
    /// Random variation of the delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// Reordering: packets that are delayed so that later ones overtake them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Reorder>,
    /// Periodic route changes, which change the delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_change: Option<RouteChange>,
    /// Probability that a packet arrives twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<Probability>,
    /// Probability that a packet arrives with bit errors that the checksum of the receiver detects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrupt: Option<Probability>,
    /// Probability that a packet arrives with bit errors and a valid checksum, so that the receiver
    /// accepts it. The simulator has no payload bytes to change; real kernels deliver the corrupted
    /// data to the application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrupt_undetected: Option<Probability>,
    /// Outages of this direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outage: Vec<Outage>,
    /// Load-dependent latency, as measured on GPRS uplinks (paper `hybrid`, section 2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_latency: Option<LoadLatency>,
    /// Compression and encapsulation of packets before the queue of the link, as by a VPN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
    /// Discontinuous reception of the receiving device, as in mobile networks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drx: Option<Drx>,
    /// Radio interface of LTE or NR: transport blocks, HARQ retransmissions and grants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radio: Option<Radio>,
    /// Traffic shaper at the sending node, before the queue of the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaper: Option<Shaper>,
}

/// Random loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Each packet is lost with this probability, independently of all others.
    Bernoulli(Probability),
    /// Bursty loss: a good and a bad state, each with its own loss probability; the bad state may
    /// have a longer delay as well. The state changes with time (`mean_good` and `mean_bad`), as on
    /// a radio link, or with each packet.
    GilbertElliott(GilbertElliott),
    /// Exactly these packets are lost, counted from 1 in the order of their transmission.
    Packets(Vec<u64>),
}

/// Random variation of the delay: a random time is added to the delay of each packet. The order is
/// kept: no packet overtakes an earlier one (use `reorder` for that).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    /// Scale of the added time: its maximum (uniform), standard deviation of the underlying normal
    /// distribution (half-normal) or mean (exponential).
    pub size: Duration,
    /// Distribution of the added time.
    #[serde(default)]
    pub shape: JitterShape,
}

/// Distribution of jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum JitterShape {
    /// Uniform between 0 s and `size`.
    #[default]
    Uniform,
    /// Absolute value of a normal variable with standard deviation `size`.
    HalfNormal,
    /// Exponential with mean `size`.
    Exponential,
}

/// Reordering of packets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// Probability that a packet is delayed.
    pub probability: Probability,
    /// Additional delay of such a packet.
    pub delay: Duration,
}

/// Load-dependent latency of a GPRS-like uplink, which depends on its own load and on whether the
/// downlink of the same terminal is in use (paper `hybrid`, section 2, figures 2 and 3). The
/// latency is added to `delay`: the defaults contain the total latency that the paper measured, so
/// use a `delay` of `"0 s"` with them.
///
/// Unidirectional use: with a load up to `critical`, the latency rises with the load from `idle` to
/// `stationary`. Above `critical` the latency rises within `drift_time` to `drift_max`, jumps to
/// `jump` and stays there until the load falls below `critical`. Bidirectional use (the paired
/// direction is in use): the latency stays around `paired` for every load; above `rate`, queuing
/// adds to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LoadLatency {
    /// Critical throughput γ, including headers.
    #[serde(default = "ll_critical")]
    pub critical: BitRate,
    /// Mean latency without load.
    #[serde(default = "ll_idle")]
    pub idle: Duration,
    /// Largest latency while the load is at most `critical`, including the oscillation.
    #[serde(default = "ll_stationary")]
    pub stationary: Duration,
    /// Latency at the end of the drift, before the jump.
    #[serde(default = "ll_drift_max")]
    pub drift_max: Duration,
    /// Time from exceeding `critical` to the jump.
    #[serde(default = "ll_drift_time")]
    pub drift_time: Duration,
    /// Smallest latency after the jump; the oscillation is added.
    #[serde(default = "ll_jump")]
    pub jump: Duration,
    /// Mean latency while the paired direction is in use.
    #[serde(default = "ll_paired")]
    pub paired: Duration,
    /// Amplitude of the slow oscillation of the latency.
    #[serde(default = "ll_oscillation")]
    pub oscillation: Duration,
    /// Period of the oscillation; the phase is random.
    #[serde(default = "ll_period")]
    pub period: Duration,
    /// Averaging time of the load, and time after its last packet for which the paired direction
    /// counts as in use.
    #[serde(default = "ll_memory")]
    pub memory: Duration,
    /// The paired direction, whose use makes this one bidirectional: `"<link>.forward"` or
    /// `"<link>.reverse"`. Absent: always unidirectional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paired_with: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// Whether a direction has no rate of its own: one with a trace or with quantiles of the rate.
fn is_unset<Rate: Default + PartialEq>(rate: &Rate) -> bool {
    *rate == Rate::default()
}
const fn default_queue() -> QueueLimit {
    QueueLimit::Packets(100)
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

impl LoadLatency {
    /// [`Self::paired`] where the file sets none.
    pub(crate) const fn default_paired() -> Duration {
        ll_paired()
    }
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
    /// The directions that are given, with their keys.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, &Direction)> {
        let all = [("both", &self.both), ("forward", &self.forward), ("reverse", &self.reverse)];
        all.into_iter().filter_map(|(key, direction)| Some((key, direction.as_ref()?)))
    }
}

impl Direction {
    /// The queue of a direction that sets none.
    pub(crate) const fn default_queue() -> QueueLimit {
        default_queue()
    }

    /// The shaper of this direction, if it is on.
    #[must_use]
    pub fn active_shaper(&self) -> Option<&Shaper> {
        self.shaper.as_ref().filter(|shaper| shaper.on)
    }
    /// Whether active queue management, or that of a class, marks packets with ECN.
    #[must_use]
    pub fn marks_packets(&self) -> bool {
        let classes = self.scheduler.iter().flat_map(|scheduler| scheduler.class.values());
        let of_classes = classes.filter_map(|class| class.aqm.as_ref());
        self.aqm.iter().chain(of_classes).any(Aqm::marks)
    }
    /// Paths of the files that describe the direction: its trace, and its quality.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let trace = self.trace.as_ref().map(LinkTrace::file);
        let quality = self.quality.as_ref().and_then(|quality| quality.file.as_deref());
        trace.into_iter().chain(quality)
    }
    /// Whether the rate is that of a trace or file, or different for each member.
    #[must_use]
    pub fn has_measured_rate(&self) -> bool {
        let has_quantiles =
            |quality: &LinkQuality| !quality.rate.is_empty() || quality.file.is_some();
        self.trace.is_some() || self.quality.as_ref().is_some_and(has_quantiles)
    }
    /// A direction without impairments, with the default queue.
    #[must_use]
    pub const fn new(rate: BitRate, delay: Duration) -> Self {
        Self {
            rate,
            rate_change: Vec::new(),
            trace: None,
            quality: None,
            delay,
            mtu: None,
            packet_too_big: None,
            mss_clamp: None,
            queue: default_queue(),
            aqm: None,
            scheduler: None,
            loss: None,
            shadowing: None,
            noise: Vec::new(),
            jitter: None,
            reorder: None,
            route_change: None,
            duplicate: None,
            corrupt: None,
            corrupt_undetected: None,
            outage: Vec::new(),
            load_latency: None,
            compression: None,
            drx: None,
            radio: None,
            shaper: None,
        }
    }
}

impl DirectionTable {
    /// The direction, with this rate and delay if the table has none.
    pub(super) fn or(self, rate: BitRate, delay: Duration) -> Direction {
        Direction {
            rate: self.rate.unwrap_or(rate),
            rate_change: self.rate_change,
            trace: self.trace,
            quality: self.quality,
            delay: self.delay.unwrap_or(delay),
            mtu: self.mtu,
            packet_too_big: self.packet_too_big,
            mss_clamp: self.mss_clamp,
            queue: self.queue,
            aqm: self.aqm,
            scheduler: self.scheduler,
            loss: self.loss,
            shadowing: self.shadowing,
            noise: self.noise,
            jitter: self.jitter,
            reorder: self.reorder,
            route_change: self.route_change,
            duplicate: self.duplicate,
            corrupt: self.corrupt,
            corrupt_undetected: self.corrupt_undetected,
            outage: self.outage,
            load_latency: self.load_latency,
            compression: self.compression,
            drx: self.drx,
            radio: self.radio,
            shaper: self.shaper,
        }
    }
}

/// A link between two nodes. Use `both` for a symmetric link, or `forward` and `reverse` for an
/// asymmetric one; a link with only one of these two is one-way. Use `power_line` for a power line
/// as in paper `plc`; it has both directions.
#[derive(Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(any(test, feature = "schema"), schemars(rename = "Link"))]
struct LinkTable {
    /// Node from which `forward` leads.
    from: String,
    /// Node to which `forward` leads.
    to: String,
    /// Whether the members of a group share one link (a radio cell, a power line) instead of having
    /// one each. Between two groups: one link per member of the smaller group.
    #[serde(default)]
    shared: bool,
    /// Name of a medium in `[medium.<name>]`: at any time one direction of one link of this medium
    /// transmits. Absent: each direction has a medium of its own.
    medium: Option<String>,
    /// Handovers of the device at the link, which interrupt both directions.
    handover: Option<Handover>,
    /// Class and length of a power line, instead of rate and delay.
    power_line: Option<PowerLine>,
    /// Both directions are equal (each has its own queue and its own random numbers).
    both: Option<DirectionTable>,
    /// From `from` to `to`.
    forward: Option<DirectionTable>,
    /// From `to` to `from`.
    reverse: Option<DirectionTable>,
}

impl From<LinkTable> for Link {
    /// Directions without a rate get a rate of 0, which the check of the scenario reports.
    fn from(table: LinkTable) -> Self {
        let LinkTable { from, to, shared, medium, handover, power_line, both, forward, reverse } =
            table;
        let complete = |direction: Option<DirectionTable>| match &power_line {
            Some(line) => Some(line.complete(direction)),
            None => direction.map(|table| table.or(BitRate::default(), Duration::ZERO)),
        };
        let is_asymmetric = forward.is_some() || reverse.is_some();
        let [both, forward, reverse] = match (&power_line, is_asymmetric) {
            // A power line has both directions, whether or not the file has tables for them.
            (Some(_), true) => {
                let both = both.and_then(|both| complete(Some(both)));
                [both, complete(forward), complete(reverse)]
            }
            (Some(_), false) => [complete(both), None, None],
            (None, _) => [complete(both), complete(forward), complete(reverse)],
        };
        Self { from, to, shared, medium, handover, power_line, both, forward, reverse }
    }
}

/// Size of the largest packet that a link carries.
pub const PACKET_MAX: Bytes = Bytes::new(65_535);
