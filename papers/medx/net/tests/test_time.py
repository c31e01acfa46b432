"""The rules of time, on nets small enough to verify by hand."""

import pytest
from snakes.nets import Expression, PetriNet, Place, Variable

from medx_net.timed import NEVER, Ahead, First, Move, Scheduler, Stamped, tokens


def delay_line(stamps: list[int], take: type[Variable] = First) -> PetriNet:
    petri = PetriNet("line")
    petri.add_place(Place("in", [Stamped(at, index) for index, at in enumerate(stamps)]))
    petri.add_place(Place("out"))
    petri.add_transition(Move("go", Expression("True")))
    petri.globals["Stamped"] = Stamped
    petri.add_input("in", "go", take("p"))
    petri.add_output("out", "go", Expression("Stamped(p.at + 10, p.value)"))
    return petri


@pytest.mark.parametrize("take", [First, Variable])
def test_tokens_are_taken_at_their_stamps_whatever_their_order(take: type[Variable]) -> None:
    petri = delay_line([30, 10, 20], take)
    seen: list[int] = []
    Scheduler(petri, lambda now, move, binding: seen.append(now)).run(until=1000)
    assert seen == [10, 20, 30]
    assert sorted(tokens(petri.place("out"))) == [(20, 1), (30, 2), (40, 0)]


def test_nothing_fires_at_the_end_or_later() -> None:
    petri = delay_line([10, 20])
    Scheduler(petri).run(until=20)
    assert [token.at for token in tokens(petri.place("in"))] == [20]


def test_a_transition_waits_for_the_latest_of_its_tokens() -> None:
    petri = delay_line([10])
    petri.add_place(Place("key", [Stamped(70, "key")]))
    petri.add_input("key", "go", First("k"))
    seen: list[int] = []
    Scheduler(petri, lambda now, move, binding: seen.append(now)).run(until=1000)
    assert seen == [70]


def test_a_token_taken_before_its_time_does_not_delay_its_transition() -> None:
    petri = delay_line([10])
    petri.add_place(Place("timer", [Stamped(NEVER, "off")]))
    petri.add_input("timer", "go", Ahead("t"))
    seen: list[int] = []
    Scheduler(petri, lambda now, move, binding: seen.append(now)).run(until=1000)
    assert seen == [10]
