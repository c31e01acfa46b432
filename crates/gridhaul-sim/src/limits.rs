//! What a reader must know where a host with the stack of a flow does something else than the simulator
//! (docs/limitations/tcp.md), and it counts.

use gridhaul_core::tcp::{AlgorithmRules, StackParams};
use gridhaul_scenario::answer::{Metric, RunRows, Warning};
use gridhaul_scenario::scenario::{Flow, Scenario, Transport};
use gridhaul_scenario::units::Duration;

/// About flows that have repeated something: without that, no limit of these has shown.
pub(crate) fn warnings(scenario: &Scenario, rows: &RunRows) -> Vec<Warning> {
    let flows = scenario.flow.iter().zip(&rows.flows);
    let repeats = flows.filter(|(_, metrics)| {
        metrics.iter().any(|(metric, value)| *metric == Metric::Retransmissions && *value > 0.0)
    });
    let about = |((name, flow), _): ((&String, &Flow), _)| {
        let message = message(scenario, name, flow)?.to_owned();
        Some(Warning { about: format!("flow.{name}"), message })
    };
    repeats.filter_map(about).collect()
}

/// About a flow of which a proxy has reset the connection while it held bytes that it had
/// acknowledged.
pub(crate) fn gave_up(flow: &str) -> Warning {
    let message = "a proxy reset the connection while it held bytes that it had acknowledged, which are \
                   lost (lost_in_crashes_byte): the other side had reset the connection or had not \
                   answered for 100 s and 15 retransmissions";
    Warning { about: format!("flow.{flow}"), message: message.to_owned() }
}

fn message(scenario: &Scenario, name: &str, flow: &Flow) -> Option<&'static str> {
    let stack = StackParams::named(scenario, flow.stack.as_ref(), flow.ip);
    if flow.transport != Transport::Tcp || stack.policy.algorithms != AlgorithmRules::Linux {
        return None;
    }
    if !stack.sack {
        return Some(
            "a Linux without selective acknowledgements repairs several losses of a window in its own way, \
             which is not modelled: behind a long queue that overflows, its goodput may be a third off",
        );
    }
    is_reordered(scenario, name).then_some(
        "a Linux learns how far packets are overtaken (duplicate SACK) and waits for them, which is not \
         modelled: here they are taken for lost, and a real host may be several times faster",
    )
}

/// Whether packets are overtaken by more than the quarter of a round trip for which RACK waits (RFC 8985,
/// section 6.2, step 4).
fn is_reordered(scenario: &Scenario, flow: &str) -> bool {
    let Ok(routes) = scenario.routes(flow) else { return false };
    let ways = routes.forward.iter().chain(&routes.reverse).map(|hop| hop.direction(scenario));
    let round_trip = ways.fold(Duration::ZERO, |sum, direction| sum + direction.delay);
    let quarter = Duration::from_nanos(round_trip.as_nanos() / 4);
    let mut held_back = routes.forward.iter().filter_map(|hop| hop.direction(scenario).reorder);
    held_back.any(|reorder| reorder.delay > quarter)
}
