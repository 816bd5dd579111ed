"""What is crawled in one measurement: pages of one size, over http or https, on so many hosts."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """One kind of list."""

    name: str
    paragraphs: int
    """Paragraphs of a page, of some 780 bytes each."""
    hosts: int
    https: bool = False


CASES = (
    Case("26 KB, http, 200 hosts", 33, 200),
    Case("1.5 KB, http, 200 hosts", 1, 200),
    Case("130 KB, http, 200 hosts", 166, 200),
    Case("26 KB, https, 200 hosts", 33, 200, https=True),
    Case("26 KB, http, 5,000 hosts", 33, 5_000),
    Case("26 KB, https, 5,000 hosts", 33, 5_000, https=True),
)
