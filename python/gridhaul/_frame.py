"""Tables that data frames take without a copy."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from gridhaul import _native

__all__ = ["Cell", "Frame"]

Cell = str | int | float | None
"""A value of a table; None if it is missing or unknown."""

_ROWS_SHOWN = 10
_COLUMNS_SHOWN = 12


class Frame:
    """A table of an answer. Column names end in their unit, such as ``delay_mean_s``.

    Data frames take it as a stream of the Arrow C interface: ``polars.DataFrame(frame)``,
    ``pyarrow.table(frame)``, ``duckdb.sql("select … from frame")``; or use :meth:`to_polars`,
    :meth:`to_pandas`, :meth:`to_arrow` and :meth:`to_dict`. The stream has batches, so that a
    recorded series may exceed the memory. A missing or unknown value is null.

    ``frame["column"]`` is a column as a list. Frames cannot be pickled: pickle a data frame of
    them, or the answer.
    """

    __slots__ = ("_inner",)
    _inner: _native.Table

    def __init__(self, native: _native.Table) -> None:
        """Wrap a native table; answers create their frames."""
        self._inner = native

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the stream of the Arrow PyCapsule interface."""
        return self._inner.__arrow_c_stream__(requested_schema)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._inner.columns

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return (len(self._inner), len(self._inner.columns))

    def to_dict(self) -> dict[str, list[Cell]]:
        """Return the columns as lists."""
        return {name: self._inner.column(name) for name in self.columns}

    def to_polars(self) -> polars.DataFrame:
        """Return a data frame of polars, which must be installed."""
        import polars

        return polars.DataFrame(self)

    def to_arrow(self) -> pyarrow.Table:
        """Return a table of pyarrow, which must be installed."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame of pandas, which must be installed; faster with pyarrow."""
        import pandas

        try:
            import pyarrow
        except ImportError:
            return pandas.DataFrame(self.to_dict())
        frame: pandas.DataFrame = pyarrow.table(self).to_pandas()
        return frame

    def __getitem__(self, column: str) -> list[Cell]:
        """Return a column as a list.

        Raises:
            KeyError: The table has no such column.

        """
        return self._inner.column(column)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled."""
        raise TypeError(
            "a Frame cannot be pickled; pickle a data frame of it, such as frame.to_polars(), or "
            "its answer"
        )

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the columns."""
        return iter(self.columns)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._inner)

    def __repr__(self) -> str:
        """Show size and columns."""
        rows, columns = self.shape
        names = ", ".join(self.columns[:_COLUMNS_SHOWN])
        more = ", …" if columns > _COLUMNS_SHOWN else ""
        return f"<gridhaul.Frame {rows} rows, {columns} columns: {names}{more}>"

    def _repr_html_(self) -> str:
        """Show the first rows in a notebook."""
        rows, _ = self.shape
        shown = [
            name
            for name in self.columns
            if not name.endswith(("_ci95", "_n")) and self._is_known(name)
        ][:_COLUMNS_SHOWN]
        cells = [self._inner.column(name, _ROWS_SHOWN) for name in shown]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in shown)
        body = "".join(
            "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>"
            for row in zip(*cells, strict=True)
        )
        note = f"<p>{rows} rows, {len(self.columns)} columns</p>"
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"

    def _is_known(self, column: str) -> bool:
        return any(cell is not None for cell in self._inner.column(column, _ROWS_SHOWN))


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.6g}" if isinstance(cell, float) else html.escape(str(cell))
