"""The whole net: properties of every run, and comparison with stored results."""

import csv
from pathlib import Path

import pytest
from snakes.nets import Variable

from medx_net import net as nets
from medx_net import parameters as files
from medx_net.experiment import Run, run, same_segments
from medx_net.net import PROTOCOLS, Net
from medx_net.parameters import Parameters
from medx_net.render import picture
from medx_net.timed import Scheduler, only, tokens

HERE = Path(__file__).resolve().parent.parent
PARAMETERS = files.load()
SECOND = 1_000_000
SHORT = PARAMETERS.replaced({"run.duration": SECOND})
RECOVERIES = ("new_reno", "sack", "each")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("recovery", RECOVERIES)
def test_every_segment_is_delivered_once_and_in_order(protocol: str, recovery: str) -> None:
    # A small buffer, and lost acknowledgements.
    changes = {"sender.recovery": recovery, "channel.fifo": 5, "channel.ack_error": 0.2, "sender.rto_min": 20_000}
    net = Net(SHORT.replaced(changes), protocol, seed=11)
    Scheduler(net.petri).run(SECOND)
    place = net.petri.place
    delivered = sorted((token.at, token.value) for token in tokens(place("delivered")))
    receiver = only(place("receiver"))
    assert [number for _, number in delivered] == list(range(receiver.expected))
    assert receiver.expected > 10
    sender = only(place("sender"))
    assert sender.una <= receiver.expected <= sender.next
    known = {*range(receiver.expected), *receiver.held, *(out.number for out in sender.out)}
    assert known == set(range(sender.next)), "a segment that neither end has"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("recovery", RECOVERIES)
def test_without_errors_the_router_is_the_limit_and_nothing_is_classified(protocol: str, recovery: str) -> None:
    changes = {"sender.recovery": recovery, "channel.error": 0.0, "source.congested_share": 1.0}
    # 60 segments fit into link and buffer, so that nothing is dropped.
    result = run(SHORT.replaced({**changes, "sender.receive_window": 60}), protocol, 1)
    assert result.lost == {}
    assert result.classifications == []
    # Slow start fills the path of 22 ms in about three round trips; then the server is always busy.
    least = (SECOND - 4 * 22_304 - 10_000) / 2_304
    assert least < result.delivered <= SECOND / 2_304
    assert result.sent - result.delivered <= 60


def test_a_lone_segment_has_link_delay_and_service_time_only() -> None:
    changes = {"channel.error": 0.0, "source.congested_share": 0.0}
    result = run(SHORT.replaced(changes), "medx", 1)
    assert [delay for _, _, delay in result.delays] == [5_000 + 2_304 + 5_000] * 20


def test_drops_at_the_full_buffer_are_distinguished_from_errors() -> None:
    changes = {"channel.error": 0.0, "channel.fifo": 10, "source.congested_share": 1.0}
    result = run(SHORT.replaced(changes), "standard", 1)
    assert set(result.lost.values()) == {"queue"}
    assert result.largest_queue == 10
    confusion = result.confusion()
    assert confusion["queue", True] > 0
    assert confusion["error", True] == 0


def test_medx_detects_no_congestion_where_all_losses_are_congestion() -> None:
    """README.md states this result."""
    changes = {"channel.error": 0.0, "channel.fifo": 20, "sender.recovery": "each"}
    result = run(SHORT.replaced(changes), "medx", 1)
    confusion = result.confusion()
    assert set(result.lost.values()) == {"queue"}
    assert confusion["queue", False] > 5
    assert confusion["queue", True] == 0


def test_taking_only_the_first_token_of_each_place_gives_the_same_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """`First` is an optimisation: examining every token of every place must give the same run."""
    parameters = PARAMETERS.replaced({"run.duration": 400_000, "sender.rto_min": 20_000})
    for protocol in PROTOCOLS:
        quick = run(parameters, protocol, 2)
        with monkeypatch.context() as patch:
            patch.setattr(nets, "First", Variable)
            thorough = run(parameters, protocol, 2)
        assert quick == thorough
        assert quick.delivered > 10


def test_the_protocols_differ_in_the_classification_of_a_loss_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A MEDX that classifies every loss as congestion behaves exactly as standard TCP."""
    monkeypatch.setattr(nets.Discriminator, "congested", lambda self, delays: True)
    for recovery in RECOVERIES:
        parameters = SHORT.replaced({"sender.recovery": recovery, "sender.rto_min": 20_000})
        standard, medx = (run(parameters, protocol, 4) for protocol in PROTOCOLS)
        assert standard.delays == medx.delays
        assert standard.classifications == medx.classifications
        assert len(standard.classifications) > 3


def test_the_same_segments_are_compared_from_generation_to_delivery_in_order() -> None:
    # In the first run, segment 1 arrives last and delays segment 2; in the second, segment 2 has not arrived.
    written = [10, 20, 30]
    standard = Run("standard", 1, delivered=3, delays=[(30, 0, 5), (50, 2, 5), (90, 1, 5)], written=written)
    medx = Run("medx", 1, delivered=2, delays=[(20, 0, 5), (40, 1, 5), (45, 1, 5)], written=written)
    assert (standard.ages, medx.ages) == ([20, 70, 60], [10, 20])
    assert same_segments(standard, medx) == (2, 45.0, 15.0)
    assert same_segments(standard, Run("medx", 1)) == (0, 0.0, 0.0)


def test_the_source_generates_the_same_segments_for_both_protocols() -> None:
    standard, medx = (run(SHORT, protocol, 3) for protocol in PROTOCOLS)
    assert standard.written == medx.written
    assert len(standard.ages) == standard.delivered


def stored(name: str = "results.csv") -> list[dict[str, str]]:
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_stored_ages_of_the_same_segments_are_reproduced() -> None:
    (row,) = [row for row in stored("same.csv") if (row["recovery"], row["seed"]) == ("new_reno", "1")]
    count, standard, medx = same_segments(*(run(PARAMETERS, protocol, 1) for protocol in PROTOCOLS))
    computed = {"segments": count, "standard_units": round(standard), "medx_units": round(medx)}
    assert {name: str(value) for name, value in computed.items()}.items() <= row.items()


@pytest.mark.parametrize("recovery", RECOVERIES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_stored_results_are_reproduced(protocol: str, recovery: str) -> None:
    parameters = PARAMETERS.replaced({"sender.recovery": recovery})
    for seed in (1, 2) if recovery == "each" else (1,):
        (row,) = [
            row
            for row in stored()
            if (row["recovery"], row["protocol"], row["seed"]) == (recovery, protocol, str(seed))
        ]
        computed = {"recovery": recovery, **run(parameters, protocol, seed).row()}
        assert {name: str(value) for name, value in computed.items()} == row


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_stored_picture_is_of_this_net(protocol: str) -> None:
    net = Net(PARAMETERS, protocol, seed=1)
    drawn = picture(net)
    assert (HERE / f"net-{protocol}.svg").read_text(encoding="utf-8") == drawn
    petri = net.petri
    arcs = sum(len(move.input()) + len(move.output()) for move in petri.transition())
    assert drawn.count('class="arc') == arcs
    assert drawn.count("<ellipse") == len(list(petri.place()))


def test_a_run_is_reproducible_and_depends_on_the_seed() -> None:
    parameters: Parameters = PARAMETERS.replaced({"run.duration": 500_000})
    assert run(parameters, "medx", 1) == run(parameters, "medx", 1)
    assert run(parameters, "medx", 1).lost != run(parameters, "medx", 2).lost
