"""Ctrl-C, progress, and panics."""

from __future__ import annotations

import signal
import threading
import time

import pyarrow
import pytest
from conftest import long

import gridhaul
from gridhaul import _native


def interrupt_later() -> threading.Timer:
    # Before a run has begun, the interrupt would end the tests.
    timer = threading.Timer(2.0, signal.raise_signal, [signal.SIGINT])
    timer.start()
    return timer


def test_ctrl_c_ends_a_run_and_keeps_finished_replications() -> None:
    # A replication of this scenario takes about a hundredth of a second. On a busy machine none may
    # be finished after a second: the run is repeated with more time.
    scenario = long(20)
    for seconds in (1.0, 5.0, 25.0):
        sent = 0.0

        def send() -> None:
            nonlocal sent
            sent = time.process_time()
            signal.raise_signal(signal.SIGINT)

        timer = threading.Timer(seconds, send)
        timer.start()
        with pytest.raises(gridhaul.Interrupted) as caught:
            gridhaul.run(scenario, replications=1_000_000, threads=1, ignore_estimate=True)
        worked = time.process_time() - sent
        assert isinstance(caught.value, KeyboardInterrupt)
        answer = caught.value.answer
        if answer is not None:
            break
    assert answer is not None
    assert answer.incomplete
    finished = answer.flows["goodput_bit_per_s_n"][0]
    assert isinstance(finished, float)
    assert finished > 1
    # Less than 100 ms of processor time, which other programs do not change.
    assert worked < 2, worked


def test_ctrl_c_without_a_finished_replication_has_no_answer() -> None:
    timer = interrupt_later()
    with pytest.raises(gridhaul.Interrupted) as caught:
        gridhaul.run(long(), ignore_estimate=True)
    timer.join()
    assert caught.value.answer is None
    assert "nothing was finished" in str(caught.value)
    # The interpreter is usable.
    assert gridhaul.run(long(1)).backends == ["sim"]


def test_progress_is_reported_and_may_end_the_run() -> None:
    calls: list[tuple[str, int, int]] = []

    class EnoughError(Exception):
        pass

    def progress(part: str, done: int, total: int) -> None:
        calls.append((part, done, total))
        if len(calls) == 3:
            raise EnoughError

    with pytest.raises(EnoughError):
        gridhaul.run(long(), progress=progress, ignore_estimate=True)
    assert len(calls) == 3
    part, done, total = calls[-1]
    assert part == "scenario"
    assert 0 <= done < total


def test_progress_is_a_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    timer = interrupt_later()
    with pytest.raises(gridhaul.Interrupted):
        gridhaul.run(long(), progress=True, ignore_estimate=True)
    timer.join()
    printed = capsys.readouterr().err
    assert "scenario: " in printed
    assert printed.endswith("\r\x1b[K")


def test_a_panic_in_a_stream_is_an_error_of_the_stream() -> None:
    table = _native.panic_in_stream("a row is wrong")
    with pytest.raises(pyarrow.ArrowException, match="report it as a bug: a row is wrong"):
        pyarrow.RecordBatchReader.from_stream(table).read_all()


def test_a_panic_is_an_exception() -> None:
    for _ in range(2):
        with pytest.raises(gridhaul.InternalError, match="report it as a bug: an index is wrong"):
            _native.panic_in_task("an index is wrong")
    # The interpreter is usable.
    assert gridhaul.run(long(1)).backends == ["sim"]
