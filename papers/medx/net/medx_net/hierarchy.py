"""
The hierarchy of the net: a top page whose substitution transitions stand for the pages of figures 1 to 3.

Section 3 of the paper: the subpage of a substitution transition describes the activity in detail, and replacing each
substitution transition by its subpage gives the flat net. Here the pages are derived from the flat net, so that both
views cannot differ: a place that transitions of several pages use is a socket of the top page, and a port of each of
these pages; every other place is internal to its page.
"""

from __future__ import annotations

from typing import NamedTuple

from .net import Net


class Page(NamedTuple):
    """A subpage: its transitions, its ports by direction, and the places that no other page uses."""

    name: str
    moves: frozenset[str]
    inputs: frozenset[str]
    outputs: frozenset[str]
    internal: frozenset[str]

    @property
    def ports(self) -> frozenset[str]:
        """The places that this page shares with others."""
        return self.inputs | self.outputs


class Hierarchy(NamedTuple):
    """The top page: substitution transitions by name, and the sockets between them."""

    pages: tuple[Page, ...]
    sockets: frozenset[str]

    def flattened(self) -> tuple[frozenset[str], frozenset[str]]:
        """Places and transitions after each substitution transition is replaced by its subpage."""
        places = self.sockets.union(*(page.internal for page in self.pages))
        return places, frozenset().union(*(page.moves for page in self.pages))


def of(net: Net) -> Hierarchy:
    """The pages of a net."""
    taken: dict[str, set[str]] = {}
    created: dict[str, set[str]] = {}
    for name, moves in net.pages.items():
        transitions = [net.petri.transition(move) for move in moves]
        taken[name] = {place.name for move in transitions for place, _ in move.input()}
        created[name] = {place.name for move in transitions for place, _ in move.output()}
    used = {name: taken[name] | created[name] for name in net.pages}
    sockets = frozenset(place for name in used for other in used if other != name for place in used[name] & used[other])
    pages = [
        Page(
            name,
            frozenset(moves),
            frozenset(taken[name]) & sockets,
            frozenset(created[name]) & sockets,
            frozenset(used[name]) - sockets,
        )
        for name, moves in net.pages.items()
    ]
    return Hierarchy(tuple(pages), sockets)
