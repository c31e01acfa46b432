"""Runs, sweeps, comparisons, plans and papers."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import long

import gridhaul
from gridhaul import Scenario


def test_a_run_has_the_answer_of_the_command_line(
    download: Scenario, command: str, tmp_path: Path
) -> None:
    answer = gridhaul.run(download, replications=3, seed=5)
    file, out = tmp_path / "a.toml", tmp_path / "out"
    file.write_text(download.with_replications(3).with_seed(5).to_toml())
    subprocess.run(
        [command, "run", file, "--quiet", "--out", out], check=True, stdout=subprocess.DEVNULL
    )
    stored = (out / "answer.json").read_text()
    assert json.loads(answer.to_json()) == json.loads(stored)
    assert gridhaul.read(out).to_json() == answer.to_json()
    answer.save(tmp_path / "answer.json")
    assert (tmp_path / "answer.json").read_text() == stored


def test_the_module_has_the_command(download: Scenario, command: str, tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(download.to_toml())
    module = [sys.executable, "-P", "-m", "gridhaul"]

    def done(program: list[str], *arguments: str) -> tuple[int, str, str]:
        ended = subprocess.run([*program, *arguments], capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout, ended.stderr

    for arguments in (["--version"], ["run", "missing.toml"], ["run", "--help"], ["export"]):
        assert done(module, *arguments) == done([command], *arguments), arguments
    for program, out in ((module, "module"), ([command], "command")):
        assert done(program, "run", str(file), "--quiet", "--out", str(tmp_path / out))[0] == 0
    answers = [(tmp_path / out / "answer.json").read_bytes() for out in ("module", "command")]
    assert answers[0] == answers[1]


def processor_seconds(process: int) -> float:
    _, _, fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")
    # utime and stime, fields 14 and 15 of proc_pid_stat(5).
    user, system = fields.split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(6_000):
        if condition():
            return
        time.sleep(0.02)
    pytest.fail("waited for two minutes")


def test_ctrl_c_ends_the_command_of_the_module(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(long(20).with_replications(1_000_000).to_toml())
    arguments = ["run", str(file), "--threads", "1", "--ignore-estimate"]
    out = ["--out", str(tmp_path / "out")]
    running = subprocess.Popen(
        [sys.executable, "-P", "-m", "gridhaul", *arguments, *out],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    # The lock is taken when the run begins. A second of processor time is enough for some
    # replications, however long that takes on a busy machine.
    lock = tmp_path / ".out.lock"
    wait_until(lambda: lock.exists() and lock.read_text().endswith("\n"))
    begun = processor_seconds(running.pid)
    wait_until(lambda: processor_seconds(running.pid) > begun + 1)
    running.send_signal(signal.SIGINT)
    _, printed = running.communicate(timeout=60)
    assert running.returncode == 130, printed
    assert json.loads((tmp_path / "out/answer.json").read_text())["incomplete"]


def test_several_backends_share_tables(download: Scenario) -> None:
    answer = gridhaul.run(download, on=["sim", "model"])
    assert answer.backends == ["sim", "model"]
    assert answer.flows["backend"] == ["sim", "model"]
    assert answer["model"].flows["backend"] == ["model"]
    with pytest.raises(KeyError, match="emu"):
        answer["emu"]
    compared = gridhaul.compare(answer["sim"], answer["model"], labels=["sim", "model"])
    assert compared.labels == ["sim", "model"]
    assert {row["metric"] for row in compared.rows} >= {"goodput_bit_per_s"}


def test_the_answers_of_several_backends_are_one_file(
    download: Scenario, command: str, tmp_path: Path
) -> None:
    answer = gridhaul.run(download, on=["sim", "model"])
    file = tmp_path / "two.json"
    answer.save(file)
    stored = gridhaul.read(file)
    assert stored.backends == ["sim", "model"]
    assert stored.to_json() == answer.to_json()
    for line in (["export", str(file), "--csv"], ["compare", str(file), "--out", f"{file}.out"]):
        printed = subprocess.run([command, *line], check=True, capture_output=True, text=True)
        assert "sim" in printed.stdout
        assert "model" in printed.stdout
    file.write_text("[]")
    with pytest.raises(gridhaul.InputError, match="the list is empty"):
        gridhaul.read(file)


def test_a_pickled_answer_has_everything_but_recordings(download: Scenario) -> None:
    answer = gridhaul.run(download, on=["sim", "model"], replications=3)
    copy: gridhaul.Answer = pickle.loads(pickle.dumps(answer))
    assert copy.replications.to_dict() == answer.replications.to_dict()
    assert (copy.to_json(), copy.report()) == (answer.to_json(), answer.report())
    recorded = gridhaul.run(download.set("record.interval", "1 s"))
    with pytest.raises(TypeError, match="recorded series cannot be pickled: windows"):
        pickle.dumps(recorded)
    with pytest.raises(TypeError, match="a Frame cannot be pickled; pickle a data frame of it"):
        pickle.dumps(answer.flows)
    assert pickle.loads(pickle.dumps(answer.flows.to_dict())) == answer.flows.to_dict()


def test_a_sweep_has_a_row_for_each_point(download: Scenario) -> None:
    vary: dict[str, list[gridhaul.Value]] = {
        "link.feeder.both.rate": ["1 Mbit/s", "2 Mbit/s"],
        "seed": [1, 2],
    }
    answer = gridhaul.sweep(download, vary)
    assert answer.flows["point"] == [0, 1, 2, 3]
    assert answer.flows["link.feeder.both.rate"] == ["1 Mbit/s"] * 2 + ["2 Mbit/s"] * 2
    ranged = gridhaul.sweep(download, {"link.feeder.both.delay": "lin:10 ms:30 ms:3"}, on="model")
    assert ranged.flows["link.feeder.both.delay"] == ["10 ms", "20 ms", "30 ms"]


def test_an_answer_is_described_and_drawn(download: Scenario) -> None:
    answer = gridhaul.run(download)
    assert answer.title == "A download"
    assert "goodput" in answer.summary
    assert repr(answer) == "<gridhaul.Answer 'A download' by sim: 1 point, 1 replication>"
    chart = answer.charts[0]
    assert chart.svg.startswith(("<?xml", "<svg"))
    assert chart._repr_html_().startswith("<svg")
    assert "<svg" in answer._repr_html_()
    assert answer.report().startswith("<!DOCTYPE html>")
    assert [str(warning) for warning in answer.warnings] == []


def test_unsupported_keys_name_another_backend(download: Scenario) -> None:
    with pytest.raises(gridhaul.InputError) as caught:
        gridhaul.run(
            download.set("link.feeder.both.reorder", {"probability": "1 %", "delay": "1 ms"}),
            on="model",
        )
    assert 'on="sim" supports every key of this scenario' in str(caught.value)


def test_an_estimate_above_the_limit_names_the_argument(download: Scenario) -> None:
    endless = download.set("link.feeder.both.rate", "10 Gbit/s").set("duration", "100 d")
    with pytest.raises(gridhaul.InputError, match="help: .*; ignore_estimate=True starts the run"):
        gridhaul.run(endless)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"on": "simulator"}, gridhaul.InputError, "choose one of: sim, model"),
        ({"on": ["sim", "sim"]}, gridhaul.InputError, "given twice"),
        ({"on": []}, gridhaul.InputError, "on: expected at least one backend"),
        ({"replications": 0}, gridhaul.InputError, "replications: expected 1 or more, found 0"),
        ({"replications": 2**32}, gridhaul.InputError, "replications: expected at most"),
        ({"replications": 1.5}, TypeError, "whole number"),
        ({"seed": -1}, gridhaul.InputError, "seed: expected 0 or more, found -1"),
        ({"seed": 2**64}, gridhaul.InputError, "seed: expected at most 18446744073709551615"),
        ({"seed": 1.5}, TypeError, "seed: expected a whole number, found float"),
        ({"threads": -1}, gridhaul.InputError, "threads: expected 0 or more, found -1"),
        ({"progress": 3}, TypeError, "progress: expected"),
    ],
)
def test_wrong_arguments_are_refused(
    download: Scenario, arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        gridhaul.run(download, **arguments)
    if not arguments.keys() & {"progress", "replications"}:
        with pytest.raises(error, match=text):
            gridhaul.sweep(download, {"link.feeder.both.delay": ["10 ms"]}, **arguments)


def test_functions_name_the_argument_that_is_missing_or_out_of_range() -> None:
    plan = Scenario.from_toml(PLAN)
    calls: list[tuple[str, Callable[[], object]]] = [
        ("paths: expected at least one, found none", gridhaul.read),
        ("at least two, found none", gridhaul.compare),
        ("at least two, found one", lambda: gridhaul.compare(gridhaul.run(plan))),
        ("on: expected at least one backend", lambda: gridhaul.paper("plc", on=())),
        ("threads: expected 0 or more", lambda: gridhaul.paper("plc", threads=-1)),
        ("threads: expected 0 or more", lambda: gridhaul.plan(plan, threads=-1)),
        ("runs: expected 1 or more", lambda: gridhaul.plan(plan, runs=0)),
        ("seed: expected 0 or more", lambda: plan.with_seed(-1)),
    ]
    for text, call in calls:
        with pytest.raises(gridhaul.InputError, match=text):
            call()


def test_a_missing_file_is_an_error_of_the_scenario() -> None:
    wrong: Any = 3
    with pytest.raises(gridhaul.ScenarioError, match="cannot read this file"):
        gridhaul.run("missing.toml")
    with pytest.raises(TypeError, match="scenario: expected a Scenario"):
        gridhaul.run(wrong)
    with pytest.raises(gridhaul.InputError, match="cannot read"):
        gridhaul.read("missing.json")
    with pytest.raises(TypeError, match="vary: expected a dict"):
        gridhaul.sweep("x", wrong)
    with pytest.raises(TypeError, match="answers: expected answers of runs, found int"):
        gridhaul.compare(wrong, wrong)
    with pytest.raises(TypeError):
        gridhaul.read(wrong)


def test_threads_run_at_the_same_time(download: Scenario) -> None:
    answers: dict[int, str] = {}

    def work(seed: int) -> None:
        answers[seed] = gridhaul.run(download, seed=seed, threads=1).to_json()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {seed: gridhaul.run(download, seed=seed).to_json() for seed in range(4)}


def test_a_forked_process_runs_scenarios(download: Scenario) -> None:
    expected = gridhaul.run(download).to_json()
    parent, child = multiprocessing.Pipe()
    if (process := os.fork()) == 0:
        try:
            child.send(gridhaul.run(download).to_json() == expected)
        finally:
            os._exit(0)
    assert parent.poll(20)
    assert parent.recv()
    os.waitpid(process, 0)


def test_a_plan_chooses_a_scenario() -> None:
    text = PLAN
    plan = gridhaul.plan(Scenario.from_toml(text), verify=None)
    assert plan.choice is not None
    assert plan.document["gridhaul"] == gridhaul.__version__
    assert plan.summary
    with pytest.raises(gridhaul.InputError, match="choose one of: none, winner, full"):
        gridhaul.plan(Scenario.from_toml(text), verify="all")


def test_a_scenario_without_a_plan_is_refused(download: Scenario) -> None:
    with pytest.raises(gridhaul.InputError, match="plan"):
        gridhaul.plan(download)


def test_an_unknown_paper_lists_the_papers() -> None:
    with pytest.raises(gridhaul.InputError, match="choose one of: .*sa-tcp"):
        gridhaul.paper("unknown")


def test_a_measurement_needs_its_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(gridhaul.InputError, match="is not in the path"):
        gridhaul.measure("mqtt")
    program = tmp_path / "gridhaul-measure"
    program.write_text('#!/bin/sh\necho "{\\"arguments\\": \\"$*\\"}"\n')
    program.chmod(0o755)
    assert gridhaul.measure("mqtt", "--rate", "5") == {"arguments": "mqtt --rate 5 --json"}
    program.write_text("#!/bin/sh\necho 'error: no' >&2\nexit 2\n")
    with pytest.raises(gridhaul.InputError, match="^no$"):
        gridhaul.measure("mqtt")


PLAN = """
title = "A meter's link"
duration = "20 s"
[node]
meter = {}
head = {}
[link.feeder]
from = "meter"
to = "head"
both = { rate = "64 kbit/s", delay = "40 ms" }
[flow.reports]
from = "meter"
to = "head"
load = { periodic = { size = "200 B", every = "2 s" } }
deadline = "2 s"
[plan]
choose = { "link.feeder.both.rate" = ["32 kbit/s", "64 kbit/s", "128 kbit/s"] }
cost = { "link.feeder.both.rate" = 1000 }
limit.reports.deadline = true
"""
