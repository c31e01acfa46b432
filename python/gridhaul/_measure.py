"""Measurements of protocols on real networks, by the program gridhaul-measure."""

from __future__ import annotations

import json
import os
from typing import Any

from gridhaul._errors import InputError

__all__ = ["measure"]


def measure(command: str, *arguments: str | os.PathLike[str]) -> Any:
    """Run a measurement and return its result, the JSON of ``gridhaul measure``.

    The program ``gridhaul-measure`` must be in the path. It is not part of this package, because it
    brings clients of brokers and TLS. Measurements in network namespaces need root.

    Args:
        command: Name of the measurement, such as ``"mqtt"`` or ``"matrix"``.
        arguments: Its arguments, as on the command line, without ``--json``.

    Raises:
        InputError: The program is missing, or refuses the measurement; the text is the program's.

    """
    # Few programs measure, and these modules would take most of the time of an import.
    import shutil
    import subprocess

    program = shutil.which("gridhaul-measure")
    if program is None:
        raise InputError(
            "the program gridhaul-measure is not in the path\n  help: build it with `cargo build "
            "--release -p gridhaul-measure`, and add its folder to PATH"
        )
    texts = [os.fspath(argument) for argument in arguments]
    called = [program, command, *texts, "--json"]
    ended = subprocess.run(called, capture_output=True, text=True, check=False)
    # Code 1: the measurement is complete, and a check of it has failed.
    if ended.returncode not in (0, 1):
        raise InputError(ended.stderr.strip().removeprefix("error: "))
    return json.loads(ended.stdout)
