"""The examples of the documentation, and the notebooks."""

from __future__ import annotations

import doctest
import re
import runpy
from pathlib import Path

import pytest

import gridhaul

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "python/notebooks").glob("*.py"))


def test_the_examples_of_the_guide_run(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs/guides/python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 5
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "python.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "64 kbits" in printed
    assert "^" in printed


def test_the_examples_of_docstrings_print_what_they_show() -> None:
    failed, tried = doctest.testmod(gridhaul)
    assert tried > 2
    assert failed == 0


def test_every_public_name_has_a_docstring() -> None:
    for name in gridhaul.__all__:
        public = getattr(gridhaul, name)
        if name in {"Cell", "Progress", "Value", "__version__"}:
            continue
        assert public.__doc__, name
        for attribute, value in vars(public).items() if isinstance(public, type) else ():
            if not attribute.startswith("_") and callable(value):
                assert value.__doc__, f"{name}.{attribute}"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(notebook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(notebook.parent)
    runpy.run_path(str(notebook), run_name="notebook")
