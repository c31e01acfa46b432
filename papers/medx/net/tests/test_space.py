"""All states of small instances."""

import pytest

from medx_net import parameters as files
from medx_net.net import PROTOCOLS
from medx_net.space import Bounds, bounded, explore

PARAMETERS = files.load()
PATIENT = Bounds()
HASTY = Bounds(segments=2, early_timeouts=1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("recovery", "bounds"), [("new_reno", PATIENT), ("each", PATIENT), ("new_reno", HASTY)])
def test_nothing_is_lost_or_stuck(protocol: str, recovery: str, bounds: Bounds) -> None:
    net = bounded(PARAMETERS.replaced({"sender.recovery": recovery}), protocol, bounds)
    verdict = explore(net, bounds)
    assert verdict.faults == []
    assert verdict.final > 0
    # It has seen what it is to judge.
    assert verdict.dropped > 0
    assert verdict.repeated > 0


def test_a_net_without_its_timer_gets_stuck() -> None:
    net = bounded(PARAMETERS, "standard", PATIENT)
    net.petri.remove_transition("Timeout")
    faults = explore(net, PATIENT).faults
    assert any("nothing can happen" in fault for fault in faults)
    assert any("the end cannot be reached" in fault for fault in faults)


def test_a_router_that_loses_its_head_is_found() -> None:
    net = bounded(PARAMETERS, "standard", PATIENT)
    net.petri.remove_output("behind router", "Serve")
    assert any(fault.startswith("Serve: -1 more on the way") for fault in explore(net, PATIENT).faults)


def test_a_receiver_that_delivers_twice_is_found() -> None:
    net = bounded(PARAMETERS, "medx", PATIENT)
    delivered = net.channel.delivered
    net.petri.globals["delivered"] = lambda p, r: delivered(p, r) * 2
    assert any("each once" in fault for fault in explore(net, PATIENT).faults)
