"""Scenarios: reading, changing, errors."""

from __future__ import annotations

import math
import numbers
import pickle
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import DOWNLOAD

import gridhaul
from gridhaul import Scenario
from gridhaul._values import setting

KEYS: dict[str, Any] = {
    "title": 'A "download" \\',
    "duration": "2 s",
    "node": {"head": {}, "meter": {}},
    "link": {
        "feeder": {
            "from": "head",
            "to": "meter",
            "both": {"rate": "1 Mbit/s", "delay": "10 ms", "loss": {"bernoulli": "1 %"}},
        }
    },
    "flow": {"download": {"from": "head", "to": "meter", "load": "bulk"}},
}


def test_a_dict_has_the_keys_of_a_file(download: Scenario) -> None:
    scenario = Scenario.from_dict({**KEYS, "title": "A download"})
    assert scenario == download
    assert scenario.sha256 == download.sha256
    assert Scenario.from_dict(KEYS).title == KEYS["title"]
    described = Scenario.from_dict({**KEYS, "description": "A\ttab\nand a line"})
    assert tomllib.loads(described.to_toml())["description"] == "A\ttab\nand a line"


def test_a_file_is_read_and_its_copy_is_equal(
    download: Scenario, write: Callable[[str], Path]
) -> None:
    assert Scenario.load(write(DOWNLOAD)) == download
    assert Scenario.from_toml(download.to_toml()) == download
    assert pickle.loads(pickle.dumps(download)) == download
    assert len({download, Scenario.from_toml(DOWNLOAD)}) == 1


def test_set_returns_another_scenario(download: Scenario) -> None:
    changed = download.set("link.feeder.both.rate", "3 Mbit/s").set("seed", 7)
    assert 'rate = "3 Mbit/s"' in changed.to_toml()
    assert (changed.seed, download.seed) == (7, 1)
    assert changed.set("link.feeder.both.loss", {"bernoulli": "5 %"}) != changed
    assert download.set("title", "12").title == "12"
    for title in ["a, b = [c]", "1e5", "0x1f", "2026-01-01", "2026-01-01 07:30:00", "4ms", "4 ms"]:
        assert download.set("title", title).title == title
    assert download.with_seed(3).with_replications(4).replications == 4


def test_numbers_of_numpy_are_numbers(download: Scenario) -> None:
    class Float64(float):
        def __repr__(self) -> str:
            return f"np.float64({float(self)!r})"

    class Int64:
        def __int__(self) -> int:
            return 7

    # As numpy does, whose integers are no int.
    numbers.Integral.register(Int64)
    seed: Any = Int64()
    assert download.set("seed", seed).seed == 7
    assert setting("key", [Float64(0.5), seed]) == "key=[0.5, 7]"


def test_an_error_has_line_caret_expectation_and_remedy(write: Callable[[str], Path]) -> None:
    path = write(DOWNLOAD.replace('rate = "1 Mbit/s"', 'rate = "1 Mbit"'))
    with pytest.raises(gridhaul.ScenarioError) as caught:
        Scenario.load(path)
    error = caught.value
    assert str(error).startswith(f"{path}:10:17: ")
    assert "^" in str(error)
    assert error.file == str(path)
    diagnostic = error.diagnostics[0]
    assert diagnostic.key == "link.feeder.both.rate"
    assert (diagnostic.line, diagnostic.column) == (10, 17)
    assert diagnostic.text is not None
    assert "1 Mbit" in diagnostic.text


def test_errors_have_the_texts_of_the_command_line(
    write: Callable[[str], Path], command: str
) -> None:
    for old, new in [("bulk", "bulky"), ('to = "meter"', 'to = "metre"'), ("2 s", "2 sec")]:
        path = write(DOWNLOAD.replace(old, new))
        printed = subprocess.run(
            [command, "check", path], capture_output=True, text=True, check=False
        )
        with pytest.raises(gridhaul.ScenarioError) as caught:
            Scenario.load(path)
        assert printed.stderr == f"error: {caught.value}\n"


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("link.feeder.both.rat", "1 Mbit/s", "rate"),
        ("link.feeder.both.rate", "1 furlong", "Mbit/s"),
        ("link.feeder.both.rate", math.nan, "nan is not a value of a scenario"),
        ("link.feeder.both.delay", -1, "expected"),
        ("seed", "seven", "expected"),
        ("", 1, "is not the path of a key"),
        ("a=b", 1, "is not the path of a key"),
    ],
)
def test_a_wrong_change_names_the_key(download: Scenario, key: str, value: Any, text: str) -> None:
    with pytest.raises(gridhaul.InputError) as caught:
        download.set(key, value)
    assert text in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_a_diagnostic_of_a_change_has_the_path_of_its_key(download: Scenario) -> None:
    changes: list[tuple[str, Callable[[], object]]] = [
        ("link.feeder.both.rate", lambda: download.set("link.feeder.both.rate", "64 kbits")),
        ("link.feeder.both.loss.b", lambda: download.set("link.feeder.both.loss", {"b": 1})),
        ("record.events[0]", lambda: download.set("record.events", ["reports"])),
        ("replications.unti", lambda: download.with_replications({"unti": "5 %"})),
        ("seed", lambda: gridhaul.sweep(download, {"seed": [1, "x"]})),
        ("seed", lambda: gridhaul.sweep(download, {"seed": [1, "x"]}, units="units")),
    ]
    for key, change in changes:
        with pytest.raises(gridhaul.ScenarioError) as caught:
            change()
        assert caught.value.diagnostics[0].key == key
        assert str(caught.value).startswith(f"scenario: {key}: ")
        assert "--" not in str(caught.value)
        assert str(caught.value).count(f"{key}: ") == 1


def test_a_wrong_type_names_the_key() -> None:
    wrong: Any = None
    for keys, text in [
        ({**KEYS, "seed": object()}, "seed: expected"),
        ({**KEYS, "node": {1: {}}}, "node: expected text as a key"),
        ({**KEYS, "seed": None}, "found None"),
        (wrong, "expected a dict"),
    ]:
        with pytest.raises(TypeError, match=text):
            Scenario.from_dict(keys)
    with pytest.raises(TypeError, match="Scenario.load"):
        Scenario(wrong)
    with pytest.raises(gridhaul.ScenarioError, match="nod"):
        Scenario.from_dict({**KEYS, "nod": {}})


def test_check_returns_warnings_and_points(download: Scenario) -> None:
    assert download.check() == []
    assert download.points == 1
