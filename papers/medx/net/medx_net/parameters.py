"""The parameters of the net, read from parameters.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parent.parent / "parameters.toml"


class Parameters:
    """Values by dotted names, such as `parameters["channel.service"]`. Times are in units."""

    def __init__(self, values: Mapping[str, Any], tried: Mapping[str, list[Any]]) -> None:
        """Takes the values, and the alternatives of those parameters that the paper does not state."""
        self._values = dict(values)
        self.tried = dict(tried)

    def __getitem__(self, name: str) -> Any:
        """The value of a parameter."""
        return self._values[name]

    def replaced(self, changes: Mapping[str, Any]) -> Parameters:
        """A copy with some values replaced."""
        for name, value in changes.items():
            if name not in self._values:
                known = ", ".join(sorted(self._values))
                raise ValueError(f"{FILE.name}: there is no parameter {name!r}; there are: {known}")
            expected = type(self._values[name])
            number = expected is float and isinstance(value, int)
            if (not isinstance(value, expected) and not number) or isinstance(value, bool):
                raise ValueError(f"{FILE.name}: {name} = {value!r}: expected {expected.__name__}")
            choices = self.tried.get(name, [])
            if expected is str and value not in choices:
                raise ValueError(f"{FILE.name}: {name} = {value!r}: expected one of {choices}")
        return Parameters({**self._values, **changes}, self.tried)


def load(file: Path = FILE) -> Parameters:
    """Reads the file."""
    values, tried = {}, {}
    for group, entries in tomllib.loads(file.read_text(encoding="utf-8")).items():
        for name, entry in entries.items():
            values[f"{group}.{name}"] = entry["value"]
            if "tried" in entry:
                tried[f"{group}.{name}"] = entry["tried"]
    return Parameters(values, tried)
