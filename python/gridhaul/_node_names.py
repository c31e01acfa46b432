"""Names of nodes, of groups and of their members."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

from gridhaul._scenario import Scenario

__all__ = ["NodeNames"]

_MEMBER = re.compile(r"(.+)\[([0-9]+)\]")


class NodeNames:
    """Which names of a scenario mean the same nodes.

    The name of a group means all of its members, and ``head[0]`` is the single node ``head``.
    """

    __slots__ = ("_sizes",)

    def __init__(self, scenario: Scenario) -> None:
        """Read the sizes of the groups."""
        nodes = tomllib.loads(scenario.to_toml())["node"]
        self._sizes = {name: int(keys.get("count", 1)) for name, keys in nodes.items()}

    def single(self) -> Iterator[str]:
        """Yield the name of each node: of a single one, and of each member of a group."""
        for name in self._sizes:
            yield from self.members(name)

    def canonical(self, name: str) -> str:
        """Return the only name of a node or group; unknown names stay as they are."""
        if (found := _MEMBER.fullmatch(name)) is None:
            return name
        group, number = found[1], int(found[2])
        return group if number == 0 and self._sizes.get(group) == 1 else f"{group}[{number}]"

    def group(self, name: str) -> str | None:
        """Return the group of a member with a canonical name; None for a group or single node."""
        found = _MEMBER.fullmatch(name)
        return found[1] if found is not None else None

    def size(self, name: str) -> int:
        """Return the number of nodes that a canonical name means; 1 for an unknown one."""
        return self._sizes.get(name, 1)

    def members(self, name: str) -> list[str]:
        """Return the names of the single nodes that a canonical name means."""
        size = self.size(name)
        return [name] if size == 1 else [f"{name}[{number}]" for number in range(size)]
