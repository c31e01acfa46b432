"""Charts as SVG."""

from __future__ import annotations

import os
from collections.abc import Iterable

__all__ = ["Chart", "charts"]


class Chart:
    """A chart; a notebook shows it.

    Attributes:
        name: Name without special characters, unique in the answer.
        title: Heading.
        svg: The chart as a standalone SVG file.

    """

    __slots__ = ("name", "svg", "title")

    def __init__(self, name: str, title: str, svg: str) -> None:
        """Create a chart from its SVG."""
        self.name = name
        self.title = title
        self.svg = svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the SVG to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg[self.svg.index("<svg") :]

    def __repr__(self) -> str:
        """Show the title."""
        return f"<gridhaul.Chart {self.title!r}>"


def charts(drawn: Iterable[tuple[str, str, str]]) -> list[Chart]:
    """Wrap the charts of the native module."""
    return [Chart(name, title, svg) for name, title, svg in drawn]
