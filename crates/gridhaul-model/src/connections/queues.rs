//! The queues of the link directions: load and mean waiting time.

use gridhaul_core::load::ConnectionRules;
use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::scenario::{ConnectionPolicy, Diagnostic, Directions, Hop, Load, Scenario};

use super::batch::{Batch, Train};
use super::exchange::{Exchange, opening_share};
use super::rounds::Windows;
use super::timers::TimerRules;

/// A direction of a link; those of the members of a group are equal.
#[derive(Debug, Clone, Default)]
pub(super) struct LinkQueue {
    pub name: String,
    pub count: u64,
    pub bits_per_s: f64,
    delay_s: f64,
    /// Packets per second on each, and the sum of their transmission times.
    packets_per_s: f64,
    pub utilisation: f64,
    /// Sum of the squares of the transmission times of the batches of each second.
    second_moment: f64,
    /// Packets that wait for others of their own batch, in the mean.
    waiting_in_batch: f64,
}

/// A flow and the packets of its messages.
#[derive(Debug, Clone)]
pub(super) struct FlowLoad {
    pub name: String,
    pub connections: u64,
    pub messages_per_s: f64,
    pub payload: f64,
    /// Whether the messages are a Poisson process, and whether each has its own connection.
    pub is_random: bool,
    pub has_own_connections: bool,
    /// Whether Nagle's algorithm delays short segments.
    pub nagle: bool,
    pub exchange: Exchange,
    pub windows: Windows,
    pub timer: TimerRules,
    /// Times at which an unanswered SYN is retransmitted, in seconds.
    pub syn_timeouts_s: Vec<f64>,
    /// Rows of the links on its path and on the reverse path.
    pub paths: [Vec<usize>; 2],
}

/// Flows and queues of a scenario.
#[derive(Debug, Clone)]
pub(super) struct Network {
    pub flows: Vec<FlowLoad>,
    pub queues: Vec<LinkQueue>,
}

impl LinkQueue {
    fn transmission_s(&self, bytes: f64) -> f64 {
        bytes * 8.0 / self.bits_per_s
    }

    /// Adds packets that arrive so often.
    fn add(&mut self, train: &Train, per_s: f64) {
        self.waiting_in_batch += per_s * train.waits_s;
        self.packets_per_s += per_s * train.packets as f64;
        self.utilisation += per_s * train.seconds;
        self.second_moment += per_s * train.seconds * train.seconds;
    }

    /// Mean waiting time of a batch, until its first packet is transmitted: the queue M/G/1 with
    /// batches as customers (Pollaczek and Khinchine; Kleinrock 1975, equation 5.113); infinite at
    /// full load.
    pub(super) fn wait_s(&self) -> f64 {
        if self.utilisation < 1.0 {
            self.second_moment / (2.0 * (1.0 - self.utilisation))
        } else {
            f64::INFINITY
        }
    }

    /// Packets that wait, by Little's law.
    pub(super) fn waiting(&self) -> f64 {
        self.packets_per_s * self.wait_s() + self.waiting_in_batch
    }
}

impl Network {
    /// The queues of a scenario with their load.
    pub(super) fn new(scenario: &Scenario) -> Result<Self, Diagnostic> {
        let directions = Directions::new(scenario);
        let keys = Directions::keys(scenario);
        let rows = directions.rows().iter().zip(directions.rates()).zip(keys);
        let queues = rows.map(|(((name, count), rate), keys)| LinkQueue {
            name: name.clone(),
            count: *count,
            bits_per_s: rate.as_bits_per_sec() as f64,
            delay_s: keys.delay.as_secs_f64(),
            ..LinkQueue::default()
        });
        let mut network = Self { flows: Vec::new(), queues: queues.collect() };
        for (name, flow) in &scenario.flow {
            let load = flow.load.plain();
            let (size, every, is_random) = match &*load {
                Load::Periodic(load) => (load.size, load.every, false),
                Load::Poisson(load) => (load.size, load.every, true),
                // Other loads are refused.
                _ => continue,
            };
            let opening = opening_share(flow.connection, &load).unwrap_or(0.0);
            let rules = ConnectionRules::of(flow);
            let stack = StackParams::named(scenario, flow.stack.as_ref(), flow.ip);
            let routes = scenario.routes(name)?;
            let row = |hop: &Hop| {
                let direction = directions.of(&[*hop], 0, 1).next().unwrap_or(0);
                directions.row_of()[direction as usize] as usize
            };
            let paths =
                [&routes.forward, &routes.reverse].map(|path| path.iter().map(row).collect());
            let payload = size.get() as f64;
            network.add(FlowLoad {
                name: name.clone(),
                connections: scenario.connections(flow),
                messages_per_s: 1.0 / every.as_secs_f64(),
                payload,
                is_random,
                has_own_connections: flow.connection == ConnectionPolicy::PerMessage,
                nagle: stack.nagle,
                exchange: Exchange::new(rules.as_ref(), payload, opening, &stack),
                windows: Windows::new(&stack),
                timer: TimerRules::new(&stack),
                syn_timeouts_s: syn_timeouts_s(&stack),
                paths,
            });
        }
        Ok(network)
    }

    fn add(&mut self, flow: FlowLoad) {
        let exchange = &flow.exchange;
        for (packets, share) in
            [(&exchange.opened, exchange.opening), (&exchange.plain, 1.0 - exchange.opening)]
        {
            if share <= 0.0 {
                continue;
            }
            for (direction, path) in flow.paths.iter().enumerate() {
                for packets in flow.windows.batches(packets, direction) {
                    let mut batch = Batch::new(&packets);
                    for &row in path {
                        let queue = &mut self.queues[row];
                        let messages =
                            flow.messages_per_s * flow.connections as f64 / queue.count as f64;
                        for train in batch.cross(queue.bits_per_s) {
                            queue.add(&train, messages * share);
                        }
                    }
                }
            }
        }
        self.flows.push(flow);
    }

    /// Mean time of packets that are sent together, until the last one has crossed all links.
    pub(super) fn crossing_s(&self, flow: &FlowLoad, is_forward: bool, packets: &[f64]) -> f64 {
        let path = &flow.paths[usize::from(!is_forward)];
        let mut batch = Batch::new(packets);
        let mut time = 0.0;
        for &row in path {
            let queue = &self.queues[row];
            batch.cross(queue.bits_per_s);
            time += queue.delay_s + queue.wait_s();
        }
        time + batch.last_s()
    }

    /// Time to transmit this many bytes on the slowest link of a direction.
    pub(super) fn slowest_s(&self, flow: &FlowLoad, is_forward: bool, bytes: f64) -> f64 {
        let path = &flow.paths[usize::from(!is_forward)];
        path.iter().map(|&row| self.queues[row].transmission_s(bytes)).fold(0.0, f64::max)
    }

    /// Timeouts of SYN before SYN-ACK arrives, in the mean.
    pub(super) fn syn_timeouts(&self, flow: &FlowLoad) -> u32 {
        let flights = flow.exchange.opened.flights.iter().take(2);
        let answered_s: f64 = flights.map(|flight| self.flight_s(flow, flight)).sum();
        let expired = flow.syn_timeouts_s.iter().filter(|expires_s| **expires_s < answered_s);
        if flow.exchange.opening > 0.0 { expired.count() as u32 } else { 0 }
    }

    /// Largest utilisation of a queue on the path of a flow.
    pub(super) fn utilisation(&self, flow: &FlowLoad) -> f64 {
        let rows = flow.paths.iter().flatten();
        rows.map(|row| self.queues[*row].utilisation).fold(0.0, f64::max)
    }
}

/// Times of the first retransmissions of SYN: the timeout doubles, in Linux after a number of equal
/// ones.
fn syn_timeouts_s(stack: &StackParams) -> Vec<f64> {
    let mut timeout_s = stack.rto_initial.as_secs_f64();
    let mut at_s = 0.0;
    let next = (0..8).map(|number| {
        at_s += timeout_s;
        if number >= stack.syn_linear_timeouts {
            timeout_s = (timeout_s * 2.0).min(stack.rto_max.as_secs_f64());
        }
        at_s
    });
    next.collect()
}
