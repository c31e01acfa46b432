"""The examples of the guide."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import helics
import pytest

from gridhaul.helics import _parser

GUIDE = Path(__file__).parents[3] / "docs/guides/co-simulation.md"


def test_the_examples_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = GUIDE.read_text()
    blocks = dict.fromkeys(re.findall(r"^```(toml|python)\n(.*?)^```$", text, re.M | re.S))
    scenario = next(code for language, code in blocks if language == "toml")
    Path("district.toml").write_text(scenario)
    broker = helics.helicsCreateBroker("inproc", "main", "-f 1 --loglevel=error")
    names: dict[str, object] = {}
    programs = [code for language, code in blocks if language == "python"]
    assert len(programs) == 3
    for code in programs:
        exec(compile(code, "co-simulation.md", "exec"), names)
    assert names["network"].run(until_s=1.0) == 0  # type: ignore[attr-defined]
    helics.helicsBrokerWaitForDisconnect(broker, 10_000)


def test_the_command_of_the_guide_has_the_options_of_the_program() -> None:
    text = GUIDE.read_text().replace("\\\n", " ")
    command = next(line for line in text.splitlines() if line.startswith("python -m"))
    options = _parser().parse_args(shlex.split(command)[3:])
    assert options.endpoint == ["meters/3=meter[3]", "control=head"]
    assert options.timeout == 600
