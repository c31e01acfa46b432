"""Answers of the backends to a scenario."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator, Mapping, Sequence

from gridhaul import _native
from gridhaul._chart import Chart, charts
from gridhaul._errors import InputError
from gridhaul._frame import Frame

__all__ = ["Answer", "Warning", "read"]

_CHARTS_SHOWN = 4


class Warning:
    """A warning about the validity of an answer.

    Attributes:
        backend: Backend that warns.
        about: Subject: a key of the scenario or a name in it.
        message: Text of the warning.

    """

    __slots__ = ("about", "backend", "message")

    def __init__(self, backend: str, about: str, message: str) -> None:
        """Create a warning."""
        self.backend = backend
        self.about = about
        self.message = message

    def __repr__(self) -> str:
        """Show the warning."""
        return f"<Warning {self.about}: {self.message}>"

    def __str__(self) -> str:
        """Return subject and text."""
        return f"{self.about}: {self.message}"


class Series(Mapping[str, Frame]):
    """The recorded series of an answer, by name."""

    __slots__ = ("_answers", "_names")

    def __init__(self, answers: _native.Answers) -> None:
        """Wrap the native answers."""
        self._answers = answers
        self._names = answers.series_names()

    def __getitem__(self, name: str) -> Frame:
        """Return the series of a name.

        Raises:
            KeyError: No such series is recorded.

        """
        if name not in self._names:
            known = ", ".join(self._names) or "none: set record.interval in the scenario"
            raise KeyError(f"there is no series {name!r}; recorded: {known}")
        table = self._answers.series(self._names.index(name))
        assert table is not None
        return Frame(table)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._names)

    def __len__(self) -> int:
        """Return the number of series."""
        return len(self._names)

    def __repr__(self) -> str:
        """Show the names."""
        return f"<gridhaul.Series {', '.join(self._names)}>"


class Answer:
    """The answers of one or several backends to one scenario.

    ``answer["sim"]`` is the answer of one backend. Answers without recorded series can be pickled,
    for example in a worker process.

    The tables have the columns of ``gridhaul export``, described in ``docs/reference/tables.md``.
    Swept keys have a column each with the texts of their values, and one with the numbers in the
    unit at the end of its name, such as ``_s``.
    """

    __slots__ = ("_inner",)
    _inner: _native.Answers

    def __init__(self, native: _native.Answers) -> None:
        """Wrap the native answers; runs create answers."""
        self._inner = native

    @property
    def flows(self) -> Frame:
        """Metrics of each flow, with a column each for the mean and its confidence interval.

        ``_ci95`` ends the name of the half width of the 95 % confidence interval, and ``_n`` that
        of the number of replications.
        """
        return Frame(self._inner.table("flows"))

    @property
    def links(self) -> Frame:
        """Metrics of each direction of each link, as in :attr:`flows`."""
        return Frame(self._inner.table("links"))

    @property
    def points(self) -> Frame:
        """Points of the sweep with the number of their replications; one without a sweep."""
        return Frame(self._inner.table("points"))

    @property
    def parameters(self) -> Frame:
        """Swept keys at each point: value as text, number, unit and label.

        ``column`` is the name of the column that has the numbers in the other tables.
        """
        return Frame(self._inner.table("parameters"))

    @property
    def replications(self) -> Frame:
        """Metrics of each flow and each direction of a link in each replication.

        Answers of :func:`read` have them if they were computed with ``record.each_replication``.

        Raises:
            InputError: A stored answer that has only the means of its replications.

        """
        return Frame(self._inner.table("replications"))

    @property
    def members(self) -> Frame:
        """Metrics of each member of the flows in ``record.members``, in each replication."""
        return Frame(self._inner.table("members"))

    @property
    def series(self) -> Series:
        """Recorded series by name, such as ``windows``; set ``record.interval`` to record them."""
        return Series(self._inner)

    @property
    def backends(self) -> list[str]:
        """The backends that answered, in order."""
        return self._inner.backends

    def __getitem__(self, backend: str) -> Answer:
        """Return the answer of one backend, such as ``"sim"``.

        Raises:
            KeyError: The backend did not answer.

        """
        answer = self._inner.of_backend(backend)
        if answer is None:
            raise KeyError(
                f"no answer of backend {backend!r}; answered: {', '.join(self.backends)}"
            )
        return Answer(answer)

    @property
    def title(self) -> str:
        """Title of the scenario."""
        return self._inner.title

    @property
    def seed(self) -> int | None:
        """Seed of the scenario."""
        return self._inner.seed

    @property
    def scenario_sha256(self) -> str:
        """SHA-256 of the merged scenario, in hexadecimal."""
        return self._inner.scenario_sha256

    @property
    def incomplete(self) -> bool:
        """Whether the run was interrupted: only finished points and replications count."""
        return self._inner.incomplete

    @property
    def warnings(self) -> list[Warning]:
        """Warnings about the validity of the results."""
        return [Warning(*warning) for warning in self._inner.warnings]

    @property
    def summary(self) -> str:
        """The result in sentences."""
        return self._inner.summary()

    @property
    def charts(self) -> list[Chart]:
        """Charts of the report, the most relevant first."""
        return charts(self._inner.charts())

    def report(self) -> str:
        """Return the report as one HTML page without scripts or external resources."""
        return self._inner.report()

    def to_json(self) -> str:
        """Return the answer as in ``answer.json``; a list for several backends."""
        return self._inner.to_json()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the answer as ``answer.json``; with several backends a list of their answers.

        :func:`read`, ``gridhaul compare`` and ``gridhaul export`` take both. Recorded series are
        not part of the file.
        """
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_json() + "\n")

    def __reduce__(self) -> tuple[object, tuple[str]]:
        """Pickle the answer with the values of each replication, but without recordings."""
        if names := self._inner.series_names():
            raise TypeError(
                f"an answer with recorded series cannot be pickled: {', '.join(names)}; pickle "
                "their data frames, or run the scenario without record.interval"
            )
        return (_unpickled, (self._inner.to_state(),))

    def __repr__(self) -> str:
        """Show title, backends and size."""
        points, replications = self._inner.size
        plural = ("" if points == 1 else "s", "" if replications == 1 else "s")
        return (
            f"<gridhaul.Answer {self.title!r} by {', '.join(self.backends)}: {points} "
            f"point{plural[0]}, {replications} replication{plural[1]}>"
        )

    def _repr_html_(self) -> str:
        """Show summary, warnings and charts in a notebook."""
        parts = [f"<h4>{html.escape(self.title)}</h4>", f"<p>{html.escape(self.summary)}</p>"]
        parts.extend(f"<p>Warning: {html.escape(str(warning))}</p>" for warning in self.warnings)
        parts.extend(chart._repr_html_() for chart in self.charts[:_CHARTS_SHOWN])
        return "".join(parts)


def read(*paths: str | os.PathLike[str]) -> Answer:
    """Read stored answers: results folders of the command line, or files such as ``answer.json``.

    Raises:
        InputError: No path, or a file that cannot be read or is not an answer.

    """
    if not paths:
        raise InputError(
            "paths: expected at least one, found none\n  help: give a results folder or a file "
            "answer.json"
        )
    return Answer(_native.read_answers([os.fspath(path) for path in paths]))


def _unpickled(state: str) -> Answer:
    return Answer(_native.Answers.from_state(state))


def labelled(answers: Sequence[Answer] | Mapping[str, Answer]) -> list[tuple[str, _native.Answers]]:
    """Pair answers with their labels."""
    if isinstance(answers, Mapping):
        return [(label, answer._inner) for label, answer in answers.items()]
    several = len({answer.title for answer in answers}) < len(answers)
    names = [
        f"{answer.title} ({number})" if several else answer.title
        for number, answer in enumerate(answers, 1)
    ]
    return [(name, answer._inner) for name, answer in zip(names, answers, strict=True)]
