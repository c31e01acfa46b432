"""
Chance as a function, because an arc of a net may be evaluated any number of times.

The same question has the same answer: `uniform(seed, "error", 17, 1)` is the fate of the first copy of segment 17,
whoever sends it and when. So both protocols meet the same luck on the same segment.
"""

from __future__ import annotations

import hashlib


def uniform(seed: int, purpose: str, *which: int) -> float:
    """A number in [0, 1), with 53 bits."""
    text = f"{seed}/{purpose}/{'/'.join(map(str, which))}"
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / (1 << 53)
