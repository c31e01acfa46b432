"""Exceptions of the package, with the texts of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gridhaul._answer import Answer

__all__ = [
    "Diagnostic",
    "GridhaulError",
    "InputError",
    "InternalError",
    "Interrupted",
    "ScenarioError",
    "SessionError",
]


class GridhaulError(Exception):
    """Any error of gridhaul."""


class InputError(GridhaulError, ValueError):
    """Invalid input, or a missing feature of the machine; the text states the remedy."""


class Diagnostic:
    """One error in a scenario.

    Attributes:
        key: Path of the key, such as ``link.uplink.forward.rate``; empty if it concerns no key.
        message: The error, and the expected value.
        remedy: How to correct the error; empty if the message is sufficient.
        line: Line number from 1; 0 in a changed value; None if the location is not known.
        column: Column in characters, from 1; None if the location is not known.
        text: Text of the line; None if the location is not known.

    """

    __slots__ = ("column", "key", "line", "message", "remedy", "text")

    def __init__(
        self, key: str, message: str, remedy: str, place: tuple[int, int, str] | None = None
    ) -> None:
        """Create a diagnostic; ``place`` is line, column and text of the line."""
        self.key = key
        self.message = message
        self.remedy = remedy
        self.line: int | None
        self.column: int | None
        self.text: str | None
        self.line, self.column, self.text = place or (None, None, None)

    def __repr__(self) -> str:
        """Show key, message and location."""
        where = "" if self.line is None else f" at {self.line}:{self.column}"
        return f"<Diagnostic {self.key}: {self.message}{where}>"


class ScenarioError(InputError):
    """A scenario that is not valid: file, line, caret, expectation and remedy of each error.

    Attributes:
        file: Name of the scenario's file.
        diagnostics: The errors, in the order of the file; at most 100.

    """

    def __init__(
        self, text: str, file: str = "", diagnostics: list[Diagnostic] | None = None
    ) -> None:
        """Create the exception with its displayed text."""
        super().__init__(text)
        self.file = file
        self.diagnostics = diagnostics or []


class SessionError(InputError):
    """A session that cannot be opened, or a call that it refuses, which changes nothing."""


class InternalError(GridhaulError, RuntimeError):
    """A defect of gridhaul; please report it."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run; ``answer`` has the finished replications.

    Attributes:
        answer: The answer from the finished replications; None if nothing was finished.

    """

    def __init__(self, text: str = "interrupted", answer: Answer | None = None) -> None:
        """Create the exception with the answer so far."""
        super().__init__(text)
        self.answer = answer
