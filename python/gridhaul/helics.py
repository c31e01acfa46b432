"""Federate of `HELICS <https://helics.org>`_ that carries the messages of other federates.

The federate puts a reroute filter on the endpoints of the other federates. Each of their messages
passes through the simulated network, and arrives at its destination when the network delivers it;
lost messages do not arrive.

Example::

    from gridhaul.helics import Network

    network = Network("district.toml", endpoints={"meters/3": "meter[3]", "control": "head"})
    network.run(until_s=3600, on_message=print)

or, for a federation whose endpoints have the names of nodes::

    python -m gridhaul.helics district.toml --until 3600 --timeout 600

"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from gridhaul import _federation
from gridhaul._errors import GridhaulError, InputError
from gridhaul._scenario import Scenario, scenario_or_file
from gridhaul._session import Message, Session
from gridhaul._supply import Supply

try:
    import helics
except ImportError as error:
    raise ImportError(
        "gridhaul.helics needs the package helics\n  help: pip install helics"
    ) from error

__all__ = ["FederationError", "MessageRecord", "Network", "main"]

# The endpoint to which the filter sends messages.
_ENDPOINT = "network"
# The endpoint for states of elements of the power grid.
_SUPPLY = "supply"


class FederationError(GridhaulError):
    """The federation failed, or made no progress until the timeout."""


class MessageRecord(NamedTuple):
    """A message that passed through the network.

    Attributes:
        source: Endpoint that sent it.
        destination: Endpoint to which it was sent.
        bytes: Payload in bytes.
        sent_s: When it was sent, in seconds.
        at_s: When it was delivered or lost, in seconds; None if it is in transit at the end.
        lost: Why it was lost, such as ``"queue_full"``; None if it was delivered.
        altered: Whether it arrived with altered content.

    """

    source: str
    destination: str
    bytes: int
    sent_s: float
    at_s: float | None
    lost: str | None
    altered: bool


class _InFlight(NamedTuple):
    source: str
    destination: str
    payload: bytes
    sent_s: float


class Network:
    """A network of a scenario, as a federate.

    The other federates need no change: endpoints of HELICS are mapped to nodes of the scenario.
    """

    def __init__(
        self,
        scenario: Scenario | str | os.PathLike[str],
        *,
        endpoints: Mapping[str, str] | None = None,
        supply: Mapping[str, Iterable[str]] | None = None,
        replication: int = 0,
        name: str = "gridhaul",
        core_type: str = "zmqss",
        core_init: str = "",
        broker: str | None = None,
        timeout_s: float | None = None,
        report_after_s: float = 10.0,
    ) -> None:
        """Join a federation.

        Args:
            scenario: The scenario, or its path; the flows of messages have ``load = "external"``.
            endpoints: The node of each endpoint. None: each node, and each member of a group such
                as ``meter[3]``, is the endpoint of that name.
            supply: Nodes that an element of the power grid supplies, by the name of the element.
                The text ``ELEMENT=0`` or ``ELEMENT=1``, sent to the endpoint ``supply`` of this
                federate (``gridhaul/supply``) from an endpoint without a node, is its state: while
                it is 0, the nodes do not work.
            replication: Number of the replication, which selects the random numbers.
            name: Name of the federate.
            core_type: Type of the core, such as ``"zmqss"``, ``"tcp"`` or ``"inproc"``: that of
                the broker. With ``"zmq"`` and ``"tcp"``, federations with filters that reroute
                messages often hang.
            core_init: Further arguments of the core, as HELICS documents them.
            broker: Address or name of the broker; None: that of HELICS.
            timeout_s: End with an error if the federation makes no progress for this real time.
            report_after_s: Print the requests of all federates after this real time without
                progress, and again each time it has doubled.

        Raises:
            SessionError: The scenario cannot be stepped, or does not have the node of an endpoint.
            InputError: An endpoint is mapped to a group of nodes.

        """
        scenario = scenario_or_file(scenario)
        self._session = Session(scenario, replication=replication)
        names = self._session._node_names()
        if endpoints is None:
            endpoints = {name: name for name in names.single()}
        self._nodes = {name: names.canonical(node) for name, node in endpoints.items()}
        for endpoint, node in self._nodes.items():
            self._session.set_node(node, up=True)
            if (size := names.size(node)) > 1:
                raise InputError(
                    f"the endpoint {endpoint!r}: `{node}` is a group of {size}\n"
                    f"  help: map it to one node, such as {node}[0]"
                )
        self._supply = Supply(supply or {})
        self._timeout_s = timeout_s
        self._report_after_s = report_after_s
        self._in_flight: dict[int, _InFlight] = {}
        try:
            self._join(name, core_type, core_init, broker)
        except helics.HelicsException as error:
            raise FederationError(f"HELICS: {error}") from error

    def _join(self, name: str, core_type: str, core_init: str, broker: str | None) -> None:
        info = helics.helicsCreateFederateInfo()
        helics.helicsFederateInfoSetCoreTypeFromString(info, core_type)
        if core_init:
            helics.helicsFederateInfoSetCoreInitString(info, core_init)
        if broker is not None:
            helics.helicsFederateInfoSetBroker(info, broker)
        self._federate = helics.helicsCreateMessageFederate(name, info)
        self._endpoint = helics.helicsFederateRegisterEndpoint(self._federate, _ENDPOINT, "")
        self._filter(f"{name}/{_ENDPOINT}")
        self._states = helics.helicsFederateRegisterEndpoint(self._federate, _SUPPLY, "")

    def run(self, until_s: float, on_message: Callable[[MessageRecord], None] | None = None) -> int:
        """Carry messages until a time in seconds, and leave the federation.

        A message between two endpoints of one node arrives at once. After an error, the whole
        federation ends with it, because messages of the other federates would be lost unnoticed.

        Args:
            until_s: End of the co-simulation.
            on_message: Called with each message when it is delivered or lost.

        Returns:
            The number of messages that were delivered.

        Raises:
            FederationError: No progress until the timeout, or an error of HELICS.

        """
        try:
            return self._run(until_s, on_message or (lambda _: None))
        except helics.HelicsException as error:
            raise FederationError(f"HELICS: {error}") from error
        except FederationError:
            raise
        except BaseException as error:
            self._end_federation(f"gridhaul: {error}")
            raise
        finally:
            self._session.close()

    @property
    def in_transit(self) -> list[MessageRecord]:
        """Messages that are neither delivered nor lost, without a time of their end."""
        return [
            MessageRecord(
                sent.source, sent.destination, len(sent.payload), sent.sent_s, None, None, False
            )
            for sent in self._in_flight.values()
        ]

    def _end_federation(self, text: str) -> None:
        # A call for the federate would wait for a pending request.
        core = helics.helicsFederateGetCore(self._federate)
        helics.helicsCoreGlobalError(core, 1, text.partition("\n")[0].encode())

    def _run(self, until_s: float, on_message: Callable[[MessageRecord], None]) -> int:
        helics.helicsFederateEnterExecutingModeAsync(self._federate)
        self._wait("the executing mode")
        helics.helicsFederateEnterExecutingModeComplete(self._federate)
        granted_s, delivered = 0.0, 0
        while granted_s < until_s:
            # The next delivery is known, unless another message is sent before it.
            before = self._session.snapshot() if self._session.in_flight else None
            ended = self._session.advance_to_report(until_s) if before is not None else []
            request_s = ended[0].at_s if ended else until_s
            helics.helicsFederateRequestTimeAsync(self._federate, request_s)
            self._wait(f"the grant of {request_s:.9g} s")
            granted_s = helics.helicsFederateRequestTimeComplete(self._federate)
            messages = self._messages()
            changes = self._changes()
            if before is not None and (messages or changes or granted_s < request_s):
                self._session.restore(before)
                ended = []
            if messages or changes:
                # The session stays just before the messages: HELICS may grant further messages of
                # the same time later, and the order of their senders must not matter.
                first_s = min([granted_s, *(message.sent_s for message in messages)]) - 1e-9
                if first_s > self._session.now_s:
                    ended += self._session.advance_to(first_s)
            for element, energised in changes:
                self._supply.set(self._session, element, energised=energised)
            for end in ended:
                on_message(self._deliver(end))
                delivered += end.delivered
            for message in messages:
                if (arrived := self._send(message)) is not None:
                    on_message(arrived)
                    delivered += 1
        helics.helicsFederateDisconnect(self._federate)
        return delivered

    def _filter(self, endpoint: str) -> None:
        reroute = helics.helicsFederateRegisterFilter(
            self._federate, helics.HELICS_FILTER_TYPE_REROUTE, "reroute"
        )
        helics.helicsFilterSetString(reroute, "newdestination", endpoint)
        for source in self._nodes:
            helics.helicsFilterAddSourceTarget(reroute, source)

    def _changes(self) -> list[tuple[str, bool]]:
        """Take the states of elements of the power grid that have been sent."""
        changes = []
        while helics.helicsEndpointHasMessage(self._states):
            message = helics.helicsEndpointGetMessage(self._states)
            text = bytes(helics.helicsMessageGetBytes(message)).decode(errors="replace")
            element, _, state = text.rpartition("=")
            if state not in {"0", "1"}:
                raise InputError(
                    f"{_SUPPLY}: expected the state of an element, found {text!r:.60}\n"
                    '  help: send "ELEMENT=0" or "ELEMENT=1"'
                )
            changes.append((element, state == "1"))
        return changes

    def _messages(self) -> list[_InFlight]:
        """Take the messages of a grant."""
        messages = []
        while helics.helicsEndpointHasMessage(self._endpoint):
            message = helics.helicsEndpointGetMessage(self._endpoint)
            source = helics.helicsMessageGetOriginalSource(message)
            destination = helics.helicsMessageGetOriginalDestination(message)
            payload = bytes(helics.helicsMessageGetBytes(message))
            sent_s = helics.helicsMessageGetTime(message)
            messages.append(_InFlight(source, destination, payload, sent_s))
        return messages

    def _send(self, message: _InFlight) -> MessageRecord | None:
        """Send a message over the network; return its record if both endpoints have one node."""
        source, destination = self._node(message.source), self._node(message.destination)
        if source == destination:
            self._hand_over(message, message.payload, message.sent_s)
            ends, at_s = (message.source, message.destination), message.sent_s
            return MessageRecord(*ends, len(message.payload), at_s, at_s, None, False)
        size = max(1, len(message.payload))
        at_s = max(message.sent_s, self._session.now_s)
        self._in_flight[self._session.send(source, destination, size, at_s)] = message
        return None

    def _node(self, endpoint: str) -> str:
        if endpoint not in self._nodes:
            raise InputError(
                f"the endpoint {endpoint!r} has no node\n"
                f"  help: map it to a node of the scenario; mapped are: {', '.join(self._nodes)}"
            )
        return self._nodes[endpoint]

    def _deliver(self, end: Message) -> MessageRecord:
        sent = self._in_flight.pop(end.id)
        if end.delivered:
            payload = _altered(sent.payload) if end.altered else sent.payload
            self._hand_over(sent, payload, end.at_s)
        size = len(sent.payload)
        ends = (sent.source, sent.destination)
        return MessageRecord(*ends, size, end.sent_s, end.at_s, end.lost, end.altered)

    def _hand_over(self, sent: _InFlight, payload: bytes, at_s: float) -> None:
        """Send a message to its destination, with this time."""
        message = helics.helicsEndpointCreateMessage(self._endpoint)
        helics.helicsMessageSetData(message, payload)
        helics.helicsMessageSetDestination(message, sent.destination)
        helics.helicsMessageSetOriginalDestination(message, sent.destination)
        helics.helicsMessageSetSource(message, sent.source)
        helics.helicsMessageSetOriginalSource(message, sent.source)
        helics.helicsMessageSetTime(message, at_s)
        helics.helicsEndpointSendMessage(self._endpoint, message)

    def _wait(self, awaited: str) -> None:
        """Wait for HELICS, report a federation without progress, and end at the timeout."""
        begun, pause_s, report_s = time.monotonic(), 0.0, self._report_after_s
        while not helics.helicsFederateIsAsyncOperationCompleted(self._federate):
            waited_s = time.monotonic() - begun
            if waited_s > 0.01:
                pause_s = 0.001
            elif waited_s > 0.0005:
                pause_s = 0.0001
            if self._timeout_s is not None and waited_s >= self._timeout_s:
                text = self._diagnosis(awaited, self._timeout_s)
                self._end_federation(f"no progress: {awaited}")
                raise FederationError(f"{text}\n  help: end the federate that does not answer")
            if waited_s >= report_s:
                print(self._diagnosis(awaited, report_s), file=sys.stderr, flush=True)
                report_s *= 2
            time.sleep(pause_s)

    def _diagnosis(self, awaited: str, waited_s: float) -> str:
        # Other queries of HELICS 3.6 end the process while a federate waits.
        query = helics.helicsCreateQuery("root", "global_time_debugging")
        core = helics.helicsFederateGetCore(self._federate)
        states = _federation.federates(helics.helicsQueryCoreExecute(query, core))
        return (
            f"the federation has made no progress for {waited_s:g} s; "
            f"gridhaul waits for {awaited}\n{_federation.table(states)}"
        )


def _altered(payload: bytes) -> bytes:
    """Flip a bit of the last byte, as links of the emulator do."""
    return payload[:-1] + bytes([payload[-1] ^ 0x10]) if payload else payload


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the network of a scenario as a federate: ``python -m gridhaul.helics --help``."""
    options = _parser().parse_args(arguments)
    try:
        supply = _pairs("--supply", options.supply)
        network = Network(
            options.scenario,
            endpoints=_pairs("--endpoint", options.endpoint) or None,
            supply={name: nodes.split(",") for name, nodes in supply.items()},
            replication=options.replication,
            name=options.name,
            core_type=options.core_type,
            core_init=options.core_init,
            broker=options.broker,
            timeout_s=options.timeout,
            report_after_s=options.report_after,
        )
        return _carry(network, options.until, options.messages)
    except GridhaulError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1


def _carry(network: Network, until_s: float, file: str | None) -> int:
    """Run a network, and write the records of its messages, also after an error."""
    records: list[MessageRecord] = []
    try:
        delivered = network.run(until_s, records.append)
    finally:
        in_transit = network.in_transit
        if file is not None:
            _write([*records, *in_transit], file)
    lost = len(records) - delivered
    print(f"{delivered} messages delivered, {lost} lost, {len(in_transit)} in transit at the end")
    return 0


def _write(records: Iterable[MessageRecord], path: str) -> None:
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(MessageRecord._fields)
        rows.writerows(records)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m gridhaul.helics",
        description="Carry the messages of a HELICS federation through a simulated network.",
    )
    parser.add_argument("scenario", help="file of the scenario")
    parser.add_argument(
        "--until", type=float, required=True, metavar="S", help="end of the co-simulation"
    )
    parser.add_argument(
        "--endpoint",
        action="append",
        default=[],
        metavar="ENDPOINT=NODE",
        help="node of an endpoint; without this option, endpoints have the names of nodes",
    )
    parser.add_argument(
        "--supply",
        action="append",
        default=[],
        metavar="ELEMENT=NODE,NODE",
        help="nodes that an element of the power grid supplies; its state is ELEMENT=0 or "
        "ELEMENT=1, sent to the endpoint gridhaul/supply",
    )
    parser.add_argument("--messages", metavar="FILE", help="write a CSV line for each message")
    parser.add_argument("--replication", type=int, default=0, help="selects the random numbers")
    parser.add_argument("--name", default="gridhaul", help="name of the federate")
    parser.add_argument(
        "--core-type",
        default="zmqss",
        help="type of the core of HELICS, that of the broker (default: zmqss)",
    )
    parser.add_argument("--core-init", default="", help="further arguments of the core")
    parser.add_argument("--broker", help="address of the broker")
    parser.add_argument(
        "--timeout", type=float, metavar="S", help="end after this real time without progress"
    )
    parser.add_argument(
        "--report-after",
        type=float,
        default=10.0,
        metavar="S",
        help="print the requests of all federates after this real time without progress",
    )
    return parser


def _pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, separator, value = text.rpartition("=")
        if not (name and separator and value):
            raise InputError(
                f"{option} {text}: expected two names\n  help: write them as NAME=NAME"
            )
        pairs[name] = value
    return pairs


if __name__ == "__main__":
    sys.exit(main())
