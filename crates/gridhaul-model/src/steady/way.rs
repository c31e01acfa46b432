//! The way of one connection: what its links do to it when no other traffic is on them.

use gridhaul_core::tcp::{OptionBytes, StackParams};
use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{Direction, Hop, JitterShape, Loss, Scenario};
use gridhaul_scenario::units::QueueLimit;

use super::channel;

/// The way of the connections of one flow.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Way {
    /// Links that the data crosses, in order.
    pub out: Vec<WayHop>,
    /// Links that the acknowledgements cross.
    pub back: Vec<WayHop>,
    /// Bytes on the wire of a full segment, and of an acknowledgement.
    pub segment_bytes: f64,
    pub ack_bytes: f64,
    /// Mean time out and back without waiting, in seconds, transmission included.
    pub out_s: f64,
    pub back_s: f64,
    /// Delays of the links alone, out and back, in seconds.
    pub propagation_s: f64,
    /// Transmission of a full segment on the slowest link, in seconds.
    pub slowest_s: f64,
    /// Sum of the mean deviations of the jitter on the way, in seconds.
    pub jitter_deviation_s: f64,
    /// Whether a link of the way loses in bursts.
    pub is_bursty: bool,
}

/// One direction of a link on the way.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WayHop {
    pub hop: Hop,
    /// Its key in the scenario.
    pub key: String,
    pub bits_per_s: f64,
    /// Mean loss, damage included.
    pub loss: f64,
    /// What may wait, in packets of this way; infinite without limit.
    pub queue: f64,
    /// Connections of the flow on each such link.
    pub sharers: f64,
}

impl Way {
    /// Reads the ways of a flow.
    ///
    /// # Errors
    /// Each key on the way that the formulas know nothing of.
    pub(super) fn of(
        scenario: &Scenario,
        (out, back): (&[Hop], &[Hop]),
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
        let mut way = Self {
            out: Vec::new(),
            back: Vec::new(),
            segment_bytes,
            ack_bytes,
            out_s: 0.0,
            back_s: 0.0,
            propagation_s: 0.0,
            slowest_s: 0.0,
            jitter_deviation_s: 0.0,
            is_bursty: false,
        };
        let mut unsupported = Vec::new();
        let both = [(out, segment_bytes, true), (back, ack_bytes, false)];
        for (hops, bytes, is_out) in both {
            for hop in hops {
                let (key, direction) = direction(scenario, *hop);
                refuse(&key, direction, &mut unsupported);
                let links = scenario.link_members(&scenario.link[hop.link]);
                let read = way.read(direction, bytes, is_out);
                let entry = WayHop {
                    hop: *hop,
                    key,
                    sharers: connections.div_ceil(u64::from(links.max(1))) as f64,
                    ..read
                };
                if is_out { way.out.push(entry) } else { way.back.push(entry) }
            }
        }
        for entry in way.out.iter().chain(&way.back) {
            refuse_standstills(scenario, entry, way.rtt_s(), &mut unsupported);
        }
        if unsupported.is_empty() { Ok(way) } else { Err(unsupported) }
    }

    /// Takes one direction in; key, hop and sharers are the caller's.
    fn read(&mut self, direction: &Direction, bytes: f64, is_out: bool) -> WayHop {
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
        if is_out {
            self.out_s += time;
            self.slowest_s = self.slowest_s.max(bytes * 8.0 / bits_per_s);
        } else {
            self.back_s += time;
        }
        self.is_bursty |= is_out && loses_in_bursts(direction);
        WayHop {
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

    /// Round trip without waiting, in seconds.
    pub(super) fn rtt_s(&self) -> f64 {
        // A rate that is given cannot be infinite, so this is above zero.
        self.out_s + self.back_s
    }

    /// Share of the data segments that are lost: one minus the product over the links.
    pub(super) fn loss(&self) -> f64 {
        1.0 - self.out.iter().map(|hop| 1.0 - hop.loss).product::<f64>()
    }

    /// Share of the acknowledgements that are lost.
    pub(super) fn ack_loss(&self) -> f64 {
        1.0 - self.back.iter().map(|hop| 1.0 - hop.loss).product::<f64>()
    }

    /// Segments a second that each connection may send when the flow has the links to itself, and
    /// the hop that says so. Links use their rate before they lose.
    pub(super) fn narrowest(&self) -> Option<(f64, &WayHop)> {
        let mut arriving = 1.0;
        let mut narrowest: Option<(f64, &WayHop)> = None;
        for hop in &self.out {
            let rate = hop.bits_per_s / (8.0 * self.segment_bytes * hop.sharers * arriving);
            if narrowest.is_none_or(|(least, _)| rate < least) && rate.is_finite() {
                narrowest = Some((rate, hop));
            }
            arriving *= 1.0 - hop.loss;
        }
        narrowest
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

/// Mean loss of packets of so many bytes, damage included (its receiver rejects the packet).
fn loss(direction: &Direction, bytes: f64) -> f64 {
    let lost = match &direction.loss {
        Some(Loss::Bernoulli(loss)) => loss.ratio(),
        Some(Loss::GilbertElliott(channel)) => {
            let (bad, good) = (channel.good_to_bad.ratio(), channel.bad_to_good.ratio());
            // Stationary share of the bad state; a chain that never moves stays good.
            let share = if bad + good > 0.0 { bad / (bad + good) } else { 0.0 };
            share * channel.loss_bad.ratio() + (1.0 - share) * channel.loss_good.ratio()
        }
        Some(Loss::Packets(_)) | None => 0.0,
    };
    let damaged = direction.corrupt.map_or(0.0, |corrupt| corrupt.ratio());
    let faded = direction.shadowing.as_ref().and_then(channel::faded).unwrap_or(0.0);
    let seconds = bytes * 8.0 / direction.rate.as_bits_per_sec() as f64;
    let survives = |noise| 1.0 - channel::destroyed(noise, seconds);
    let quiet: f64 = direction.noise.iter().map(survives).product();
    1.0 - (1.0 - lost) * (1.0 - damaged) * (1.0 - faded) * quiet
}

/// Names each key of a direction that the formulas know nothing of.
fn refuse(key: &str, direction: &Direction, unsupported: &mut Vec<Unsupported>) {
    let sets = [
        (direction.aqm.is_some(), "aqm", "queues that drop before they are full"),
        (direction.reorder.is_some(), "reorder", "reordering"),
        (direction.duplicate.is_some(), "duplicate", "duplicates"),
        (!direction.outage.is_empty(), "outage", "outages"),
        (direction.load_latency.is_some(), "load_latency", "delays that depend on the load"),
        (matches!(direction.loss, Some(Loss::Packets(_))), "loss.packets", "single listed losses"),
    ];
    for (_, name, what) in sets.into_iter().filter(|(is_set, ..)| *is_set) {
        unsupported.push(Unsupported {
            key: format!("{key}.{name}"),
            reason: format!("the formulas of the steady state know no {what}; ask `--on sim`"),
        });
    }
    if direction.active_shaper().is_some() {
        unsupported.push(Unsupported {
            key: format!("{key}.shaper"),
            reason: "the formulas of the steady state know no shapers; ask `--on emu`".to_owned(),
        });
    }
}

/// Names attenuation and noise that last for longer than a round trip. Padhye et al. (1998)
/// let losses within a round depend on each other, and those of different rounds not; a sender that
/// meets a whole round of losses, and another, waits for its timer, and sends little meanwhile.
fn refuse_standstills(
    scenario: &Scenario,
    hop: &WayHop,
    rtt_s: f64,
    unsupported: &mut Vec<Unsupported>,
) {
    let (key, direction) = direction(scenario, hop.hop);
    let mut refuse = |name: String, what: &str| {
        unsupported.push(Unsupported {
            key: format!("{key}.{name}"),
            reason: format!(
                "{what}, longer than a round trip ({rtt_s:.3} s): a sender meets standstills, not \
                 losses; ask `--on sim`"
            ),
        });
    };
    if let Some(shadowing) = &direction.shadowing {
        match shadowing.coherence {
            None => refuse("shadowing.coherence".into(), "a level stays for the whole run"),
            Some(stays) if stays.as_secs_f64() > rtt_s => {
                refuse("shadowing.coherence".into(), &format!("a level stays for {stays}"));
            }
            Some(_) => {}
        }
    }
    for (index, noise) in direction.noise.iter().enumerate() {
        if noise.length.as_secs_f64() > rtt_s {
            let lasts = format!("a burst lasts for {}", noise.length);
            refuse(format!("noise[{index}].length"), &lasts);
        }
    }
}
