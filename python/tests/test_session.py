"""Stepped simulation."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

import gridhaul
from gridhaul import Scenario, Session


def test_messages_are_delivered_with_their_delay(meters: Scenario) -> None:
    session = Session(meters)
    first = session.send("meter[3]", "head", 200, 1.0)
    second = session.send("head", "meter[3]", 50, 1.5)
    assert session.advance_to(1.0) == []
    assert session.next_event() is not None
    delivered = session.advance_to(10)
    assert [message.id for message in delivered] == [first, second]
    message = delivered[0]
    assert message.delivered
    assert message.delay_s is not None
    # Propagation, and the transmission of 240 B at 64 kbit/s and at 1 Mbit/s.
    assert message.delay_s > 0.06 + 240 * 8 / 64_000 + 240 * 8 / 1_000_000
    assert message.at_s == message.sent_s + message.delay_s
    assert session.now_s == 10
    assert session.in_flight == 0


def test_attacked_messages_are_marked_or_lost(meters: Scenario) -> None:
    attacks = """
        [attack.forge]
        start = "1 s"
        length = "1 s"
        action.alter.link = "street"
        [attack.silence]
        start = "3 s"
        length = "1 s"
        action.drop.link = "street"
    """
    session = Session(Scenario.from_toml(meters.to_toml() + attacks))
    for second in (0.5, 1.5, 2.5):
        session.send("meter[3]", "head", 200, second)
    messages = session.advance_to(2.9)
    assert [message.altered for message in messages] == [False, True, False]
    # TCP retransmits what the attacker drops until the attack is over.
    session.send("meter[3]", "head", 200, 3.2)
    late = session.advance_to(20)
    assert [message.altered for message in late] == [False]
    assert late[0].at_s > 4


def test_a_session_sends_at_its_own_time_by_default(meters: Scenario) -> None:
    session = Session(meters)
    session.advance_to(2.5)
    session.send("meter[0]", "head", 100)
    assert session.advance_to(9)[0].sent_s == 2.5


def test_steps_do_not_change_the_delays(meters: Scenario) -> None:
    def delays(step: float) -> list[gridhaul.Message]:
        session = Session(meters)
        session.send_many([(f"meter[{n % 20}]", "head", 100 + n, n / 100) for n in range(200)])
        found: list[gridhaul.Message] = []
        while session.now_s < 30:
            found += session.advance_to(session.now_s + step)
        return found

    assert delays(0.05) == delays(30)
    assert len(delays(30)) == 200


def test_a_link_fails_and_recovers(meters: Scenario) -> None:
    session = Session(meters)
    session.send("meter[1]", "head", 100)
    session.advance_to(2)
    session.set_link("uplink", up=False)
    session.send("meter[1]", "head", 100)
    assert session.advance_to(10) == []
    session.set_link("uplink", up=True)
    late = session.advance_to(60)[0]
    assert late.delay_s is not None
    assert late.delay_s > 8
    session.set_link("street[1]", delay="500 ms", rate="32 kbit/s", loss="0 %")
    session.send("meter[1]", "head", 100)
    slow = session.advance_to(70)[0]
    assert slow.delay_s is not None
    assert slow.delay_s > 0.54


def test_a_snapshot_is_restored_any_number_of_times(meters: Scenario) -> None:
    session = Session(meters)
    session.send_many([(f"meter[{n}]", "head", 100, 0.1) for n in range(20)])
    session.advance_to(0.15)
    snapshot = session.snapshot()
    assert repr(snapshot) == "<gridhaul.Snapshot at 0.15 s>"
    future = session.advance_to(20)
    assert len(future) == 20
    for _ in range(2):
        session.restore(snapshot)
        assert session.now_s == 0.15
        assert session.advance_to(20) == future
    with pytest.raises(gridhaul.SessionError, match="another session"):
        Session(meters, replication=1).restore(snapshot)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("meter[20]", "head", 9), r"no member `meter\[20\]`"),
        (("meter", "head", 9), "is a group of 20"),
        (("metre", "head", 9), "no node `metre`"),
        (("concentrator", "head", 9), 'no flow with load = "external"'),
        (("meter[1]", "head", 0), "size_bytes: expected 1 or more, found 0"),
        (("meter[1]", "head", -1), "size_bytes: expected 1 or more, found -1"),
        (("meter[1]", "head", 2**70), "size_bytes: expected at most"),
        (("meter[1]", "head", 9, 0.5), "time does not go back"),
        (("meter[1]", "head", 9, -1.0), "is no time of a session"),
        (("meter[1]", "head", 9, math.nan), "is no time of a session"),
        (("meter[1]", "head", 9, math.inf), "is no time of a session"),
    ],
)
def test_wrong_messages_are_refused(meters: Scenario, arguments: Any, text: str) -> None:
    session = Session(meters)
    session.advance_to(1)
    with pytest.raises(gridhaul.SessionError, match=text):
        session.send(*arguments)
    assert session.in_flight == 0


def test_wrong_types_are_refused(meters: Scenario) -> None:
    session = Session(meters)
    wrong: Any = "9"
    with pytest.raises(TypeError, match="expected a Snapshot, found str"):
        session.restore(wrong)
    with pytest.raises(gridhaul.ScenarioError, match="cannot read this file"):
        Session("9")
    for neither in (9, None, b"9", {"title": "9"}):
        unknown: Any = neither
        with pytest.raises(TypeError, match="scenario: expected a Scenario or the path"):
            Session(unknown)
    with pytest.raises(TypeError):
        session.send("meter[1]", "head", wrong)
    with pytest.raises(gridhaul.SessionError, match=r"messages\[1\]: size_bytes: expected 1 or"):
        session.send_many([("meter[1]", "head", 9, 1.0), ("meter[1]", "head", -1, 1.0)])
    assert session.in_flight == 0
    with pytest.raises(gridhaul.SessionError, match="replication: expected 0 or more, found -1"):
        Session(meters, replication=-1)
    with pytest.raises(TypeError):
        session.advance_to(wrong)
    with pytest.raises(gridhaul.SessionError, match="time does not go back"):
        session.advance_to(1)
        session.advance_to(0.5)
    for never in (math.nan, math.inf, -1.0):
        with pytest.raises(gridhaul.SessionError, match="is no time of a session"):
            session.advance_to(never)
        with pytest.raises(gridhaul.SessionError, match="is no time of a session"):
            session.send_many([("meter[1]", "head", 9, never)])
    with pytest.raises(gridhaul.SessionError, match="there is no link `x`"):
        session.set_link("x", up=True)
    with pytest.raises(gridhaul.SessionError, match="rate: "):
        session.set_link("uplink", rate="fast")


def test_a_step_to_the_first_report_ends_at_its_time(meters: Scenario) -> None:
    session = Session(meters)
    session.send_many([(f"meter[{n}]", "head", 100, 0.1 * n) for n in range(20)])
    found = []
    while session.in_flight > 0:
        messages = session.advance_to_report(60)
        assert {message.at_s for message in messages} == {session.now_s}
        found += messages
    assert len(found) == 20
    assert session.advance_to_report(70) == []
    assert session.now_s == 70
    with pytest.raises(gridhaul.SessionError, match="time does not go back"):
        session.advance_to_report(69)


def test_an_element_takes_its_nodes_down(meters: Scenario) -> None:
    session = Session(meters)
    supply = gridhaul.Supply({"feeder 1": ["meter[1]", "meter[2]"], "battery": ["meter[2]"]})
    supply.set(session, "feeder 1", energised=False)
    late = [session.send(f"meter[{n}]", "head", 100, 1.0) for n in (1, 2, 3)]
    assert {message.id for message in session.advance_to(20)} == set(late[1:])
    supply.set(session, "feeder 1", energised=False)
    supply.set(session, "feeder 1", energised=True)
    assert [message.id for message in session.advance_to(100)] == late[:1]
    supply.set(session, "battery", energised=False)
    session.send("meter[2]", "head", 100)
    assert len(session.advance_to(110)) == 1
    with pytest.raises(gridhaul.InputError, match="choose one of: feeder 1, battery"):
        supply.set(session, "feeder 2", energised=False)
    wrong: Any = "no"
    with pytest.raises(TypeError, match="energised: expected True or False, found 'no'"):
        supply.set(session, "battery", energised=wrong)
    wrong = "meter[1]"
    with pytest.raises(gridhaul.InputError, match="expected a list of nodes"):
        gridhaul.Supply({"feeder 1": wrong})
    with pytest.raises(gridhaul.SessionError, match="there is no node `metre`"):
        gridhaul.Supply({"feeder 1": ["metre"]}).set(session, "feeder 1", energised=False)


@pytest.mark.parametrize(
    ("group", "member"), [("meter", "meter[3]"), ("meter[3]", "meter"), ("head", "head[0]")]
)
def test_an_element_of_a_group_supplies_its_members(
    meters: Scenario, group: str, member: str
) -> None:
    session = Session(meters)
    supply = gridhaul.Supply({"feeder": [group], "battery": [member]})
    supply.set(session, "feeder", energised=False)
    kept = session.send("meter[3]", "head", 100, 1.0)
    session.send("meter[4]", "head", 100, 1.0)
    # The battery supplies the member, and the rest of the group as far as it names it.
    expected = {kept} if member == "meter[3]" else {kept, kept + 1}
    assert {message.id for message in session.advance_to(10)} == expected
    supply.set(session, "battery", energised=False)
    session.send("meter[3]", "head", 100)
    assert session.advance_to(20) == []
    supply.set(session, "feeder", energised=True)
    delivered = {message.id for message in session.advance_to(59)}
    assert (kept + 2 in delivered) == (group != "head" or member == "head[0]")


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        (None, "elements: expected a dict of the nodes of each element, found NoneType"),
        (["feeder 1"], "elements: expected a dict of the nodes of each element, found list"),
        ({"feeder 1": 3}, "element 'feeder 1': expected a list of nodes, found int"),
        ({"feeder 1": [3]}, "element 'feeder 1': expected names of nodes, found int"),
        ({"feeder 1": b"head"}, "element 'feeder 1': expected names of nodes, found int"),
    ],
)
def test_wrong_types_of_supply_are_named(elements: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        gridhaul.Supply(elements)


def test_a_closed_session_is_refused(meters: Scenario) -> None:
    with Session(meters) as session:
        session.send("meter[1]", "head", 9)
    assert repr(session) == "<gridhaul.Session 'Meters of a district', closed>"
    calls: list[Callable[[], Any]] = [
        session.next_event,
        session.snapshot,
        lambda: session.in_flight,
        lambda: session.now_s,
        lambda: session.send("meter[1]", "head", 9),
        lambda: session.send_many([("meter[1]", "head", 9, 1.0)]),
        lambda: session.advance_to(1),
        lambda: session.advance_to_report(1),
        lambda: session.set_link("uplink", up=False),
        lambda: session.set_node("head", up=False),
    ]
    for call in calls:
        with pytest.raises(gridhaul.SessionError, match="the session is closed"):
            call()


def test_a_run_refuses_a_scenario_for_sessions_and_the_reverse(
    meters: Scenario, download: Scenario
) -> None:
    with pytest.raises(gridhaul.InputError, match="with a `Session`"):
        gridhaul.run(meters)
    with pytest.raises(gridhaul.SessionError, match='load = "external"'):
        Session(download)


def test_ctrl_c_ends_a_step_and_the_session_goes_on() -> None:
    text = LOADED
    session = Session(Scenario.from_toml(text))
    # Before the step has begun, the interrupt would end the tests.
    timer = threading.Timer(2.0, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(gridhaul.Interrupted, match="interrupted at "):
        session.advance_to(1e6)
    timer.join()
    reached = session.now_s
    assert 0 < reached < 1e6
    session.send("meter", "head", 9)
    assert session.advance_to(reached + 60)[0].delivered


LOADED = """
title = "A loaded link"
duration = "60 s"
[node]
meter = {}
head = {}
[link.line]
from = "meter"
to = "head"
both = { rate = "10 Mbit/s", delay = "1 ms" }
[flow.reports]
from = "meter"
to = "head"
load = "external"
[flow.background]
from = "meter"
to = "head"
load = "bulk"
"""
