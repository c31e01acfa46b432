//! Segments of the upstream connections of aggregators that carry messages below the MSS.
//!
//! An aggregator sends a message as a segment of its own, unless others arrive before it can: while
//! Nagle's algorithm waits for an acknowledgement (RFC 9293, section 3.7.4), or while the window is
//! closed and messages wait in the buffer. The size of a segment therefore depends on the solution,
//! and the solution on the size.

use gridhaul_scenario::scenario::{Diagnostic, Scenario};

use super::layout::{FlowEntry, Layout, Upstream, layout};
use super::region::region;
use crate::chain::meter::Restart;
use crate::fixed_point::{DataSource, Solution, Workspace};
use crate::model_rules::ModelRules;
use crate::time_distribution::TimeDistribution;

/// Relative error of the sizes of segments; at least one byte.
const PRECISION: f64 = 0.02;

/// Messages that arrive in a round trip up to which a restarted window of one segment delays only
/// those that follow in the first round trip.
const FEW: f64 = 1.0;

/// Messages of an aggregator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Messages {
    per_s: f64,
    bytes: f64,
}

/// Solves a scenario with the sizes of the segments of upstream connections that follow from the
/// solution.
///
/// # Errors
/// A flow without a path.
pub(super) fn solve(
    scenario: &Scenario,
    rules: ModelRules,
    work: &mut Workspace,
) -> Result<(Layout, Solution), Diagnostic> {
    let full = layout(scenario, rules, &[])?;
    let smallest: Vec<u64> =
        (0..full.upstream.len()).map(|index| smallest_payload(&full, index)).collect();
    if rules != ModelRules::Refined || smallest.iter().zip(&full.upstream).all(is_full) {
        let solution = full.network.solve_from(work);
        return Ok((full, solution));
    }
    let mut low = smallest;
    let mut high: Vec<u64> = full.upstream.iter().map(|upstream| upstream.mss).collect();
    let mut payloads = low.clone();
    let mut step = 0_u32;
    loop {
        let layout = layout(scenario, rules, &payloads)?;
        let solution = layout.network.solve_from(work);
        let mut is_solved = true;
        for (index, payload) in payloads.iter_mut().enumerate() {
            let wanted = wanted_payload(&layout, &solution, index);
            let near = (*payload as f64 * PRECISION).max(1.0);
            if (wanted - *payload as f64).abs() <= near {
                continue;
            }
            let bound = if wanted > *payload as f64 { &mut low[index] } else { &mut high[index] };
            *bound = *payload;
            // The wanted size is near at low load; the middle of the bounds always comes closer.
            let middle = ((low[index] * high[index]) as f64).sqrt();
            let next = if step.is_multiple_of(2) { wanted } else { middle }.round() as u64;
            let next = next.max(low[index] + 1).min(high[index]);
            is_solved &= next == *payload || (high[index] - low[index]) as f64 <= near;
            *payload = next;
        }
        if is_solved {
            return Ok((layout, solution));
        }
        step += 1;
    }
}

fn is_full((payload, upstream): (&u64, &Upstream)) -> bool {
    *payload >= upstream.mss
}

/// The flows through a group of aggregators.
fn flows(layout: &Layout, index: usize) -> impl Iterator<Item = &FlowEntry> {
    layout.flows.iter().filter(move |flow| flow.upstream == Some(index))
}

/// Payload of a segment with the smallest message, in bytes.
fn smallest_payload(layout: &Layout, index: usize) -> u64 {
    let bytes = flows(layout, index).map(|flow| (flow.message_bits() / 8.0) as u64);
    bytes.min().unwrap_or(1).clamp(1, layout.upstream[index].mss)
}

/// Messages that arrive at an aggregator.
fn messages(layout: &Layout, solution: &Solution, index: usize) -> Messages {
    let (network, inner) = region(layout, solution, &layout.upstream[index]);
    let (mut per_s, mut bits_per_s) = (0.0, 0.0);
    for flow in flows(layout, index) {
        let segments =
            network.classes[flow.class].senders * inner.classes[flow.class].sent.rates.arriving;
        per_s += segments / f64::from(flow.sizes.segments);
        bits_per_s += segments * flow.sizes.payload;
    }
    Messages { per_s, bytes: bits_per_s / 8.0 / per_s.max(f64::MIN_POSITIVE) }
}

/// Payload of a segment in bytes that follows from a solution.
fn wanted_payload(layout: &Layout, solution: &Solution, index: usize) -> f64 {
    let upstream = &layout.upstream[index];
    let messages = messages(layout, solution, index);
    if messages.per_s <= 0.0 {
        return smallest_payload(layout, index) as f64;
    }
    let buffer = region(layout, solution, upstream).1.resources[0];
    let in_each = flows(layout, index).map(|flow| flow.sizes.segments).max().unwrap_or(1);
    // Little's law; a segment takes what waits.
    let waiting = buffer.carried * buffer.wait / buffer.service / f64::from(in_each);
    let mut together = 1.0 + waiting.max(0.0);
    if upstream.nagle {
        let arriving = messages.per_s * upstream.outstanding_s(solution);
        together = f64::max(together, arriving + (-arriving).exp());
    }
    (messages.bytes * together).min(upstream.mss as f64)
}

impl Upstream {
    /// Time from the first transmission of a segment to its acknowledgement.
    fn outstanding_s(&self, solution: &Solution) -> f64 {
        solution.classes[self.class].rtt + self.ack_delay_s
    }
}

/// The wait of a message until the segment before it is acknowledged: for Nagle's algorithm, or
/// because the window has restarted from one segment.
pub(super) fn wait_for_acknowledgement(
    layout: &Layout,
    solution: &Solution,
    index: usize,
) -> TimeDistribution {
    let upstream = &layout.upstream[index];
    let messages = messages(layout, solution, index);
    let outstanding_s = upstream.outstanding_s(solution);
    let arriving = messages.per_s * outstanding_s;
    let is_small = messages.bytes < upstream.mss as f64;
    if upstream.nagle && is_small {
        // Of n messages in a round trip, the first is alone with the probability e^(-n), and all
        // others follow in one segment: a segment is outstanding for this share of the time.
        let share = arriving / (arriving + (-arriving).exp());
        let fill_s = upstream.mss as f64 / messages.bytes / messages.per_s;
        return uniform(share, outstanding_s.min(fill_s));
    }
    let restarts = restarts(layout, solution, index);
    uniform((restarts * arriving).min(1.0), outstanding_s)
}

/// Share of the messages that find the window of their upstream connection at one segment, because
/// they follow a silence longer than the timeout, in which no earlier message waits either.
fn restarts(layout: &Layout, solution: &Solution, index: usize) -> f64 {
    let upstream = &layout.upstream[index];
    let DataSource::Aggregator { tcp, .. } = &layout.network.classes[upstream.class].source else {
        return 0.0;
    };
    let Restart::OneSegment { from_ack } = upstream.restart else { return 0.0 };
    let rtt_s = solution.classes[upstream.class].rtt;
    let silence_s = tcp.timer.after(0, rtt_s) + if from_ack { rtt_s } else { 0.0 };
    let waiting = region(layout, solution, upstream).1.resources[0].carried.min(1.0);
    (1.0 - waiting) * (-messages(layout, solution, index).per_s * silence_s).exp()
}

/// A wait of this share of the messages, of up to so many seconds.
fn uniform(share: f64, longest_s: f64) -> TimeDistribution {
    const STEPS: u32 = 64;
    let step_s = longest_s / f64::from(STEPS);
    let waits = (0..STEPS).map(|step| ((f64::from(step) + 0.5) * step_s, share / f64::from(STEPS)));
    let values = std::iter::once((0.0, 1.0 - share)).chain(waits).collect();
    TimeDistribution::of(values).unwrap_or_else(|| TimeDistribution::exactly(0.0))
}

/// The key of upstream connections and the warning, if their window often restarts from one segment
/// and the messages need several.
pub(super) fn warning(
    layout: &Layout,
    solution: &Solution,
    upstream: &Upstream,
) -> Option<(String, String)> {
    /// Share of the messages that determines the 98th percentile of the delay.
    const DELAYED_MIN: f64 = 0.02;
    let index = layout.upstream.iter().position(|other| other == upstream)?;
    if layout.network.rules != ModelRules::Refined {
        return None;
    }
    let messages = messages(layout, solution, index);
    let segments = (messages.bytes / upstream.mss as f64).ceil().max(1.0);
    let arriving = messages.per_s * upstream.outstanding_s(solution);
    let restarts = restarts(layout, solution, index);
    let is_excluded = segments > 1.0 || arriving > FEW;
    let delayed = restarts * if segments > 1.0 { 1.0 + arriving } else { arriving };
    (is_excluded && delayed > DELAYED_MIN).then(|| {
        let message = "after a silence, the window of the connection restarts from one segment, \
                       and messages wait for it to grow: the equations exclude this, and the delay \
                       is too short; set `restart_after_idle` to false, or use backend `sim`";
        (upstream.name.clone(), message.to_owned())
    })
}
