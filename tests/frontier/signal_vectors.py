"""Golden vectors of the rules by which pages are judged.

A selection lies beside this module, in part with shortened lists; the rest is read where it is at hand.
`AGREEMENT` is how far a number that went through exponentials and logarithms may be off.
"""

from __future__ import annotations

import struct

from urls.vectors import VECTOR_FILES, lines

__all__ = ["AGREEMENT", "VECTOR_FILES", "bits_of", "lines", "number", "single_of"]

AGREEMENT = 1e-12


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
