//! Completion times of transfers: of a single one, and of several that share links.

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Load, Scenario};
use gridhaul_scenario::units::{Bytes, Duration};

use super::connection_chain::ConnectionChain;
use super::demand::Demand;
use super::slow_start::{
    Handshake, TransferTime, WindowGrowth, begins_with_one_segment, handshake_time, transfer_time,
};
use super::throughput_law::ThroughputLaw;
use crate::model_rules::ModelRules;

/// Completion times of the transfers of a flow, in seconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Completion {
    /// Mean; `None` if no formula gives it.
    pub mean_s: Option<f64>,
    /// That of the last transfer if all start at once.
    pub last_s: f64,
    /// The reason for a missing mean.
    pub note: Option<String>,
}

/// Difference between a transfer alone on its links and all at once below which the mean is
/// certain.
const SHARING_MIN: f64 = 0.02;

/// Utilisation of a link by transfers below which they hardly meet.
const UTILISATION_MAX: f64 = 0.2;

/// Spread of the starts of several transfers if the scenario gives none (reference of
/// `start_spread`).
const START_SPREAD: Duration = Duration::from_secs(1);

impl Completion {
    /// Completion times of a flow; `None` without a formula, or if the flow has no transfers.
    pub(super) fn of(
        scenario: &Scenario,
        chain: &ConnectionChain<'_>,
        rules: ModelRules,
    ) -> Option<Self> {
        let demand = chain.first();
        let Load::Transfer(transfer) = &demand.flow.load else { return None };
        let Some(last_s) = all_at_once_s(chain, transfer.size) else {
            return Some(Self::without_formula());
        };
        let certain = Self { mean_s: Some(last_s), last_s, note: None };
        let slowest = &chain.split_connections[chain.slowest];
        if demand.connections == 1 || slowest.law == ThroughputLaw::SquareRoot {
            return Some(certain);
        }
        let alone = ConnectionChain::alone(scenario, demand.name, rules).ok()?;
        let alone_s = all_at_once_s(&alone, transfer.size)?;
        if last_s <= alone_s * (1.0 + SHARING_MIN) {
            return Some(certain);
        }
        let shared = SharedLink::of(chain, &alone, transfer.size);
        let spread_s = demand.flow.start_spread.unwrap_or(START_SPREAD).as_secs_f64();
        let last_s = shared.last_waiting_s().map_or(last_s, |waiting_s| alone_s + waiting_s);
        let mean_s = shared.waiting_s(spread_s).map(|waiting_s| alone_s + waiting_s);
        let note = mean_s.is_none().then(|| {
            format!(
                "the transfers share a link and overlap, for which no formula gives the mean \
                    completion time: a transfer alone takes {alone_s:.3} s, the last of all that \
                    start at once {last_s:.3} s; use backend `sim`"
            )
        });
        Some(Self { mean_s, last_s, note })
    }

    /// The series of the handshake diverges (see [`transfer_time`]).
    fn without_formula() -> Self {
        let note = "half of the packets or more are lost in one direction, for which the formula \
            of the handshake has no mean; use backend `sim`";
        Self { mean_s: None, last_s: f64::INFINITY, note: Some(note.to_owned()) }
    }
}

/// The bottleneck of transfers that share it.
struct SharedLink {
    /// Transfers on it.
    sharers: f64,
    /// Time that it transmits each of them, in seconds.
    transmission_s: f64,
    /// Whether the initial window contains a transfer.
    is_one_round: bool,
}

impl SharedLink {
    fn of(chain: &ConnectionChain<'_>, alone: &ConnectionChain<'_>, size: Bytes) -> Self {
        let demand = &alone.split_connections[alone.slowest];
        let segments = size.get().div_ceil(u64::from(demand.stack.mss)).max(1) as f64;
        // SYN, and the acknowledgement of SYN-ACK.
        let others = if demand.stack.handshake { 2.0 } else { 0.0 };
        let bytes = size.get() as f64 + (segments + others) * demand.path.ack_bytes;
        let bits_per_s = demand.path.bottleneck().map_or(f64::INFINITY, |(_, hop)| hop.bits_per_s);
        let hops = chain.split_connections.iter().flat_map(|demand| &demand.path.forward);
        Self {
            sharers: hops.map(|hop| hop.sharers).fold(1.0, f64::max),
            transmission_s: bytes * 8.0 / bits_per_s,
            is_one_round: segments <= initial_window(demand) && demand.connection.loss <= 0.0,
        }
    }

    /// Time that the last transfer waits for the others if all start at once and fit into their
    /// initial windows: the link transmits one after another.
    fn last_waiting_s(&self) -> Option<f64> {
        self.is_one_round.then_some((self.sharers - 1.0) * self.transmission_s)
    }

    /// Mean time that transfers wait for each other whose starts are spread over `spread_s`.
    fn waiting_s(&self, spread_s: f64) -> Option<f64> {
        if spread_s <= 0.0 {
            return self.last_waiting_s().map(|last_s| last_s / 2.0);
        }
        // Few that meet: an M/D/1 queue (Pollaczek and Khinchine).
        let used = self.sharers * self.transmission_s / spread_s;
        let waiting_s = self.transmission_s * used / (2.0 * (1.0 - used));
        (used <= UTILISATION_MAX).then_some(waiting_s)
    }
}

/// Completion time of a transfer. Through proxies: the time over the slowest connection plus the
/// one-way delay of the others, which work in parallel.
fn all_at_once_s(chain: &ConnectionChain<'_>, size: Bytes) -> Option<f64> {
    let demand = &chain.split_connections[chain.slowest];
    let mss = u64::from(demand.stack.mss);
    let segments = size.get().div_ceil(mss).max(1);
    let last = size.get() - (segments - 1) * mss;
    let segments = segments as f64;
    if demand.law == ThroughputLaw::SquareRoot {
        // The paper assumes steady-state throughput from the first segment on.
        return Some(segments / chain.arriving());
    }
    let transfer = TransferTime {
        segments,
        initial_window: initial_window(demand),
        growth: WindowGrowth::of(&demand.stack),
        link: demand.path.bottleneck().map_or(f64::INFINITY, |(rate, _)| rate),
        acknowledged: demand.path.acks_per_s() * demand.segments_per_ack(),
        steady: demand.arriving(),
        forward_s: demand.path.last_segment_s(segments, last as f64),
        ack_loss: demand.path.ack_loss(),
        handshake: handshake(demand).filter(|_| chain.split_connections.len() == 1),
    };
    let others =
        chain.split_connections.iter().enumerate().filter(|(index, _)| *index != chain.slowest);
    let path_s: f64 = others.map(|(_, split_connection)| split_connection.path.forward_s).sum();
    let time_s = transfer_time(&demand.connection, &transfer)?
        + first_ack_s(&demand.stack, &transfer)
        + path_s;
    let is_split = chain.split_connections.len() > 1;
    Some(time_s + if is_split { opening_s(chain, time_s - path_s) } else { 0.0 })
}

/// Time in seconds that the data wait for connections of a chain to open. `transfer_s` is the time
/// over the slowest connection.
fn opening_s(chain: &ConnectionChain<'_>, transfer_s: f64) -> f64 {
    let established_s = established_s(chain);
    let (mut arrived_s, mut moving_s) = (0.0_f64, 0.0);
    for (index, demand) in chain.split_connections.iter().enumerate() {
        let time_s = if index == chain.slowest { transfer_s } else { demand.path.forward_s };
        arrived_s = arrived_s.max(established_s[index]) + time_s;
        moving_s += time_s;
    }
    arrived_s - moving_s
}

/// Times at which the connections of a chain are established, in seconds. A split proxy accepts SYN
/// at once, and sends its own SYN to the next hop at the same time; a reflecting one forwards SYN
/// and SYN-ACK.
fn established_s(chain: &ConnectionChain<'_>) -> Vec<f64> {
    let mut established = Vec::new();
    let (mut syn_s, mut since) = (0.0, 0);
    for (index, demand) in chain.split_connections.iter().enumerate() {
        if chain.reflects.get(index) == Some(&true) {
            continue;
        }
        let joined = &chain.split_connections[since..=index];
        let opening_s = |demand: &Demand<'_>| {
            handshake_time(&demand.connection, demand.path.ack_loss(), handshake(demand))
        };
        let opened_s = syn_s + joined.iter().map(opening_s).sum::<f64>();
        established.extend(joined.iter().map(|_| opened_s));
        if demand.stack.handshake {
            let forward_s = joined.iter().map(|demand| demand.path.forward_without_payload_s());
            syn_s += forward_s.sum::<f64>();
        }
        since = index + 1;
    }
    established
}

fn handshake(demand: &Demand<'_>) -> Option<Handshake> {
    demand.stack.handshake.then(|| Handshake {
        rtt_s: demand.path.rtt_without_payload_s(),
        timeout_s: demand.stack.rto_initial.as_secs_f64(),
    })
}

/// Initial congestion window, in segments.
fn initial_window(demand: &Demand<'_>) -> f64 {
    let stack = &demand.stack;
    match stack.congestion_control {
        CongestionControlAlgorithm::Fixed => demand.connection.window,
        _ if begins_with_one_segment(stack) || repeats_syn(demand) => 1.0,
        _ => f64::from(stack.initial_window) / f64::from(stack.mss),
    }
}

/// Whether SYN is retransmitted because its answer needs longer than the initial timeout, so that
/// the initial window is one segment (RFC 5681, section 3.1). Linux permits one retransmission
/// (`tcp_init_transfer`), and the second one follows after twice the timeout.
fn repeats_syn(demand: &Demand<'_>) -> bool {
    let StackParams { rto_initial, policy, .. } = &demand.stack;
    let timeouts = if policy.adaptive_delayed_ack { 3.0 } else { 1.0 };
    handshake(demand).is_some_and(|opening| opening.rtt_s > timeouts * rto_initial.as_secs_f64())
}

/// Time in seconds that the receiver delays the acknowledgement of the first round, if the round
/// has fewer segments than an acknowledgement covers (Cardwell et al., section 2.5).
fn first_ack_s(stack: &StackParams, transfer: &TransferTime) -> f64 {
    let initial = transfer.initial_window;
    let waits = initial < f64::from(stack.ack_every) && initial < transfer.segments;
    let delays = waits && stack.quick_ack == 0 && stack.receive_window > stack.mss;
    if delays { stack.delayed_ack.as_secs_f64() } else { 0.0 }
}
