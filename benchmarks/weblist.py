"""A list of URLs as a crawl meets them: hosts by Zipf's law, in no order; always the same list.

It lies in two files, so that each measurement can read it again in pieces without keeping it in memory.
"""

from __future__ import annotations

from itertools import islice
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from amicrawl.config import Identity
from amicrawl.urls import UrlKey, url_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Batch = list[tuple[str, UrlKey]]

BATCH = 2_000
"""URLs handed on at once."""
PAGES_PER_HOST = 60
_SLOPE = 0.8
"""The pages of the host of rank r are as r to the power of minus this."""
_SYLLABLES = ("ka", "lo", "mi", "ter", "ran", "sel", "vo", "du", "pra", "nis", "ge", "hol", "bur", "cas")
_SCATTER, _NUMBERS = 0x9E37_79B1, 1 << 28
_ENDS = ("com", "com", "com", "org", "net", "de", "fr", "co.uk", "ru", "jp")
_SECTIONS = ("news", "blog", "products", "category", "en", "de", "articles", "shop", "wiki", "archive")


class WebList:
    """A list of *size* different URLs in *directory*."""

    def __init__(self, directory: Path, size: int, *, seed: int = 1) -> None:
        self._texts = directory / f"urls-{seed}.txt"
        self._keys = directory / f"keys-{seed}.bin"
        self._size = size
        self._seed = seed

    @property
    def hosts(self) -> int:
        """How many hosts the URLs are drawn from."""
        return max(1, self._size // PAGES_PER_HOST)

    @property
    def octets(self) -> int:
        """Octets of all URLs."""
        return self._texts.stat().st_size - self._size

    def write(self) -> None:
        """Write the files."""
        with self._texts.open("w") as texts, self._keys.open("wb") as keys:
            for batch in self._made():
                texts.writelines(f"{url}\n" for url in batch)
                found = [url_key(url, Identity.EXACT) for url in batch]
                keys.write(np.array(found, np.uint64).tobytes())

    def batches(self, most: int | None = None) -> Iterator[Batch]:
        """Yield the URLs with their keys, or the first *most*."""
        left = self._size if most is None else min(most, self._size)
        with self._texts.open() as texts, self._keys.open("rb") as keys:
            while left:
                count = min(BATCH, left)
                left -= count
                halves = np.frombuffer(keys.read(16 * count), np.uint64).tolist()
                lines = (line[:-1] for line in islice(texts, count))
                yield [
                    (url, UrlKey(host, path))
                    for url, host, path in zip(lines, halves[::2], halves[1::2], strict=True)
                ]

    def keys(self) -> np.ndarray:
        """Return the keys, as rows of two unsigned 64-bit numbers."""
        return np.fromfile(self._keys, np.uint64).reshape(-1, 2)

    def texts(self) -> Iterator[bytes]:
        """Yield the URLs as octets."""
        with self._texts.open("rb") as texts:
            for line in texts:
                yield line[:-1]

    def _made(self) -> Iterator[list[str]]:
        random, numbers = Random(self._seed), np.random.default_rng(self._seed)
        names = _names(random, self.hosts)
        shares = np.arange(1, self.hosts + 1, dtype=np.float64) ** -_SLOPE
        edges = np.cumsum(shares) / shares.sum()
        words = ["".join(random.choices(_SYLLABLES, k=random.randint(1, 3))) for _ in range(3_000)]
        for start in range(0, self._size, BATCH):
            count = min(BATCH, self._size - start)
            hosts = np.searchsorted(edges, numbers.random(count), side="right").tolist()
            drawn = numbers.integers(0, 1 << 62, count).tolist()
            yield [
                names[min(host, len(names) - 1)] + _path(draw, start + number, words)
                for number, (host, draw) in enumerate(zip(hosts, drawn, strict=True))
            ]


def _names(random: Random, count: int) -> list[str]:
    """Return what the URLs of *count* hosts begin with, each of a registrable domain of its own."""
    names = []
    for number in range(count):
        name = "".join(random.choices(_SYLLABLES, k=random.randint(2, 4)))
        names.append(
            f"https://{random.choice(('www.', '', 'www.'))}{name}{number}.{random.choice(_ENDS)}"
        )
    return names


def _path(draw: int, number: int, words: list[str]) -> str:
    """Return a path that no other *number* has, of a kind and with words that *draw* says."""
    # Numbers on the web do not count up in the order of a list; these are as hard to compress.
    number = number * _SCATTER % _NUMBERS
    kind, draw = draw % 8, draw // 8
    section, draw = _SECTIONS[draw % len(_SECTIONS)], draw // len(_SECTIONS)
    if kind == 0:
        return f"/{section}/item?id={number}"
    if kind == 1:
        return f"/{section}/{number}/"
    slug = "-".join(words[draw // 3_000**place % 3_000] for place in range(2 + kind % 3))
    if kind == 2:
        return f"/20{10 + draw % 15}/{1 + draw % 12:02}/{slug}-{number}"
    return f"/{section}/{slug}-{number}.html"
