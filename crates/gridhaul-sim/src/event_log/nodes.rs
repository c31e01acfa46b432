//! Events of the proxies and aggregators on the path of a flow, derived from the difference between
//! two of their states: the nodes themselves have no state for a log.

use gridhaul_scenario::answer::{NodeCause, NodeEvent, NodeState};
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::Scenario;

use crate::aggregation::AggregatorSnapshot;
use crate::proxy::ProxySnapshot;

/// A proxy on the path, and its state after the last step.
#[derive(Debug)]
pub(super) struct ProxyLog {
    pub node: String,
    pub last: ProxySnapshot,
}

/// An aggregator on the path, and the state of the upstream connection after the last step.
#[derive(Debug)]
pub(super) struct AggregatorLog {
    pub node: String,
    pub last: AggregatorSnapshot,
}

/// The proxies and aggregators on the path of a flow, in order.
pub(super) fn on_path(
    scenario: &Scenario,
    flow: &str,
) -> Result<(Vec<ProxyLog>, Vec<AggregatorLog>), RunError> {
    let invalid = |error: String| RunError::Invalid(error);
    let positions = scenario.proxy_positions(flow).map_err(|error| invalid(error.to_string()))?;
    let name = |node: usize| scenario.node.get_index(node).map(|(name, _)| name.clone());
    let nodes = positions.into_iter().filter_map(|position| name(position.node));
    let proxies = nodes.map(|node| ProxyLog { node, last: ProxySnapshot::default() });
    // Each stage after the first begins at an aggregator.
    let stages = scenario.stages(flow).map_err(|error| invalid(error.to_string()))?;
    let nodes = stages.into_iter().skip(1).map(|stage| stage.from);
    let aggregators = nodes.map(|node| AggregatorLog { node, last: AggregatorSnapshot::default() });
    Ok((proxies.collect(), aggregators.collect()))
}

/// A step of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProxyStep {
    /// A packet has arrived.
    Segment,
    /// A timer of the proxy has expired.
    Timer,
    /// A crash has begun or ended, or the timer was not due any more.
    Other,
}

/// Events of a step of a proxy.
pub(super) fn compare_proxies(
    before: &ProxySnapshot,
    after: &ProxySnapshot,
    step: ProxyStep,
    emit: &mut dyn FnMut(NodeEvent),
) {
    let cause = match (before.is_down, after.is_down) {
        (false, true) => NodeCause::Crash,
        (true, false) => NodeCause::Restart,
        _ if step == ProxyStep::Segment => NodeCause::Segment,
        _ => NodeCause::Timer,
    };
    if before.is_down != after.is_down {
        let state = |is_down| if is_down { NodeState::Down } else { NodeState::Up };
        let (old, new) = (state(before.is_down), state(after.is_down));
        emit(NodeEvent::NodeStateUpdated { old, new, cause });
    }
    if step == ProxyStep::Timer {
        let timeouts = after.timeouts.saturating_sub(before.timeouts);
        emit(NodeEvent::NodeTimerExpired { timeouts });
    }
    if after.retransmissions > before.retransmissions {
        let segments = after.retransmissions - before.retransmissions;
        emit(NodeEvent::NodeSegmentsRetransmitted { segments, cause });
    }
    if after.at_risk != before.at_risk {
        let (at_risk_byte, waiting_messages) = (after.at_risk, None);
        emit(NodeEvent::NodeBufferUpdated { at_risk_byte, waiting_messages, cause });
    }
}

/// Events of a step of an aggregator.
pub(super) fn compare_aggregators(
    before: &AggregatorSnapshot,
    after: &AggregatorSnapshot,
    cause: NodeCause,
    emit: &mut dyn FnMut(NodeEvent),
) {
    if before != after {
        let (at_risk_byte, waiting_messages) = (after.at_risk, Some(after.waiting));
        emit(NodeEvent::NodeBufferUpdated { at_risk_byte, waiting_messages, cause });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(before: ProxySnapshot, after: ProxySnapshot, step: ProxyStep) -> Vec<NodeEvent> {
        let mut events = Vec::new();
        compare_proxies(&before, &after, step, &mut |event| events.push(event));
        events
    }

    const STORING: ProxySnapshot =
        ProxySnapshot { is_down: false, at_risk: 3_000, retransmissions: 1, timeouts: 1 };

    #[test]
    fn a_timeout_of_a_proxy_is_followed_by_its_retransmission() {
        let after = ProxySnapshot { retransmissions: 2, timeouts: 2, ..STORING };
        let cause = NodeCause::Timer;
        let expected = [
            NodeEvent::NodeTimerExpired { timeouts: 1 },
            NodeEvent::NodeSegmentsRetransmitted { segments: 1, cause },
        ];
        assert_eq!(events(STORING, after, ProxyStep::Timer), expected);
        assert_eq!(events(STORING, STORING, ProxyStep::Segment), [], "nothing has changed");
    }

    #[test]
    fn a_crash_loses_the_bytes_at_risk_and_the_counters() {
        let down = ProxySnapshot { is_down: true, ..ProxySnapshot::default() };
        let (old, new, cause) = (NodeState::Up, NodeState::Down, NodeCause::Crash);
        let expected = [
            NodeEvent::NodeStateUpdated { old, new, cause },
            NodeEvent::NodeBufferUpdated { at_risk_byte: 0, waiting_messages: None, cause },
        ];
        assert_eq!(events(STORING, down, ProxyStep::Other), expected);
        let up = ProxySnapshot::default();
        let (old, new, cause) = (NodeState::Down, NodeState::Up, NodeCause::Restart);
        let expected = [NodeEvent::NodeStateUpdated { old, new, cause }];
        assert_eq!(events(down, up, ProxyStep::Other), expected);
    }
}
