"""Golden vectors of the rules by which pages are judged.

A selection lies beside this module, in part with shortened lists; the rest is read where it is at hand.
`AGREEMENT` is how far a number that went through exponentials and logarithms may be off.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from urls.vectors import FULL, lines

__all__ = ["AGREEMENT", "DIRECTORIES", "FULL_ONLY", "bits_of", "lines", "number", "single_of"]

AGREEMENT = 1e-12
SELECTION = Path(__file__).parent / "data" / "signals"
_WHOLE = pytest.param(
    FULL, marks=pytest.mark.skipif(not FULL.exists(), reason="the full golden vectors are not at hand")
)
DIRECTORIES = [SELECTION, _WHOLE]
FULL_ONLY = [_WHOLE]


def number(text: str) -> int:
    """Return a 64-bit number that stands as text."""
    return int(text, 0)


def single_of(bits: str) -> float:
    """Return the number of single precision with these bits."""
    value: float = struct.unpack(">f", bytes.fromhex(bits[2:]))[0]
    return value


def bits_of(value: float) -> str:
    """Return the bits of *value* in single precision."""
    return f"0x{struct.pack('>f', value).hex()}"
