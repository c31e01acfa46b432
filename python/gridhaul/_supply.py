"""Correlation of a power grid with its communication network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gridhaul._errors import InputError
from gridhaul._session import Session

__all__ = ["Supply"]


class Supply:
    """Which elements of a power grid supply which nodes of a scenario.

    A node works while at least one of its elements is energised; nodes without an element always
    work. An outage of a feeder so takes its own meters and its concentrator down.

    Example:
        >>> import gridhaul
        >>> supply = gridhaul.Supply({"feeder 1": ["concentrator", "meter[0]", "meter[1]"]})
        >>> supply.nodes("feeder 1")
        ('concentrator', 'meter[0]', 'meter[1]')

    """

    __slots__ = ("_deenergised", "_elements")
    _elements: dict[str, tuple[str, ...]]
    _deenergised: set[str]

    def __init__(self, elements: Mapping[str, Iterable[str]]) -> None:
        """Take the nodes of each element.

        Args:
            elements: Names of nodes, such as ``"concentrator"``, ``"meter[3]"``, or ``"meter"`` for
                all members of a group, by the name of the element, such as ``"feeder 1"``.

        Raises:
            InputError: An element without nodes, or a text instead of a list.
            TypeError: No dict, no list of nodes, or a node that is no text.

        """
        if not isinstance(elements, Mapping):
            raise TypeError(
                "elements: expected a dict of the nodes of each element, found "
                f"{type(elements).__name__}"
            )
        self._elements = {}
        self._deenergised = set()
        for element, nodes in elements.items():
            self.add(element, nodes)

    @property
    def elements(self) -> tuple[str, ...]:
        """Names of the elements."""
        return tuple(self._elements)

    def add(self, element: str, nodes: Iterable[str]) -> None:
        """Add an element, which is energised, and the nodes that it supplies."""
        if not isinstance(nodes, Iterable):
            raise TypeError(
                f"element {element!r}: expected a list of nodes, found {type(nodes).__name__}"
            )
        if isinstance(nodes, str) or not (names := tuple(nodes)):
            raise InputError(
                f"element {element!r}: expected a list of nodes, found {nodes!r}\n"
                '  help: name the nodes that it supplies, such as ["concentrator", "meter[0]"]'
            )
        for name in names:
            if not isinstance(name, str):
                raise TypeError(
                    f"element {element!r}: expected names of nodes, found {type(name).__name__}"
                )
        self._elements[element] = names

    def nodes(self, element: str) -> tuple[str, ...]:
        """Return the nodes that an element supplies."""
        if element not in self._elements:
            known = ", ".join(self._elements)
            raise InputError(
                f"no element {element!r} supplies nodes\n  help: choose one of: {known}"
            )
        return self._elements[element]

    def set(self, session: Session, element: str, *, energised: bool) -> None:
        """Energise or de-energise an element at the time of a session.

        Raises:
            InputError: An unknown element.
            TypeError: ``energised`` is neither True nor False.
            SessionError: A node that the scenario does not have.

        """
        nodes = self.nodes(element)
        # Truth values of numpy, as of tables of pandas, are equal to those of Python.
        if isinstance(energised, str) or energised not in (True, False):
            raise TypeError(f"energised: expected True or False, found {energised!r}")
        energised = bool(energised)
        if energised == (element not in self._deenergised):
            return
        names = session._node_names()
        supplied = {
            element: {names.canonical(node) for node in nodes}
            for element, nodes in self._elements.items()
        }
        # A group is set as a whole, unless an element names members of it.
        divided = {names.group(node) for nodes in supplied.values() for node in nodes}
        changed = [
            single
            for node in dict.fromkeys(names.canonical(node) for node in nodes)
            for single in (names.members(node) if node in divided else [node])
        ]

        def works(node: str) -> bool:
            return any(
                name not in self._deenergised and (node in nodes or names.group(node) in nodes)
                for name, nodes in supplied.items()
            )

        # Nodes of other elements keep their state.
        before = {node: works(node) for node in changed}
        (self._deenergised.discard if energised else self._deenergised.add)(element)
        for node, worked in before.items():
            if (is_up := works(node)) != worked:
                session.set_node(node, up=is_up)
