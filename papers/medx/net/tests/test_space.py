"""All states of small instances."""

import pytest

from medx_net import parameters as files
from medx_net.net import PROTOCOLS
from medx_net.space import Bounds, bounded, explore

PARAMETERS = files.load()
LATE_TIMER = Bounds()
EARLY_TIMER = Bounds(segments=2, early_timeouts=1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("recovery", "bounds"), [("new_reno", LATE_TIMER), ("each", LATE_TIMER), ("new_reno", EARLY_TIMER)]
)
def test_there_is_no_loss_and_no_deadlock(protocol: str, recovery: str, bounds: Bounds) -> None:
    net = bounded(PARAMETERS.replaced({"sender.recovery": recovery}), protocol, bounds)
    findings = explore(net, bounds)
    assert findings.faults == []
    assert findings.final > 0
    # The exploration covers drops and retransmissions.
    assert findings.dropped > 0
    assert findings.retransmitted > 0


def test_a_net_without_its_timer_has_a_deadlock() -> None:
    net = bounded(PARAMETERS, "standard", LATE_TIMER)
    net.petri.remove_transition("Timeout")
    faults = explore(net, LATE_TIMER).faults
    assert any("no transition is enabled" in fault for fault in faults)
    assert any("no final state can be reached" in fault for fault in faults)


def test_a_router_that_loses_its_first_segment_is_detected() -> None:
    net = bounded(PARAMETERS, "standard", LATE_TIMER)
    net.petri.remove_output("after router", "Serve")
    assert any(fault.startswith("Serve: -1 more in transit") for fault in explore(net, LATE_TIMER).faults)


def test_a_receiver_that_delivers_twice_is_detected() -> None:
    net = bounded(PARAMETERS, "medx", LATE_TIMER)
    delivered = net.channel.delivered
    net.petri.globals["delivered"] = lambda p, r: delivered(p, r) * 2
    assert any("each once" in fault for fault in explore(net, LATE_TIMER).faults)
