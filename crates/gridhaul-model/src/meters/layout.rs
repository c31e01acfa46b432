//! Conversion of a scenario to senders and queues.

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::scenario::{
    CongestionControlAlgorithm, Diagnostic, FullBufferPolicy, Hop, Load, Scenario, Stage,
    upstream_name,
};
use gridhaul_scenario::units::{BufferLimit, Duration, QueueLimit};

use super::ignored_keys::ignored_keys;
use super::message_segments::MessageSegments;
use super::parameters::{
    control, demand, independent_loss, message_bytes, restart, sizes, stack, timer, window,
};
use crate::ack_delay::AckDelay;
use crate::chain::aggregator::AggregatorTcp;
use crate::chain::meter::{Demand, MeterTcp, Restart};
use crate::fixed_point::{Class, DataSource, Network, Region, Resource};
use crate::model_rules::ModelRules;

/// A scenario as senders and queues, with the mapping to flows and links.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout {
    /// Senders and queues; the regions of aggregators are inside their classes.
    pub(super) network: Network,
    /// The link direction of each queue of the network.
    pub(super) links: Vec<LinkEntry>,
    /// One for each flow, in the order of the scenario.
    pub(super) flows: Vec<FlowEntry>,
    /// One for each group of upstream connections of aggregators.
    pub(super) upstream: Vec<Upstream>,
    /// Warnings: key and text.
    pub(super) warnings: Vec<(String, String)>,
}

/// A flow of the scenario and its senders.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FlowEntry {
    pub(super) name: String,
    /// The group of aggregators on its path, as an index into [`Layout::upstream`].
    pub(super) upstream: Option<usize>,
    /// Index of its class, in the network or in the region.
    pub(super) class: usize,
    /// Number of flows.
    pub(super) count: u64,
    pub(super) sizes: Sizes,
    pub(super) message: MessageSegments,
    /// Receive window in segments, which may exceed that of its chain.
    pub(super) receive_window: u32,
    /// Timing of its messages.
    pub(super) message_interval: MessageInterval,
    /// Deadline of its messages.
    pub(super) deadline: Option<Duration>,
}

/// Distribution of the time between messages of one sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageInterval {
    /// Constant.
    Fixed,
    /// Exponential (Poisson process).
    Random,
}

impl FlowEntry {
    /// Size of a message.
    pub(super) fn message_bits(&self) -> f64 {
        self.sizes.payload * f64::from(self.sizes.segments)
    }
}

/// Upstream connections of aggregators.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Upstream {
    pub(super) name: String,
    pub(super) aggregators: u64,
    /// Index of their class in the network.
    pub(super) class: usize,
    /// Directions of links in the region; the buffer has none.
    pub(super) links: Vec<LinkEntry>,
    pub(super) sizes: Sizes,
    /// Payload of a full segment, in bytes; that of `sizes` may be less.
    pub(super) mss: u64,
    /// Whether Nagle's algorithm delays segments that are not full.
    pub(super) nagle: bool,
    /// Time for which the acknowledgement of a single segment is delayed, in seconds.
    pub(super) ack_delay_s: f64,
    /// Behaviour after a silence.
    pub(super) restart: Restart,
    key: (String, String, Option<String>),
}

impl Upstream {
    /// The node of the aggregators.
    pub(super) fn node(&self) -> &str {
        &self.key.0
    }
}

/// Sizes of segments and acknowledgements, in bits.
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
pub(super) struct LinkEntry {
    /// The direction.
    pub(super) hop: Hop,
    /// Number of equal links.
    pub(super) count: u64,
}

/// Capacity in packets that represents an unlimited queue.
const UNLIMITED: u32 = 1_000_000;

/// Converts a scenario.
///
/// `payloads` has the payload of a segment of each group of upstream connections, in bytes; the
/// segments of others are full.
///
/// # Errors
/// A flow without a path.
pub(super) fn layout(
    scenario: &Scenario,
    rules: ModelRules,
    payloads: &[u64],
) -> Result<Layout, Diagnostic> {
    let mut layout = Layout {
        network: Network { resources: Vec::new(), classes: Vec::new(), rules },
        links: Vec::new(),
        flows: Vec::new(),
        upstream: Vec::new(),
        warnings: ignored_keys(scenario),
    };
    for name in scenario.flow.keys() {
        let stages = scenario.stages(name)?;
        layout.flow(scenario, name, &stages, payloads);
    }
    layout.limit_windows(scenario);
    layout.average_payload_shares();
    Ok(layout)
}

/// The network under construction: its queues and their link directions.
struct NetworkBuilder<'l> {
    network: &'l mut Network,
    links: &'l mut Vec<LinkEntry>,
    /// Number of identical copies of the network (aggregators).
    copies: u64,
}

impl Layout {
    fn flow(&mut self, scenario: &Scenario, name: &str, stages: &[Stage], payloads: &[u64]) {
        let flow = &scenario.flow[name];
        let tcp = stack(scenario, &stages[0]);
        let (demand, segments, payload) = demand(&flow.load.plain(), &tcp);
        let sizes = sizes(&tcp, payload, segments);
        let message = MessageSegments::new(message_bytes(&flow.load.plain()), &tcp);
        self.warn(name, &tcp, &demand, &message);
        let source = DataSource::Meter {
            tcp: MeterTcp {
                vegas: tcp.congestion_control == CongestionControlAlgorithm::Vegas,
                window: window(&tcp).min(2),
                timer: timer(&tcp),
                restart: restart(&tcp),
            },
            demand,
        };
        let upstream = stages.get(1).map(|stage| {
            let payload = payloads.get(self.upstream.len()).copied();
            self.upstream(scenario, stage, &sizes, payload)
        });
        let count = stages[0].connections;
        let class = match upstream {
            None => {
                let (network, links) = (&mut self.network, &mut self.links);
                NetworkBuilder { network, links, copies: 1 }
                    .add(scenario, &stages[0], sizes, source)
            }
            Some(index) => {
                let Upstream { class, aggregators, links, .. } = &mut self.upstream[index];
                let DataSource::Aggregator { region, .. } =
                    &mut self.network.classes[*class].source
                else {
                    unreachable!("an upstream group is fed by an aggregator");
                };
                let network = &mut region.network;
                let place = NetworkBuilder { network, links, copies: *aggregators };
                let class = place.add(scenario, &stages[0], sizes, source);
                network.classes[class].path.push(region.buffer);
                class
            }
        };
        let message_interval = match &*flow.load.plain() {
            Load::Periodic(_) => MessageInterval::Fixed,
            _ => MessageInterval::Random,
        };
        let (name, deadline) = (name.to_owned(), flow.effective_deadline());
        self.flows.push(FlowEntry {
            name,
            upstream,
            class,
            count,
            sizes,
            message,
            receive_window: window(&tcp),
            message_interval,
            deadline,
        });
    }

    /// Aggregators with `when_full = "backpressure"` offer each connection an equal share of their
    /// buffer, at least one message.
    fn limit_windows(&mut self, scenario: &Scenario) {
        for upstream in &self.upstream {
            let policy = scenario.node[&upstream.key.0]
                .aggregator
                .as_ref()
                .map(|aggregator| aggregator.when_full);
            if policy != Some(FullBufferPolicy::Backpressure) {
                continue;
            }
            let DataSource::Aggregator { region, .. } =
                &mut self.network.classes[upstream.class].source
            else {
                unreachable!("an upstream group is fed by an aggregator");
            };
            let message = self.flows.iter().filter(|flow| flow.upstream.is_some());
            let message = message.map(|flow| flow.sizes.segments).max().unwrap_or(1).max(1);
            let network = &mut region.network;
            let connections: f64 = network.classes.iter().map(|class| class.senders).sum();
            let buffer = &mut network.resources[region.buffer];
            let messages = f64::from(buffer.capacity / message) / connections.max(1.0);
            // Rounded: 400,000 meters and 300 aggregators with 1,333 messages each.
            let share = ((messages + 1e-3) as u32).max(1).saturating_mul(message);
            let mut limit = 0.0;
            for class in &mut network.classes {
                if let DataSource::Meter { tcp, .. } = &mut class.source {
                    tcp.window = tcp.window.min(share);
                    limit += class.senders * f64::from(tcp.window);
                }
            }
            buffer.window_limit = Some((limit.round() as u32).max(1));
        }
    }

    /// Index of the group of connections of a second stage, which is added if missing.
    fn upstream(
        &mut self,
        scenario: &Scenario,
        stage: &Stage,
        messages: &Sizes,
        payload: Option<u64>,
    ) -> usize {
        let key = (stage.from.clone(), stage.to.clone(), stage.stack.clone());
        if let Some(index) = self.upstream.iter().position(|upstream| upstream.key == key) {
            return index;
        }
        let tcp = stack(scenario, stage);
        let mss = u64::from(tcp.mss);
        let sizes = sizes(&tcp, payload.unwrap_or(mss), 1);
        let capacity = match scenario.node[&stage.from].aggregator.as_ref().map(|node| node.buffer)
        {
            Some(BufferLimit::Messages(count)) => count.saturating_mul(messages.segments),
            Some(BufferLimit::Bytes(bytes)) => (bytes.bits() as f64 / messages.payload) as u32,
            None => 1,
        };
        let buffer = Resource {
            rate: 1.0,
            capacity: capacity.max(1),
            copies: 1.0,
            acknowledges: true,
            window_limit: None,
        };
        let rules = self.network.rules;
        let network = Network { resources: vec![buffer], classes: Vec::new(), rules };
        let payload_share = messages.payload / messages.segment;
        let source = DataSource::Aggregator {
            tcp: AggregatorTcp {
                control: control(&tcp),
                window: window(&tcp).min(WINDOW_MAX),
                timer: timer(&tcp),
            },
            payload_bits: sizes.payload,
            region: Box::new(Region { network, buffer: 0, payload_share }),
        };
        let name = upstream_name(&stage.from, &stage.to);
        if window(&tcp) > WINDOW_MAX {
            self.warnings.push((
                name.clone(),
                format!(
                    "the chain of an aggregator has a window of at most {WINDOW_MAX} segments, and \
                     the receive window is {}",
                    window(&tcp)
                ),
            ));
        }
        let (network, links) = (&mut self.network, &mut self.links);
        let class =
            NetworkBuilder { network, links, copies: 1 }.add(scenario, stage, sizes, source);
        let aggregators = stage.connections;
        self.upstream.push(Upstream {
            name,
            aggregators,
            class,
            links: Vec::new(),
            sizes,
            mss,
            nagle: tcp.nagle,
            ack_delay_s: AckDelay::new(&tcp).of_one_s(),
            restart: restart(&tcp),
            key,
        });
        self.upstream.len() - 1
    }
}

/// Largest window W_M in the chain of an aggregator; larger windows increase the computing time
/// more than the accuracy.
const WINDOW_MAX: u32 = 256;

impl NetworkBuilder<'_> {
    /// Adds senders and returns the index of their class.
    fn add(
        mut self,
        scenario: &Scenario,
        stage: &Stage,
        sizes: Sizes,
        source: DataSource,
    ) -> usize {
        let mut class = Class {
            senders: stage.connections as f64 / self.copies as f64,
            segment_bits: sizes.segment,
            path: Vec::new(),
            forward_delay: 0.0,
            reverse_delay: 0.0,
            independent_loss: 0.0,
            source,
        };
        for hop in &stage.forward {
            let direction = hop.direction(scenario);
            class.forward_delay += direction.delay.as_secs_f64();
            class.independent_loss =
                1.0 - (1.0 - class.independent_loss) * (1.0 - independent_loss(direction));
            class.path.push(self.queue(scenario, *hop, sizes.segment));
        }
        for hop in &stage.reverse {
            let direction = hop.direction(scenario);
            let rate = direction.rate.as_bits_per_sec().max(1) as f64;
            class.reverse_delay += direction.delay.as_secs_f64() + sizes.ack / rate;
        }
        self.network.classes.push(class);
        self.network.classes.len() - 1
    }

    /// Index of the queue of a direction, which is added if missing.
    fn queue(&mut self, scenario: &Scenario, hop: Hop, segment_bits: f64) -> usize {
        // The first queue of a region is the aggregator's buffer, which is no link.
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
            // Equation 5 counts the packet in transmission, the queue limit does not.
            capacity: waiting.saturating_add(u32::from(self.network.rules != ModelRules::Printed)),
            copies: count as f64 / self.copies as f64,
            acknowledges: false,
            window_limit: None,
        });
        self.links.push(LinkEntry { hop, count });
        self.network.resources.len() - 1
    }
}

impl Layout {
    fn warn(&mut self, name: &str, tcp: &StackParams, demand: &Demand, message: &MessageSegments) {
        let is_refined = self.network.rules == ModelRules::Refined;
        let mut warn = |text: String| self.warnings.push((format!("flow.{name}"), text));
        let greedy = matches!(demand, Demand::Greedy { .. });
        let large =
            window(tcp) > 2 && (greedy || matches!(demand, Demand::Messages { segments: 3.., .. }));
        if large {
            warn(format!(
                "the chain of a meter has a window of at most 2 segments, and the receive window \
                    is {}; set `receive_window` to \"2 segments\"",
                window(tcp)
            ));
        }
        if !tcp.delayed_ack.is_zero() {
            let is_included = is_refined && message.count > 1 && !tcp.policy.adaptive_delayed_ack;
            let included = match is_included {
                true => "the equations include this in the delay of messages only",
                false => "the equations assume immediate acknowledgements",
            };
            warn(format!("the profile may delay acknowledgements of single segments; {included}"));
        }
        if is_refined && message.leaves_part_of_window(tcp) {
            warn(
                "the last segment of a message is short, and the receiver does not enlarge its \
                    window for it (RFC 9293, section 3.8.6.2.2): the next message may wait for a \
                    further round trip, which the equations exclude; enlarge `receive_window`"
                    .to_owned(),
            );
        }
    }
}
