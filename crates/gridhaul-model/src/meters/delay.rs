//! Message delay: queueing, retransmissions, and waiting for earlier messages.

use super::layout::{FlowEntry, Layout, MessageInterval, Upstream};
use super::upstream_segments;
use crate::chain::Elimination;
use crate::chain::meter::Demand;
use crate::chain::meter::timer_wait::{single_segment_timer_wait, timer_wait};
use crate::fixed_point::{Class, DataSource, Network, Solution, Stream};
use crate::queue::Mm1b;
use crate::time_distribution::TimeDistribution;

/// Distribution of the delay of a flow's messages, from submission to complete arrival. `None` if
/// it does not exist: no messages, no delivery, or a growing backlog.
///
/// The components are added as independent random variables:
///
/// - the transit time of the last round: propagation, transmission of its segments one after
///   another, and the waiting times in each queue and in an aggregator's buffer with the M/M/1/B
///   distribution;
/// - the rounds before the last, with the segment that Nagle's algorithm keeps back
///   (`message_segments.rs`);
/// - for each window, the timeouts until all its segments have arrived
///   (`chain/meter/timer_wait.rs`);
/// - the wait for earlier messages of the same connection: delivery is in order, so a message in a
///   timeout delays the following ones (Lindley's recursion);
/// - on the upstream connection of an aggregator, a fast retransmit or a timeout for each lost
///   segment, whichever is earlier. Until then, the messages after the lost segment wait for it;
/// - the wait for the acknowledgement of an earlier segment on this connection
///   (`upstream_segments.rs`).
///
/// `timers` caches the elimination plan of the sender's chain.
pub(super) fn message(
    layout: &Layout,
    solution: &Solution,
    place: &FlowEntry,
    timers: &mut Elimination,
) -> Option<TimeDistribution> {
    if layout.network.rules.are_of_a_paper() {
        // The paper's chains give rates only, not the timeout of an individual message.
        return None;
    }
    match place.upstream {
        None => first_hop(&layout.network, solution, place, timers),
        Some(index) => {
            let upstream = &layout.upstream[index];
            let (network, inner) = super::region::region(layout, solution, upstream);
            let meter = first_hop(network, inner, place, timers)?;
            let upper = second_hop(&layout.network, solution, upstream)?;
            let segments = (f64::from(place.sizes.segments) * place.sizes.payload
                / upstream.sizes.payload)
                .ceil();
            // The aggregator forwards complete messages.
            let class = &layout.network.classes[upstream.class];
            let slowest_s = link_rates(&layout.network, class)
                .map(|rate| class.segment_bits / rate)
                .fold(0.0, f64::max);
            let earlier_s = (segments - 1.0).max(0.0) * slowest_s;
            let wait = upstream_segments::wait_for_acknowledgement(layout, solution, index);
            let fixed = TimeDistribution::exactly(earlier_s);
            Some(meter.plus(&upper).plus(&wait).plus(&fixed))
        }
    }
}

fn first_hop(
    network: &Network,
    solution: &Solution,
    place: &FlowEntry,
    timers: &mut Elimination,
) -> Option<TimeDistribution> {
    let (class, stream) = (&network.classes[place.class], &solution.classes[place.class]);
    let DataSource::Meter { tcp, demand } = &class.source else { return None };
    if stream.sent.backlog {
        return None;
    }
    let timers = timer_wait(tcp, demand, &stream.conditions, stream.sent.more, timers)?;
    // With backpressure, the window opens again when the segments have left the buffer.
    let round = stream.rtt + stream.conditions.window_closed;
    let rates: Vec<f64> = link_rates(network, class).collect();
    let rounds = place.message.rounds(tcp, round, class.segment_bits, &rates);
    let mut service = timers.times(rounds.count);
    service = service.plus(&TimeDistribution::exactly(rounds.before_last_s));
    let mut delay = service.plus(&transit_time(network, solution, class));
    if place.message.count > 1 {
        let one: f64 = rates.iter().map(|rate| class.segment_bits / rate).sum();
        let further = place.message.crossing_s(&rounds, &rates) - one;
        delay = delay.plus(&TimeDistribution::exactly(further));
    }
    if let Demand::Messages { per_second, .. } = *demand {
        if stream.conditions.window_closed > 0.0 {
            service = service.plus(&TimeDistribution::exactly(round));
        }
        delay =
            delay.plus(&wait_for_earlier_messages(&service, per_second, place.message_interval)?);
    }
    Some(delay)
}

/// From an aggregator to the destination.
fn second_hop(
    network: &Network,
    solution: &Solution,
    upstream: &Upstream,
) -> Option<TimeDistribution> {
    let (class, stream) = (&network.classes[upstream.class], &solution.classes[upstream.class]);
    let DataSource::Aggregator { tcp, .. } = &class.source else { return None };
    let Stream { rtt, conditions, .. } = stream;
    let per_second = stream.sent.rates.offered;
    // Three segments after the lost one cause a fast retransmit (RFC 5681, section 3.2), if they
    // follow soon enough.
    let fast = 3.0 / per_second + rtt;
    let repairs = single_segment_timer_wait(tcp.timer, *rtt, fast, conditions.loss)?;
    Some(repairs.in_order(per_second).plus(&transit_time(network, solution, class)))
}

/// Share of the round trips of a flow that are longer than the retransmission timeout. Each of them
/// causes a spurious retransmission, which the equations ignore.
pub(super) fn share_beyond_timeout(layout: &Layout, solution: &Solution, place: &FlowEntry) -> f64 {
    let (network, solution) = match place.upstream {
        None => (&layout.network, solution),
        Some(index) => super::region::region(layout, solution, &layout.upstream[index]),
    };
    let (class, stream) = (&network.classes[place.class], &solution.classes[place.class]);
    let DataSource::Meter { tcp, .. } = &class.source else { return 0.0 };
    let timeout = tcp.timer.after(0, stream.rtt);
    let mut fixed = class.forward_delay + class.reverse_delay;
    let mut waits = Vec::new();
    for &index in &class.path {
        let (resource, response) = (network.resources[index], solution.resources[index]);
        if resource.acknowledges {
            continue;
        }
        fixed += class.segment_bits / resource.rate;
        let queue = Mm1b::new(response.rho, resource.capacity.max(1));
        waits.extend(queue.map(|queue| (queue.delay(), response.service)));
    }
    let longest: f64 = waits.iter().map(|(delay, service)| delay.longest() * service).sum();
    if fixed + longest < timeout * (1.0 - ROUNDING) {
        // Most round trips are much shorter: their distribution is not needed.
        return 0.0;
    }
    let mut rtt = TimeDistribution::exactly(fixed);
    for (delay, service) in waits {
        rtt = rtt.plus(&TimeDistribution::wait(delay, service));
    }
    1.0 - rtt.within(timeout)
}

/// Relative error of a sum of times, with a margin.
const ROUNDING: f64 = 1e-9;

/// Transit time of one segment through all queues of a path.
fn transit_time(network: &Network, solution: &Solution, class: &Class) -> TimeDistribution {
    let mut transit_time = TimeDistribution::exactly(class.forward_delay);
    for &index in &class.path {
        let (resource, response) = (network.resources[index], solution.resources[index]);
        if !resource.acknowledges {
            transit_time =
                transit_time.plus(&TimeDistribution::exactly(class.segment_bits / resource.rate));
        }
        if let Some(queue) = resource.finite_source(response.rho) {
            transit_time =
                transit_time.plus(&TimeDistribution::closed_wait(&queue, response.service));
        } else if let Some(queue) = Mm1b::new(response.rho, resource.capacity.max(1)) {
            transit_time =
                transit_time.plus(&TimeDistribution::wait(queue.delay(), response.service));
        }
    }
    transit_time
}

/// Rates of the links on a path; an aggregator's buffer is no link.
fn link_rates(network: &Network, class: &Class) -> impl Iterator<Item = f64> {
    let resources = class.path.iter().map(|&index| network.resources[index]);
    resources.filter(|resource| !resource.acknowledges).map(|resource| resource.rate)
}

/// Waiting time for earlier messages, each of which occupies the connection for its service time.
/// `None` if the utilisation is 1 or more.
fn wait_for_earlier_messages(
    service: &TimeDistribution,
    per_second: f64,
    message_interval: MessageInterval,
) -> Option<TimeDistribution> {
    let busy = service.mean() * per_second;
    if busy >= 1.0 {
        return None;
    }
    let mut wait = TimeDistribution::exactly(0.0);
    if busy < IDLE {
        return Some(wait);
    }
    let gap = match message_interval {
        MessageInterval::Fixed => TimeDistribution::exactly(1.0 / per_second),
        MessageInterval::Random => {
            // Exponential distribution, as equally likely values.
            let at = |step: u32| -(1.0 - (f64::from(step) + 0.5) / 32.0).ln() / per_second;
            TimeDistribution::of((0..32).map(|step| (at(step), 1.0)).collect())?
        }
    };
    for _ in 0..LINDLEY_STEPS_MAX {
        let next = wait.plus(service).after(&gap);
        let change = (next.mean() - wait.mean()).abs();
        wait = next;
        if change < 1e-3 * service.mean() {
            break;
        }
    }
    Some(wait)
}

/// Utilisation below which the wait is neglected.
const IDLE: f64 = 1e-4;
/// Maximum number of steps of the recursion.
const LINDLEY_STEPS_MAX: u32 = 40;
