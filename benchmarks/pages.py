"""Pages to crawl: made up, all different, and as large and as compressible as HTML on the web.

A page of 33 paragraphs is some 26,000 bytes and shrinks to about a third under gzip. It follows from its
number alone, so that nothing has to be stored, and is joined from a pool of paragraphs, so that making
one costs little.
"""

from __future__ import annotations

import random
from itertools import accumulate

_SYLLABLES = (
    "ka",
    "re",
    "lo",
    "mi",
    "tu",
    "sen",
    "var",
    "el",
    "ish",
    "on",
    "der",
    "pal",
    "qui",
    "ste",
    "gro",
    "an",
)
_VOCABULARY = 6000
_PARAGRAPHS = 4096
_PER_PAGE = 33


class Pages:
    """The pages, by number, of *paragraphs* each."""

    def __init__(self, paragraphs: int = _PER_PAGE) -> None:
        self._paragraphs = paragraphs
        source = random.Random(1881)
        words = _words(source)
        weights = list(accumulate(1 / (rank + 5) for rank in range(len(words))))
        self._pool = [_paragraph(source, words, weights) for _ in range(_PARAGRAPHS)]

    def page(self, number: int) -> bytes:
        """Return page *number*."""
        pool, last = self._pool, _PARAGRAPHS - 1
        mixed = number * 2654435761
        # An odd stride through a power of two meets no paragraph twice.
        place, stride = mixed & last, (mixed >> 12 | 1) & last
        pieces = []
        for _ in range(self._paragraphs):
            pieces.append(pool[place])
            place = (place + stride) & last
        body = b"".join(pieces)
        return _TOP % (number, number) + body + _BOTTOM % (number + 1)


_TOP = b"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Page %d</title>
<link rel="stylesheet" href="/assets/site.css"><script src="/assets/site.js" defer></script></head>
<body class="article"><nav><a href="/">Home</a><a href="/archive/">Archive</a></nav><main id="page-%d">
"""
_BOTTOM = b"""</main><footer><a rel="next" href="/page/%d">Next</a></footer></body></html>
"""


def _words(source: random.Random) -> list[str]:
    """Return a vocabulary; the words at its head are short, as the frequent ones of a language are."""
    words = {
        "".join(source.choices(_SYLLABLES, k=1 + min(rank // 40, source.randrange(1, 5))))
        for rank in range(_VOCABULARY)
    }
    return sorted(words, key=lambda word: (len(word), word))


def _paragraph(source: random.Random, words: list[str], weights: list[float]) -> bytes:
    """Return a paragraph of some 600 bytes with the tags, links and attributes that real ones have."""
    text = source.choices(words, cum_weights=weights, k=70)
    for place in source.sample(range(70), k=4):
        word = text[place]
        slug = "-".join(source.choices(words, k=3))
        text[place] = f'<a class="link" href="/{slug}/{source.randrange(100_000)}.html">{word}</a>'
    sentence = " ".join(text).capitalize()
    return f'<p class="text" id="p{source.randrange(1_000_000)}">{sentence}.</p>\n'.encode()
