//! Classes of senders, the queues that they share, and the loads at which both agree.

use super::resource::{Resource, Response};
use super::workspace::{Seen, Workspace};
use crate::chain::Rates;
use crate::chain::collector::{CollectorTcp, Wan};
use crate::chain::meter::{Conditions, Demand, MeterTcp, Sent};
use crate::queue::Mm1b;
use crate::root::{falling_root, near_root};
use crate::rules::Rules;

/// Queues, and the senders that use them.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// The queues.
    pub resources: Vec<Resource>,
    /// The senders.
    pub classes: Vec<Class>,
    /// Rules of the senders.
    pub rules: Rules,
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
    pub feed: Feed,
}

/// Where the data of a class comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Feed {
    /// An application.
    Meter {
        /// The sender.
        tcp: MeterTcp,
        /// What the application wants to send.
        demand: Demand,
    },
    /// The meters of a region, through a collector's buffer.
    Collector {
        /// The sender.
        tcp: CollectorTcp,
        /// Payload of a segment, in bits.
        payload_bits: f64,
        /// The region of one collector.
        region: Box<Region>,
    },
}

/// The meters of one collector, and the queues on their way to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// Meters and queues.
    pub network: Network,
    /// Index of the buffer among the queues. Its rate is what the collector's connection takes.
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
    pub sent: Sent,
    /// Share of the segments that are lost on their way.
    pub loss: f64,
    /// Mean time from being sent to being received, in seconds.
    pub delay: f64,
    /// Mean round trip, in seconds.
    pub rtt: f64,
    /// What the network does to the sender.
    pub conditions: Conditions,
    /// The region behind a collector.
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
        let near = near_root(&mut excess, start, &mut slope, WIDTH);
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

    /// What one sender of a class sends through queues that behave like this.
    fn stream(&self, class: &Class, responses: &[Response], seen: &mut Seen) -> Stream {
        let way = self.way(class, responses);
        let mut conditions =
            Conditions { loss: way.loss, rtt: way.rtt, pairing: 0.0, variation: 0.0 };
        let (sent, region) = match &class.feed {
            Feed::Meter { tcp, demand } => {
                conditions.pairing = self.pairing(class, responses, way.loss);
                conditions.variation = self.variation(class, responses, demand);
                (seen.meter.sent(tcp, demand, &conditions, self.rules), None)
            }
            Feed::Collector { tcp, payload_bits, region } => {
                let most = seen.most(tcp, &self.wan(class, &way, responses), self.rules);
                let (sent, region) = self.forward(most, *payload_bits, region, &mut seen.region);
                (sent, Some(Box::new(region)))
            }
        };
        let offered = sent.rates.offered;
        let arriving = if offered > 0.0 { sent.rates.arriving / offered } else { 1.0 - way.loss };
        Stream {
            sent,
            loss: (1.0 - arriving).clamp(0.0, 1.0),
            delay: way.delay,
            rtt: way.rtt,
            conditions,
            region,
        }
    }

    fn way(&self, class: &Class, responses: &[Response]) -> Way {
        let mut passing = 1.0 - class.noise;
        let (mut delay, mut rtt) = (class.out, class.out + class.back);
        let mut waits = 0.0;
        for &index in &class.path {
            let (resource, response) = (self.resources[index], responses[index]);
            passing *= 1.0 - response.loss;
            delay += response.wait;
            let own = class.segment_bits / resource.rate;
            if resource.acknowledges && self.rules == Rules::Refined {
                continue;
            }
            delay += own;
            rtt += response.wait + own;
            waits += response.wait;
        }
        let base = (rtt - waits).max(SHORTEST);
        Way { loss: (1.0 - passing).clamp(0.0, 1.0), delay, rtt: rtt.max(SHORTEST), base }
    }

    /// What the network does to a collector.
    fn wan(&self, class: &Class, way: &Way, responses: &[Response]) -> Wan {
        // The queue that Vegas listens to is the one in which most waits.
        let longest =
            class.path.iter().max_by(|&&a, &&b| responses[a].wait.total_cmp(&responses[b].wait));
        let (rho, room, service) = longest.map_or((0.0, 1, 1.0), |&index| {
            (responses[index].rho, self.resources[index].room, responses[index].service)
        });
        let empty = || Mm1b::new(0.0, 1).expect("an empty queue exists");
        let delay = Mm1b::new(rho, room.max(1)).unwrap_or_else(empty).delay();
        Wan { loss: way.loss, rtt: way.rtt, base: way.base, delay, service }
    }

    /// A collector forwards what its region brings, at most what its connection takes.
    ///
    /// The paper loads the network with `most` in any case and gives the region's queue the rate of
    /// all that is sent, repeats included (section 4.1, item 3). That is right while collectors are
    /// never without data; below, a connection is only as busy as its buffer, which serves at the
    /// rate at which *new* segments leave.
    fn forward(
        &self,
        most: Rates,
        payload_bits: f64,
        region: &Region,
        work: &mut Workspace,
    ) -> (Sent, Solution) {
        let paper = self.rules == Rules::Paper;
        let mut inner = region.network.clone();
        let service = if paper { most.offered } else { most.fresh };
        inner.resources[region.buffer].rate =
            (service * payload_bits / region.payload_share).max(f64::MIN_POSITIVE);
        work.serve(region.buffer, inner.resources[region.buffer].rate);
        let solution = inner.solve_from(work);
        let busy = if paper { 1.0 } else { solution.resources[region.buffer].carried().min(1.0) };
        let rates = Rates {
            offered: most.offered * busy,
            fresh: most.fresh * busy,
            arriving: most.arriving * busy,
        };
        (Sent { rates, backlog: false, more: 0.0 }, solution)
    }

    /// How far two segments that are sent together meet the same queue: not if the links before it
    /// space them by more than a service. Each queue counts as much as it adds to the loss, so that
    /// nothing jumps where one begins to lose more than another.
    fn pairing(&self, class: &Class, responses: &[Response], loss: f64) -> f64 {
        let all = (-loss).ln_1p();
        if all >= 0.0 {
            return 0.0;
        }
        let (mut pairing, mut spacing) = (0.0, 0.0_f64);
        for &queue in &class.path {
            let response = responses[queue];
            // Where nothing gets through, both are infinite.
            let part = (-response.loss).ln_1p() / all;
            let share = if part.is_nan() { 1.0 } else { part.clamp(0.0, 1.0) };
            pairing += share * (-spacing / response.service).exp();
            spacing = spacing.max(class.segment_bits / self.resources[queue].rate);
        }
        pairing.min(1.0)
    }

    /// How much the round trips of a class vary, for an application that forgets ([`Conditions::variation`]).
    /// The waits in different queues are taken as independent. The paper's chain knows the mean only.
    fn variation(&self, class: &Class, responses: &[Response], demand: &Demand) -> f64 {
        let forgets = demand.forgets();
        if self.rules == Rules::Paper || forgets <= 0.0 {
            return 0.0;
        }
        let waits = class.path.iter().filter(|&&index| !self.resources[index].acknowledges);
        let of = |&index: &usize| {
            let (resource, response) = (self.resources[index], responses[index]);
            let queue = Mm1b::new(response.rho, resource.room.max(1))?;
            let wait = queue.log_wait_transform(forgets * response.service);
            Some(wait + forgets * response.wait)
        };
        waits.filter_map(of).sum::<f64>().max(0.0)
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

/// Shortest round trip that is computed with, in seconds.
const SHORTEST: f64 = 1e-7;

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

/// What a way does to the segments of a class.
struct Way {
    loss: f64,
    delay: f64,
    rtt: f64,
    /// Round trip without waiting.
    base: f64,
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
mod tests {
    use super::*;
    use crate::chain::meter::{Restart, Timer};

    fn meters(number: f64, rate: f64, vegas: bool, rules: Rules) -> Network {
        let timer = Timer { min: 0.2, max: 60.0, floor_on_variance: false, timestamps: false };
        Network {
            resources: vec![Resource { rate, room: 101, copies: 1.0, acknowledges: false }],
            classes: vec![Class {
                senders: number,
                segment_bits: 1920.0,
                path: vec![0],
                out: 0.05,
                back: 0.05,
                noise: 0.0,
                feed: Feed::Meter {
                    tcp: MeterTcp { vegas, window: 2, timer, restart: Restart::Never },
                    demand: Demand::Greedy { on: 0.1, off: 60.0 },
                },
            }],
            rules,
        }
    }

    #[test]
    fn a_wide_link_leaves_the_meters_alone() {
        let solution = meters(1_000.0, 1e9, false, Rules::Refined).solve();
        assert!(solution.converged && solution.classes[0].loss < 1e-12);
        assert!((solution.classes[0].rtt - 0.1).abs() < 1e-4);
    }

    #[test]
    fn where_it_begins_decides_nothing() {
        let mut work = Workspace::default();
        for rules in [Rules::Paper, Rules::Refined] {
            for vegas in [false, true] {
                for number in [1e7, 3e4, 2e3, 4e5, 1.0, 1e5] {
                    let network = meters(number, 2e6, vegas, rules);
                    let (again, alone) = (network.solve_from(&mut work), network.solve());
                    let apart = (again.resources[0].rho / alone.resources[0].rho).ln().abs();
                    assert!(apart < 1e-7 && again.converged, "{number} {rules:?}: {apart}");
                }
            }
        }
    }

    #[test]
    fn queues_carry_what_senders_offer() {
        for rules in [Rules::Paper, Rules::Refined] {
            for vegas in [false, true] {
                for number in [1e3, 3e4, 1e5, 4e5, 1e7] {
                    let solution = meters(number, 2e6, vegas, rules).solve();
                    let rates = solution.classes[0].sent.rates;
                    let carried = number * rates.arriving * 1920.0 / 2e6;
                    assert!(solution.converged, "{number} {solution:?}");
                    let queue = solution.resources[0];
                    assert!((carried / queue.carried() - 1.0).abs() < 1e-6);
                    assert!(rates.offered >= rates.arriving);
                }
            }
        }
    }
}
