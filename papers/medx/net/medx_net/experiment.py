"""Runs of the net, and their results."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from .channel import Receiver, Segment
from .net import Net
from .parameters import Parameters
from .sender import Classification
from .timed import Scheduler, only

CAUSES = ("error", "queue", "none")


@dataclass
class Run:
    """Results of one run. Times are in units."""

    protocol: str
    seed: int
    delivered: int = 0
    sent: int = 0
    largest_queue: int = 0
    timeouts: int = 0
    firings: int = 0
    delays: list[tuple[int, int, int]] = field(default_factory=list)
    """Arrival time, number and delay of each segment that arrived."""
    written: list[int] = field(default_factory=list)
    """Generation time of each segment."""
    lost: dict[tuple[int, int], str] = field(default_factory=dict)
    """Cause of each loss, by number and copy of the segment."""
    classifications: list[Classification] = field(default_factory=list)

    @property
    def mean_delay(self) -> float:
        """The mean delay of all segments that arrived."""
        return sum(delay for _, _, delay in self.delays) / max(1, len(self.delays))

    def first_arrivals(self) -> list[tuple[int, int, int]]:
        """Arrival time, number and delay of the first copy of each segment that arrived."""
        first: dict[int, tuple[int, int, int]] = {}
        for arrival in self.delays:
            first.setdefault(arrival[1], arrival)
        return list(first.values())

    @property
    def mean_age(self) -> float:
        """The mean time from generation to first arrival, without retransmitted duplicates."""
        ages = [at - self.written[number] for at, number, _ in self.first_arrivals()]
        return sum(ages) / max(1, len(ages))

    @property
    def ages(self) -> list[int]:
        """The time from generation to delivery in order, for each delivered segment."""
        came = {number: at for at, number, _ in self.first_arrivals()}
        ages: list[int] = []
        delivered_at = 0
        for number in range(self.delivered):
            delivered_at = max(delivered_at, came[number])
            ages.append(delivered_at - self.written[number])
        return ages

    def confusion(self) -> Counter[tuple[str, bool]]:
        """
        The number of classified losses by true cause and by classification as congestion. Cause "none": the
        segment was not lost, and the timeout was spurious.
        """
        return Counter(
            (self.lost.get((loss.number, loss.copy), "none"), loss.congestion) for loss in self.classifications
        )

    def row(self) -> dict[str, Any]:
        """A row of results.csv."""
        causes = Counter(self.lost.values())
        confusion = self.confusion()
        counts = Counter(classified.congestion for classified in self.classifications)
        row: dict[str, Any] = {
            "protocol": self.protocol,
            "seed": self.seed,
            "segments_delivered": self.delivered,
            "segments_sent": self.sent,
            "mean_delay_units": round(self.mean_delay),
            "mean_age_units": round(self.mean_age),
            "losses_error": causes["error"],
            "losses_queue": causes["queue"],
            "classified_congestion": counts[True],
            "classified_error": counts[False],
            "timeouts": self.timeouts,
            "largest_queue": self.largest_queue,
        }
        for cause in CAUSES:
            row[f"{cause}_classified_congestion"] = confusion[cause, True]
            row[f"{cause}_classified_error"] = confusion[cause, False]
        return row


def same_segments(standard: Run, medx: Run) -> tuple[int, float, float]:
    """
    The number of segments that both protocols delivered, and their mean age with each. The source generates the
    same segments for both protocols, so that the same segments are compared.
    """
    both = list(zip(standard.ages, medx.ages, strict=False))
    count = max(1, len(both))
    return len(both), sum(age for age, _ in both) / count, sum(age for _, age in both) / count


def run(parameters: Parameters, protocol: str, seed: int) -> Run:
    """Runs the net once."""
    net = Net(parameters, protocol, seed)
    result = Run(protocol, seed)
    inscriptions, channel = net.inscriptions, net.channel

    def observe(now: int, move: str, binding: Any) -> None:
        if move == "Transmit packet":
            result.sent += 1
            segment: Segment = binding["p"].value
            if not channel.ok(binding["p"]):
                result.lost[segment.number, segment.copy] = "error"
        elif move == "Drop tail":
            segment, lst = binding["p"].value, binding["lst"]
            if channel.has_space(lst):
                result.largest_queue = max(result.largest_queue, len(lst.value) + 1)
            else:
                result.lost[segment.number, segment.copy] = "queue"
        elif move in ("Ordinary", "Congested"):
            result.written.append(now)
        elif move == "Receive packet":
            segment = binding["p"].value
            result.delays.append((now, segment.number, now - segment.sent))
        elif move == "Receive ack":
            d = (binding["d"],) if net.medx else ()
            classified = inscriptions.acked(binding["s"], binding["a"], binding["t"], *d).classified
            if classified is not None:
                result.classifications.append(classified)
        elif move == "Timeout":
            d = (binding["d"],) if net.medx else ()
            result.timeouts += 1
            result.classifications.append(inscriptions.expired(binding["s"], binding["t"], *d).classified)

    scheduler = Scheduler(net.petri, observe)
    scheduler.run(parameters["run.duration"])
    receiver: Receiver = only(net.petri.place("receiver"))
    result.delivered = receiver.expected
    result.firings = scheduler.fired
    return result
