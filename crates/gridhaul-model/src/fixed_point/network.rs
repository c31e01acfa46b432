//! Classes of senders, the queues that they share, and the loads at which both agree.

mod sending;

use super::resource::{Resource, Response};
use super::workspace::Workspace;
use crate::chain::aggregator::AggregatorTcp;
use crate::chain::meter::{Conditions, Demand, MeterOutput, MeterTcp};
use crate::model_rules::ModelRules;
use crate::root_finding::{falling_root, secant_root};

/// Queues, and the senders that use them.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// The queues.
    pub resources: Vec<Resource>,
    /// The senders.
    pub classes: Vec<Class>,
    /// ModelRules of the senders.
    pub rules: ModelRules,
}

/// Equal senders.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// How many.
    pub senders: f64,
    /// Size of a segment with headers, in bits.
    pub segment_bits: f64,
    /// Queues on the way, in order, as indices into [`Network::resources`].
    pub path: Vec<usize>,
    /// Propagation to the far end, in seconds.
    pub out: f64,
    /// Time that an acknowledgement takes back, in seconds.
    pub back: f64,
    /// Loss on the way that has nothing to do with queues.
    pub noise: f64,
    /// What they send, and by which rules.
    pub source: DataSource,
}

/// Where the data of a class comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum DataSource {
    /// An application.
    Meter {
        /// The sender.
        tcp: MeterTcp,
        /// What the application wants to send.
        demand: Demand,
    },
    /// The meters of a region, through an aggregator's buffer.
    Aggregator {
        /// The sender.
        tcp: AggregatorTcp,
        /// Payload of a segment, in bits.
        payload_bits: f64,
        /// The region of one aggregator.
        region: Box<Region>,
    },
}

/// The meters of one aggregator, and the queues on their way to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// Meters and queues.
    pub network: Network,
    /// Index of the buffer among the queues. Its rate is what the aggregator's connection takes.
    pub buffer: usize,
    /// Payload over size of the segments in the buffer.
    pub payload_share: f64,
}

/// The loads at which senders and queues agree.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// Behaviour of each queue.
    pub resources: Vec<Response>,
    /// What each class sends and gets.
    pub classes: Vec<Stream>,
    /// Largest difference between what senders get through a queue and what it carries, as a share.
    pub residual: f64,
    /// Evaluations of the senders' chains.
    pub evaluations: u32,
    /// Whether the residual is small enough to trust.
    pub converged: bool,
}

/// What one sender of a class sends and gets.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    /// Segments per second.
    pub sent: MeterOutput,
    /// Share of the segments that are lost on their way.
    pub loss: f64,
    /// Mean time from being sent to being received, in seconds.
    pub delay: f64,
    /// Mean round trip, in seconds.
    pub rtt: f64,
    /// What the network does to the sender.
    pub conditions: Conditions,
    /// The region behind an aggregator.
    pub region: Option<Box<Solution>>,
}

/// Residual that counts as converged.
const CONVERGED: f64 = 1e-6;
/// Rounds over all queues after which the solver gives up.
const ROUNDS: u32 = 200;
/// Passes after which the mean size of packets is left as it is.
const MIXES: u32 = 30;
/// Share of a round's change that the next may have before steps are made shorter, and the least
/// share of a step that is gone.
const SLOW: f64 = 0.7;
const SHORTEST_STEP: f64 = 0.05;
/// Width of the bracket of ln ρ at which a root is found.
const WIDTH: f64 = 1e-8;
/// Least and largest ln ρ that are looked at.
const RANGE: (f64, f64) = (-80.0, 80.0);

impl Network {
    /// Finds the loads.
    #[must_use]
    pub fn solve(&self) -> Solution {
        self.solve_from(&mut Workspace::default())
    }

    /// As [`Self::solve`], beginning with what another network of the same shape left behind. Where
    /// it begins decides how long it takes; the loads it finds differ by less than the residual.
    pub fn solve_from(&self, work: &mut Workspace) -> Solution {
        work.fit(self.resources.len(), self.classes.len());
        let mut state = State::new(self, work);
        let (mut last, mut step) = (f64::INFINITY, 1.0);
        for _ in 0..ROUNDS {
            let mut change = 0.0_f64;
            for index in 0..self.resources.len() {
                let before = state.work.rho[index];
                change = change.max(self.settle(&mut state, index));
                let after = state.work.rho[index];
                if step < 1.0 && after > 0.0 {
                    state.work.rho[index] = before * (after / before).powf(step);
                }
            }
            // One queue is found at once; of several, the last round changes nothing.
            if self.resources.len() < 2 || change < WIDTH {
                break;
            }
            // Two full queues in a row answer each other, and may do so for ever: shorter steps.
            if change > SLOW * last {
                step = f64::max(0.7 * step, SHORTEST_STEP);
            }
            last = change;
        }
        self.finish(state)
    }

    /// Sets one load so that what its senders get through is what the queue carries, while the
    /// others stay. Returns by how much it changed, as a share.
    fn settle(&self, state: &mut State<'_>, index: usize) -> f64 {
        let before = state.work.rho[index];
        let start = before.ln().clamp(RANGE.0 + 1.0, RANGE.1 - 1.0);
        let mut slope = state.work.slope[index];
        let mut excess = |log: f64| {
            state.work.rho[index] = log.exp();
            self.excess(state, index).clamp(RANGE.0, RANGE.1)
        };
        // A few steps from a good beginning; where they fail, a bracket that cannot.
        let near = secant_root(&mut excess, start, &mut slope, WIDTH);
        let rho = near.map_or_else(
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

    /// Logarithm of what a queue's senders get through it, over what it carries at its load: falls
    /// with the load.
    ///
    /// The load of a queue is that of Poisson arrivals. Where senders send in pairs, more is lost
    /// than of single arrivals; what passes is compared, so that no equation has to be bent.
    fn excess(&self, state: &mut State<'_>, index: usize) -> f64 {
        let resource = self.resources[index];
        let mut bits = 0.0;
        // The mean size of the packets decides how long they wait, and that who sends how many: with
        // one size this is one pass.
        for _ in 0..MIXES {
            let packets;
            (packets, bits) = self.passing(state, index);
            let mean = if packets > 0.0 { bits / packets } else { state.bits[index] };
            let change = (mean / state.bits[index] - 1.0).abs();
            state.bits[index] = mean;
            if change < WIDTH * 1e-2 {
                break;
            }
        }
        let carried = resource.response(state.work.rho[index], state.bits[index]).carried();
        (bits / (resource.rate * resource.copies) / carried).ln()
    }

    /// Packets and bits per second that senders get through a queue.
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
                / beyond(class, index, &responses).max(f64::MIN_POSITIVE);
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
        let seen = self.classes.iter().zip(&mut state.work.classes);
        let classes: Vec<Stream> =
            seen.map(|(class, seen)| self.stream(class, &resources, seen)).collect();
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

/// Loads while they are looked for.
struct State<'w> {
    work: &'w mut Workspace,
    /// Mean size of the packets that load each queue, in bits.
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

/// Share of what leaves a queue that arrives in the end.
fn beyond(class: &Class, index: usize, responses: &[Response]) -> f64 {
    let after = class.path.iter().skip_while(|&&queue| queue != index).skip(1);
    after.map(|&queue| 1.0 - responses[queue].loss).product::<f64>() * (1.0 - class.noise)
}

type Point = (f64, f64);

/// Two points between which a falling function passes zero; `None` where it is negative as far
/// down as is looked.
fn bracket(f: &mut impl FnMut(f64) -> f64, start: f64) -> Option<(Point, Point)> {
    let mut point = (start, f(start));
    let mut step = 0.25;
    loop {
        let up = point.1 > 0.0;
        let next = (point.0 + if up { step } else { -step }).clamp(RANGE.0, RANGE.1);
        let found = (next, f(next));
        if (found.1 > 0.0) != up {
            return Some(if up { (point, found) } else { (found, point) });
        }
        if next <= RANGE.0 {
            return None;
        }
        if next >= RANGE.1 {
            return Some((found, (next, -0.0)));
        }
        point = found;
        step *= 2.0;
    }
}

#[cfg(test)]
mod tests;
