//! From a scenario to senders and queues.

use gridhaul_core::tcp::{IdleRestart, OptionBytes, StackParams};
use gridhaul_scenario::scenario::{
    CongestionControlAlgorithm, Diagnostic, Direction, Hop, Load, Loss, Scenario, Stage,
    upstream_name,
};
use gridhaul_scenario::units::{BufferLimit, Duration, Probability, QueueLimit};

use crate::chain::collector::{CollectorTcp, Control};
use crate::chain::meter::{Demand, MeterTcp, Restart, Timer};
use crate::fixed_point::{Class, Feed, Network, Region, Resource};
use crate::rules::Rules;

/// A scenario as senders and queues, and what belongs to what.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout {
    /// Senders and queues; the regions of collectors are inside their classes.
    pub(super) network: Network,
    /// Direction of a link behind each queue of the network.
    pub(super) links: Vec<LinkPlace>,
    /// One for each flow, in the order of the scenario.
    pub(super) flows: Vec<FlowPlace>,
    /// One for each group of connections from collectors onwards.
    pub(super) upstream: Vec<Upstream>,
    /// What a reader must know: key and text.
    pub(super) warnings: Vec<(String, String)>,
}

/// A flow of the scenario and its senders.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FlowPlace {
    pub(super) name: String,
    /// Group of collectors behind which it is, as an index into [`Layout::upstream`].
    pub(super) upstream: Option<usize>,
    /// Index of its class, in the network or in the region.
    pub(super) class: usize,
    /// Number of flows.
    pub(super) count: u64,
    pub(super) sizes: Sizes,
    /// When its messages come.
    pub(super) every: Every,
    /// Time within which they must arrive.
    pub(super) deadline: Option<Duration>,
}

/// How regular the messages of one sender are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Every {
    /// All after the same time.
    Fixed,
    /// As likely at one time as at another.
    Random,
}

/// Connections of collectors.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Upstream {
    pub(super) name: String,
    pub(super) collectors: u64,
    /// Index of their class in the network.
    pub(super) class: usize,
    /// Directions of links in the region; the buffer has none.
    pub(super) links: Vec<LinkPlace>,
    pub(super) sizes: Sizes,
    key: (String, String, Option<String>),
}

/// Sizes of what is sent, in bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sizes {
    /// Payload of a segment.
    pub(super) payload: f64,
    /// A segment with headers.
    pub(super) segment: f64,
    /// An acknowledgement.
    pub(super) ack: f64,
    /// Segments in a message.
    pub(super) segments: u32,
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
pub(super) fn layout(scenario: &Scenario, rules: Rules) -> Result<Layout, Diagnostic> {
    let mut layout = Layout {
        network: Network { resources: Vec::new(), classes: Vec::new(), rules },
        links: Vec::new(),
        flows: Vec::new(),
        upstream: Vec::new(),
        warnings: Vec::new(),
    };
    for name in scenario.flow.keys() {
        let stages = scenario.stages(name)?;
        layout.flow(scenario, name, &stages);
    }
    Ok(layout)
}

/// Queues and where they are, while they are collected.
struct Place<'l> {
    network: &'l mut Network,
    links: &'l mut Vec<LinkPlace>,
    /// Equal copies of the network: collectors.
    copies: u64,
}

impl Layout {
    fn flow(&mut self, scenario: &Scenario, name: &str, stages: &[Stage]) {
        let flow = &scenario.flow[name];
        let tcp = stack(scenario, &stages[0]);
        let (demand, segments, payload) = demand(&flow.load.plain(), &tcp);
        let sizes = sizes(&tcp, payload, segments);
        self.warn(name, &tcp, &demand);
        let feed = Feed::Meter {
            tcp: MeterTcp {
                vegas: tcp.congestion_control == CongestionControlAlgorithm::Vegas,
                window: window(&tcp).min(2),
                timer: timer(&tcp),
                restart: restart(&tcp),
            },
            demand,
        };
        let upstream = stages.get(1).map(|stage| self.upstream(scenario, stage, &sizes));
        let count = stages[0].connections;
        let class = match upstream {
            None => {
                let (network, links) = (&mut self.network, &mut self.links);
                Place { network, links, copies: 1 }.add(scenario, &stages[0], sizes, feed)
            }
            Some(index) => {
                let Upstream { class, collectors, links, .. } = &mut self.upstream[index];
                let Feed::Collector { region, .. } = &mut self.network.classes[*class].feed else {
                    unreachable!("an upstream group is fed by a collector");
                };
                let network = &mut region.network;
                let place = Place { network, links, copies: *collectors };
                let class = place.add(scenario, &stages[0], sizes, feed);
                network.classes[class].path.push(region.buffer);
                class
            }
        };
        let every = match &*flow.load.plain() {
            Load::Periodic(_) => Every::Fixed,
            _ => Every::Random,
        };
        let (name, deadline) = (name.to_owned(), flow.effective_deadline());
        self.flows.push(FlowPlace { name, upstream, class, count, sizes, every, deadline });
    }

    /// Index of the group of connections of a second stage, which is added where it is new.
    fn upstream(&mut self, scenario: &Scenario, stage: &Stage, messages: &Sizes) -> usize {
        let key = (stage.from.clone(), stage.to.clone(), stage.stack.clone());
        if let Some(index) = self.upstream.iter().position(|upstream| upstream.key == key) {
            return index;
        }
        let tcp = stack(scenario, stage);
        let sizes = sizes(&tcp, u64::from(tcp.mss), 1);
        let room = match scenario.node[&stage.from].aggregator.as_ref().map(|node| node.buffer) {
            Some(BufferLimit::Messages(count)) => count.saturating_mul(messages.segments),
            Some(BufferLimit::Bytes(bytes)) => (bytes.bits() as f64 / messages.payload) as u32,
            None => 1,
        };
        let buffer = Resource { rate: 1.0, room: room.max(1), copies: 1.0, acknowledges: true };
        let rules = self.network.rules;
        let network = Network { resources: vec![buffer], classes: Vec::new(), rules };
        let payload_share = messages.payload / messages.segment;
        let feed = Feed::Collector {
            tcp: CollectorTcp {
                control: control(&tcp),
                window: window(&tcp).min(WINDOW_MOST),
                timer: timer(&tcp),
            },
            payload_bits: sizes.payload,
            region: Box::new(Region { network, buffer: 0, payload_share }),
        };
        let name = upstream_name(&stage.from, &stage.to);
        if window(&tcp) > WINDOW_MOST {
            self.warnings.push((
                name.clone(),
                format!(
                    "the chain of a collector has a window of at most {WINDOW_MOST} segments, and \
                     the receiver offers {}",
                    window(&tcp)
                ),
            ));
        }
        let (network, links) = (&mut self.network, &mut self.links);
        let class = Place { network, links, copies: 1 }.add(scenario, stage, sizes, feed);
        let collectors = stage.connections;
        self.upstream.push(Upstream { name, collectors, class, links: Vec::new(), sizes, key });
        self.upstream.len() - 1
    }
}

/// W_M of the chain of a collector: larger windows cost more time than they are worth.
const WINDOW_MOST: u32 = 64;

impl Place<'_> {
    /// Adds senders and returns the index of their class.
    fn add(mut self, scenario: &Scenario, stage: &Stage, sizes: Sizes, feed: Feed) -> usize {
        let mut class = Class {
            senders: stage.connections as f64 / self.copies as f64,
            segment_bits: sizes.segment,
            path: Vec::new(),
            out: 0.0,
            back: 0.0,
            noise: 0.0,
            feed,
        };
        for hop in &stage.forward {
            let direction = hop.direction(scenario);
            class.out += direction.delay.as_secs_f64();
            class.noise = 1.0 - (1.0 - class.noise) * (1.0 - noise(direction));
            class.path.push(self.queue(scenario, *hop, sizes.segment));
        }
        for hop in &stage.reverse {
            let direction = hop.direction(scenario);
            let rate = direction.rate.as_bits_per_sec().max(1) as f64;
            class.back += direction.delay.as_secs_f64() + sizes.ack / rate;
        }
        self.network.classes.push(class);
        self.network.classes.len() - 1
    }

    /// Index of the queue of a direction, which is added where it is new.
    fn queue(&mut self, scenario: &Scenario, hop: Hop, segment_bits: f64) -> usize {
        // A region begins with its buffer, which is no link.
        let buffers = self.network.resources.len() - self.links.len();
        if let Some(index) = self.links.iter().position(|place| place.hop == hop) {
            return buffers + index;
        }
        let direction = hop.direction(scenario);
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
            copies: count as f64 / self.copies as f64,
            acknowledges: false,
        });
        self.links.push(LinkPlace { hop, count });
        self.network.resources.len() - 1
    }
}

impl Layout {
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

fn stack(scenario: &Scenario, stage: &Stage) -> StackParams {
    StackParams::named(scenario, stage.stack.as_ref(), stage.ip)
}

fn sizes(tcp: &StackParams, payload: u64, segments: u32) -> Sizes {
    let (segment, ack) = (packet_bits(tcp, payload), packet_bits(tcp, 0));
    Sizes { payload: (8 * payload) as f64, segment, ack, segments }
}

fn control(tcp: &StackParams) -> Control {
    match tcp.congestion_control {
        CongestionControlAlgorithm::Vegas => {
            Control::Vegas { alpha: tcp.vegas.0, beta: tcp.vegas.1 }
        }
        CongestionControlAlgorithm::Reno | CongestionControlAlgorithm::Tahoe => {
            Control::Reno { repairs_several: false }
        }
        _ => Control::Reno { repairs_several: true },
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

/// What the simulator does after a silence (`Sender::restart_after_idle` of the parts).
fn restart(tcp: &StackParams) -> Restart {
    if !tcp.restart_after_idle {
        return Restart::Never;
    }
    if tcp.policy.timer_runs_while_idle {
        return Restart::TimerRunsOn;
    }
    // ns-2 begins with one segment, others with their initial window.
    let one_segment = tcp.policy.idle_restart == IdleRestart::OneSegment;
    let segments = if one_segment { 1 } else { tcp.initial_window / tcp.mss.max(1) };
    if segments < 2 && window(tcp) > 1 {
        Restart::OneSegment { from_ack: tcp.policy.idle_since_last_ack }
    } else {
        Restart::Never
    }
}

/// Size of a packet on the wire; timestamps take 12 bytes (RFC 7323, padded).
fn packet_bits(tcp: &StackParams, payload: u64) -> f64 {
    let options = if tcp.timestamps && tcp.option_bytes == OptionBytes::All { 12 } else { 0 };
    (8 * (payload + u64::from(tcp.header) + options)) as f64
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
