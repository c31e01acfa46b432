//! Warnings about flows whose results depend on a difference between a real TCP stack and the
//! simulator (docs/limitations/tcp.md).

use gridhaul_core::tcp::StackParams;
use gridhaul_data::trace::Playback;
use gridhaul_scenario::answer::{Metric, Metrics, RunRows, Warning};
use gridhaul_scenario::scenario::{Directions, Load, Scenario, Transport};
use gridhaul_scenario::units::Instant;

/// Warnings about flows, which do not concern the others.
pub(crate) fn warnings(scenario: &Scenario, rows: &RunRows) -> Vec<Warning> {
    let flows = scenario.flow.keys().enumerate().filter_map(|(row, name)| {
        let message = receive_window_limit(scenario, rows, row, name)?;
        Some(Warning { about: format!("flow.{name}"), message })
    });
    flows.collect()
}

/// The note about a flow that always has data and fills its receive window, while the links of its
/// path have capacity left.
fn receive_window_limit(
    scenario: &Scenario,
    rows: &RunRows,
    row: usize,
    name: &str,
) -> Option<String> {
    let flow = &scenario.flow[name];
    let always_sends = matches!(flow.load, Load::Bulk | Load::Transfer(_));
    // Which links carried the data is not known if a hybrid router or a hash selects them.
    let has_routers = scenario.hybrid_router_keys().chain(scenario.ecmp_keys()).next().is_some();
    if flow.transport != Transport::Tcp || !always_sends || has_routers {
        return None;
    }
    let to_stack = flow.to_stack.as_ref().or(flow.stack.as_ref());
    let window = f64::from(StackParams::named(scenario, to_stack, flow.ip).receive_window);
    let goodput = value(rows.flows.get(row)?, Metric::Goodput)? / scenario.connections(flow) as f64;
    let rtt = value(&rows.flows[row], Metric::RttMean)?;
    let directions = Directions::new(scenario);
    let hops = scenario.routes(name).ok()?.forward;
    let used = directions.of(&hops, 0, 1).filter_map(|direction| {
        let link = directions.row_of()[direction as usize] as usize;
        value(rows.links.get(link)?, Metric::Utilisation)
    });
    let used = used.fold(0.0, f64::max);
    let fills_window = goodput * rtt / 8.0 > FILLED * window;
    (fills_window && used < SATURATED).then(|| {
        format!(
            "the receive window limits the flow, not the links of its path: {window:.0} B in each \
             round-trip time; a larger receive_window of the stack permits more"
        )
    })
}

/// Share of the receive window in flight from which it limits a flow.
const FILLED: f64 = 0.85;
/// Utilisation from which a link limits a flow.
const SATURATED: f64 = 0.9;

fn value(metrics: &Metrics, wanted: Metric) -> Option<f64> {
    metrics.iter().find(|(metric, _)| *metric == wanted).map(|&(_, value)| value)
}

/// The warning about a flow of which a proxy reset the connection with bytes at risk.
pub(crate) fn proxy_reset(flow: &str) -> Warning {
    let message = "a proxy reset the connection while it held bytes that it had acknowledged, \
                   which are lost (lost_in_crashes_byte): the other side had reset the connection \
                   or had not answered for 100 s and 15 retransmissions";
    Warning { about: format!("flow.{flow}"), message: message.to_owned() }
}

/// The warning about a flow whose timer expired close to the end of an outage.
pub(crate) fn outage_end(flow: &str) -> Warning {
    let message = "a retransmission timer expired close to the end of an outage, where the \
                   precision of the timer decides whether the retransmission is lost and the next \
                   one follows only after twice the time: the result depends on some milliseconds, \
                   and that of a real host may differ; use several replications";
    Warning { about: format!("flow.{flow}"), message: message.to_owned() }
}

/// Warnings about traces with messages after the end of the run; `flow_of` is the name of the flow
/// of a member.
pub(crate) fn rows_after_end<'a>(
    scenario: &Scenario,
    playbacks: &[Playback],
    flow_of: impl Fn(u32) -> &'a str,
) -> Vec<Warning> {
    let end = Instant::ZERO + scenario.duration;
    let late = playbacks.iter().filter(|playback| playback.at() > end);
    let warning = |playback: &Playback| {
        let (_, members) = playback.message();
        let message = format!(
            "the trace goes on after the end of the run: its messages from {} on are not sent; \
             set `duration` to a later time to include them",
            playback.at().since(Instant::ZERO)
        );
        Warning { about: format!("flow.{}.load.trace", flow_of(members.start)), message }
    };
    late.map(warning).collect()
}
