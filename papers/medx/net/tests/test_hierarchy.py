"""Tests of the hierarchy of pages, of interval delays and of route changes."""

import pytest

from medx_net import hierarchy
from medx_net import parameters as files
from medx_net.channel import Channel, Segment
from medx_net.experiment import run
from medx_net.net import PROTOCOLS, Net
from medx_net.timed import Stamped

PARAMETERS = files.load()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_replacing_the_substitution_transitions_gives_the_flat_net(protocol: str) -> None:
    net = Net(PARAMETERS, protocol, seed=1)
    places, moves = hierarchy.of(net).flattened()
    assert places == {place.name for place in net.petri.place()}
    assert moves == {move.name for move in net.petri.transition()}


def test_pages_are_connected_by_sockets_only() -> None:
    pages = {page.name: page for page in hierarchy.of(Net(PARAMETERS, "medx", seed=1)).pages}
    assert pages["Sender"].inputs == {"to send", "acks returned"}
    # Sending takes a segment from "to send" and puts the rest back.
    assert pages["Sender"].outputs == {"to send", "segments"}
    assert (pages["Channel"].inputs, pages["Channel"].outputs) == (
        {"segments", "acks"},
        {"after router", "acks returned"},
    )
    assert (pages["Receiver"].inputs, pages["Receiver"].outputs) == ({"after router"}, {"acks"})
    assert "propagation buffer" in pages["Sender"].internal


def arrivals(changes: dict[str, object], times: list[int]) -> list[int]:
    channel = Channel(PARAMETERS.replaced({"channel.error": 0.0, **changes}), seed=1)
    return [channel.arrived(Stamped(at, Segment(at, 1, at)))[0].at - at for at in times]


def test_an_interval_delay_stays_within_its_interval() -> None:
    delays = arrivals({"channel.spread": 2_000}, list(range(0, 500_000, 500)))
    assert min(delays) >= 3_000
    assert max(delays) <= 7_000
    # Uniform: the mean is that of the fixed delay.
    assert abs(sum(delays) / len(delays) - 5_000) < 150


def test_every_second_period_has_the_longer_route() -> None:
    assert arrivals({"channel.route_period": 100}, [0, 99, 100, 199, 200]) == [5_000, 5_000, 25_000, 25_000, 5_000]


def test_a_run_with_interval_delays_and_route_changes_delivers_in_order() -> None:
    changed = PARAMETERS.replaced(
        {"channel.spread": 2_000, "channel.route_period": 50_000, "run.duration": 500_000, "channel.error": 0.05}
    )
    assert run(changed, "medx", 1).delivered > 0
