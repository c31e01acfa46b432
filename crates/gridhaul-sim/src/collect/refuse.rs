//! What cannot be collected.

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{Aggregator, Flow, FullBufferPolicy, Load, Scenario, Stage};
use gridhaul_scenario::units::BufferLimit;

use super::sizes;

/// Which flows through collectors this backend cannot carry, and why.
pub(crate) fn refusals(scenario: &Scenario) -> Vec<Unsupported> {
    let mut refused = Vec::new();
    for (name, flow) in &scenario.flow {
        // A way that cannot be is found again, and told, when the run begins.
        let stages = scenario.stages(name).unwrap_or_default();
        if stages.len() > 1 {
            refused.extend(refusal(scenario, name, flow, &stages));
        }
    }
    refused
}

fn refusal(scenario: &Scenario, name: &str, flow: &Flow, stages: &[Stage]) -> Option<Unsupported> {
    let refuse = |key: String, reason: String| Some(Unsupported { key, reason });
    if matches!(*flow.load.plain(), Load::RequestResponse(_)) {
        return refuse(
            format!("flow.{name}.load.request_response"),
            "answers cannot find their way back through a collector; let the flow end at the \
             collector, or remove its `aggregator`"
                .to_owned(),
        );
    }
    for stage in &stages[1..] {
        let count = |node: &str| scenario.node[node].count;
        if count(&stage.to) > count(&stage.from) {
            return refuse(
                format!("flow.{name}.to"),
                format!(
                    "a collector brings data together; from `{}` it would have to deal it out to \
                     the members of `{}`",
                    stage.from, stage.to
                ),
            );
        }
        let collector = scenario.node[&stage.from].aggregator.as_ref()?;
        if let Some(reason) = misfit(scenario, flow, collector) {
            return refuse(format!("node.{}.aggregator.buffer", stage.from), reason);
        }
    }
    None
}

/// Why the messages of a flow do not fit into a collector.
fn misfit(scenario: &Scenario, flow: &Flow, collector: &Aggregator) -> Option<String> {
    let params = StackParams::named(scenario, flow.stack.as_ref(), flow.ip);
    let waits = collector.when_full == FullBufferPolicy::Backpressure;
    let counted = matches!(collector.buffer, BufferLimit::Messages(_));
    if matches!(flow.load, Load::Trace(_)) && (waits || !counted) {
        return Some(
            "a message of a trace might never fit; count the buffer in messages, with when_full = \
             \"drop\""
                .to_owned(),
        );
    }
    let (_, largest) = sizes(&flow.load, params.mss);
    match collector.buffer {
        BufferLimit::Bytes(limit) if limit.get() < largest => {
            return Some(format!("a message of {largest} B does not fit; take a larger buffer"));
        }
        _ => {}
    }
    let window = u64::from(params.receive_window);
    (waits && window < largest).then(|| {
        format!(
            "with when_full = \"wait\" a message of {largest} B must fit into the receive window \
             of {window} B; make `receive_window` of the flow's stack larger"
        )
    })
}
