"""Scenarios: a network, its traffic and the duration of a run."""

from __future__ import annotations

import os
from collections.abc import Mapping

from gridhaul import _native
from gridhaul._values import U32_MAX, Value, setting, toml, whole

__all__ = ["Scenario"]


class Scenario:
    """A network, its traffic and the duration of a run. Scenarios are never changed in place.

    Read one with :meth:`load`, :meth:`from_toml` or :meth:`from_dict`.
    """

    __slots__ = ("_inner",)
    _inner: _native.Scenario

    def __init__(self, native: _native.Scenario) -> None:
        """Wrap the native scenario; use :meth:`load`, :meth:`from_toml` or :meth:`from_dict`."""
        if not isinstance(native, _native.Scenario):
            raise TypeError(
                f"expected a native scenario, found {type(native).__name__}; read a scenario with "
                "Scenario.load(path), Scenario.from_toml(text) or Scenario.from_dict(keys)"
            )
        self._inner = native

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Scenario:
        """Read a scenario file.

        Raises:
            ScenarioError: The file cannot be read, or has errors.

        """
        return cls(_native.Scenario.load(os.fspath(path)))

    @classmethod
    def from_toml(cls, text: str, *, folder: str | os.PathLike[str] | None = None) -> Scenario:
        """Read a scenario from the text of a TOML file.

        Args:
            text: The text.
            folder: Folder to which paths of traces are relative.

        Raises:
            ScenarioError: The text has errors.

        """
        return cls(_native.Scenario.from_toml(text, "scenario", _path(folder)))

    @classmethod
    def from_dict(
        cls, keys: Mapping[str, Value], *, folder: str | os.PathLike[str] | None = None
    ) -> Scenario:
        """Read a scenario from a dict with the keys of a scenario file.

        Args:
            keys: The tables and values, such as ``{"title": "…", "link": {"feeder": {…}}}``.
            folder: Folder to which paths of traces are relative.

        Raises:
            ScenarioError: The scenario has errors; they show the key as a line of TOML.
            TypeError: A value is of a type that no scenario has.

        """
        return cls(_native.Scenario.from_toml(toml(keys), "scenario", _path(folder)))

    def set(self, key: str, value: Value) -> Scenario:
        """Return the scenario with another value of a key.

        Args:
            key: Path of the key, such as ``"link.uplink.forward.rate"``.
            value: The value: a text with its unit, a number, a dict or a list.

        Raises:
            ScenarioError: The scenario has no such key, or the value is not valid.

        """
        return Scenario(self._inner.with_changes([setting(key, value)]))

    def with_seed(self, seed: int) -> Scenario:
        """Return the scenario with another seed of its random numbers.

        Raises:
            InputError: A seed below 0, or above 2⁶⁴ - 1.

        """
        whole("seed", seed)
        return Scenario(self._inner.with_changes([], seed=seed))

    def with_replications(self, replications: int | Mapping[str, Value]) -> Scenario:
        """Return the scenario with another number of replications.

        Args:
            replications: The number, or a dict such as ``{"until": "5 %", "max": 100}``: more
                replications where a confidence interval is wide, as of the key ``replications``.

        Raises:
            InputError: A number below 1.
            ScenarioError: The dict has a wrong key or value.

        """
        if isinstance(replications, Mapping):
            return self.set("replications", replications)
        whole("replications", replications, least=1, most=U32_MAX)
        return Scenario(self._inner.with_changes([], replications=replications))

    def check(self) -> list[str]:
        """Check the scenario completely, sweep points included. Return its warnings.

        Raises:
            ScenarioError: A point of the sweep is not valid.

        """
        warnings, _ = self._inner.check()
        return [f"{about}: {message}" for about, message in warnings]

    def to_toml(self) -> str:
        """Return the merged scenario as TOML."""
        return self._inner.to_toml()

    @property
    def title(self) -> str:
        """Title in one line."""
        return self._inner.title

    @property
    def seed(self) -> int:
        """Seed of all random numbers."""
        return self._inner.seed

    @property
    def replications(self) -> int:
        """Number of replications of a point; with ``until`` the largest number."""
        return self._inner.replications

    @property
    def points(self) -> int:
        """Number of combinations of swept values; 1 without a sweep."""
        return self._inner.check()[1]

    @property
    def sha256(self) -> str:
        """SHA-256 of the merged scenario, in hexadecimal."""
        return self._inner.sha256

    def __eq__(self, other: object) -> bool:
        """Whether all keys are equal."""
        return isinstance(other, Scenario) and self._inner == other._inner

    def __hash__(self) -> int:
        """Hash of the merged scenario."""
        return hash(self.sha256)

    def __repr__(self) -> str:
        """Show title and file."""
        return f"<gridhaul.Scenario {self.title!r} from {self._inner.file}>"

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        """Pickle the scenario as TOML, for worker processes."""
        return (_unpickled, (self.to_toml(), self._inner.file))


def scenario_or_file(scenario: Scenario | str | os.PathLike[str]) -> Scenario:
    """Return a scenario, or the one of a file.

    Raises:
        TypeError: Neither a scenario nor a path.
        ScenarioError: The file cannot be read, or has errors.

    """
    if isinstance(scenario, (str, os.PathLike)):
        return Scenario.load(scenario)
    if not isinstance(scenario, Scenario):
        raise TypeError(
            f"scenario: expected a Scenario or the path of a file, found {type(scenario).__name__}"
        )
    return scenario


def _unpickled(text: str, file: str) -> Scenario:
    return Scenario(_native.Scenario.from_toml(text, file))


def _path(folder: str | os.PathLike[str] | None) -> str | None:
    return None if folder is None else os.fspath(folder)
