//! Classes of senders, the queues that they share, and the fixed point of their loads.

mod sending;

use super::resource::{Resource, Response};
use super::workspace::Workspace;
use crate::chain::aggregator::AggregatorTcp;
use crate::chain::meter::{Conditions, Demand, MeterOutput, MeterTcp};
use crate::model_rules::ModelRules;
use crate::root_finding::{Evaluation, falling_root, secant_root};

/// A network of queues and senders.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// Queues.
    pub resources: Vec<Resource>,
    /// Classes of senders.
    pub classes: Vec<Class>,
    /// ModelAssumptions about the senders.
    pub rules: ModelRules,
}

/// A class of identical senders.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// Number of senders.
    pub senders: f64,
    /// Size of a segment with headers, in bits.
    pub segment_bits: f64,
    /// Queues on the path, in order, as indices into [`Network::resources`].
    pub path: Vec<usize>,
    /// Propagation delay to the destination, in seconds.
    pub forward_delay: f64,
    /// Delay of an acknowledgement on the reverse path, in seconds.
    pub reverse_delay: f64,
    /// Loss ratio on the path that does not depend on the load.
    pub independent_loss: f64,
    /// Source of the data, with the TCP parameters.
    pub source: DataSource,
}

/// The data source of a class.
#[derive(Debug, Clone, PartialEq)]
pub enum DataSource {
    /// An application.
    Meter {
        /// TCP parameters.
        tcp: MeterTcp,
        /// Traffic demand of the application.
        demand: Demand,
    },
    /// The meters of a region, through an aggregator's buffer.
    Aggregator {
        /// TCP parameters.
        tcp: AggregatorTcp,
        /// Payload of a segment, in bits.
        payload_bits: f64,
        /// The region of one aggregator.
        region: Box<Region>,
    },
}

/// The meters of one aggregator, and the queues on their path to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// Meters and queues.
    pub network: Network,
    /// Index of the aggregator's buffer among the queues. Its service rate is that of the
    /// aggregator's upstream connection.
    pub buffer: usize,
    /// Ratio of payload to size of the segments in the buffer.
    pub payload_share: f64,
}

/// The fixed point of the loads of senders and queues.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// Loss and delay of each queue.
    pub resources: Vec<Response>,
    /// Result for each class.
    pub classes: Vec<Stream>,
    /// Largest relative difference between the delivery rate of the senders and the carried load of
    /// a queue.
    pub residual: f64,
    /// Evaluations of the senders' chains.
    pub evaluations: u32,
    /// Whether the solver has converged.
    pub converged: bool,
}

/// The result for one sender of a class.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    /// Rates in segments per second.
    pub sent: MeterOutput,
    /// Loss ratio of the segments on the path.
    pub loss: f64,
    /// Mean one-way delay, in seconds.
    pub delay: f64,
    /// Mean round-trip time, in seconds.
    pub rtt: f64,
    /// Network conditions of the sender.
    pub conditions: Conditions,
    /// The region of an aggregator.
    pub region: Option<Box<Solution>>,
}

/// Residual that counts as converged.
const CONVERGED: f64 = 1e-6;
/// Rounds over all queues after which the solver stops.
const ROUNDS: u32 = 200;
/// Maximum number of iterations for the mean packet size.
const SIZE_ITERATIONS_MAX: u32 = 30;
/// Ratio of the changes of consecutive rounds above which the step size is reduced, and the minimum
/// step size.
const SLOW_CONVERGENCE: f64 = 0.7;
const SHORTEST_STEP: f64 = 0.05;
/// Width of the bracket of ln ρ at which a root is found.
const WIDTH: f64 = 1e-8;
/// Search range of ln ρ.
const RANGE: (f64, f64) = (-80.0, 80.0);

impl Network {
    /// Solves for the loads.
    #[must_use]
    pub fn solve(&self) -> Solution {
        self.solve_from(&mut Workspace::default())
    }

    /// As [`Self::solve`], starting from the solution of another network of the same structure. The
    /// starting point affects the computing time; the resulting loads differ by less than the
    /// residual.
    pub fn solve_from(&self, work: &mut Workspace) -> Solution {
        work.fit(self.resources.len(), self.classes.len());
        let mut state = State::new(self, work);
        let (mut last, mut step) = (f64::INFINITY, 1.0);
        for _ in 0..ROUNDS {
            let mut change = 0.0_f64;
            for index in 0..self.resources.len() {
                let before = state.work.rho[index];
                change = change.max(self.solve_queue(&mut state, index));
                let after = state.work.rho[index];
                if step < 1.0 && after > 0.0 {
                    state.work.rho[index] = before * (after / before).powf(step);
                }
            }
            // A single queue is solved in one round; several queues until a round changes nothing.
            if self.resources.len() < 2 || change < WIDTH {
                break;
            }
            // Two saturated queues in series may oscillate: damp the steps.
            if change > SLOW_CONVERGENCE * last {
                step = f64::max(0.7 * step, SHORTEST_STEP);
            }
            last = change;
        }
        self.finish(state)
    }

    /// Solves for the load of one queue, with the other loads fixed. Returns the relative change.
    fn solve_queue(&self, state: &mut State<'_>, index: usize) -> f64 {
        let before = state.work.rho[index];
        let start = before.ln().clamp(RANGE.0 + 1.0, RANGE.1 - 1.0);
        let mut slope = state.work.slope[index];
        let mut excess = |log: f64| {
            state.work.rho[index] = log.exp();
            self.excess(state, index).clamp(RANGE.0, RANGE.1)
        };
        // Secant steps from the previous solution; if they fail, bracketing, which always
        // converges.
        let root = secant_root(&mut excess, start, &mut slope, WIDTH);
        let rho = root.map_or_else(
            || {
                bracket(&mut excess, start)
                    .map_or(0.0, |(low, high)| falling_root(&mut excess, low, high, WIDTH).at.exp())
            },
            f64::exp,
        );
        state.work.rho[index] = rho;
        state.work.slope[index] = slope;
        if rho > 0.0 { (rho / before).ln().abs() } else { 0.0 }
    }

    /// Logarithm of the ratio of the delivery rate of a queue's senders to its carried load; falls
    /// with the load.
    ///
    /// The load of a queue assumes Poisson arrivals. Senders that transmit in pairs lose more than
    /// single arrivals; therefore the delivery rates are compared instead of the offered rates.
    fn excess(&self, state: &mut State<'_>, index: usize) -> f64 {
        let resource = self.resources[index];
        let mut bits = 0.0;
        // The mean packet size determines the waiting time, which determines the rates of the
        // classes: an iteration, which takes one pass if all packets have the same size.
        for _ in 0..SIZE_ITERATIONS_MAX {
            let packets;
            (packets, bits) = self.passing(state, index);
            let mean = if packets > 0.0 { bits / packets } else { state.bits[index] };
            let change = (mean / state.bits[index] - 1.0).abs();
            state.bits[index] = mean;
            if change < WIDTH * 1e-2 {
                break;
            }
        }
        let carried = resource.response(state.work.rho[index], state.bits[index]).carried;
        (bits / (resource.rate * resource.copies) / carried).ln()
    }

    /// Packets and bits per second that the senders deliver through a queue.
    fn passing(&self, state: &mut State<'_>, index: usize) -> (f64, f64) {
        let (mut packets, mut bits) = (0.0, 0.0);
        let responses = self.responses(state);
        for (place, class) in self.classes.iter().enumerate() {
            if !class.path.contains(&index) {
                continue;
            }
            let stream = self.stream(class, &responses, &mut state.work.classes[place]);
            state.evaluations += 1;
            let passing = class.senders * stream.sent.rates.arriving
                / delivery_after(class, index, &responses).max(f64::MIN_POSITIVE);
            packets += passing;
            bits += passing * class.segment_bits;
        }
        (packets, bits)
    }

    fn responses(&self, state: &State<'_>) -> Vec<Response> {
        let loads = state.work.rho.iter().zip(&state.bits);
        self.resources.iter().zip(loads).map(|(r, (&rho, &bits))| r.response(rho, bits)).collect()
    }

    fn finish(&self, mut state: State<'_>) -> Solution {
        let mut residual = 0.0_f64;
        for index in 0..self.resources.len() {
            if state.work.rho[index] > 0.0 {
                residual = residual.max(self.excess(&mut state, index).abs());
            }
        }
        let resources = self.responses(&state);
        let memory = self.classes.iter().zip(&mut state.work.classes);
        let classes: Vec<Stream> =
            memory.map(|(class, memory)| self.stream(class, &resources, memory)).collect();
        let finite = classes.iter().all(|stream| {
            let rates = stream.sent.rates;
            let inner = stream.region.as_ref().is_none_or(|region| region.converged);
            inner
                && rates.offered.is_finite()
                && rates.fresh.is_finite()
                && stream.delay.is_finite()
        });
        Solution {
            resources,
            classes,
            residual,
            evaluations: state.evaluations,
            converged: finite && residual < CONVERGED,
        }
    }
}

/// State of the solver.
struct State<'w> {
    work: &'w mut Workspace,
    /// Mean packet size in each queue, in bits.
    bits: Vec<f64>,
    evaluations: u32,
}

impl<'w> State<'w> {
    fn new(network: &Network, work: &'w mut Workspace) -> Self {
        let bits = |index: usize| {
            let users = network.classes.iter().filter(|class| class.path.contains(&index));
            users.map(|class| class.segment_bits).fold(1.0, f64::max)
        };
        Self { work, bits: (0..network.resources.len()).map(bits).collect(), evaluations: 0 }
    }
}

/// Delivery probability of a packet after it has left a queue.
fn delivery_after(class: &Class, index: usize, responses: &[Response]) -> f64 {
    let after = class.path.iter().skip_while(|&&queue| queue != index).skip(1);
    after.map(|&queue| 1.0 - responses[queue].loss).product::<f64>()
        * (1.0 - class.independent_loss)
}

/// Two points that bracket the zero of a falling function; `None` if it is negative down to the
/// lower end of the range.
fn bracket(f: &mut impl FnMut(f64) -> f64, start: f64) -> Option<(Evaluation, Evaluation)> {
    let mut point = Evaluation { at: start, value: f(start) };
    let mut step = 0.25;
    loop {
        let up = point.value > 0.0;
        let next = (point.at + if up { step } else { -step }).clamp(RANGE.0, RANGE.1);
        let found = Evaluation { at: next, value: f(next) };
        if (found.value > 0.0) != up {
            return Some(if up { (point, found) } else { (found, point) });
        }
        if next <= RANGE.0 {
            return None;
        }
        if next >= RANGE.1 {
            return Some((found, Evaluation { at: next, value: -0.0 }));
        }
        point = found;
        step *= 2.0;
    }
}

#[cfg(test)]
mod tests;
