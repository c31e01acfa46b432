"""Sweeps with stored results, here and on the workers of a Dask cluster."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

import gridhaul
from gridhaul import Scenario

# `GRIDHAUL_DASK_POINTS=2000 cargo xtask test module` for a long sweep.
POINTS = int(os.environ.get("GRIDHAUL_DASK_POINTS", "120"))


def vary(points: int) -> dict[str, str]:
    return {"link.feeder.both.delay": f"lin:1 ms:{points} ms:{points}"}


def assert_equal(answer: gridhaul.Answer, expected: gridhaul.Answer) -> None:
    """Compare answers with the values of their replications to the last bit."""
    assert answer.to_json() == expected.to_json()
    assert answer.report() == expected.report()
    assert answer.replications.to_polars().equals(expected.replications.to_polars())


def test_a_sweep_with_stored_results_has_the_same_answer(
    download: Scenario, tmp_path: Path
) -> None:
    expected = gridhaul.sweep(download, vary(5), replications=3)
    units = tmp_path / "units"
    assert_equal(gridhaul.sweep(download, vary(5), replications=3, units=units), expected)
    files = sorted(units.iterdir())
    assert files
    # Everything is stored.
    again = gridhaul.sweep(download, vary(5), replications=3, units=units)
    assert_equal(again, expected)
    assert sorted(units.iterdir()) == files


def test_more_replications_where_an_interval_is_wide(download: Scenario, tmp_path: Path) -> None:
    rule: dict[str, gridhaul.Value] = {"until": "3 %", "min": 3, "max": 20}
    lossy = download.set("link.feeder.both.loss", {"bernoulli": "2 %"})
    swept = {"link.feeder.both.loss.bernoulli": ["0 %", "2 %"]}
    answer = gridhaul.sweep(lossy, swept, replications=rule)
    few, many = answer.points["replications_count"]
    assert isinstance(few, int)
    assert isinstance(many, int)
    assert few == 3 < many <= 20
    assert len(answer.replications) == 3 * (few + many)
    assert lossy.with_replications(rule).replications == 20
    stored = gridhaul.sweep(lossy, swept, replications=rule, units=tmp_path)
    assert_equal(stored, answer)
    narrower = {**rule, "until": "0.1 %"}
    more = gridhaul.sweep(lossy, swept, replications=narrower, units=tmp_path)
    assert more.points["replications_count"][1] == 20
    assert any("interval wider than 0.1 %" in warning.message for warning in more.warnings)
    with pytest.raises(gridhaul.ScenarioError, match="`min`: 3"):
        gridhaul.run(lossy, replications={**rule, "max": 2})
    with pytest.raises(TypeError, match="whole number"):
        lossy.with_replications("5 %")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"on": "model"}, "only backend `sim`"),
        ({"vary": {"record.interval": ["1 s", "2 s"]}}, "with recordings"),
        (
            {"vary": {"seed": list(range(400)), "link.feeder.both.delay": "lin:1 ms:400 ms:400"}},
            "160000",
        ),
    ],
)
def test_sweeps_that_cannot_be_stored_are_refused(
    download: Scenario, tmp_path: Path, arguments: dict[str, Any], text: str
) -> None:
    recorded = download.set("record.interval", "1 s") if "record" in str(arguments) else download
    with pytest.raises(gridhaul.InputError, match=text):
        gridhaul.sweep(recorded, **{"vary": vary(2), "units": tmp_path, **arguments})


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address=None,
            silence_logs="CRITICAL",
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_a_killed_worker_changes_nothing(client: Any, download: Scenario) -> None:
    scenario = download.set("duration", "20 s")
    expected = gridhaul.sweep(scenario, vary(POINTS), replications=2)
    processes = client.run(os.getpid)
    assert len(processes) == 2
    calls: list[tuple[int, int]] = []

    def kill(_: str, done: int, total: int) -> None:
        if not calls:
            os.kill(next(iter(processes.values())), signal.SIGKILL)
        calls.append((done, total))

    answer = gridhaul.sweep(scenario, vary(POINTS), replications=2, client=client, progress=kill)
    assert_equal(answer, expected)
    assert calls[0][0] < calls[-1][0] == calls[-1][1] == 2 * POINTS
    wait_for_other_workers(client, set(processes.values()))


def wait_for_other_workers(client: Any, before: set[int]) -> None:
    """Wait until two workers answer that are not the two of `before`.

    On a busy machine, the process that succeeds a killed one may itself be started twice; one
    that is ending is still registered for a moment, and does not answer.
    """
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        processes = set(client.run(os.getpid, on_error="ignore").values())
        if len(processes) == 2 and processes != before:
            return
        time.sleep(0.1)
    pytest.fail(f"no other workers than the processes {before} within 60 s")


def test_workers_resume_stored_results(client: Any, download: Scenario, tmp_path: Path) -> None:
    rule: dict[str, gridhaul.Value] = {"until": "5 %", "min": 3, "max": 9}
    expected = gridhaul.sweep(download, vary(6), replications=rule)
    first = gridhaul.sweep(download, vary(3), replications=rule, client=client, units=tmp_path)
    assert len(first.points) == 3
    files = set(tmp_path.iterdir())
    answer = gridhaul.sweep(download, vary(6), replications=rule, client=client, units=tmp_path)
    assert_equal(answer, expected)
    assert files < set(tmp_path.iterdir())


def test_a_client_need_not_be_the_default_one(
    client: Any, download: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distributed.client._get_global_client", lambda: None)
    assert len(gridhaul.sweep(download, vary(3), client=client).points) == 3


def test_an_exception_ends_the_sweep_and_keeps_results(
    client: Any, download: Scenario, tmp_path: Path
) -> None:
    class EnoughError(Exception):
        pass

    def enough(_part: str, _done: int, _total: int) -> None:
        raise EnoughError

    with pytest.raises(EnoughError):
        gridhaul.sweep(download, vary(9), client=client, units=tmp_path, progress=enough)
    assert list(tmp_path.iterdir())

    def interrupt(_part: str, _done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(gridhaul.Interrupted) as caught:
        gridhaul.sweep(download, vary(12), client=client, units=tmp_path, progress=interrupt)
    assert caught.value.answer is not None
    assert caught.value.answer.incomplete


def test_only_a_client_of_dask_is_accepted(download: Scenario) -> None:
    wrong: Any = "tcp://localhost:8786"
    with pytest.raises(TypeError, match=r"client: expected dask\.distributed\.Client, found str"):
        gridhaul.sweep(download, vary(2), client=wrong)
