//! The path of one connection: delay, loss and rate of its links without other traffic.

use gridhaul_core::tcp::{OptionBytes, StackParams};
use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{
    ChannelTransitions, Direction, Hop, JitterShape, Loss, Scenario,
};
use gridhaul_scenario::units::QueueLimit;

use super::channel_loss;

/// The path of a connection.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Path {
    /// Links of the data direction, in order.
    pub forward: Vec<PathHop>,
    /// Links of the acknowledgements, in order.
    pub reverse: Vec<PathHop>,
    /// Packet size of a full segment and of an acknowledgement, in bytes.
    pub segment_bytes: f64,
    pub ack_bytes: f64,
    /// Mean one-way delay of the data and of the acknowledgements without queueing, in seconds,
    /// transmission included.
    pub forward_s: f64,
    pub reverse_s: f64,
    /// Propagation delay of the links, round trip, in seconds.
    pub propagation_s: f64,
    /// Transmission time of a full segment on the slowest link, in seconds.
    pub slowest_s: f64,
    /// Sum of the mean deviations of the jitter on the path, in seconds.
    pub jitter_deviation_s: f64,
    /// Whether a link of the path has bursty loss.
    pub is_bursty: bool,
}

/// One direction of a link on the path.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PathHop {
    pub hop: Hop,
    /// Key of the direction in the scenario.
    pub key: String,
    pub bits_per_s: f64,
    /// Mean loss ratio, corruption included.
    pub loss: f64,
    /// Queue limit, in packets of this path; infinite without limit.
    pub queue: f64,
    /// Connections of the flow on each such link.
    pub sharers: f64,
}

impl Path {
    /// Reads the path of a connection from the scenario.
    ///
    /// # Errors
    /// Each key on the path that the formulas do not support.
    pub(super) fn of(
        scenario: &Scenario,
        out: &[Hop],
        back: &[Hop],
        connections: u64,
        stack: &StackParams,
    ) -> Result<Self, Vec<Unsupported>> {
        let options = match stack.option_bytes {
            // RFC 7323: ten bytes, padded to twelve.
            OptionBytes::All if stack.timestamps => 12,
            _ => 0,
        };
        let ack_bytes = f64::from(stack.header + options);
        let segment_bytes = ack_bytes + f64::from(stack.mss);
        let mut path = Self {
            forward: Vec::new(),
            reverse: Vec::new(),
            segment_bytes,
            ack_bytes,
            forward_s: 0.0,
            reverse_s: 0.0,
            propagation_s: 0.0,
            slowest_s: 0.0,
            jitter_deviation_s: 0.0,
            is_bursty: false,
        };
        let mut unsupported = Vec::new();
        let both = [(out, segment_bytes, true), (back, ack_bytes, false)];
        for (hops, bytes, is_forward) in both {
            for hop in hops {
                let (key, direction) = direction(scenario, *hop);
                reject(&key, direction, &mut unsupported);
                reject_link_keys(scenario, *hop, &mut unsupported);
                let links = scenario.link_members(&scenario.link[hop.link]);
                let read = path.read(direction, bytes, is_forward);
                let entry = PathHop {
                    hop: *hop,
                    key,
                    sharers: connections.div_ceil(u64::from(links.max(1))) as f64,
                    ..read
                };
                if is_forward { path.forward.push(entry) } else { path.reverse.push(entry) }
            }
        }
        unsupported.extend(scenario.hybrid_router_keys().map(|key| Unsupported {
            key,
            reason:
                "the steady-state formulas exclude hybrid routers; use backend `sim`".to_owned(),
        }));
        unsupported.extend(scenario.ecmp_keys().map(|key| Unsupported {
            key,
            reason: "the steady-state formulas have one path; use backend `sim`".to_owned(),
        }));
        for entry in path.forward.iter().chain(&path.reverse) {
            reject_long_outages(scenario, entry, path.rtt_s(), &mut unsupported);
        }
        if unsupported.is_empty() { Ok(path) } else { Err(unsupported) }
    }

    /// Adds one direction to the totals; the caller sets key, hop and sharers.
    fn read(&mut self, direction: &Direction, bytes: f64, is_forward: bool) -> PathHop {
        let bits_per_s = direction.rate.as_bits_per_sec() as f64;
        self.propagation_s += direction.delay.as_secs_f64();
        let mut time = bytes * 8.0 / bits_per_s + direction.delay.as_secs_f64();
        if let Some(jitter) = &direction.jitter {
            let size = jitter.size.as_secs_f64();
            let (mean, deviation) = match jitter.shape {
                JitterShape::Uniform => (size / 2.0, size / 4.0),
                // Mean √(2/π) σ; mean deviation of |N|: 0.476 σ, by numerical integration.
                JitterShape::HalfNormal => {
                    (size * (2.0 / std::f64::consts::PI).sqrt(), 0.476 * size)
                }
                // Mean deviation 2/e of the mean.
                JitterShape::Exponential => (size, size * 2.0 / std::f64::consts::E),
            };
            time += mean;
            self.jitter_deviation_s += deviation;
        }
        if is_forward {
            self.forward_s += time;
            self.slowest_s = self.slowest_s.max(bytes * 8.0 / bits_per_s);
        } else {
            self.reverse_s += time;
        }
        self.is_bursty |= is_forward && loses_in_bursts(direction);
        PathHop {
            hop: Hop { link: 0, forward: true },
            key: String::new(),
            bits_per_s,
            loss: loss(direction, bytes),
            queue: match direction.queue {
                QueueLimit::Packets(packets) => f64::from(packets),
                QueueLimit::Bytes(limit) => (limit.get() as f64 / bytes).floor(),
                QueueLimit::Unlimited => f64::INFINITY,
            },
            sharers: 1.0,
        }
    }

    /// Round-trip time without queueing, in seconds.
    pub(super) fn rtt_s(&self) -> f64 {
        // A configured rate is finite, so this is above zero.
        self.forward_s + self.reverse_s
    }

    /// Round-trip time of segments without payload, such as those of a handshake, in seconds.
    pub(super) fn rtt_without_payload_s(&self) -> f64 {
        self.rtt_s() - self.transmission_s(self.segment_bytes - self.ack_bytes)
    }

    /// One-way delay of a segment without payload, in seconds.
    pub(super) fn forward_without_payload_s(&self) -> f64 {
        self.forward_s - self.transmission_s(self.segment_bytes - self.ack_bytes)
    }

    /// One-way delay of the last of `segments` segments, with this payload, in seconds. A single
    /// segment is shorter on every link, the last of several follows full segments at the slowest
    /// link.
    pub(super) fn last_segment_s(&self, segments: f64, payload: f64) -> f64 {
        let missing = self.segment_bytes - self.ack_bytes - payload;
        let saved = match segments > 1.0 {
            true => self.slowest_s * missing / self.segment_bytes,
            false => self.transmission_s(missing),
        };
        self.forward_s - saved
    }

    /// Time to transmit this many bytes on each link of the data direction, in seconds.
    fn transmission_s(&self, bytes: f64) -> f64 {
        self.forward.iter().map(|hop| bytes * 8.0 / hop.bits_per_s).sum()
    }

    /// Share of the data segments that are lost: one minus the product over the links.
    pub(super) fn loss(&self) -> f64 {
        1.0 - self.forward.iter().map(|hop| 1.0 - hop.loss).product::<f64>()
    }

    /// Share of the acknowledgements that are lost.
    pub(super) fn ack_loss(&self) -> f64 {
        1.0 - self.reverse.iter().map(|hop| 1.0 - hop.loss).product::<f64>()
    }

    /// Acknowledgements per second of each connection on the slowest link of the reverse path.
    pub(super) fn acks_per_s(&self) -> f64 {
        let rates =
            self.reverse.iter().map(|hop| hop.bits_per_s / (8.0 * self.ack_bytes * hop.sharers));
        rates.fold(f64::INFINITY, f64::min)
    }

    /// The bottleneck link: segments per second that each connection may send without other flows,
    /// and the hop. Lost packets use the rate of the link that loses them.
    pub(super) fn bottleneck(&self) -> Option<(f64, &PathHop)> {
        let mut arriving = 1.0;
        let mut bottleneck: Option<(f64, &PathHop)> = None;
        for hop in &self.forward {
            let rate = hop.bits_per_s / (8.0 * self.segment_bytes * hop.sharers * arriving);
            if bottleneck.is_none_or(|(minimum, _)| rate < minimum) && rate.is_finite() {
                bottleneck = Some((rate, hop));
            }
            arriving *= 1.0 - hop.loss;
        }
        bottleneck
    }
}

/// A hop's key in the scenario and its direction.
pub(super) fn direction(scenario: &Scenario, hop: Hop) -> (String, &Direction) {
    let (name, _) =
        scenario.link.get_index(hop.link).expect("routes are made of the scenario's own links");
    let side = if hop.forward { "forward" } else { "reverse" };
    (format!("link.{name}.{side}"), hop.direction(scenario))
}

fn loses_in_bursts(direction: &Direction) -> bool {
    matches!(direction.loss, Some(Loss::GilbertElliott(_)))
        || direction.shadowing.is_some()
        || !direction.noise.is_empty()
}

/// Mean loss ratio of packets of this size, corruption included (the receiver discards the packet).
fn loss(direction: &Direction, bytes: f64) -> f64 {
    let lost = match &direction.loss {
        Some(Loss::Bernoulli(loss)) => loss.ratio(),
        Some(Loss::GilbertElliott(channel)) => channel.mean_loss(),
        Some(Loss::Packets(_)) | None => 0.0,
    };
    let corrupted = direction.corrupt.map_or(0.0, |corrupt| corrupt.ratio());
    let shadowed =
        direction.shadowing.as_ref().and_then(channel_loss::shadowing_loss).unwrap_or(0.0);
    let seconds = bytes * 8.0 / direction.rate.as_bits_per_sec() as f64;
    let survives = |noise| 1.0 - channel_loss::noise_loss(noise, seconds);
    let without_noise: f64 = direction.noise.iter().map(survives).product();
    1.0 - (1.0 - lost) * (1.0 - corrupted) * (1.0 - shadowed) * without_noise
}

/// Rejects each key of a direction that the formulas do not support.
fn reject(key: &str, direction: &Direction, unsupported: &mut Vec<Unsupported>) {
    let sets = [
        (direction.mtu.is_some(), "mtu", "fragments"),
        (direction.mss_clamp.is_some(), "mss_clamp", "limited segments"),
        (direction.aqm.is_some(), "aqm", "active queue management"),
        (direction.scheduler.is_some(), "scheduler", "classes of packets"),
        (direction.reorder.is_some(), "reorder", "reordering"),
        (direction.route_change.is_some(), "route_change", "route changes"),
        (!direction.rate_change.is_empty(), "rate_change", "rates that change"),
        (direction.trace.is_some(), "trace", "rates that follow a trace"),
        (direction.quality.is_some(), "quality", "links of different quality"),
        (direction.drx.is_some(), "drx", "discontinuous reception"),
        (direction.radio.is_some(), "radio", "transport blocks"),
        (
            matches!(
                &direction.loss,
                Some(Loss::GilbertElliott(channel)) if !channel.delay_bad.is_zero()
            ),
            "loss.gilbert_elliott.delay_bad",
            "delays that are correlated with losses",
        ),
        (direction.duplicate.is_some(), "duplicate", "duplicates"),
        (!direction.outage.is_empty(), "outage", "outages"),
        (direction.load_latency.is_some(), "load_latency", "load-dependent delays"),
        (direction.compression.is_some(), "compression", "compressed packets"),
        (matches!(direction.loss, Some(Loss::Packets(_))), "loss.packets", "listed packet losses"),
    ];
    for (_, name, what) in sets.into_iter().filter(|(is_set, ..)| *is_set) {
        unsupported.push(Unsupported {
            key: format!("{key}.{name}"),
            reason: format!("the steady-state formulas exclude {what}; use backend `sim`"),
        });
    }
    if direction.active_shaper().is_some() {
        unsupported.push(Unsupported {
            key: format!("{key}.shaper"),
            reason: "the steady-state formulas exclude shapers; use backend `sim`".to_owned(),
        });
    }
}

/// Rejects a link on a shared medium, or with handovers. A link of both paths is reported once.
fn reject_link_keys(scenario: &Scenario, hop: Hop, unsupported: &mut Vec<Unsupported>) {
    let (name, link) =
        scenario.link.get_index(hop.link).expect("routes are made of the scenario's own links");
    let keys = [
        (link.medium.is_some(), "medium", "shared media"),
        (link.handover.is_some(), "handover", "handovers"),
    ];
    for (_, key, what) in keys.into_iter().filter(|(is_set, ..)| *is_set) {
        let key = format!("link.{name}.{key}");
        if unsupported.iter().all(|known| known.key != key) {
            let reason = format!("the steady-state formulas exclude {what}; use backend `sim`");
            unsupported.push(Unsupported { key, reason });
        }
    }
}

/// Rejects shadowing and noise that last for longer than a round trip. Padhye et al. (1998) assume
/// dependent losses within a round and independent losses in different rounds; with several rounds
/// of losses in sequence the sender waits for its retransmission timer instead.
fn reject_long_outages(
    scenario: &Scenario,
    hop: &PathHop,
    rtt_s: f64,
    unsupported: &mut Vec<Unsupported>,
) {
    let (key, direction) = direction(scenario, hop.hop);
    let mut reject = |name: String, what: &str| {
        unsupported.push(Unsupported {
            key: format!("{key}.{name}"),
            reason: format!(
                "{what}, longer than a round trip ({rtt_s:.3} s): the sender sees an outage, not \
                    independent losses; use backend `sim`"
            ),
        });
    };
    if let Some(Loss::GilbertElliott(channel)) = &direction.loss
        && let ChannelTransitions::InTime { mean_bad, .. } = channel.transitions()
        && mean_bad.as_secs_f64() > rtt_s
    {
        let lasts = format!("the bad state lasts for {mean_bad} on average");
        reject("loss.gilbert_elliott.mean_bad".to_owned(), &lasts);
    }
    if let Some(shadowing) = &direction.shadowing {
        match shadowing.coherence {
            None => reject(
                "shadowing.coherence".into(),
                "the shadowing level is constant for \
                the whole run",
            ),
            Some(coherence) if coherence.as_secs_f64() > rtt_s => {
                reject(
                    "shadowing.coherence".into(),
                    &format!(
                        "the shadowing level lasts for \
                    {coherence}"
                    ),
                );
            }
            Some(_) => {}
        }
    }
    for (index, noise) in direction.noise.iter().enumerate() {
        if noise.length.as_secs_f64() > rtt_s {
            let lasts = format!("a noise burst lasts for {}", noise.length);
            reject(format!("noise[{index}].length"), &lasts);
        }
    }
}
