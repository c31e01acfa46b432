"""Unit tests of source, channel, receiver and discriminator."""

from dataclasses import dataclass

import pytest

from medx_net import parameters as files
from medx_net.channel import Acknowledgement, Channel, Receiver, Segment
from medx_net.medx import Delays, Discriminator
from medx_net.parameters import Parameters
from medx_net.sender import Out, Protocol
from medx_net.source import Source
from medx_net.timed import Stamped

PARAMETERS = files.load()


def is_congestion(delays: list[int], changes: dict[str, object] | None = None) -> bool:
    discriminator = Discriminator(PARAMETERS.replaced(changes or {}))
    known = Delays()
    for delay in delays:
        known = discriminator.update(known, delay)
    return discriminator.congested(known)


def test_the_average_is_equation_1() -> None:
    discriminator = Discriminator(PARAMETERS)
    known = Delays()
    for delay in (10, 20, 30, 40):
        known = discriminator.update(known, delay)
    # 0.5 (0.5 (0.5 * 10 + 0.5 * 20) + 0.5 * 30) + 0.5 * 40
    assert known.average == 31.25


def test_both_criteria_are_needed() -> None:
    # 40 > 1.2 * 31.25 = 37.5, and rising.
    assert is_congestion([10, 20, 30, 40])
    # 35 > 1.2 * (0.5 * 22.5 + 0.5 * 35) = 34.5; 33 < 1.2 * (0.5 * 22.5 + 0.5 * 33) = 33.3.
    assert is_congestion([10, 20, 30, 35])
    assert not is_congestion([10, 20, 30, 33])
    # A large delay, but one delay decreased.
    assert not is_congestion([10, 9, 30, 90])
    # Equal delays do not decrease, and only the last four delays count.
    assert is_congestion([90, 10, 10, 30, 90])


def test_a_long_queue_that_grows_steadily_is_classified_as_an_error() -> None:
    # Each delay increases by one service time: the average lags one step, so that P > 1.2 (P - step) needs P < 6 steps.
    # With a delay of 20 ms and 9 waiting segments P exceeds this limit.
    assert not is_congestion([20_000 + 2_304 * waiting for waiting in range(1, 81)])


def test_the_mean_of_a_rising_list_classifies_fewer_losses_as_congestion() -> None:
    assert not is_congestion([10, 20, 30, 40], {"medx.measure": "even"})


def test_without_sufficient_delays_the_parameter_decides() -> None:
    for answer in ("congestion", "error"):
        changes = {"medx.without_delays": answer}
        assert is_congestion([30, 20, 10], changes) is (answer == "congestion")
        discriminator = Discriminator(PARAMETERS.replaced(changes))
        old = Delays((40, 30, 20, 10), 20.0, known=True, fresh=False)
        assert discriminator.congested(old) is (answer == "congestion")


@dataclass
class Case:
    changes: dict[str, object]
    expected: float
    tolerance: float


@pytest.mark.parametrize(
    "case",
    [
        # A random mode every 50,000 units: 100 segments with 0.9, one with 0.1.
        Case({"source.draw": "period", "source.congested_share": 0.9}, 90.1 / 50_000, 0.02),
        Case({"source.draw": "period", "source.congested_share": 0.1}, 10.9 / 50_000, 0.1),
        # A random gap after each segment: 500 with 0.9, 50,000 with 0.1.
        Case({"source.draw": "token", "source.congested_share": 0.9}, 1 / 5_450, 0.1),
        Case({"source.draw": "token", "source.congested_share": 0.1}, 1 / 45_050, 0.02),
    ],
)
def test_each_interpretation_of_the_source_has_the_expected_rate(case: Case) -> None:
    source = Source(PARAMETERS.replaced(case.changes), seed=5)
    clock, made = Stamped(0, 0), 0
    while clock.value < 2000:
        made += source.drawn(clock).value.left
        clock = source.next_draw(clock)
    assert made / clock.at == pytest.approx(case.expected, rel=case.tolerance)


def test_a_token_generates_segments_at_the_gap_of_its_type() -> None:
    source = Source(PARAMETERS.replaced({"source.congested_share": 1.0}), seed=1)
    token = source.drawn(Stamped(0, 0))
    times = [token.at]
    while rest := source.rest(token):
        (token,) = rest
        times.append(token.at)
    assert times == list(range(0, 50_000, 500))


def channel(changes: dict[str, object] | None = None) -> Channel:
    return Channel(PARAMETERS.replaced(changes or {}), seed=3)


def test_a_fifth_of_the_segments_is_lost_and_copies_are_independent() -> None:
    fates = [channel().ok(Stamped(0, Segment(number, 1, 0))) for number in range(5_000)]
    second_copies = [channel().ok(Stamped(9, Segment(number, 2, 9))) for number in range(5_000)]
    # Five standard deviations: 5 sqrt(0.16 / 5000) = 0.028.
    assert sum(fates) / 5_000 == pytest.approx(0.8, abs=0.028)
    both = sum(not first and not second for first, second in zip(fates, second_copies, strict=True))
    assert both / 5_000 == pytest.approx(0.04, abs=0.014)


def test_the_buffer_holds_eighty_segments_and_drops_the_next() -> None:
    full = Stamped(0, tuple(Segment(number, 1, 0) for number in range(80)))
    nearly = Stamped(0, full.value[:79])
    new = Stamped(7, Segment(80, 1, 0))
    assert channel().queued(new, nearly) == (7, (*nearly.value, new.value))
    assert channel().dropped(new, nearly) == ()
    assert channel().queued(new, full) == (7, full.value)
    assert channel().dropped(new, full) == (new,)


def test_each_segment_occupies_the_server_for_one_service_time() -> None:
    lst, server = Stamped(100, (Segment(0, 1, 0), Segment(1, 1, 0))), Stamped(250, "free")
    assert channel().served(lst, server) == (250 + 2_304 + 5_000, Segment(0, 1, 0))
    assert channel().free(lst, server).at == 250 + 2_304
    assert channel().shorter(lst, server).value == (Segment(1, 1, 0),)


def test_the_receiver_delivers_in_order_and_acknowledges_everything_with_its_delay() -> None:
    receiver, delivered, acks = Stamped(0, Receiver()), [], []
    for at, number in ((10, 1), (20, 1), (30, 0), (40, 3), (50, 0), (60, 2)):
        segment = Stamped(at, Segment(number, 1, at - 4))
        delivered += [token.value for token in channel().delivered(segment, receiver)]
        acks.append(channel().acknowledged(segment, receiver).value)
        receiver = channel().received(segment, receiver)
    assert delivered == [0, 1, 2, 3]
    assert [ack.upto for ack in acks] == [0, 0, 2, 2, 2, 4]
    assert [ack.number for ack in acks] == [1, 1, 0, 3, 0, 2]
    assert {ack.delay for ack in acks} == {4}


@pytest.mark.parametrize("recovery", ["new_reno", "sack"])
def test_an_acknowledgement_times_the_copy_that_it_answers(recovery: str) -> None:
    # Sent twice, the second time at 500,000; transit time 12,304, and 10,000 on the reverse path.
    ack = Acknowledgement(upto=1, number=0, copy=2, delay=12_304, sent=500_000)
    for timing, srtt in (("option", 22_304), ("karn", 0)):
        protocol = Protocol(PARAMETERS.replaced({"sender.timing": timing, "sender.recovery": recovery}), None)
        waits = protocol.start()._replace(next=1, out=(Out(0, 500_000, copies=2),), backoff=3)
        after = protocol.acknowledged(waits, ack, Delays(), timer=9_000_000, now=522_304).sender
        assert (after.srtt, after.backoff) == (srtt, 0 if srtt else 3)


def test_parameters_that_do_not_exist_or_have_the_wrong_kind_are_named() -> None:
    for changes, words in [
        ({"channel.size": 1}, "there is no parameter 'channel.size'"),
        ({"channel.fifo": "many"}, "channel.fifo = 'many': expected int"),
        ({"sender.recovery": "tahoe"}, "expected one of ['new_reno', 'sack', 'each']"),
    ]:
        with pytest.raises(ValueError, match=r"parameters\.toml") as error:
            PARAMETERS.replaced(changes)
        assert words in str(error.value)


def test_every_parameter_says_why_and_its_value_is_among_those_tried() -> None:
    assert isinstance(PARAMETERS, Parameters)
    for name, tried in PARAMETERS.tried.items():
        assert PARAMETERS[name] in tried, name
