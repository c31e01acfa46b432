//! How long a message takes: what waits in queues and buffers, what is repeated, and what waits
//! behind another message.

use super::layout::{Every, FlowEntry, Layout, Sizes, Upstream};
use crate::chain::Elimination;
use crate::chain::meter::timer_wait::{single_segment_timer_wait, timer_wait};
use crate::chain::meter::{Demand, MeterTcp, Restart};
use crate::fixed_point::{Class, DataSource, Network, Solution, Stream};
use crate::model_rules::ModelRules;
use crate::queue::Mm1b;
use crate::time_distribution::TimeDistribution;

/// Distribution of the delay of a flow's messages, from being ready to having arrived whole.
/// `None` where there is none: no messages, none that arrives, or a backlog that grows.
///
/// The parts are added as if they were independent:
///
/// - the passage of the last segment: propagation, transmission, and the wait in each queue and in a
///   aggregator's buffer by the distribution of M/M/1/B;
/// - a round trip for each window before the last;
/// - for each window, the timers until everything in it has arrived (`chain/meter/timer_wait.rs`);
/// - the wait behind earlier messages of the same connection: they are delivered in order, so a
///   message that waits for its timer holds those behind it (Lindley's recursion);
/// - from an aggregator on, a timer for each segment lost there. Fast retransmits of an aggregator
///   that has much to send are not known here.
///
/// `timers` plans the elimination of the sender's chain, once for all chains of one shape.
pub(super) fn message(
    layout: &Layout,
    solution: &Solution,
    place: &FlowEntry,
    timers: &mut Elimination,
) -> Option<TimeDistribution> {
    if layout.network.rules == ModelRules::Paper {
        // Its chains give rates; a timeout there has no length that belongs to a message.
        return None;
    }
    match place.upstream {
        None => first_hop(&layout.network, solution, place, timers),
        Some(index) => {
            let upstream = &layout.upstream[index];
            let (network, inner) = super::answer::region(layout, solution, upstream);
            let meter = first_hop(network, inner, place, timers)?;
            Some(meter.plus(&second_hop(&layout.network, solution, upstream)?))
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
    let rounds = rounds(tcp, &place.sizes);
    let mut service = timers.times(rounds);
    let before = f64::from(rounds - 1) * stream.rtt;
    service = service.plus(&TimeDistribution::exactly(before));
    let mut delay = service.plus(&passage(network, solution, class));
    if let Demand::Messages { per_second, .. } = *demand {
        delay = delay.plus(&behind(&service, per_second, place.every)?);
    }
    Some(delay)
}

/// From an aggregator to the end.
fn second_hop(
    network: &Network,
    solution: &Solution,
    upstream: &Upstream,
) -> Option<TimeDistribution> {
    let (class, stream) = (&network.classes[upstream.class], &solution.classes[upstream.class]);
    let DataSource::Aggregator { tcp, .. } = &class.source else { return None };
    let Stream { rtt, conditions, .. } = stream;
    let timers = single_segment_timer_wait(tcp.timer, *rtt, conditions.loss)?;
    Some(timers.plus(&passage(network, solution, class)))
}

/// Share of the round trips of a flow that are longer than the retransmission timeout, as the equations have
/// it. Each of these is a spurious retransmission, which the equations do not count.
pub(super) fn beyond_timeout(layout: &Layout, solution: &Solution, place: &FlowEntry) -> f64 {
    let (network, solution) = match place.upstream {
        None => (&layout.network, solution),
        Some(index) => super::answer::region(layout, solution, &layout.upstream[index]),
    };
    let (class, stream) = (&network.classes[place.class], &solution.classes[place.class]);
    let DataSource::Meter { tcp, .. } = &class.source else { return 0.0 };
    let mut rtt = TimeDistribution::exactly(class.out + class.back);
    for &index in &class.path {
        let (resource, response) = (network.resources[index], solution.resources[index]);
        if resource.acknowledges {
            continue;
        }
        rtt = rtt.plus(&TimeDistribution::exactly(class.segment_bits / resource.rate));
        if let Some(queue) = Mm1b::new(response.rho, resource.room.max(1)) {
            rtt = rtt.plus(&TimeDistribution::wait(queue.delay(), response.service));
        }
    }
    1.0 - rtt.within(tcp.timer.after(0, stream.rtt))
}

/// One segment through all queues of a way.
fn passage(network: &Network, solution: &Solution, class: &Class) -> TimeDistribution {
    let mut passage = TimeDistribution::exactly(class.out);
    for &index in &class.path {
        let (resource, response) = (network.resources[index], solution.resources[index]);
        if !resource.acknowledges {
            passage = passage.plus(&TimeDistribution::exactly(class.segment_bits / resource.rate));
        }
        if let Some(queue) = Mm1b::new(response.rho, resource.room.max(1)) {
            passage = passage.plus(&TimeDistribution::wait(queue.delay(), response.service));
        }
    }
    passage
}

/// Windows that a message takes.
fn rounds(tcp: &MeterTcp, sizes: &Sizes) -> u32 {
    let segments = sizes.segments.max(1);
    match (tcp.window, tcp.restart) {
        (..=1, _) => segments,
        (_, Restart::OneSegment { .. }) => 1 + (segments - 1).div_ceil(2),
        _ => segments.div_ceil(2),
    }
}

/// Wait behind earlier messages, each of which holds the others for some time. `None` if they
/// come faster than that.
fn behind(service: &TimeDistribution, per_second: f64, every: Every) -> Option<TimeDistribution> {
    let busy = service.mean() * per_second;
    if busy >= 1.0 {
        return None;
    }
    let mut wait = TimeDistribution::exactly(0.0);
    if busy < IDLE {
        return Some(wait);
    }
    let gap = match every {
        Every::Fixed => TimeDistribution::exactly(1.0 / per_second),
        Every::Random => {
            // Exponential, by values that are equally likely.
            let at = |step: u32| -(1.0 - (f64::from(step) + 0.5) / 32.0).ln() / per_second;
            TimeDistribution::of((0..32).map(|step| (at(step), 1.0)).collect())?
        }
    };
    for _ in 0..MESSAGES {
        let next = wait.plus(service).after(&gap);
        let change = (next.mean() - wait.mean()).abs();
        wait = next;
        if change < 1e-3 * service.mean() {
            break;
        }
    }
    Some(wait)
}

/// Share of time below which a connection holds nothing up.
const IDLE: f64 = 1e-4;
/// Messages after which the wait has settled, or is as long as it gets here.
const MESSAGES: u32 = 40;
