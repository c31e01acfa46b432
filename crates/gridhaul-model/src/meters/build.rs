//! From a scenario to senders and queues.

use gridhaul_scenario::scenario::{
    Direction, Hop, Load, Loss, Problem, Scenario, Stack, Stage, Variant,
};
use gridhaul_scenario::units::{Probability, QueueLimit};

use gridhaul_core::tcp::{OptionBytes, StackParams};

use crate::chain::meter::{Demand, MeterTcp, Rules, Timer};
use crate::fixed_point::{Class, Network, Resource};

/// A scenario as senders and queues, and what belongs to what.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout {
    /// Senders and queues.
    pub(super) network: Network,
    /// Name and number of the flows behind each class of senders.
    pub(super) flows: Vec<FlowPlace>,
    /// Direction of a link behind each queue.
    pub(super) links: Vec<LinkPlace>,
    /// What a reader must know: key and text.
    pub(super) warnings: Vec<(String, String)>,
}

/// A flow of the scenario and its class.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FlowPlace {
    /// Name of the flow.
    pub(super) name: String,
    /// Payload of a segment, in bits.
    pub(super) payload_bits: f64,
    /// Segments in a message.
    pub(super) segments: u32,
    /// Size of an acknowledgement, in bits.
    pub(super) ack_bits: f64,
    /// Its way back, as directions in [`Layout::back`] order.
    pub(super) back: Vec<Hop>,
}

/// A direction of a link and its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LinkPlace {
    /// The direction.
    pub(super) hop: Hop,
    /// Number of equal links.
    pub(super) count: u64,
}

/// Packets that stand for a queue without limit.
const UNLIMITED: u32 = 1_000_000;

/// Reads a scenario.
///
/// # Errors
/// A flow without a way.
pub(super) fn layout(scenario: &Scenario, rules: Rules) -> Result<Layout, Problem> {
    let mut layout = Layout {
        network: Network { resources: Vec::new(), classes: Vec::new(), rules },
        flows: Vec::new(),
        links: Vec::new(),
        warnings: Vec::new(),
    };
    for name in scenario.flow.keys() {
        let stages = scenario.stages(name)?;
        layout.flow(scenario, name, &stages[0]);
    }
    Ok(layout)
}

impl Layout {
    fn flow(&mut self, scenario: &Scenario, name: &str, stage: &Stage) {
        let flow = &scenario.flow[name];
        let stack =
            stage.stack.as_ref().map_or_else(Stack::default, |name| scenario.stack[name].clone());
        let tcp = StackParams::resolve(&stack);
        let (demand, segments, payload) = demand(&flow.load, &tcp);
        let segment_bits = packet_bits(&tcp, payload);
        let ack_bits = packet_bits(&tcp, 0);
        let mut class = Class {
            senders: stage.connections as f64,
            segment_bits,
            path: Vec::new(),
            out: 0.0,
            back: 0.0,
            noise: 0.0,
            tcp: MeterTcp {
                vegas: tcp.variant == Variant::Vegas,
                window: window(&tcp).min(2),
                timer: timer(&tcp),
            },
            demand,
        };
        for hop in &stage.out {
            let direction = direction(scenario, *hop);
            class.out += direction.delay.as_secs_f64();
            class.noise = 1.0 - (1.0 - class.noise) * (1.0 - noise(direction));
            class.path.push(self.queue(scenario, *hop, segment_bits));
        }
        for hop in &stage.back {
            let direction = direction(scenario, *hop);
            let rate = direction.rate.as_bits_per_sec() as f64;
            class.back += direction.delay.as_secs_f64() + ack_bits / rate;
        }
        self.warn(name, &tcp, &demand);
        self.network.classes.push(class);
        self.flows.push(FlowPlace {
            name: name.to_owned(),
            payload_bits: (8 * payload) as f64,
            segments,
            ack_bits,
            back: stage.back.clone(),
        });
    }

    /// Index of the queue of a direction, which is added where it is new.
    fn queue(&mut self, scenario: &Scenario, hop: Hop, segment_bits: f64) -> usize {
        if let Some(index) = self.links.iter().position(|place| place.hop == hop) {
            return index;
        }
        let direction = direction(scenario, hop);
        let waiting = match direction.queue {
            QueueLimit::Packets(packets) => packets,
            QueueLimit::Bytes(bytes) => (bytes.bits() as f64 / segment_bits) as u32,
            QueueLimit::Unlimited => UNLIMITED,
        };
        let count = u64::from(scenario.link_members(&scenario.link[hop.link]));
        self.network.resources.push(Resource {
            rate: direction.rate.as_bits_per_sec().max(1) as f64,
            // Equation 5 counts the packet on the wire, the limit of a queue does not.
            room: waiting.saturating_add(1),
            copies: count as f64,
            acknowledges: false,
        });
        self.links.push(LinkPlace { hop, count });
        self.links.len() - 1
    }

    fn warn(&mut self, name: &str, tcp: &StackParams, demand: &Demand) {
        let mut warn = |text: String| self.warnings.push((format!("flow.{name}"), text));
        let greedy = matches!(demand, Demand::Greedy { .. });
        let large =
            window(tcp) > 2 && (greedy || matches!(demand, Demand::Messages { segments: 3.., .. }));
        if large {
            warn(format!(
                "the chain of a meter has a window of at most 2 segments, and the receiver offers \
                 {}; set `receive_window` to \"2 segments\" for the case that is described",
                window(tcp)
            ));
        }
        if !tcp.delayed_ack.is_zero() {
            warn(
                "the profile may delay acknowledgements of single segments; the equations take \
                  them as sent at once"
                    .to_owned(),
            );
        }
    }
}

/// Window that the receiver offers, in segments.
fn window(tcp: &StackParams) -> u32 {
    (tcp.receive_window / tcp.mss.max(1)).max(1)
}

fn timer(tcp: &StackParams) -> Timer {
    Timer {
        min: tcp.rto_min.as_secs_f64(),
        max: tcp.rto_max.as_secs_f64(),
        floor_on_variance: tcp.rto_floor_on_variance,
        timestamps: tcp.timestamps,
    }
}

/// Size of a packet on the wire; timestamps take 12 bytes (RFC 7323, padded).
fn packet_bits(tcp: &StackParams, payload: u64) -> f64 {
    let options = if tcp.timestamps && tcp.option_bytes == OptionBytes::All { 12 } else { 0 };
    (8 * (payload + u64::from(tcp.header) + options)) as f64
}

fn direction(scenario: &Scenario, hop: Hop) -> &Direction {
    let link = &scenario.link[hop.link];
    let direction = if hop.forward { link.forward() } else { link.backward() };
    direction.expect("a way crosses directions that exist")
}

/// Loss that has nothing to do with the load.
fn noise(direction: &Direction) -> f64 {
    let random = match &direction.loss {
        Some(Loss::Bernoulli(probability)) => probability.ratio(),
        _ => 0.0,
    };
    let damaged = direction.corrupt.map_or(0.0, Probability::ratio);
    1.0 - (1.0 - random) * (1.0 - damaged)
}

/// What the application wants, segments in a message, and payload of a segment in bytes.
fn demand(load: &Load, tcp: &StackParams) -> (Demand, u32, u64) {
    let pieces = |size: u64| {
        let segments = size.div_ceil(u64::from(tcp.mss.max(1))).max(1);
        (u32::try_from(segments).unwrap_or(u32::MAX), size.div_ceil(segments).max(1))
    };
    let messages = |size: u64, per_second: f64| {
        let (segments, payload) = pieces(size);
        (Demand::Messages { per_second, segments }, segments, payload)
    };
    match load {
        Load::OnOff(load) => {
            let (on, off) = (load.on.as_secs_f64(), load.off.as_secs_f64());
            match load.rate {
                None => {
                    let (segments, payload) = pieces(load.size.get());
                    (Demand::Greedy { on, off }, segments, payload)
                }
                Some(rate) => {
                    let mean = rate.as_bits_per_sec() as f64 * on / (on + off);
                    messages(load.size.get(), mean / load.size.bits().max(1) as f64)
                }
            }
        }
        Load::Periodic(load) => messages(load.size.get(), 1.0 / load.every.as_secs_f64().max(1e-9)),
        Load::Poisson(load) => messages(load.size.get(), 1.0 / load.every.as_secs_f64().max(1e-9)),
        _ => messages(1, 0.0),
    }
}
