"""
Random numbers as a function of their arguments, because an arc of a net may be evaluated any number of times.

Equal arguments give equal numbers: `uniform(seed, "error", 17, 1)` decides whether the first copy of segment 17 is
lost, for either protocol and at any time. Both protocols therefore lose the same copies of the same segments.
"""

from __future__ import annotations

import hashlib


def uniform(seed: int, purpose: str, *which: int) -> float:
    """A uniform random number in [0, 1) with 53 random bits."""
    text = f"{seed}/{purpose}/{'/'.join(map(str, which))}"
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / (1 << 53)
