//! Flows that this backend cannot aggregate.

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{Aggregator, Flow, FullBufferPolicy, Load, Scenario, Stage};
use gridhaul_scenario::units::BufferLimit;

use super::sizes;

/// The flows through aggregators that this backend cannot simulate, with reasons.
pub(crate) fn unsupported(scenario: &Scenario) -> Vec<Unsupported> {
    let mut unsupported = Vec::new();
    for (name, flow) in &scenario.flow {
        // `Topology::new` reports an invalid path when the run begins.
        let stages = scenario.stages(name).unwrap_or_default();
        if stages.len() > 1 {
            unsupported.extend(reason(scenario, name, flow, &stages));
        }
    }
    unsupported
}

fn reason(scenario: &Scenario, name: &str, flow: &Flow, stages: &[Stage]) -> Option<Unsupported> {
    let unsupported = |key: String, reason: String| Some(Unsupported { key, reason });
    if flow.load.is_two_way() {
        return unsupported(
            format!("flow.{name}.load.{}", flow.load.key()),
            "an aggregator forwards data in one direction, so responses cannot return to the \
             client; let the flow end at the aggregator, or remove the key `aggregator`"
                .to_owned(),
        );
    }
    for stage in &stages[1..] {
        let count = |node: &str| scenario.node[node].count;
        if count(&stage.to) > count(&stage.from) {
            return unsupported(
                format!("flow.{name}.to"),
                format!(
                    "an aggregator merges data; from `{}` it would have to distribute data to the \
                     members of `{}`",
                    stage.from, stage.to
                ),
            );
        }
        let aggregator = scenario.node[&stage.from].aggregator.as_ref()?;
        if let Some(reason) = buffer_too_small(scenario, flow, aggregator) {
            return unsupported(format!("node.{}.aggregator.buffer", stage.from), reason);
        }
    }
    None
}

/// The reason why the messages of a flow do not fit into the buffer of an aggregator.
fn buffer_too_small(scenario: &Scenario, flow: &Flow, aggregator: &Aggregator) -> Option<String> {
    let params = StackParams::named(scenario, flow.stack.as_ref(), flow.ip);
    let backpressure = aggregator.when_full == FullBufferPolicy::Backpressure;
    let counted = matches!(aggregator.buffer, BufferLimit::Messages(_));
    if matches!(flow.load, Load::Trace(_) | Load::External) && (backpressure || !counted) {
        return Some(
            "a message of a trace or of another program may be larger than the buffer; give the \
             buffer in messages, with when_full = \"drop\""
                .to_owned(),
        );
    }
    let largest = sizes(&flow.load, params.mss).max;
    match aggregator.buffer {
        BufferLimit::Bytes(limit) if limit.get() < largest => {
            return Some(format!("a message of {largest} B does not fit; set a larger buffer"));
        }
        _ => {}
    }
    let window = u64::from(params.receive_window);
    (backpressure && window < largest).then(|| {
        format!(
            "with when_full = \"backpressure\" a message of {largest} B must fit into the receive \
             window of {window} B; increase `receive_window` of the flow's stack"
        )
    })
}
