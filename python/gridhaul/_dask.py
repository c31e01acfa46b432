"""Sweeps on the workers of a Dask cluster."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from gridhaul import _native
from gridhaul._errors import InputError

__all__ = ["DaskClient", "compute"]

# Units that wait for workers, so that none is idle and an adaptive cluster sees the work.
_WAITING_PER_THREAD = 2
_WAITING_MIN = 64

_Part = tuple[int, int | None]


class DaskClient(Protocol):
    """The part of ``dask.distributed.Client`` that sweeps use."""

    @property
    def loop(self) -> Any:
        """The event loop, which watches submitted functions."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        """Run a function on a worker."""

    def nthreads(self) -> Mapping[Any, int]:
        """Return the number of threads of each worker."""

    def cancel(self, futures: Any, /) -> Any:
        """Cancel functions that wait or run."""


def compute(
    scenario: _native.Scenario,
    folder: str,
    client: DaskClient,
    report: Callable[[str, int, int], object] | None,
) -> tuple[_native.Answers | None, BaseException | None, list[str]]:
    """Compute the missing units of a sweep on workers, and return the answer of all."""
    if not hasattr(client, "submit") or not hasattr(client, "nthreads"):
        raise TypeError(f"client: expected dask.distributed.Client, found {type(client).__name__}")
    if getattr(client, "asynchronous", False):
        raise InputError(
            "client: an asynchronous client cannot be used\n  help: create it with "
            "Client(…, asynchronous=False)"
        )
    interrupted: BaseException | None = None
    try:
        _compute(scenario, folder, client, report)
    except KeyboardInterrupt as error:
        interrupted = error
    answers, _, notes = _native.stored_answer(scenario, folder)
    return answers, interrupted, notes


def _compute(
    scenario: _native.Scenario,
    folder: str,
    client: DaskClient,
    report: Callable[[str, int, int], object] | None,
) -> None:
    from distributed import as_completed

    threads = max(1, sum(client.nthreads().values()))
    plan = _native.UnitPlan(scenario, folder, threads)
    # The result of a function, and not scattered data: Dask restores it if its worker dies.
    text = client.submit(str, scenario.to_toml(), pure=False)
    # The loop of this client, which need not be the default one.
    waiting = as_completed(loop=client.loop)
    pending: dict[Any, int] = {}
    done = 0

    def submit(units: Iterator[tuple[list[_Part], int]]) -> None:
        nonlocal done
        for parts, stored in units:
            done += stored
            future = client.submit(compute_unit, text, scenario.file, parts, pure=False)
            pending[future] = len(parts)
            waiting.add(future)

    try:
        submit(itertools.islice(plan, max(_WAITING_MIN, _WAITING_PER_THREAD * threads)))
        for future in waiting:
            _native.store_unit(folder, future.result())
            done += pending.pop(future)
            future.release()
            submit(itertools.islice(plan, 1))
            if report is not None:
                report(scenario.title, done, plan.part_count)
    finally:
        client.cancel(list(pending))


def compute_unit(toml: str, file: str, parts: list[_Part]) -> bytes:
    """Compute a unit in a worker."""
    return _native.compute_unit(_scenario(toml, file), parts)


@functools.lru_cache(maxsize=2)
def _scenario(toml: str, file: str) -> _native.Scenario:
    return _native.Scenario.from_toml(toml, file)
