"""The command ``gridhaul``, also ``python -m gridhaul``."""

from __future__ import annotations

import signal
import sys

from gridhaul import _native

__all__ = ["main"]


def main() -> int:
    """Run the command with the arguments of this process, and return its exit code."""
    # The command handles signals itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.command_line(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
