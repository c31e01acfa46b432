"""The example of a power grid."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).parents[1] / "feeder_outage"


def test_the_reaction_to_the_return_of_a_feeder_comes_late(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    example = importlib.import_module("feeder_outage")
    real, ideal = example.simulate(ideal=False), example.simulate(ideal=True)
    # The first report after the return is as late as the step of the power flow at most.
    assert ideal.reaction_s <= example.STEP_S + 0.1
    assert real.reaction_s > example.RESTART_S
    assert real.taps[-1][1] == ideal.taps[-1][1]
    assert max(ideal.delays_s) < 0.001
    dark = [at_s for at_s, voltage in real.voltages if voltage is None]
    assert min(dark) == example.OUTAGE_S[0]
    root = ElementTree.fromstring(example.picture(real, ideal))
    assert len(root.findall("{*}polyline")) == 4
